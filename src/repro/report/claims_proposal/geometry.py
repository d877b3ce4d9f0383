"""PROP-T-1: does the dimension bear a systematic relation to contrastive loss, alignment and uniformity?"""

from dataclasses import replace

import numpy as np
import pandas as pd

from repro.report.judge import estimates, trend
from repro.report.verdict import Measurement

DERIVED = {"info_nce": -1, "uniformity": -1}
"""both fall as the dimension grows, by the equations of the page; for alignment they name no direction"""
TABLE = {
    "alignment": "alignment",
    "uniformity": "uniformity",
    "uniformity_limit": "best possible",
    "uniformity_dim": "dims filled",
    "info_nce": "InfoNCE",
    "expected_info_nce": "expected, all dims filled",
    "expected_info_nce_filled": "expected, dims filled",
}
"""columns of the table of trained encoders"""


def alignment_uniformity(rows: pd.DataFrame) -> list[Measurement]:
    """Kendall's τ of each quantity against dim, over trained encoders.

    The proposal names no direction. The loss and uniformity are judged by the one that the theory gives them;
    alignment by whichever it shows, so that only the absence of a trend speaks against the claim.
    """
    found = []
    for metric in ("info_nce", "alignment", "uniformity"):
        own = rows[rows["metric"] == metric]
        at = estimates(own)
        if len(at) < 3:
            continue
        direction = DERIVED.get(metric)
        words = f"{metric} against dim" + ("" if direction else ", either direction")
        measured = trend("PROP-T-1", own, at, direction or 1, words)
        found.append(measured if direction or measured.value >= 0 else replace(measured, direction=-1))
    return found


def geometry_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per dim with what was measured and what theory expects; seeds are averaged."""
    own = rows[rows["metric"].isin(list(TABLE))]
    table = own.pivot_table(index="dim", columns="metric", values="value").reindex(columns=list(TABLE))
    table["uniformity_dim"] = table["uniformity_dim"].round().astype("Int64")
    return table.rename(columns=TABLE).reset_index().sort_values("dim", ascending=False)


def misses(rows: pd.DataFrame) -> dict[str, float]:
    """How far the measured loss lies from either expectation: a factor of 1 or more, the median over dims.

    Keys are the headings of `geometry_table`; an expectation that no dim has is left out.
    """
    table = rows.pivot_table(index="dim", columns="metric", values="value")
    found = {}
    for metric in ("expected_info_nce", "expected_info_nce_filled"):
        if metric in table:
            found[TABLE[metric]] = float(np.exp(np.log(table["info_nce"] / table[metric]).abs().median()))
    return found
