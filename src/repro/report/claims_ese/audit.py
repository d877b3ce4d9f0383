"""Tables of audit E1, E4 and E6: what one batch shows before any training; rows of other kinds are passed over."""

import pandas as pd


def rank_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numerical rank of dependency matrices by layer: median, smallest and largest, and S₂/S₁ (audit E4)."""
    keys = ["backbone", "layer", "dim", "setting"]
    ranks, seconds = (rows[rows["metric"] == metric] for metric in ("numerical_rank", "second_share"))
    found = ranks.groupby(keys, sort=False).agg(
        median=("value", "median"), smallest=("ci_low", "min"), largest=("ci_high", "max")
    )
    ratio = seconds.groupby(keys, sort=False)["value"].mean()
    table = found.astype(int).assign(ratio=[f"{ratio[key]:.1e}" for key in found.index]).reset_index()
    return table.rename(
        columns={"dim": "size", "setting": "matrix", "median": "rank, median", "ratio": "second by first"}
    )


def repeat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far two calls on one batch agree, a line per decomposition (audit E6)."""
    names = {
        "sign_flips": "components that change sign, %",
        "column_cosine": "cosine of equal components, median, %",
        "last_cosine": "the last one's, %",
        "subspace_overlap": "overlap of the two spaces, %",
    }
    own = rows[rows["metric"].isin(list(names))]
    table = 100 * own.pivot_table(index=["backbone", "dim", "setting"], columns="metric", values="value", sort=False)
    table = table.reindex(columns=list(names)).reset_index()
    return table.rename(columns={"dim": "k", "setting": "decomposition", **names}).rename_axis(columns=None)


def constant_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The embedding output under `cls` pooling beside the last layer, in the released form (audit E1)."""
    names = {
        "distinct_vectors": "distinct vectors",
        "base_loss": "AnglE's loss",
        "base_gradient": "its gradient by one text",
        "shared_gradient": "by what all texts share",
        "loss_share": "share of the whole loss, %",
    }
    own = rows[rows["metric"].isin(list(names))]
    table = own.pivot_table(index=["backbone", "layer"], columns="metric", values="value", sort=False)
    table = table.reindex(columns=list(names))
    table["loss_share"] *= 100
    for gradient in ("base_gradient", "shared_gradient"):
        table[gradient] = [f"{v:.0e}" for v in table[gradient]]
    table["distinct_vectors"] = table["distinct_vectors"].astype(int)
    return table.reset_index().rename(columns=names).rename_axis(columns=None)
