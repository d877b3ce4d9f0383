"""Claims on score against dim: Figure 2.

Scores in points. The paper's dims are read relative to the backbone's hidden size where the backbone is
another one; its 768 stands for `hidden_dim`. "At every dim" is judged by the dim where the claim is weakest.
"""

from collections.abc import Mapping
from math import log2

import pandas as pd

from repro.report.judge import MARGIN_POINTS, effect, estimates, sameness, trend
from repro.report.verdict import Measurement
from repro.types import InputError

PAPER_HIDDEN = 768
PAPER_OPTIMAL = {"trec": 768, "stsb": 256, "cr": 256, "mrpc": 16}


def optimal_dim(scores: Mapping[int, float], *, margin: float = MARGIN_POINTS) -> int:
    """The smallest dim whose score, in points, is within `margin` of the best (PROTOCOLS §3.6).

    Raises:
        InputError: for no score at all.
    """
    if not scores:
        raise InputError("no scores to choose an optimal dim from")
    best = max(scores.values())
    return min(dim for dim, score in scores.items() if score >= best - margin)


def optimal_dims(rows: pd.DataFrame) -> dict[str, int]:
    """Optimal dim of every task, from the pooler readout's scores averaged over seeds."""
    scores = rows[rows["metric"].isin(["spearman", "accuracy"]) & (rows["readout"] == "pooler")]
    return {
        str(task): optimal_dim({d: e.value for d, e in estimates(group).items()})
        for task, group in scores.groupby("dataset")
    }


def figure2(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    """Claims WANG-F2-1 … 6 from the rows of Figure 2."""
    scores = rows[rows["metric"].isin(["spearman", "accuracy"]) & (rows["readout"] == "pooler")]
    by_task = {str(task): estimates(group) for task, group in scores.groupby("dataset")}
    found = []
    for task, at in by_task.items():
        if hidden_dim not in at:
            continue
        full = at[hidden_dim]
        wide = [at[d] - full for d in at if d > hidden_dim]
        if wide:
            far = max(wide, key=lambda e: abs(e.value))
            found.append(sameness("WANG-F2-1", far, f"{task}: largest change above {hidden_dim} dims"))
        narrow = {d: e for d, e in at.items() if d <= hidden_dim}
        if task == "trec" and len(narrow) >= 3:
            found.append(trend("WANG-F2-2", scores[scores["dataset"] == task], narrow, 1, "trec accuracy against dim"))
        if task in ("stsb", "cr") and len(narrow) >= 3:
            third = min(narrow, key=lambda d: abs(log2(d) - log2(hidden_dim / 3)))
            smallest = 8 if 8 in narrow else min(narrow)
            found.append(sameness("WANG-F2-3", full - at[third], f"{task}: loss from {hidden_dim} to {third} dims"))
            if smallest < third:
                drop = at[third] - at[smallest]
                what = f"{task}: loss from {third} to {smallest} dims, beyond 3 points"
                found.append(effect("WANG-F2-3", drop, what, null=3.0))
        if task == "mrpc" and len(narrow) >= 2:
            far = max((at[d] - full for d in narrow if d != hidden_dim), key=lambda e: abs(e.value))
            found.append(sameness("WANG-F2-4", far, f"mrpc: largest change below {hidden_dim} dims", margin=3.0))
    return [*found, *_optimal_claims(rows, hidden_dim)]


def _optimal_claims(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    best = optimal_dims(rows)
    found = []
    seeds = int(rows["seed"].nunique())
    for task, printed in PAPER_OPTIMAL.items():
        if task not in best or not (rows["dim"] == hidden_dim).any():
            continue
        share = best[task] / hidden_dim
        # the sweep halves the dim at every step, so a factor of two either way is its resolution
        if printed == PAPER_HIDDEN:
            measured = Measurement(
                "WANG-F2-5",
                "sameness",
                log2(share),
                log2(share) - 0.5,
                log2(share) + 0.5,
                what=f"{task}: log2(optimal dim / hidden size)",
                seeds=seeds,
            )
        else:
            measured = Measurement(
                "WANG-F2-5",
                "ratio",
                share,
                share / 2**0.5,
                share * 2**0.5,
                null=1.0,
                seeds=seeds,
                paper=printed / PAPER_HIDDEN,
                what=f"{task}: optimal dim / hidden size",
            )
        found.append(measured)
    if len(best) >= 4:
        below = sum(dim < hidden_dim for dim in best.values())
        found.append(
            Measurement(
                "WANG-F2-6",
                "effect",
                below,
                below,
                below,
                null=2.5,
                seeds=seeds,
                what=f"tasks of {len(best)} whose optimal dim is below the hidden size",
            )
        )
    return found
