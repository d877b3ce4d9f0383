"""Curves: score against dimension, loss against step, neighbours kept against dimension."""

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from repro.report.compare import DATASETS
from repro.report.points import kinds_of, points
from repro.report.style import (
    GREY,
    KIND_STYLE,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    dim_axis,
    drawing,
    kind_handles,
    look,
    new_figure,
    series_handles,
)
from repro.types import InputError, check_same_length

TITLES = {name: title for title, name in DATASETS.items()}
Optimal = Mapping[str, int] | Mapping[tuple[str, str], int]


@drawing
def draw_curves_by_dim(
    frame: pd.DataFrame,
    *,
    series: str = "dataset",
    ylabel: str = "score × 100",
    optimal: Optimal | None = None,
    panels: bool | None = None,
    title: str | None = None,
) -> Drawing:
    """Score against dimension for every series and kind of number, with a band of ± sd over seeds or the interval.

    Args:
        frame: rows with kind, dim, value (a fraction) and the series column; of one metric and one readout.
        series: the column that names a curve.
        ylabel: what the score is.
        optimal: the dim to mark per series, or per (kind, series), such as the printed and our own optimum.
        panels: one panel per series, each with its own scale. Default: for datasets, whose scores lie far apart;
            methods share one panel, because they are to be compared.
        title: a line above all panels.

    Raises:
        InputError: if a column is missing, or `optimal` names an unknown series.
    """
    found = points(frame, [series, "dim"])
    names = list(dict.fromkeys(found[series]))
    marks = _marks(optimal, names)
    split = (series == "dataset" if panels is None else panels) and len(names) > 1
    columns = 2 if split else 1
    rows = ceil(len(names) / columns) if split else 1
    figure, axes = new_figure(rows, columns, height=0.9 + (2.3 * rows if split else 3.1), sharex=True)
    for i, name in enumerate(names):
        panel = axes[i] if split else axes[0]
        _draw_series(panel, found[found[series] == name], position=i, plain_paper=split or len(names) == 1)
        _draw_marks(panel, marks.get(name, {}), position=i)
        if split:
            panel.set_title(title_of(name), loc="left")
    for panel in axes[len(names) :] if split else []:
        panel.set_visible(False)
    shown = axes[: len(names)] if split else axes[:1]
    dims = [*found["dim"], *(dim for of in marks.values() for dim in of.values())]
    for i, panel in enumerate(shown):
        # With an odd number of panels the one above the gap is the last of its column.
        lowest = i + columns >= len(shown)
        dim_axis(panel, dims, room=WIDTH / columns - 0.9, label=lowest)
        panel.tick_params(labelbottom=lowest)
    if split:
        figure.supylabel(ylabel, fontsize=12)
    else:
        axes[0].set_ylabel(ylabel)
        axes[0].set_title(title_of(names[0]) if len(names) == 1 else "", loc="left")
    if title:
        figure.suptitle(title, fontsize=12, fontweight="bold")
    handles = kind_handles(list(found["kind"])) + ([] if split or len(names) == 1 else series_handles(names, title_of))
    if marks:
        handles.append(Line2D([], [], color=GREY, marker="^", linestyle=":", label="smallest sufficient dim"))
    add_legend(figure, handles, columns=2 if len(handles) > 3 else 3)
    figure.alt = f"{ylabel} against dimension: {', '.join(map(title_of, names))}; numbers: {', '.join(kinds_of(found))}"
    return figure


