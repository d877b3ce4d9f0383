"""Figure 2 of Wang et al. (2023), score against dim: where a score stops to grow, and what is lost
below.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import log2
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.of_rows import estimate_cells, estimates
from repro.evaluation.seeds import Estimate, of_parts, scaled
from repro.evaluation.stats import Floats
from repro.report.cells import farthest, lowest
from repro.report.claims import record_of
from repro.report.measurements import effect, ratio
from repro.report.verdict import Measurement
from repro.rows import only

PAPER_HIDDEN = 768
PRINTED_THIRD = 256
PAPER_OPTIMAL = {part["task"]: part["printed"] for part in record_of("WANG-F2-5")["parts"]}
"""Figure 2's smallest dims that keep the best score."""
SCORES = ("spearman", "accuracy")

Losses = Mapping[tuple[int, int], Estimate]  # From a dim to a narrower one


def pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """The scores of the pooler's output."""
    return rows[rows["metric"].isin(SCORES) & (rows["readout"] == "pooler")]


def losses_of(rows: pd.DataFrame, task: str) -> tuple[int, list[int], Losses]:
    """The full size, all dims of a task from wide to narrow, and what it loses between them; paired
    over items where rows hold such changes. No dims without a score at full size.
    """
    full = int(rows["full"].iloc[0])
    rows_of_task = only(rows, dataset=task)
    score_by_dim = dict(reversed(estimates(pooled(rows_of_task)).items()))
    if full not in score_by_dim:
        return full, [], {}
    changes = rows_of_task[rows_of_task["metric"].str.endswith("_change")]
    loss = {(w, d): score_by_dim[w] - score_by_dim[d] for w, d in combinations(score_by_dim, 2)}
    for (wider, d), change in estimate_cells(changes, ["setting", "dim"]).items():
        loss[int(wider.removeprefix("from ")), int(d)] = scaled(change, -1.0)
    return full, list(score_by_dim), loss


def above_full(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How the score of every task changes above the full size, where it changes most."""
    for task in sorted(rows["dataset"].dropna().unique()):
        full, dims, loss = losses_of(rows, task)
        if wide := {d: loss[d, full] for d in dims if d > full}:
            quantity = what.format(task=task, full=full)
            yield effect(claim, farthest(wide)[1], quantity, test="sameness")


def below_full(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    margin: float,
) -> Iterator[Measurement]:
    """How the score of a task changes below the full size, where it changes most; beside it stands
    what a constant answer would lose.
    """
    full, dims, loss = losses_of(rows, task)
    if narrow := {d: loss[full, d] for d in dims if d < full}:
        rows_of_task = only(rows, dataset=task)
        floor = only(rows_of_task, metric="majority_floor")["value"].mean()
        scores = pooled(rows_of_task)
        full_score = only(scores, dim=full)["value"].mean()
        quantity = what.format(full=full, constant=f"{100 * (full_score - floor):.1f}")
        e = farthest(narrow)[1]
        yield effect(claim, e, quantity, test="sameness", margin=margin)


def smallest_step(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
) -> Iterator[Measurement]:
    """What a task loses at a step down from the full size, where it is least."""
    full, dims, loss = losses_of(rows, task)
    below = [d for d in dims if d <= full]
    if len(below) > 1:
        d, e = lowest({d: loss[w, d] for w, d in pairwise(below)})
        yield effect(claim, e, what.format(dim=d))


def loss_between(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    from_size: str,
    to_size: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """What a task loses between two of these sizes: full, the paper's 256, its smallest.

    A third of the full size stands for 256 only where that is no smaller size of the network.
    """
    full, dims, loss = losses_of(rows, task)
    below = [d for d in dims if d < full]
    third = third_of(below, full)
    if not third:
        return
    size = {"full": full, "third": third, "smallest": 8 if 8 in below else min(below)}
    wide, narrow = size[from_size], size[to_size]
    if narrow < wide:
        quantity = what.format(wide_dim=wide, narrow_dim=narrow)
        m = effect(claim, loss[wide, narrow], quantity, **compared)
        if third != PRINTED_THIRD < full:
            m = replace(m, missing=f"needs {PRINTED_THIRD} dims, as printed, of {full}")
        yield m


def third_of(dims: Iterable[int], full: int) -> int | None:
    """The paper's 256 of 768 where it is among dims below the full size, else the dim that stands
    for it: nearest to a third, within a factor of the root of 2.
    """
    if PRINTED_THIRD in dims and full > PRINTED_THIRD:
        return PRINTED_THIRD
    near = [d for d in dims if abs(log2(3 * d / full)) <= 0.5]
    return min(near, key=lambda d: abs(log2(3 * d / full)), default=None)


def log_optimal(dims: Sequence[int], full: int, scores: Floats) -> Floats:
    """log₂ of the smallest dim whose score (…, C), at ascending dims, is within a point of the best
    (method-optimal-dim in the book).

    The dim is counted as a share of the full size.
    """
    good = scores >= scores.max(-1, keepdims=True) - 1.0
    return np.log2(np.asarray(dims, float))[good.argmax(-1)] - log2(full)


def whole_curve(rows: pd.DataFrame, full: int) -> dict[int, Estimate]:
    """The scores of a task by dim, if it has one at full size and near a third of it: without the
    latter there is nowhere between for an optimum to be.
    """
    score_by_dim = estimates(pooled(rows))
    return score_by_dim if full in score_by_dim and third_of(score_by_dim, full) else {}


def optimal(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    task: str,
    paper: int,
) -> Iterator[Measurement]:
    """The optimal dim of every seed as a share of the full size, moved by the items."""
    full = int(rows["full"].iloc[0])
    score_by_dim = whole_curve(only(rows, dataset=task), full)
    if not score_by_dim:
        return
    best = of_parts(list(score_by_dim.values()), partial(log_optimal, list(score_by_dim), full))
    if paper == PAPER_HIDDEN:
        yield effect(claim, best, what, test="sameness", unit="doublings")
    else:
        yield ratio(claim, best, what, null=1.0, paper=paper / PAPER_HIDDEN)


def tasks_below_full(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """Of how many tasks, four at least, the optimal dim is below the full size."""
    full = int(rows["full"].iloc[0])
    of_tasks = [whole_curve(rows_of_task, full) for _, rows_of_task in rows.groupby("dataset")]
    curves = [score_by_dim for score_by_dim in of_tasks if score_by_dim]
    if len(curves) < 4:
        return
    ends = np.cumsum([len(score_by_dim) for score_by_dim in curves])[:-1]

    def below(scores: Floats) -> Floats:
        scores_of_curves = zip(curves, np.split(scores, ends, axis=-1), strict=True)
        is_below = [log_optimal(list(dims), full, curve) < 0 for dims, curve in scores_of_curves]
        return np.sum(is_below, axis=0, dtype=float)

    count = of_parts([e for score_by_dim in curves for e in score_by_dim.values()], below)
    yield effect(claim, count, what.format(n=len(curves)), **compared)
