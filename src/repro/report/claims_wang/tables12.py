"""Claims on two-step training: Table 1 (SimCSE) and Table 2 (softmax on entailment pairs)."""

import pandas as pd

from repro.evaluation.stats import kendall_trend
from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.report.compare import paper_values
from repro.report.judge import Estimate, effect, estimates, lowest, mean, trend
from repro.report.verdict import Measurement


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """Claims WANG-T1-1 … 5 and WANG-S44-1 from the rows of Table 1."""
    found = _gains(rows, ("WANG-T1-1", "WANG-T1-2", "WANG-T1-3"), printed=(1.79, 1.17), objective="SimCSE")
    total = rows[rows["metric"] == "spearman_gain_total"]
    at = estimates(total)
    if found and len(at) >= 3:
        found.append(trend("WANG-T1-4", total, at, -1, "total gain against dim", paper=_printed_trend()))
    return [*found, *_cost(rows)] if found else []


def table2(rows: pd.DataFrame) -> list[Measurement]:
    """Claims WANG-T2-1 … 3, and WANG-T1-5 under this objective, from the rows of Table 2."""
    found = _gains(rows, ("WANG-T2-1", "WANG-T2-1", "WANG-T2-2"), printed=(13.16, 0.83), objective="softmax")
    end = rows[(rows["metric"] == "spearman") & (rows["method"] == END_TO_END)]
    alone, joined = (estimates(end[end["readout"] == readout]) for readout in ("encoder", "pooler"))
    if found and joined:
        d, e = lowest({d: alone[d] - joined[d] for d in joined})
        found.append(effect("WANG-T2-3", e, f"smallest lead of encoder_d over encoder_d + pooler_d (dim {d})"))
    return found


def _gains(
    rows: pd.DataFrame, claims: tuple[str, str, str], *, printed: tuple[float, float], objective: str
) -> list[Measurement]:
    """The gains of both steps where they are smallest, on average, and against each other; none without both steps.

    Args:
        rows: of Table 1 or 2.
        claims: on step 1, on step 2, and on their means.
        printed: the means of both steps.
        objective: what to call it.
    """
    step = _steps(rows)
    if step is None:
        return []
    found = []
    changed = _where_the_encoder_changes(rows)
    if changed:
        d, e = lowest(changed)
        found.append(effect(claims[0], e, f"smallest gain of step 1 where the encoder changes (dim {d})"))
    d, e = lowest(step[STEP_2])
    found.append(effect(claims[1], e, f"smallest gain of step 2 (dim {d})"))
    first, second = (mean(list(step[stage].values())) for stage in (STEP_1, STEP_2))
    found.append(effect(claims[2], first, "mean gain of step 1", paper=printed[0]))
    found.append(effect(claims[2], second, "mean gain of step 2", paper=printed[1]))
    found.append(effect("WANG-T1-5", first - second, f"mean gain of step 1 less that of step 2 ({objective})"))
    return found


def _steps(rows: pd.DataFrame) -> dict[str, dict[int, Estimate]] | None:
    gains = rows[rows["metric"] == "spearman_gain"]
    step = {stage: estimates(gains[gains["method"] == stage]) for stage in (STEP_1, STEP_2)}
    return step if all(step.values()) else None


def _where_the_encoder_changes(rows: pd.DataFrame) -> dict[int, Estimate]:
    opt = rows[rows["metric"] == "optimal_dim"].set_index(["seed", "dim"])["value"]
    first = rows[(rows["metric"] == "spearman_gain") & (rows["method"] == STEP_1)]
    moved = [opt.get((seed, dim)) != dim for seed, dim in zip(first["seed"], first["dim"], strict=True)]
    return estimates(first[moved])


def _cost(rows: pd.DataFrame) -> list[Measurement]:
    cost = rows[rows["metric"] == "train_seconds"].groupby("method")["value"].sum()
    if not cost.get(STEP_2) or not cost.get(END_TO_END):
        return []
    ratio = float(cost[STEP_2] / cost[END_TO_END])
    # seconds of one run: a factor of 1.2 either way covers what company on the machine does
    return [
        Measurement(
            "WANG-S44-1",
            "ratio",
            ratio,
            ratio / 1.2,
            ratio * 1.2,
            null=0.1,
            direction=-1,
            what="seconds of step 2 over seconds of end-to-end training",
        )
    ]


def _printed_trend() -> float:
    printed = paper_values("wang2023", "table1")
    score = printed[printed["metric"] == "spearman"].set_index(["method", "dim"])["value"]
    gain = score[STEP_2] - score[END_TO_END]
    return kendall_trend([int(d) for d in gain.index], gain.to_numpy()).value
