"""Claims on Figure 6, ESE-F6-1 and ESE-F6-2, and its tables: seconds by depth and size, as ratios within a round."""

import numpy as np
import pandas as pd

from repro.methods import ESE, MRL
from repro.report.claims_ese.leads import RIVALS, by_backbone
from repro.report.claims_ese.tables import rank
from repro.report.verdict import Measurement, sameness

PER_CENT = 10.0
"""what counts as equal time: runs on one idle machine differ by several per cent"""
MEAN = "mean over sizes"


def figure6(rows: pd.DataFrame) -> list[Measurement]:
    """Equal time at equal depth, less time for shorter embeddings, and whether ESE's are found sooner."""
    found = []
    for backbone, own in by_backbone(rows):
        found += _equal_depth(backbone, own)
        smallest = _ratios(own, "size_ratio")
        if len(smallest) and f"{ESE} / {MRL}" in set(own["method"]):
            least = smallest.loc[smallest["value"].idxmin()]
            what = (
                f"{backbone}: encoding and search at full size by the same at {int(least['dim'])} dims, smallest of "
                f"the lines ({least['method']}), times"
            )
            found.append(_ratio("ESE-F6-2", least, what, own, direction=1))
        for rival in RIVALS:
            total = _ratios(own, "total_ratio", f"{ESE} / {rival}")
            total = total[total["setting"].str.endswith(MEAN)]
            if len(total):
                what = f"{backbone}: encoding and search, ESE by {rival}, mean over sizes, times"
                found.append(_ratio("ESE-F6-2", total.iloc[0], what, own, direction=-1))
    return found


def _equal_depth(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    """The layer at which ESE's seconds differ most from MRL's, in per cent."""
    ratios = _ratios(rows, "encode_ratio", f"{ESE} / {MRL}")
    if ratios.empty:
        return []
    worst = ratios.loc[np.log(ratios["value"]).abs().idxmax()]
    value, low, high = (100 * (float(worst[c]) - 1) for c in ("value", "ci_low", "ci_high"))
    what = (
        f"{backbone}: encoding, ESE's seconds less MRL's in per cent, where they differ most (layer {worst['layer']})"
    )
    return [Measurement("ESE-F6-1", "sameness", value, low, high, margin=PER_CENT, seeds=_runs(rows), what=what)]


def _ratio(claim: str, row: pd.Series, what: str, rows: pd.DataFrame, *, direction: int) -> Measurement:
    value, low, high = (float(row[c]) for c in ("value", "ci_low", "ci_high"))
    return Measurement(claim, "ratio", value, low, high, null=1.0, direction=direction, seeds=_runs(rows), what=what)


def _runs(rows: pd.DataFrame) -> int:
    return int(rows["seed"].nunique())


def _ratios(rows: pd.DataFrame, metric: str, method: str | None = None) -> pd.DataFrame:
    """Ratios of one kind, means over runs: method, layer, dim, setting, value, ci_low and ci_high."""
    own = rows[rows["metric"] == metric]
    own = own if method is None else own[own["method"] == method]
    keys = ["method", "layer", "dim", "setting"]
    grouped = own.groupby(keys, dropna=False, sort=False)[["value", "ci_low", "ci_high"]]
    return grouped.mean().reset_index()


def depth_cost(rows: pd.DataFrame) -> pd.DataFrame:
    """By backbone, method and layer: milliseconds to encode, their share of full depth, Spearman ×100 (Figure 6a)."""
    keys = ["backbone", "method", "layer"]
    seconds = rows[rows["metric"] == "encode_seconds"].groupby(keys, sort=False)["value"].mean()
    quality = 100 * rows[rows["metric"] == "spearman"].groupby(keys, sort=False)["value"].mean()
    table = pd.concat([1000 * seconds.rename("ms"), quality.rename("spearman")], axis=1).reset_index()
    full = table.groupby(["backbone", "method"])["ms"].transform("last")
    return table.assign(share=100 * table["ms"] / full)


def depth_cost_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The same for the reader."""
    table = depth_cost(rows)
    return table.rename(columns={"ms": "milliseconds", "share": "% of full depth", "spearman": "Spearman ×100"})


def size_cost_table(rows: pd.DataFrame, megabytes: float = 4.0) -> pd.DataFrame:
    """By backbone and size: milliseconds of search of every line, and megabytes of a million vectors.

    Args:
        rows: of `ese.efficiency.timing_rows`.
        megabytes: of a million numbers.
    """
    own = rows[rows["metric"] == "search_seconds"]
    order = {backbone: i for i, backbone in enumerate(dict.fromkeys(own["backbone"]))}
    table = 1000 * own.assign(first=own["backbone"].map(order)).pivot_table(
        index=["first", "backbone", "dim"], columns="method", values="value"
    )
    table = table[sorted(table.columns, key=rank)].rename_axis(columns=None).reset_index().drop(columns="first")
    memory = [megabytes * dim for dim in table["dim"]]
    return table.assign(**{"MB per million vectors": memory}).rename(columns={"dim": "dims"})


def equality_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every two lines: how far their seconds of encoding at each layer and of search differ, and if they are equal.

    Equal means that the interval over rounds lies within ± 10 %, different that it lies outside.
    """
    lines = []
    for backbone, own in by_backbone(rows):
        encode = _ratios(own, "encode_ratio").assign(
            what=lambda t: [f"encoding, layer {layer}" for layer in t["layer"]]
        )
        search = _ratios(own, "search_ratio")
        search = search[search["setting"].str.endswith(MEAN)].assign(what="search, mean over sizes")
        for row in pd.concat([encode, search]).itertuples():
            value, low, high = (100 * (x - 1) for x in (row.value, row.ci_low, row.ci_high))
            lines.append(
                {
                    "backbone": backbone,
                    "lines": row.method,
                    "seconds of": row.what,
                    "difference, %": f"{value:.1f} [{low:.1f}, {high:.1f}]",
                    "equal": _equal(low, high),
                }
            )
    return pd.DataFrame(lines, columns=["backbone", "lines", "seconds of", "difference, %", "equal"])


def _equal(low: float, high: float) -> str:
    if np.isnan(low) or np.isnan(high):
        return "one round says nothing"
    said = {"reproduced": f"within {PER_CENT:.0f} %", "within noise": "cannot tell", "not reproduced": "no"}
    return said[sameness(low, high, margin=PER_CENT)]
