"""The book's curves have one grammar: which column is x, which tell curves or panels apart, and
what several rows of a point say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import ceil
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from repro.evaluation.of_rows import interval_over_runs
from repro.report.figures import (
    GREY,
    KIND_STYLE,
    SMALLEST,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    dim_axis,
    drawing,
    looks,
    new_figure,
    series_handles,
)
from repro.report.kinds import KINDS, title_of
from repro.types import InputError, one_of

SHADE: Mapping[str, Any] = {"alpha": 0.18, "linewidth": 0}
DASHED: Mapping[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1.2}
POINT = ("value", "low", "high")
ABREAST_ON_A_PHONE = 2
BAND = "band: 95 % interval"


@drawing
def curves(
    frame: pd.DataFrame,
    *,
    color: str,
    x: str = "dim",
    panel: str | None = None,
    row: str | None = None,
    order: Sequence[Any] = (),
    band: str = BAND,
    levels: pd.DataFrame | None = None,
    title: Callable[[Any], str] | None = None,
    ylabel: str = "score × 100",
    xlabel: str = "dimensions",
    share: bool | str = False,
    scale: float = 100,
) -> Drawing:
    """A curve per value of `color` and kind of number, a panel per value of `panel`, a line of
    panels per `row`.

    Args:
        frame: rows with kind, value (a fraction) and the columns named; several rows of a point are
            its seeds.
        color: what tells curves apart; the same as `panel` where each curve has a panel, and a
            scale, of its own.
        x: what runs along the axis; `dim` is logarithmic.
        panel: what tells panels apart.
        row: what tells lines of panels apart; without it panels are two or three abreast.
        order: all values that `color` may have: each keeps its look, whichever are drawn.
        band: what is shaded, for the legend; empty shades nothing, as where many curves share a
            panel and would hide each other.
        levels: horizontal lines: value in points, label, and perhaps the columns of `panel` and
            `row`.
        title: what a panel is called; by default a dataset as the documents print it, else the
            value.
        ylabel: what the score is.
        xlabel: what x is.
        share: passed on as `sharey`.
        scale: what values are multiplied by.

    Raises:
        InputError: if a column is missing, or a value of `color` is not in `order`.
    """
    column_names = dict.fromkeys(filter(None, (row, panel, color, x)))
    by = [column for column in column_names if column != "kind"]
    if levels is None:
        levels = pd.DataFrame(columns=["value", "label"])
    table = points(frame, by, scale)
    names = list(order or dict.fromkeys(table[color]))
    if unknown := set(table[color]) - set(names):
        raise InputError(
            f"no look for {min(map(str, unknown))!r}: choose from {', '.join(map(str, names))}"
        )
    shown = band if (table["high"] > table["low"]).any() else ""
    chart = _Chart(table, levels, names, color, x, panel, row, title or title_of, shown)
    draw = partial(_drawn, chart, share=share, ylabel=ylabel, xlabel=xlabel)
    figure = draw(abreast=chart.abreast)
    if chart.abreast > ABREAST_ON_A_PHONE:
        figure.narrow = draw(abreast=ABREAST_ON_A_PHONE)
    return figure


@dataclass(frozen=True)
class _Chart:
    """Points and levels, and what each column of the points tells apart."""

    points: pd.DataFrame
    levels: pd.DataFrame
    names: Sequence[Any]  # All values that `color` may have, drawn or not
    color: str
    x: str
    panel: str | None
    row: str | None
    title: Callable[[Any], str]
    band: str  # What is shaded, in words; empty where nothing is

    def values(self, column: str | None) -> list[Any]:
        """Values of `row` or `panel` in order of appearance; a single None without that column."""
        return list(dict.fromkeys(self.points[column])) if column else [None]

    @cached_property
    def drawn(self) -> list[Any]:
        """The values of `color` that have a curve."""
        return [name for name in self.names if name in set(self.points[self.color])]

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of number that are there."""
        return [kind for kind in KINDS if kind in set(self.points["kind"])]

    @property
    def abreast(self) -> int:
        """How many panels stand side by side where there is room for them."""
        across = len(self.values(self.panel))
        if self.row or across < 3:
            return across
        return 3 if across > 4 else 2

    @property
    def alone(self) -> bool:
        """Whether a panel has one curve, which needs no name; what is printed can then be grey."""
        return self.color == self.panel or len(self.drawn) == 1


