"""One grammar for the book's curves: which column is x, which tells curves apart, which tell panels apart."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from repro.report.compare import DATASETS, KINDS
from repro.report.style import (
    GREY,
    KIND_STYLE,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    dim_axis,
    drawing,
    look,
    new_figure,
    series_handles,
)
from repro.types import InputError, one_of

DASHED: Mapping[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1.2}
TITLES = {name: title for title, name in DATASETS.items()}
POINT = ("value", "low", "high")


@drawing
def curves(
    frame: pd.DataFrame,
    *,
    color: str,
    x: str = "dim",
    panel: str | None = None,
    row: str | None = None,
    order: Sequence[Any] = (),
    band: bool = True,
    levels: pd.DataFrame | None = None,
    title: Callable[[Any], str] | None = None,
    ylabel: str = "score × 100",
    xlabel: str = "dimensions",
    share: bool | str = False,
    scale: float = 100,
) -> Drawing:
    """A curve per value of `color` and kind of number, a panel per value of `panel`, a line of panels per `row`.

    Args:
        frame: rows with kind, value (a fraction) and the columns named; several rows of a point are its seeds.
        color: what tells curves apart; the same as `panel` where each curve has a panel, and a scale, of its own.
        x: what runs along the axis; `dim` is logarithmic.
        panel: what tells panels apart.
        row: what tells lines of panels apart; without it panels are two or three abreast.
        order: all values that `color` may have: each keeps its look, whichever are drawn.
        band: shade intervals; where many curves share a panel they would hide each other.
        levels: horizontal lines: value in points, label, and perhaps the columns of `panel` and `row`.
        title: what a panel is called; by default a dataset as the documents print it, else the value.
        ylabel: what the score is.
        xlabel: what x is.
        share: passed on as `sharey`.
        scale: what values are multiplied by.

    Raises:
        InputError: if a column is missing, or a value of `color` is not in `order`.
    """
    title, levels = title or title_of, pd.DataFrame(columns=["value", "label"]) if levels is None else levels
    by = dict.fromkeys(column for column in (row, panel, color, x) if column and column != "kind")
    found = points(frame, list(by), scale)
    names, kinds = list(order or dict.fromkeys(found[color])), [kind for kind in KINDS if kind in set(found["kind"])]
    if unknown := set(found[color]) - set(names):
        raise InputError(f"no look for {min(map(str, unknown))!r}: choose from {', '.join(map(str, names))}")
    drawn = [name for name in names if name in set(found[color])]
    alone = color == panel or len(drawn) == 1  # then the curve needs no name, and what is printed can be grey
    rows, across = (list(dict.fromkeys(found[c])) if c else [None] for c in (row, panel))
    cells = [(r, p) for r in rows for p in across]
    width = len(across) if row or len(across) < 3 else 3 if len(across) > 4 else 2
    lines = ceil(len(cells) / width)
    figure, axes = new_figure(lines, width, height=1.0 + 2.4 * lines, sharey=share)
    for i, (axis, cell) in enumerate(zip(axes, cells, strict=False)):
        here = {column: value for column, value in zip((row, panel), cell, strict=True) if column}
        own = within(found, here)
        for kind in kinds:
            for name, line in own[own["kind"] == kind].groupby(color, sort=False):
                line, style = line.astype({x: int}).sort_values(x), look(names.index(name)) | KIND_STYLE[kind]
                style |= {"color": GREY} if alone and kind == "paper" else {}
                axis.plot(line[x], line["value"], **style)
                if band and line["low"].notna().any():
                    band_style = {"color": style["color"], "alpha": 0.18, "linewidth": 0}
                    axis.fill_between(line[x], line["low"], line["high"], **band_style)
        for level in within(levels, here).itertuples():
            axis.axhline(level.value, **DASHED)
        axis.set_title(title(cell[1]) if panel else title(drawn[0]) if alone else "", loc="left")
        lowest = i + width >= len(cells)  # with an odd number of panels the one above the gap ends its column
        if x == "dim":
            dim_axis(axis, own["dim"], room=WIDTH / width - 0.9)
        else:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
        axis.set_xlabel(xlabel if lowest else "")
        if row and i % width == 0:
            axis.set_ylabel(str(cell[0]), fontsize=10)
    for spare in axes[len(cells) :]:
        spare.set_visible(False)
    figure.supylabel(ylabel, fontsize=12)
    looks = series_handles(names, title_of)
    handles = [] if alone else [h for h, name in zip(looks, names, strict=True) if name in drawn]
    grey = {"color": GREY, "marker": "o"}
    told = () if "kind" in (color, panel, row) else kinds
    handles += [Line2D([], [], label=kind, **grey | KIND_STYLE[kind]) for kind in told]
    handles += [Line2D([], [], label=label, **DASHED) for label in dict.fromkeys(levels["label"])]
    add_legend(figure, handles, columns=2 if len(handles) > 3 else 3)
    said = [map(title_of, drawn), map(title, across if panel and panel != color else ()), kinds]
    figure.alt = f"{ylabel} against {xlabel} of " + "; ".join(filter(None, (", ".join(words) for words in said)))
    return figure


def title_of(name: Any) -> str:
    """A dataset's name as the documents print it; any other name as it is."""
    return TITLES.get(name, str(name))


def within(frame: pd.DataFrame, here: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of one panel; a column that the frame lacks holds for all."""
    for column, value in here.items():
        frame = frame[frame[column] == value] if column in frame else frame
    return frame


def points(frame: pd.DataFrame, by: Sequence[str], scale: float = 100) -> pd.DataFrame:
    """Means of the rows that share kind and `by`, × scale, in the order of first appearance.

    Several rows of one point are several seeds: the band is their mean ± one standard deviation. A single row
    brings its own interval, if it has one; else `low` and `high` are NaN.
    """
    keys = ["kind", *by]
    frame = checked(frame, (*keys, "value")).dropna(subset=["value", *by])
    if frame.empty:
        raise NothingToDraw(f"every row lacks a value or one of {', '.join(by)}")
    frame = frame.reindex(columns=list(dict.fromkeys([*keys, "value", "ci_low", "ci_high"])))
    grouped = frame.groupby(keys, sort=False, observed=True)
    found = grouped[["value", "ci_low", "ci_high"]].first().set_axis(list(POINT), axis=1)
    found["value"], spread, found["n"] = grouped["value"].mean(), grouped["value"].std(), grouped.size()
    several = found["n"] > 1
    found["low"] = found["low"].where(~several, found["value"] - spread)
    found["high"] = found["high"].where(~several, found["value"] + spread)
    found[list(POINT)] = scale * found[list(POINT)].astype("float64")
    found = found.reset_index()
    return found.astype({"dim": int}) if "dim" in by else found


def checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy of a frame that has rows, the columns asked for and known kinds; an InputError if it has not."""
    if frame.empty:
        raise NothingToDraw("the frame has no rows")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(f"the frame lacks the column {missing[0]!r}: figures need {', '.join(columns)}")
    for kind in frame["kind"].unique() if "kind" in columns else ():
        one_of(str(kind), KINDS, "kind of number")
    return frame.copy()
