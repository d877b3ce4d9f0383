"""What Wang et al. (2023) claim in Tables 1 and 2 and beside the tables.

"At every dim" is judged at the dim where the claim is hardest to hold.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd

from repro.evaluation.seeds import Estimate, estimates, kendall, mean
from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.papers.wang.claims_figures import judged, trending
from repro.report.judge import Judge, Measurement, Rule, average, effect, farthest, lowest, ratio
from repro.report.tables import paper_values

# Tables 1 and 2: the gains of both steps

FIRST, SECOND = (f"metric == 'spearman_gain' and method == '{step}' and dim <= full" for step in (STEP_1, STEP_2))
"""at the paper's dims, none of which is above the full size"""


def two_steps(claims: tuple[str, str, str], printed: tuple[float, float], objective: str) -> list[Rule]:
    """The gains of both steps where they are smallest, on average beside the printed means, and against each other.

    `claims` are those on step 1, on step 2 and on the means.
    """

    def first_less_second(rows: pd.DataFrame) -> Iterator[Measurement]:
        first, second = (mean(list(estimates(rows.query(step)).values())) for step in (FIRST, SECOND))
        yield effect("WANG-T1-5", first - second, f"mean gain of step 1 less that of step 2 ({objective})")

    return [
        Judge(claims[0], "smallest gain of step 1 where the encoder changes (dim {dim})", f"{FIRST} and opt != dim"),
        Judge(claims[1], "smallest gain of step 2 (dim {dim})", SECOND),
        Judge(claims[2], "mean gain of step 1", FIRST, average, paper=lambda: printed[0]),
        Judge(claims[2], "mean gain of step 2", SECOND, average, paper=lambda: printed[1]),
        first_less_second,
    ]


def printed_trend() -> float:
    """Kendall's tau of Table 1's total gains against the dim."""
    score = paper_values("wang2023", "table1").query("metric == 'spearman'").set_index(["method", "dim"])["value"]
    gain = score[STEP_2] - score[END_TO_END]
    return float(kendall(gain.index.to_numpy(float), gain.to_numpy(float)))


def seconds_of_step_two(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-S44-1, run by run: the ratio of the seconds of both, in doublings."""
    costs = rows[rows["metric"] == "train_seconds"]
    took = costs.pivot_table(index="seed", columns="method", values="value", aggfunc="sum")
    if {STEP_2, END_TO_END} <= set(took):
        doublings = np.log2(took[STEP_2] / took[END_TO_END]).dropna().to_dict()
        what = "seconds of step 2 over seconds of end-to-end training"
        yield ratio("WANG-S44-1", Estimate(doublings), what, null=0.1, direction=-1)


def encoder_alone_leads(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-T2-3: the encoder trained with a pooler, read without it, less the same read with it."""
    end = rows[(rows["metric"] == "spearman") & (rows["method"] == END_TO_END)]
    alone, joined = (estimates(end[end["readout"] == readout]) for readout in ("encoder", "pooler"))
    if joined:
        d, e = lowest({d: alone[d] - joined[d] for d in joined})
        yield effect("WANG-T2-3", e, f"smallest lead of encoder_d over encoder_d + pooler_d (dim {d})")


TOTAL = "metric == 'spearman_gain_total' and dim <= full"
TABLE1: list[Rule] = [
    *two_steps(("WANG-T1-1", "WANG-T1-2", "WANG-T1-3"), (1.79, 1.17), "SimCSE"),
    trending("WANG-T1-4", TOTAL, -1, "total gain against dim", printed_trend),
    seconds_of_step_two,
]
TABLE2: list[Rule] = [
    *two_steps(("WANG-T2-1", "WANG-T2-1", "WANG-T2-2"), (13.16, 0.83), "softmax"),
    encoder_alone_leads,
]


# beside the tables


def width_cost(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-S2-1: how encoding time changes with the pooler's width, between the fastest and the slowest round."""
    full = int(rows["full"].iloc[0])
    took = rows[rows["metric"] == "encode_seconds"].groupby("dim")[["value", "ci_low", "ci_high"]].mean()
    others = took.index != full
    if full in took.index and others.any():
        change = 100 * (took[others] / took.loc[full, "value"] - 1)
        d = change["value"].abs().idxmax()
        what = f"largest change of encoding time against {full} dims, per cent (dim {d})"
        seeds = int(rows["seed"].nunique())
        value, low, high = map(float, change.loc[d])
        yield Measurement("WANG-S2-1", "sameness", value, low, high, margin=10.0, seeds=seeds, what=what)


GAIN = "smallest gain of {} less {}, step 2 (dim {{dim}})"
ABLATIONS: list[Rule] = [
    Judge("WANG-S43-1", GAIN.format("current weights", "random ones"), "metric == 'start_gain'"),
    Judge("WANG-S43-2", GAIN.format("encoder frozen", "trained along"), "metric == 'frozen_gain'"),
    Judge(
        "WANG-LIM-1",
        "largest change by the tanh, tanh less identity (dim {dim})",
        "metric == 'activation_gain'",
        farthest,
        test="sameness",
    ),
    width_cost,
]


# what pages judge their rows by


def _stages(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """Tables 1 and 2 on the rows of Algorithm 1, if there are some with the absolute difference on those alone."""
    rows = rows[rows["setting"].str.contains("select_by=")]
    absolute = rows["setting"].str.endswith("difference=abs")
    rows = rows[absolute] if absolute.any() else rows
    if not {STEP_1, STEP_2} <= set(rows.loc[rows["metric"] == "spearman_gain", "method"]):
        return []
    opt = rows["value"].where(rows["metric"] == "optimal_dim")
    same = [rows[column] for column in ("backbone", "seed", "dim")]
    return judged(rules, rows.assign(opt=opt.groupby(same, dropna=False).transform("max")), full)


table1 = partial(_stages, TABLE1)
table2 = partial(_stages, TABLE2)
ablations = partial(judged, ABLATIONS)