def _drawn(
    chart: _Chart,
    *,
    abreast: int,
    share: bool | str,
    ylabel: str,
    xlabel: str,
) -> Drawing:
    """The panels of a chart, so many abreast, with what stands around them."""
    across = chart.values(chart.panel)
    cells = list(product(chart.values(chart.row), across))
    lines = ceil(len(cells) / abreast)
    height = 1.0 + (1.8 if abreast > 1 else 2.4) * lines
    in_grid = chart.row is not None and abreast == len(across)
    by_row = share == "row" and not in_grid
    sharey = False if by_row else share
    figure, axes = new_figure(lines, abreast, height=height, panels=len(cells), sharey=sharey)
    for i, (axis, cell) in enumerate(zip(axes, cells, strict=True)):
        _draw_panel(axis, chart, cell, width=WIDTH / abreast, in_grid=in_grid)
        axis.set_xlabel(xlabel if i // abreast == lines - 1 else "")
        if in_grid and i % abreast == 0:
            row_name = fill(str(cell[0]), 17)  # As much as a panel is high
            axis.set_ylabel(row_name, fontsize=SMALLEST)
        if by_row and i % len(across):
            axis.sharey(axes[i - 1])
    handles = _handles_of(chart)
    add_legend(figure, handles, columns=2 if len(handles) > 3 else 3)
    wrapped = fill(ylabel, int(9 * figure.get_figheight()), break_on_hyphens=False)
    figure.supylabel(wrapped, fontsize=12)
    figure.alt = "; ".join([f"{ylabel or 'values'} against {xlabel}", *_contents(chart)])
    return figure


def _draw_panel(
    axis: Axes,
    chart: _Chart,
    cell: tuple[Any, Any],
    *,
    width: float,
    in_grid: bool,
) -> None:
    """The curves and levels of one panel, its title and its x axis; the panel is so many inches
    wide, and its title names its row where it is not in a grid that does.
    """
    x, styles = chart.x, looks(chart.names)
    columns = zip((chart.row, chart.panel), cell, strict=True)
    place = {column: value for column, value in columns if column}
    table = within(chart.points, place)
    for kind in chart.kinds:
        grey = {"color": GREY} if chart.alone and kind == "paper" else {}
        for name, curve in table[table["kind"] == kind].groupby(chart.color, sort=False):
            curve, style = curve.astype({x: int}).sort_values(x), styles[name] | KIND_STYLE[kind]
            style |= grey
            axis.plot(curve[x], curve["value"], **style)
            if chart.band and curve["low"].notna().any():
                shade = {"color": style["color"], **SHADE}
                axis.fill_between(curve[x], curve["low"], curve["high"], **shade)
    for level in within(chart.levels, place).itertuples():
        axis.axhline(level.value, **DASHED)
    title = ""
    if chart.panel:
        title = chart.title(cell[1])
        if chart.row and not in_grid:
            title = f"{cell[0]}: {title}"
    elif chart.alone:
        title = chart.title(chart.drawn[0])
    axis.set_title(fill(title, int(8 * width)), loc="left")
    if x == "dim":
        dim_axis(axis, table["dim"], room=width - 0.9)
    else:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=7))


def _handles_of(chart: _Chart) -> list[Artist]:
    """Legend entries: the curves if they need names, the kinds of number, the levels, the band."""
    handles: list[Artist] = []
    if not chart.alone:
        every_handle = dict(zip(chart.names, series_handles(chart.names, title_of), strict=True))
        handles += [every_handle[name] for name in chart.drawn]
    if "kind" not in (chart.color, chart.panel, chart.row):
        for kind in chart.kinds:
            handles.append(Line2D([], [], label=kind, color=GREY, marker="o", **KIND_STYLE[kind]))
    for label in dict.fromkeys(chart.levels["label"]):
        handles.append(Line2D([], [], label=label, **DASHED))
    if chart.band:
        handles.append(Patch(color=GREY, label=chart.band, **SHADE))
    return handles


def _contents(chart: _Chart) -> Iterator[str]:
    """What a chart shows, in words."""
    yield f"curves: {', '.join(map(title_of, chart.drawn))}"
    if chart.row:
        yield f"rows: {', '.join(map(str, chart.values(chart.row)))}"
    if chart.panel not in (None, chart.color, "kind"):
        yield f"panels: {', '.join(map(chart.title, chart.values(chart.panel)))}"
    yield f"numbers: {', '.join(chart.kinds)}"


def within(frame: pd.DataFrame, here: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of one panel; a column that the frame lacks holds for all."""
    for column, value in here.items():
        frame = frame[frame[column] == value] if column in frame else frame
    return frame


def points(frame: pd.DataFrame, by: Sequence[str], scale: float = 100) -> pd.DataFrame:
    """Means of the rows that share kind and `by`, × scale, in the order of first appearance.

    A band is a 95 % interval, as `over_runs` has it: from three seeds on over seeds and items; of
    one row its own, and so of rows that all seeds share; else `low` and `high` are NaN.
    """
    keys = ["kind", *by]
    frame = checked(frame, (*keys, "value")).dropna(subset=["value", *by])
    if frame.empty:
        raise NothingToDraw(f"every row lacks a value or one of {', '.join(by)}")
    runs = ["seed"] if "seed" in frame else []
    needed = ["value", "ci_low", "ci_high", *runs]
    frame = frame.reindex(columns=list(dict.fromkeys([*keys, *needed])))
    grouped = frame.groupby(keys, sort=False, observed=True)
    table = grouped.size().rename("n").reset_index()
    cells = grouped.ngroup().to_numpy()
    seeds = frame["seed"].fillna(-1).tolist() if "seed" in frame else range(len(frame))
    numbers = frame[["value", "ci_low", "ci_high"]].to_numpy(float)
    summaries = numbers[np.unique(cells, return_index=True)[1]]
    for cell in np.flatnonzero(table["n"] > 1):
        rows = np.flatnonzero(cells == cell)
        e = interval_over_runs(numbers[rows], [seeds[row] for row in rows])
        summaries[cell] = e.value, e.low, e.high
    table[list(POINT)] = scale * summaries
    table = table[[*keys, *POINT, "n"]]
    return table.astype({"dim": int}) if "dim" in by else table


def checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy of a frame that has rows, the columns asked for and known kinds; an InputError if it
    has not.
    """
    if frame.empty:
        raise NothingToDraw("the frame has no rows")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(
            f"the frame lacks the column {missing[0]!r}: figures need {', '.join(columns)}"
        )
    for kind in frame["kind"].unique() if "kind" in columns else ():
        one_of(str(kind), KINDS, "kind of number")
    return frame.copy()
