"""Tables 1 and 2 of Wang et al. (2023): what both steps gain, and what the second costs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from repro.evaluation.of_rows import estimate, estimates
from repro.evaluation.power import FEWEST_SEEDS
from repro.evaluation.seeds import Estimate, doublings, kendall, mean
from repro.methods import END_TO_END, STEP_2
from repro.report.kinds import paper_values
from repro.report.measurements import effect, ratio
from repro.report.verdict import Measurement
from repro.rows import only


def mean_over_dims(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    query: str,
    paper: float | None = None,
) -> Iterator[Measurement]:
    """The mean over dims lies above 0.

    Rows of the mean, of three seeds or more, say how much less the items move it than if all dims
    moved as one.
    """
    for (metric, method), gain_rows in rows.query(query).groupby(["metric", "method"]):
        e = mean([*estimates(gain_rows).values()])
        mean_rows = only(rows, metric=f"{metric}_mean", method=method)
        if mean_rows["seed"].nunique() >= FEWEST_SEEDS:
            of_seeds = gain_rows[gain_rows["seed"].isin(mean_rows["seed"])]
            as_one = mean([*estimates(of_seeds).values()])
            item_error = e.item_error * estimate(mean_rows).item_error / as_one.item_error
            e = replace(e, item_error=item_error)
        yield effect(claim, e, what, paper=paper)


def narrow_less_wide(
    gain_by_dim: Mapping[tuple[Any, ...], Estimate],
) -> tuple[tuple[Any, ...], Estimate]:
    """How far the narrowest of several dims is above the widest."""
    narrow, wide = min(gain_by_dim), max(gain_by_dim)
    return narrow, gain_by_dim[narrow] - gain_by_dim[wide] if narrow != wide else Estimate({})


def printed_trend() -> float:
    """Kendall's tau of Table 1's total gains against the dim."""
    score = (
        paper_values("wang2023", "table1")
        .query("metric == 'spearman'")
        .set_index(["method", "dim"])["value"]
    )
    gain = score[STEP_2] - score[END_TO_END]
    return float(kendall(gain.index.to_numpy(float), gain.to_numpy(float)))


def seconds_of_step_two(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    **compared: Any,
) -> Iterator[Measurement]:
    """Run by run, the ratio of the seconds of both trainings, in doublings."""
    costs = only(rows, metric="train_seconds")
    took = costs.pivot_table(index="seed", columns="method", values="value", aggfunc="sum")
    if {STEP_2, END_TO_END} <= set(took):
        ratios = (took[STEP_2] / took[END_TO_END]).dropna().to_dict()
        yield ratio(claim, doublings(ratios), what, **compared)
