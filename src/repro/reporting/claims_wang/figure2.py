"""Wang et al. (2023): from rows to the measurements its claims are judged by.

Scores in points. The paper's dims are read relative to the backbone's hidden size where the backbone is
another one; its 768 stands for `hidden_dim`. "At every dim" is judged by the dim where the claim is weakest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, log2

import numpy as np
import pandas as pd

from repro.evaluation.stats import half_width, kendall_trend
from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.reporting.compare import paper_values
from repro.reporting.verdict import Measurement
from repro.types import InputError

PAPER_HIDDEN = 768
PAPER_OPTIMAL = {"trec": 768, "stsb": 256, "cr": 256, "mrpc": 16}
MARGIN_POINTS = 1.0


@dataclass(frozen=True)
class Estimate:
    """A number in points with the half-width of its 95 % interval over items and seeds."""

    value: float
    half: float
    seeds: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + self.half

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Difference; the intervals are treated as unrelated, which is careful for scores on shared items."""
        return Estimate(self.value - other.value, hypot(self.half, other.half), min(self.seeds, other.seeds))


def estimate(rows: pd.DataFrame) -> Estimate:
    """Mean over seeds, in points, of the rows of one cell; one seed carries the assumed seed noise of §5.9."""
    values = 100 * rows["value"].to_numpy(float)
    width = (rows["ci_high"] - rows["ci_low"]).to_numpy(float)
    item = 0.0 if np.isnan(width).all() else float(50 * np.nanmean(width))
    return Estimate(float(values.mean()), half_width(item, values), len(values))


def estimates(rows: pd.DataFrame, by: str = "dim") -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    return {int(key): estimate(group) for key, group in rows.groupby(by)}


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
            found.append(_sameness("WANG-F2-1", far, f"{task}: largest change above {hidden_dim} dims"))
        narrow = {d: e for d, e in at.items() if d <= hidden_dim}
        if task == "trec" and len(narrow) >= 3:
            found.append(_trend("WANG-F2-2", scores[scores["dataset"] == task], narrow, 1, "trec accuracy against dim"))
        if task in ("stsb", "cr") and len(narrow) >= 3:
            third = min(narrow, key=lambda d: abs(log2(d) - log2(hidden_dim / 3)))
            smallest = 8 if 8 in narrow else min(narrow)
            found.append(_sameness("WANG-F2-3", full - at[third], f"{task}: loss from {hidden_dim} to {third} dims"))
            if smallest < third:
                drop = at[third] - at[smallest]
                what = f"{task}: loss from {third} to {smallest} dims, beyond 3 points"
                found.append(_effect("WANG-F2-3", drop, what, null=3.0))
        if task == "mrpc" and len(narrow) >= 2:
            far = max((at[d] - full for d in narrow if d != hidden_dim), key=lambda e: abs(e.value))
            found.append(_sameness("WANG-F2-4", far, f"mrpc: largest change below {hidden_dim} dims", margin=3.0))
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
                "WANG-F2-5", "sameness", log2(share), log2(share) - 0.5, log2(share) + 0.5,
                what=f"{task}: log2(optimal dim / hidden size)", seeds=seeds,
            )  # fmt: skip
        else:
            measured = Measurement(
                "WANG-F2-5", "ratio", share, share / 2**0.5, share * 2**0.5, null=1.0, seeds=seeds,
                paper=printed / PAPER_HIDDEN, what=f"{task}: optimal dim / hidden size",
            )  # fmt: skip
        found.append(measured)
    if len(best) >= 4:
        below = sum(dim < hidden_dim for dim in best.values())
        found.append(
            Measurement("WANG-F2-6", "effect", below, below, below, null=2.5, seeds=seeds,
                        what=f"tasks of {len(best)} whose optimal dim is below the hidden size")
        )  # fmt: skip
    return found


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """Claims WANG-T1-1 … 5 and WANG-S44-1 from the rows of Table 1."""
    gains = rows[rows["metric"] == "spearman_gain"]
    step = {stage: estimates(gains[gains["method"] == stage]) for stage in (STEP_1, STEP_2)}
    if not step[STEP_1] or not step[STEP_2]:
        return []
    opt = rows[rows["metric"] == "optimal_dim"].set_index(["seed", "dim"])["value"]
    first = gains[gains["method"] == STEP_1]
    moved = [opt.get((seed, dim)) != dim for seed, dim in zip(first["seed"], first["dim"], strict=True)]
    changed = estimates(first[moved])
    found = []
    if changed:
        d, e = min(changed.items(), key=lambda item: item[1].value)
        found.append(_effect("WANG-T1-1", e, f"smallest gain of step 1 where the encoder changes (dim {d})"))
    d, e = min(step[STEP_2].items(), key=lambda item: item[1].value)
    found.append(_effect("WANG-T1-2", e, f"smallest gain of step 2 (dim {d})"))
    mean = {stage: _mean(list(at.values())) for stage, at in step.items()}
    found.append(_effect("WANG-T1-3", mean[STEP_1], "mean gain of step 1", paper=1.79))
    found.append(_effect("WANG-T1-3", mean[STEP_2], "mean gain of step 2", paper=1.17))
    total = rows[rows["metric"] == "spearman_gain_total"]
    at = estimates(total)
    if len(at) >= 3:
        found.append(_trend("WANG-T1-4", total, at, -1, "total gain against dim", paper=_printed_trend()))
    found.append(_effect("WANG-T1-5", mean[STEP_1] - mean[STEP_2], "mean gain of step 1 less that of step 2 (SimCSE)"))
    cost = rows[rows["metric"] == "train_seconds"].groupby("method")["value"].sum()
    if STEP_2 in cost and END_TO_END in cost and cost[STEP_2] > 0:
        ratio = float(cost[STEP_2] / cost[END_TO_END])
        # seconds of one run: a factor of 1.2 either way covers what company on the machine does
        found.append(
            Measurement("WANG-S44-1", "ratio", ratio, ratio / 1.2, ratio * 1.2, null=0.1, direction=-1,
                        what="seconds of step 2 over seconds of end-to-end training")
        )  # fmt: skip
    return found


