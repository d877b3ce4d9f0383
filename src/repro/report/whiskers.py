"""Numbers as dots on their intervals beside zero: the figure of differences."""

from collections.abc import Mapping, Sequence
from math import ceil

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from repro.report.curves import POINT, checked
from repro.report.figures import (
    GREY,
    PRINTED,
    SMALLEST,
    Drawing,
    NothingToDraw,
    add_legend,
    drawing,
    looks,
    new_figure,
    series_handles,
)
from repro.report.kinds import KINDS, title_of


@drawing
def whiskers(
    frame: pd.DataFrame,
    *,
    line: str,
    panel: str | None = None,
    color: str | None = None,
    xlabel: str,
    share: bool = False,
) -> Drawing:
    """Numbers as dots on their intervals, beside zero: a line per value of `line`, panels two
    abreast. Printed numbers are hollow.

    Args:
        frame: rows with kind, with value, low and high as they are to be drawn (the ends may be
            NaN), and with the columns named.
        line: what stands at the left, from above in the order of the rows.
        panel: what tells panels apart.
        color: what tells dots of one line apart; each value has a height of its own.
        xlabel: what the numbers are.
        share: passed on as `sharex`.

    Raises:
        InputError: if a column is missing.
    """
    columns = [column for column in (line, panel, color) if column]
    frame = checked(frame, ("kind", *columns, *POINT)).dropna(subset="value")
    if frame.empty:
        raise NothingToDraw("no row has a value")
    lines = list(dict.fromkeys(frame[line]))
    panels = list(dict.fromkeys(frame[panel])) if panel else [""]
    series = [""]
    if color:
        series = list(dict.fromkeys(frame.loc[frame["kind"] != "paper", color]))
    frame["height"] = frame[line].map(lines.index)
    if color:
        frame["height"] += frame[color].map(_places_within_a_line(series)).fillna(0)
    abreast = min(2, len(panels))
    deep = ceil(len(panels) / abreast)
    height = 0.7 + deep * (0.7 + (0.2 + 0.14 * len(series)) * len(lines))
    count = len(panels)
    figure, axes = new_figure(deep, abreast, height=height, panels=count, sharex=share, sharey=True)
    for axis, title in zip(axes, panels, strict=True):
        of_panel = frame[frame[panel] == title] if panel else frame
        by_series = dict.fromkeys(series, of_panel)
        if color:
            by_series = {name: of_panel[of_panel[color] == name] for name in series}
        _dots_on_intervals(axis, by_series, of_panel[of_panel["kind"] == "paper"])
        axis.set_yticks(range(len(lines)), [str(name) for name in lines])
        axis.set_ylim(len(lines) - 0.5, -0.5)
        axis.set_title(str(title), loc="left", fontsize=SMALLEST)
    handles = series_handles(series, title_of) if color else []
    if (frame["kind"] == "paper").any():
        handles.append(Line2D([], [], label="paper", **PRINTED))
    _label(figure, axes[(deep - 1) * abreast :], xlabel, handles)
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    figure.alt = _in_words(xlabel, lines, panels if panel else [], series if color else [], kinds)
    return figure


def _places_within_a_line(series: Sequence[str]) -> dict[str, float]:
    """Where the dots of each series stand on a line of height 1, from its middle; they lie closer
    together than lines do.
    """
    count = len(series)
    return {name: 0.6 * ((i + 0.5) / count - 0.5) for i, name in enumerate(series)}


def sized(frame: pd.DataFrame, words: str = "{} dims") -> pd.DataFrame:
    """Rows from wide to narrow, with a column `size` that says the dim of each in words."""
    ordered = frame.sort_values("dim", ascending=False, kind="stable")
    return ordered.assign(size=ordered["dim"].map(words.format))


def _label(figure: Drawing, lowest: Sequence[Axes], xlabel: str, handles: list[Line2D]) -> None:
    """The legend, if there is one, and what the numbers are: once for all panels, but below the
    lowest of them where a legend would lie on it.
    """
    if not handles:
        figure.supxlabel(xlabel, fontsize=12)
        return
    add_legend(figure, handles)
    for axis in lowest:
        axis.set_xlabel(xlabel)


def _in_words(
    xlabel: str,
    lines: Sequence[str],
    panels: Sequence[str],
    colours: Sequence[str],
    numbers: Sequence[str],
) -> str:
    """What a figure shows, and the names of everything of which there is some."""
    names_by_kind = {"lines": lines, "panels": panels, "colours": colours, "numbers": numbers}
    shown_kinds = [
        f"{kind}: {', '.join(map(title_of, names))}"
        for kind, names in names_by_kind.items()
        if names
    ]
    return "; ".join([f"{xlabel} with intervals", *shown_kinds])


def _dots_on_intervals(
    axis: Axes,
    series: Mapping[str, pd.DataFrame],
    printed: pd.DataFrame,
) -> None:
    """One panel: dots of each series on their intervals, printed numbers hollow, zero as a line."""
    axis.axvline(0, color=GREY, linewidth=1.0)
    for name, style in looks(list(series)).items():
        dots = series[name].query("kind != 'paper'")
        ends = dots["low"], dots["high"]
        axis.hlines(dots["height"], *ends, color=style["color"], linewidth=1.6)
        axis.plot(dots["value"], dots["height"], **style, linestyle="none", markersize=6)
    axis.plot(printed["value"], printed["height"], **PRINTED)
    axis.margins(x=0.08)  # No dot is cut
    axis.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axis.grid(visible=False, axis="y")
