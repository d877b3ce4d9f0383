"""Tables and figures that the pages of Wang et al. (2023) share: the blocks of Tables 1 and 2."""

from collections.abc import Mapping, Sequence

import pandas as pd

from repro.methods import STAGE_NAMES
from repro.report.figures import Drawing, curves
from repro.report.tables import join_kinds


def draw_stages(scores: Sequence[pd.DataFrame], gains: Sequence[pd.DataFrame]) -> Drawing:
    """Scores of every stage of two-step training, and beneath them what each step gains.

    Both are frames of the paper, of recorded and of live rows; each kind has a panel.
    """
    parts = {"score × 100": join_kinds(*scores), "gain, points": join_kinds(*gains)}
    drawn = pd.concat([part.assign(what=what) for what, part in parts.items()])
    drawn = drawn.assign(stage=drawn["method"].map(STAGE_NAMES)).dropna(subset="stage")
    return curves(
        drawn,
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
