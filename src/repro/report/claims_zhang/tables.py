"""Tables of the task pages: every score by size, forms that the paper leaves open, eigenvalues of kernels."""

import pandas as pd

from repro.methods import FULL_SIZE, TRUNCATE, ZHANG_METHODS
from repro.report.claims_zhang.leads import encoders_of

ORDER = (FULL_SIZE, *ZHANG_METHODS, TRUNCATE)


def _scores(rows: pd.DataFrame) -> pd.DataFrame:
    kept = rows[rows["metric"].isin(["spearman", "accuracy"]) & rows["method"].isin(ORDER)]
    kept = kept.assign(setting=kept["setting"].fillna(""))
    grouped = kept.groupby(["backbone", "method", "setting", "dim"], sort=False)["value"].mean()
    return 100 * grouped.unstack("dim").sort_index(axis=1)


def score_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores ×100, means over seeds: a line per encoder, method and setting, a column per size that any of them has."""
    table = _scores(rows).reset_index()
    order = {name: i for i, name in enumerate(encoders_of(rows))}
    table = table.assign(first=table["backbone"].map(order), second=table["method"].map(ORDER.index))
    table = table.sort_values(["first", "second", "setting"]).drop(columns=["first", "second"])
    table.columns = [str(c) for c in table.columns]
    return table.rename(columns={"backbone": "encoder"}).reset_index(drop=True)


def variant_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What another form of a method changes against its default one in the same setting, in points over sizes."""
    table = _scores(rows)
    lines = []
    for backbone, method, setting in table.index:
        default, _, form = setting.partition(", ")
        if form and (backbone, method, default) in table.index:
            change = (table.loc[(backbone, method, setting)] - table.loc[(backbone, method, default)]).dropna()
            if len(change):
                lines.append((backbone, method, form, float(change.min()), float(change.max())))
    return pd.DataFrame(lines, columns=["encoder", "method", "form", "smallest change", "largest change"])


def rescaled_table(rows: pd.DataFrame, form: str) -> pd.DataFrame:
    """PCA, kernel PCA and kernel PCA in another form at every size, inductive: a line per encoder and size."""
    table = _scores(rows)
    lines = []
    for encoder in encoders_of(rows):
        wanted = [("PCA", "inductive"), ("KPCA", "inductive"), ("KPCA", f"inductive, {form}")]
        if not all((encoder, *key) in table.index for key in wanted):
            continue
        columns = [table.loc[(encoder, *key)] for key in wanted]
        for dim in table.columns:
            scores = [float(column[dim]) for column in columns]
            if not pd.isna(scores).any():
                lines.append((encoder, dim, *scores))
    return pd.DataFrame(lines, columns=["encoder", "dims", "PCA", "KPCA", f"KPCA {form}"])


def roughness_table(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Roughness in points per encoder, setting and method, recorded (mean over seeds) and live with its interval."""
    keys = ["backbone", "setting", "method"]
    parts = [frame[frame["metric"] == "roughness"] for frame in (past, live)]
    recorded = (100 * parts[0].groupby(keys, sort=False)["value"].mean()).rename("recorded").reset_index()
    shown = parts[1][keys].assign(
        live=[
            f"{100 * v:.2f} [{100 * low:.2f}, {100 * high:.2f}]"
            for v, low, high in zip(parts[1]["value"], parts[1]["ci_low"], parts[1]["ci_high"], strict=True)
        ]
    )
    table = shown.merge(recorded, on=keys, how="left")
    return table[[*keys, "recorded", "live"]].rename(columns={"backbone": "encoder"})


def spectrum_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per encoder and kernel the smallest eigenvalue as a share of the largest, and the number of negative ones."""
    names = {
        "smallest_eigenvalue": "smallest by largest",
        "negative_eigenvalues": "below −1e-12",
        "rounded_eigenvalues": "negative by rounding",
    }
    kept = rows[rows["metric"].isin(list(names))]
    table = kept.pivot_table(
        index=["backbone", "method", "setting", "n_train"], columns="metric", values="value", aggfunc="mean", sort=False
    ).reset_index()
    table = table[["backbone", "method", "setting", "n_train", *names]].rename(columns=names)
    table["smallest by largest"] = [f"{v:.0e}" for v in table["smallest by largest"]]
    for count in ("below −1e-12", "negative by rounding"):
        table[count] = table[count].round().astype(int)
    table["method"] = table["method"].str.removeprefix("KPCA, ")
    titles = {"backbone": "encoder", "method": "kernel", "setting": "sentences", "n_train": "rows"}
    return table.rename(columns=titles).rename_axis(columns=None)
