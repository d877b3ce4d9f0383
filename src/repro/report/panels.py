"""One grammar for the book's curves: which column is x, which tells curves apart, which tell panels apart."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from repro.report.curves import draw_line
from repro.report.points import kinds_of, points
from repro.report.style import (
    GREY,
    WIDTH,
    Drawing,
    add_legend,
    dim_axis,
    drawing,
    kind_handles,
    new_figure,
    series_handles,
)
from repro.types import InputError

DASHED: Mapping[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1.2}


@drawing
def curves(
    frame: pd.DataFrame,
    *,
    color: str,
    x: str = "dim",
    panel: str | None = None,
    row: str | None = None,
    order: Sequence[str] = (),
    band: bool = True,
    levels: pd.DataFrame | None = None,
    title: Callable[[Any], str] = str,
    ylabel: str = "score × 100",
    xlabel: str = "dimensions",
    share: bool | str = False,
) -> Drawing:
    """A curve per value of `color` and kind of number, a panel per value of `panel`, a line of panels per `row`.

    Args:
        frame: rows with kind, value (a fraction) and the columns named; several rows of a point are its seeds.
        color: what tells curves apart.
        x: what runs along the axis; `dim` is logarithmic.
        panel: what tells panels apart.
        row: what tells lines of panels apart; without it panels are two or three abreast.
        order: all values that `color` may have: each keeps its look, whichever are drawn.
        band: shade intervals; where many curves share a panel they would hide each other.
        levels: horizontal lines: value in points, label, and perhaps the columns of `panel` and `row`.
        title: what a panel is called.
        ylabel: what the score is.
        xlabel: what x is.
        share: passed on as `sharey`.

    Raises:
        InputError: if there is nothing to draw, or a value of `color` is not in `order`.
    """
    split = [column for column in (row, panel) if column]
    found = points(
        frame, [c for c in dict.fromkeys((*split, color, x)) if c != "kind"]
    )  # the kind always tells points apart
    names = list(order) or list(dict.fromkeys(found[color]))
    if unknown := set(found[color]) - set(names):
        raise InputError(f"no look for {min(map(str, unknown))!r}: choose from {', '.join(map(str, names))}")
    rows, across = (list(dict.fromkeys(found[c])) if c else [None] for c in (row, panel))
    cells = [(r, p) for r in rows for p in across]
    width = len(across) if row or len(across) < 3 else 3 if len(across) > 4 else 2
    figure, axes = new_figure(
        ceil(len(cells) / width), width, height=1.0 + 2.4 * ceil(len(cells) / width), sharey=share
    )
    for i, (axis, cell) in enumerate(zip(axes, cells, strict=False)):
        here = {column: value for column, value in zip((row, panel), cell, strict=True) if column}
        own = within(found, here)
        for kind in kinds_of(own):
            for name, line in own[own["kind"] == kind].groupby(color, sort=False):
                line = line if band else line.assign(low=float("nan"), high=float("nan"))
                draw_line(axis, line.assign(dim=line[x].astype(int)), kind, position=names.index(name))
        for level in within(levels, here).itertuples() if levels is not None else ():
            axis.axhline(level.value, **DASHED)
        axis.set_title(title(cell[1]) if panel else "", loc="left")
        lowest = i + width >= len(cells)
        if x == "dim":
            dim_axis(axis, list(own["dim"]), room=WIDTH / width - 0.9, label=lowest)
        else:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
        axis.set_xlabel(xlabel if lowest else "")
        if row and i % width == 0:
            axis.set_ylabel(str(cell[0]), fontsize=10)
    for spare in axes[len(cells) :]:
        spare.set_visible(False)
    figure.supylabel(ylabel, fontsize=12)
    drawn, kinds = [name for name in names if name in set(found[color])], kinds_of(found)
    handles = [h for h, name in zip(series_handles(list(map(str, names))), names, strict=True) if name in drawn]
    handles += kind_handles(kinds) if len(kinds) > 1 else []
    handles += [
        Line2D([], [], label=label, **DASHED) for label in dict.fromkeys(levels["label"] if levels is not None else ())
    ]
    add_legend(figure, handles, columns=2)
    figure.alt = (
        f"{ylabel} against {xlabel} of {', '.join(map(str, drawn))}; {', '.join(map(str, across))}; {', '.join(kinds)}"
    )
    return figure


def within(frame: pd.DataFrame, here: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of one panel; a column that the frame lacks holds for all."""
    for column, value in here.items():
        frame = frame[frame[column] == value] if column in frame else frame
    return frame
