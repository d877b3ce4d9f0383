"""What a world of known dimension teaches: expectations of our own, judged by the same rules as printed claims."""

import pandas as pd

from repro.evaluation.stats import kendall_trend
from repro.report.verdict import Measurement
from repro.report.wide import over_seeds

INTRINSIC = ("participation_ratio", "effective_rank", "two_nn", "mle_dimension")
NAMES = {
    "participation_ratio": "participation ratio",
    "effective_rank": "effective rank",
    "two_nn": "TwoNN",
    "mle_dimension": "maximum likelihood",
    "dimension_99": "99 % of variance",
    "knee": "knee",
    "sure_knee": "sure knee",
    "spearman": "Spearman × 100",
}
"""headings of the table"""


def world_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per world and embedding: what is known or estimated of its dimension, its score and its knees."""
    own = rows[rows["metric"].isin(list(NAMES))].copy()
    own.loc[own["metric"] == "spearman", "value"] *= 100
    table = own.pivot_table(index=["setting", "method"], columns="metric", values="value", sort=False)
    table = table.reindex(columns=[name for name in NAMES if name in table]).rename(columns=NAMES)
    for name in ("dimension_99", "knee", "sure_knee"):
        if NAMES[name] in table:
            table[NAMES[name]] = table[NAMES[name]].round().astype("Int64")
    return table.reset_index().rename(columns={"setting": "world", "method": "embedding"})


def known_dimension(rows: pd.DataFrame) -> pd.DataFrame:
    """Kendall's τ over worlds of each estimate, and of the knee, with the known participation ratio; with a verdict.

    The ratio is to the known value of the same measure where there is one, else to the known participation ratio.
    Seeds are averaged. Fewer than three worlds, or an estimate that is one number throughout, are not judged.
    """
    rows = over_seeds(rows, ("method", "setting", "metric", "dim"))
    known = rows[rows["method"] == "known"].pivot_table(index="setting", columns="metric", values="value")
    lines = []
    for (method, metric), group in rows[rows["method"] != "known"].groupby(["method", "metric"], sort=False):
        own = group.set_index("setting")["value"] if metric in (*INTRINSIC, "knee") else pd.Series(dtype=float)
        truth = known["participation_ratio"].reindex(own.index)
        if len(own) < 3 or own.nunique() < 2:
            continue
        # τ compares order alone, so that ranks may stand for the sizes
        found = kendall_trend([int(rank) for rank in truth.rank()], own.to_numpy(float))
        same = known.get(str(metric), known["participation_ratio"]).reindex(own.index)
        judged = Measurement("", "trend", found.value, found.low, found.high)
        lines.append(
            {
                "embedding": method,
                "estimate": NAMES[str(metric)],
                "verdict": judged.verdict,
                "Kendall τ with the known dimension": f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]",
                "estimate / known": float((own / same).median()),
            }
        )
    return pd.DataFrame(lines)