def _printed_trend() -> float:
    printed = paper_values("wang2023", "table1")
    score = printed[printed["metric"] == "spearman"].set_index(["method", "dim"])["value"]
    gain = score[STEP_2] - score[END_TO_END]
    return kendall_trend([int(d) for d in gain.index], gain.to_numpy()).value


def _mean(parts: Sequence[Estimate]) -> Estimate:
    # the same items and seed stand behind every dim, so the half-widths do not shrink with their number
    value, half = float(np.mean([e.value for e in parts])), float(np.mean([e.half for e in parts]))
    return Estimate(value, half, min(e.seeds for e in parts))


def _effect(claim: str, e: Estimate, what: str, *, paper: float | None = None, null: float = 0.0) -> Measurement:
    return Measurement(claim, "effect", e.value, e.low, e.high, paper=paper, null=null, seeds=e.seeds, what=what)


def _sameness(claim: str, e: Estimate, what: str, *, margin: float = MARGIN_POINTS) -> Measurement:
    return Measurement(claim, "sameness", e.value, e.low, e.high, margin=margin, seeds=e.seeds, what=what)


def _trend(
    claim: str, rows: pd.DataFrame, at: Mapping[int, Estimate], direction: int, what: str, paper: float | None = None
) -> Measurement:
    table = rows.pivot_table(index="seed", columns="dim", values="value")[list(at)].dropna()
    found = kendall_trend(list(at), table.to_numpy())
    return Measurement(
        claim, "trend", found.value, found.low, found.high, paper=paper, direction=direction, seeds=len(table),
        what=f"Kendall tau of {what}",
    )  # fmt: skip