@drawing
def draw_loss_curve(
    steps: Sequence[int],
    losses: Sequence[float],
    *,
    unigram: float | None = None,
    dev: tuple[Sequence[int], Sequence[float]] | None = None,
    ylabel: str = "training loss",
    dev_label: str = "dev score × 100",
) -> Drawing:
    """Loss against step, faint as measured and strong as a running mean.

    Args:
        steps: training steps.
        losses: the loss at each.
        unigram: loss of guessing words by frequency, drawn as a floor to beat.
        dev: steps and dev scores (fractions), on an axis of their own at the right.
        ylabel: what the loss is.
        dev_label: what the dev score is.

    Raises:
        InputError: for no step, or lengths that differ.
    """
    if not len(steps):
        raise NothingToDraw("no training step was logged")
    check_same_length(steps=steps, losses=losses)
    figure, (axes,) = new_figure(height=3.6)
    window = max(1, len(steps) // 20)
    smooth = pd.Series(np.asarray(losses, dtype=float)).rolling(window, min_periods=1, center=True).mean()
    handles = [*axes.plot(steps, smooth, color=look(0)["color"], linewidth=2, label="training loss")]
    if window > 1:
        axes.plot(steps, losses, color=look(0)["color"], linewidth=0.8, alpha=0.35)
    if unigram is not None:
        handles.append(axes.axhline(unigram, color=GREY, linestyle="--", linewidth=1.4, label="word frequencies alone"))
    if dev is not None:
        check_same_length(dev_steps=dev[0], dev_scores=dev[1])
        right = axes.twinx()
        right.grid(visible=False)
        right.spines["right"].set_visible(True)
        scores = np.asarray(dev[1], dtype=float) * 100
        handles += right.plot(dev[0], scores, linewidth=1.6, label=dev_label.replace(" × 100", ""), **look(1))
        right.set_ylabel(dev_label)
    axes.set_xlabel("step")
    axes.set_ylabel(ylabel)
    add_legend(figure, handles)
    figure.alt = f"{ylabel} falls from {losses[0]:.2f} to {losses[-1]:.2f} in {steps[-1]} steps"
    return figure


@drawing
def draw_neighbour_overlap(
    dims: Sequence[int],
    overlap: Sequence[float] | Mapping[str, Sequence[float]],
    interval: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    k: int | None = None,
) -> Drawing:
    """Share of the k nearest neighbours that embeddings keep when they are shortened, by dim.

    Args:
        dims: lengths of the shortened embeddings.
        overlap: share kept at each dim, 0 to 1; for several ways of shortening, a mapping from their names.
        interval: lower and upper bounds of the shares, where there is one way.
        k: neighbours per text, for the axis.

    Raises:
        InputError: for no dim, or lengths that differ.
    """
    ways = dict(overlap) if isinstance(overlap, Mapping) else {"neighbours kept": overlap}
    if not len(dims) or not ways:
        raise NothingToDraw("no dims or no shares were given")
    order = np.argsort(dims)
    x = np.asarray(dims)[order]
    figure, (axes,) = new_figure(height=3.6 if len(ways) > 1 else 3.2)
    ends = []
    for i, (way, shares) in enumerate(ways.items()):
        check_same_length(dims=dims, **{way: shares})
        share = np.asarray(shares, dtype=float)[order] * 100
        axes.plot(x, share, **look(i), **KIND_STYLE["live"])
        ends.append(f"{way} {share[0]:.0f} % at {x[0]} dimensions, {share[-1]:.0f} % at {x[-1]}")
    if interval is not None and len(ways) == 1:
        low, high = (np.asarray(bound, dtype=float)[order] * 100 for bound in interval)
        axes.fill_between(x, low, high, color=look(0)["color"], alpha=0.18, linewidth=0)
    dim_axis(axes, list(x), room=WIDTH - 0.9)
    axes.set_ylim(0, 104)
    axes.set_ylabel("neighbours kept, %" if k is None else f"of {k} neighbours kept, %")
    if len(ways) > 1:
        add_legend(figure, series_handles(list(ways)))
    figure.alt = f"nearest neighbours kept when embeddings are shortened: {'; '.join(ends)}"
    return figure


def _draw_series(axes: Axes, of_one: pd.DataFrame, *, position: int, plain_paper: bool) -> None:
    """Curves of one series, a line per kind; where the colour is not needed, printed numbers are grey."""
    for kind in kinds_of(of_one):
        color = GREY if kind == "paper" and plain_paper else None
        draw_line(axes, of_one[of_one["kind"] == kind], kind, position=position, color=color)


def draw_line(axes: Axes, points: pd.DataFrame, kind: str, *, position: int, color: str | None = None) -> None:
    """One curve in the look of its place among the series and of its kind of number, its interval as a band."""
    points = points.sort_values("dim")
    looks = {**look(position), **({} if color is None else {"color": color})}
    axes.plot(points["dim"], points["value"], **looks, **KIND_STYLE[kind])
    if points["low"].notna().any():
        axes.fill_between(points["dim"], points["low"], points["high"], color=looks["color"], alpha=0.18, linewidth=0)


def _draw_marks(axes: Axes, dims: Mapping[str, int], *, position: int) -> None:
    """A dotted line with a foot at each optimal dim; hollow and grey for the printed one."""
    for kind, dim in dims.items():
        color = GREY if kind == "paper" else look(position)["color"]
        axes.axvline(dim, color=color, linestyle=":", linewidth=1.3, alpha=0.8)
        face = "none" if kind == "paper" else color
        size = 9 if kind == "paper" else 6
        axes.plot(
            [dim],
            [0.03],
            marker="^",
            color=color,
            markerfacecolor=face,
            markersize=size,
            linestyle="none",
            transform=axes.get_xaxis_transform(),
            clip_on=False,
        )


def _marks(optimal: Optimal | None, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """`optimal` as series → kind → dim.

    Raises:
        InputError: for a series that is not drawn.
    """
    marks: dict[str, dict[str, int]] = {}
    for key, dim in (optimal or {}).items():
        kind, name = ("", key) if isinstance(key, str) else key
        if name not in names:
            raise InputError(f"optimal names {name!r}, which is not drawn: choose from {', '.join(map(str, names))}")
        marks.setdefault(name, {})[kind] = int(dim)
    return marks


def title_of(name: str) -> str:
    """A dataset's name as the documents print it; any other name as it is."""
    return TITLES.get(name, name)
