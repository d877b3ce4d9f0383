"""What the table of the proposal's claims, `papers/proposal.toml`, names: how rows are read, and
claims with arithmetic of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from repro.evaluation.of_rows import estimate, estimates
from repro.evaluation.seeds import Estimate
from repro.methods import AVERAGE, BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.report.cells import Cells, lowest
from repro.report.claims import judges_of
from repro.report.judge import Group, Rule, judge
from repro.report.measurements import effect, trend
from repro.report.verdict import Measurement
from repro.rows import only, ordered

TASKS = ("stsb", "sickr", AVERAGE, "hotpotqa")  # In the order of tables and figures


def surest(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of each network say, on the average of seven sets where it is known, which is
    surer.
    """
    measurements = []
    for _, rows_of_network in rows.groupby("backbone", sort=False):
        averages = only(rows_of_network, dataset=AVERAGE)
        measurements += judge(rules, averages if len(averages) else rows_of_network)
    return measurements


def trend_of(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    metric: str,
    direction: int = 0,
) -> Iterator[Measurement]:
    """Kendall's τ of a metric against dim, over trained encoders; three dims at least.

    The proposal names no direction. The loss and uniformity are judged by the one that the theory
    gives them; a metric without one by whichever it shows, so that only the absence of a trend
    speaks against the claim.
    """
    metric_rows = only(rows, metric=metric)
    if metric_rows["dim"].nunique() >= 3:
        m = trend(claim, estimates(metric_rows), direction or 1, what)
        yield m if direction or m.value >= 0 else replace(m, direction=-1)


def slopes(rows: pd.DataFrame) -> pd.Series:
    """Slope of ln(rms change of cosines) against ln(dim), by backbone and draw; needs three dims of
    a draw.
    """
    change_rows = only(rows, metric="cosine_rms", method="GRP")
    slope_by_draw = {}
    for key, group in change_rows.groupby(["backbone", "seed"]):
        if group["dim"].nunique() >= 3:
            dims = np.log(group["dim"].to_numpy(float))
            changes = np.log(group["value"].to_numpy(float))
            slope, _ = np.polyfit(dims, changes, 1)
            slope_by_draw[key] = float(slope)
    index = pd.MultiIndex.from_tuples(slope_by_draw, names=["backbone", "draw"])
    return pd.Series(slope_by_draw, dtype=float, index=index)


def slope_of_error(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    slope: float,
    margin: float,
) -> Iterator[Measurement]:
    """How far the slope of every encoder is from what is expected, with its t interval over draws;
    one draw alone says nothing.
    """
    if not (rows["metric"] == "cosine_rms").any():
        return
    for backbone, slope_by_draw in slopes(rows).groupby(level="backbone"):
        off = Estimate((slope_by_draw.droplevel("backbone") - slope).to_dict())
        quantity = what.format(backbone=backbone)
        fields = {"margin": margin, "network": str(backbone), "unit": "of the slope"}
        yield effect(claim, off, quantity, test="sameness", **fields)


def in_task_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by task, those of one task in their old order; recorded rows come sorted by name."""
    return ordered(rows, "dataset", TASKS)


def closest_reductions(rows: pd.DataFrame) -> pd.DataFrame:
    """How far the trained projection is ahead of all reductions: a line per dataset and dim, in
    points.

    Columns: dataset, dim, over (the closest reduction), value, low, high (95 %), seeds, ahead
    (training, reduction or open), estimate. The trained projection is ahead of all where it is
    ahead of each, and behind as soon as it is behind one, by joint intervals.
    """
    lead_rows = rows[rows["metric"].str.endswith("_lead")]
    lead_rows = lead_rows[lead_rows["method"].str.startswith(f"{TRAINED_PROJECTION} − ")]
    rivals = lead_rows["method"].str.removeprefix(f"{TRAINED_PROJECTION} − ")
    lead_rows = lead_rows.assign(over=rivals)
    lead_rows = lead_rows[~lead_rows["over"].isin([FULL_SIZE, TWO_STEP_PROJECTION, BEST_REDUCED])]
    lead_rows = in_task_order(lead_rows.sort_values("dim", kind="stable"))
    lines = []
    for (dataset, dim), cell in lead_rows.groupby(["dataset", "dim"], sort=False):
        by_reduction = cell.groupby("over", sort=False)
        lead_by_reduction = {str(over): estimate(seeds) for over, seeds in by_reduction}
        closest, e = lowest(lead_by_reduction)
        ahead = "training" if e.low > 0 else "reduction" if e.high < 0 else "open"
        numbers = (e.value, e.low, e.high, e.seeds)
        lines.append((str(dataset), int(dim), closest, *numbers, ahead, e))
    columns = ["dataset", "dim", "over", "value", "low", "high", "seeds", "ahead", "estimate"]
    return pd.DataFrame(lines, columns=columns)


def trained_or_reduced(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """The trained projection less the closest reduction on similarity, at every dim and set.

    The proposal leaves the answer open. Judged is whether training wins: if it does not hold,
    reduction wins.
    """
    network = str(rows["backbone"].iloc[0])
    for e in closest_reductions(only(rows, metric="spearman_lead")).itertuples():
        quantity = what.format(network=network, dataset=e.dataset, dim=e.dim, over=e.over)
        yield effect(claim, e.estimate, quantity, network=network)


def sets(rows: pd.DataFrame) -> Iterator[Group]:
    """The rows of each set, with the network, its full size and two shares of it.

    256 and 128 of BERT's 768 are a third and a sixth: from the first on the proposal expects hardly
    a loss, to the second only of the two-step method.
    """
    full = int(only(rows, method=FULL_SIZE)["dim"].dropna().iloc[0])
    shares = {"full": full, "third": 1 / 3 * full, "sixth": 1 / 6 * full}
    for dataset, rows_of_set in in_task_order(rows).groupby("dataset", sort=False):
        network = str(rows_of_set["backbone"].iloc[0])
        yield {**shares, "network": network, "dataset": str(dataset)}, rows_of_set


def cells(rows: pd.DataFrame) -> Iterator[Group]:
    """The rows of each set and dim."""
    for facts, rows_of_set in sets(rows):
        yield from ((facts, rows_of_dim) for _, rows_of_dim in rows_of_set.groupby("dim"))


def narrowest(estimate_by_cell: Cells) -> tuple[tuple[int, ...], Estimate]:
    """The smallest dim."""
    return min(estimate_by_cell.items())


JUDGES = judges_of("proposal", globals())
alignment_uniformity, johnson_lindenstrauss, train_or_reduce = JUDGES.values()
"""Rows to what they say of the claims of one page."""
