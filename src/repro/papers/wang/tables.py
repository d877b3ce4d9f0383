"""Tables and figures that the pages of Wang et al. (2023) share: the blocks of Tables 1 and 2."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import pandas as pd

from repro.evaluation.of_rows import estimate
from repro.methods import AVERAGE, REDUCED, STAGE_NAMES, TWO_STEP
from repro.papers.wang import claims, suites
from repro.report.cells import lowest
from repro.report.curves import curves
from repro.report.figures import Drawing
from repro.report.kinds import join_kinds, paper_values
from repro.report.verdict_frames import verdict_frame
from repro.report.whiskers import sized, whiskers
from repro.rows import only

STEPS = {"mean gain of step 1": "step 1", "mean gain of step 2": "step 2"}
"""The measurements of a step's gain that is averaged over the widths."""
PAPER_NETWORK = "RoBERTa-base (paper)"


def draw_mean_gains(experiment: str, rows: pd.DataFrame) -> Drawing:
    """What each step gains on average over the widths, a panel per step: as printed, and as the
    verdict has it on every network with both, on STS-B and on the average of seven sets.
    """
    on_seven = only(rows, dataset=AVERAGE)["backbone"].unique()
    rows = rows[rows["backbone"].isin(on_seven)]
    by_dataset = []
    for name, dataset in {"STS-B": "stsb", "average of seven sets": AVERAGE}.items():
        measurements = claims.JUDGES[experiment](claims.of_set(dataset, rows))
        measured = verdict_frame("recorded", measurements)
        measured = measured[measured["what"].isin(list(STEPS))]
        by_dataset.append(measured.assign(judged=name))
    gains = pd.concat(by_dataset)
    printed = gains.drop_duplicates("what")
    printed = printed.assign(kind="paper", network=PAPER_NETWORK, value=printed["paper"])
    printed = printed.assign(low=nan, high=nan)
    figure_rows = pd.concat([printed, gains])
    return whiskers(
        figure_rows.assign(step=figure_rows["what"].map(STEPS)),
        line="network",
        panel="step",
        color="judged",
        xlabel="mean gain, points",
    )


def draw_leads(rows: pd.DataFrame) -> Drawing:
    """How far two-step training is ahead of the best reducer, on the average of seven sets: as
    printed, and on every recorded network with an interval that holds for all reducers at once.
    """
    paper = paper_values("wang2023", "table3").query("dataset == @AVERAGE and dim < 768")
    scores = 100 * paper.pivot(index="dim", columns="method", values="value")
    lead = scores[TWO_STEP] - scores[list(REDUCED)].max(axis=1)
    numbers: list[tuple[Any, ...]] = [("paper", None, *number, nan, nan) for number in lead.items()]
    over = [f"{TWO_STEP} − {reducer}" for reducer in REDUCED]
    recorded = rows[rows["method"].isin(over) & (rows["dataset"] == AVERAGE)]
    recorded = only(recorded, setting=suites.smallest_fit(recorded))
    for (network, dim), cell in recorded.groupby(["backbone", "dim"]):
        by_method = cell.groupby("method")
        leads = {method: estimate(rows_of_method) for method, rows_of_method in by_method}
        _, closest = lowest(leads)
        numbers.append(("recorded", network, dim, closest.value, closest.low, closest.high))
    columns = ["kind", "network", "dim", "value", "low", "high"]
    return whiskers(
        sized(pd.DataFrame(numbers, columns=columns)),
        line="size",
        color="network",
        xlabel="two-step training ahead of the best reducer, points",
    )


def draw_stages(scores: Sequence[pd.DataFrame], gains: Sequence[pd.DataFrame]) -> Drawing:
    """Scores of every stage of two-step training, and beneath them what each step gains.

    Both are frames of the paper, of recorded and of live rows; each kind has a panel.
    """
    frames = {"score × 100": join_kinds(*scores), "gain, points": join_kinds(*gains)}
    figure_rows = pd.concat([frame.assign(what=quantity) for quantity, frame in frames.items()])
    figure_rows = figure_rows.assign(stage=figure_rows["method"].map(STAGE_NAMES))
    figure_rows = figure_rows.dropna(subset="stage")
    return curves(
        figure_rows,
        color="stage",
        row="what",
        panel="kind",
        order=list(STAGE_NAMES.values()),
        levels=pd.DataFrame({"value": [0.0], "label": ["no gain"], "what": ["gain, points"]}),
        ylabel="",
    )


def in_blocks(table: pd.DataFrame, blocks: Mapping[str, str] = STAGE_NAMES) -> pd.DataFrame:
    """A table of methods with the blocks in their order, wide poolers first, under their names."""
    place = {method: number for number, method in enumerate(blocks)}
    ordered = table.assign(block=table["method"].map(place), narrow=-table["dim"])
    ordered = ordered.sort_values(["block", "narrow"]).drop(columns=["block", "narrow"])
    return ordered.assign(method=ordered["method"].map(dict(blocks)))
