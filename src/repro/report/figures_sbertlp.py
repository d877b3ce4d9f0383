"""Figures on SBERT-LP (2021): gains of the mapping, votes for oneself, score by neighbours and dims, turned cases."""

from collections.abc import Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from repro.methods import AVERAGE
from repro.report.curves import title_of
from repro.report.style import (
    GREY,
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
from repro.types import Array, check_same_length


@drawing
def draw_gains(frame: pd.DataFrame, *, by: str = "dataset", ylabel: str = "gain, points") -> Drawing:
    """What the mapping adds to its system on every dataset: ours with intervals, the printed one hollow and grey.

    Args:
        frame: kind, method (a panel each), setting (ours), value, ci_low, ci_high as fractions, and the column `by`.
        by: what stands along the axis.
        ylabel: of the gains.
    """
    if frame.empty:
        raise NothingToDraw("no mapped system was measured")
    methods, names = list(dict.fromkeys(frame["method"])), list(dict.fromkeys(frame[by]))
    names = [n for n in names if n != AVERAGE] + [n for n in names if n == AVERAGE]
    settings = list(dict.fromkeys(frame.loc[frame["kind"] != "paper", "setting"]))
    figure, axes = new_figure(len(methods), 1, height=1.1 + 2.3 * len(methods), sharex=True)
    for panel, method in zip(axes, methods, strict=True):
        panel.axhline(0, color=GREY, linewidth=1)
        of_method = frame[frame["method"] == method]
        printed = of_method[of_method["kind"] == "paper"]
        at = [names.index(name) for name in printed[by]]
        panel.plot(at, 100 * printed["value"], color=GREY, marker="D", markerfacecolor="none", linestyle="none", ms=8)
        for i, setting in enumerate(settings):
            ours = of_method[(of_method["kind"] != "paper") & (of_method["setting"] == setting)]
            x = np.array([names.index(name) for name in ours[by]]) + 0.2 * (i - (len(settings) - 1) / 2)
            value, low, high = (100 * ours[c].to_numpy(float) for c in ("value", "ci_low", "ci_high"))
            panel.errorbar(x, value, yerr=[value - low, high - value], linestyle="none", elinewidth=1.6, **look(i))
        panel.set_title(method, loc="left")
        panel.set_ylabel(ylabel)
    axes[-1].set_xticks(range(len(names)), [title_of(name) for name in names])
    printed_handle = Line2D([], [], color=GREY, marker="D", markerfacecolor="none", linestyle="none", label="paper")
    handles = [printed_handle] if (frame["kind"] == "paper").any() else []
    add_legend(figure, [*handles, *series_handles(settings)], columns=2)
    figure.alt = f"{ylabel} of the mapping over {' and '.join(methods)} on {', '.join(map(title_of, names))}"
    return figure


@drawing
def draw_votes(votes: pd.DataFrame) -> Drawing:
    """Accuracy when a query votes for itself, against 1 − (1 − q)² from its nearest other row.

    Args:
        votes: predicted, `3-NN with oneself` (fractions) and classes, one line per system and dataset.
    """
    if votes.empty:
        raise NothingToDraw("no votes were counted")
    figure, (axes,) = new_figure(height=4.2)
    two = votes["classes"] == 2
    own = 100 * votes["3-NN with oneself"]
    plain = 100 * votes["3-NN"]
    predicted = 100 * votes["predicted"]
    ends = (float(predicted.min()) - 2, 101.0)
    axes.plot(ends, ends, color=GREY, linewidth=1.2, linestyle="--")
    for i, (part, name) in enumerate(((two, "two classes"), (~two, "more classes"))):
        axes.plot(predicted[part], own[part], linestyle="none", label=f"own vote, {name}", **look(i))
    axes.plot(predicted, plain, linestyle="none", color=GREY, marker="x", label="no own vote")
    axes.set_xlabel("1 − (1 − q)², in per cent")
    axes.set_ylabel("3-NN accuracy × 100")
    handles, _ = axes.get_legend_handles_labels()
    add_legend(figure, handles, columns=2)
    figure.alt = "3-NN accuracy with a vote for oneself lies along 1 − (1 − q)²; without it, below"
    return figure


@drawing
def draw_sweep(frame: pd.DataFrame, *, x: str, ylabel: str, marked: tuple[int, int] | None = None) -> Drawing:
    """Score against neighbours or dims, a panel per dataset, a curve for each value of the other; Figures 2 to 5.

    Args:
        frame: dataset, neighbours, dim and value (a fraction); rows without neighbours are the system itself.
        x: `neighbours` or `dim`.
        ylabel: what the score is.
        marked: a range of x that is shaded.
    """
    mapped = frame.dropna(subset=["neighbours"])
    if mapped.empty:
        raise NothingToDraw("no score of the mapping")
    names, other = list(dict.fromkeys(mapped["dataset"])), "dim" if x == "neighbours" else "neighbours"
    series = sorted(mapped[other].astype(int).unique())
    columns = min(2, len(names))
    rows = ceil(len(names) / columns)
    figure, axes = new_figure(rows, columns, height=1.2 + 2.5 * rows)
    for panel, name in zip(axes, names, strict=False):
        if marked is not None:
            panel.axvspan(*marked, color=GREY, alpha=0.15, linewidth=0)
        own = frame[(frame["dataset"] == name) & frame["neighbours"].isna()]
        for value in own["value"]:
            panel.axhline(100 * value, color=GREY, linewidth=1.6, linestyle="--")
        for i, level in enumerate(series):
            line = mapped[(mapped["dataset"] == name) & (mapped[other] == level)].sort_values(x)
            panel.plot(line[x].astype(int), 100 * line["value"], linewidth=1.8, **look(i))
        dim_axis(panel, sorted(mapped[x].astype(int)), room=WIDTH / columns - 0.8, label=False)
        panel.set_xlabel("dimensions" if x == "dim" else "neighbours")
        panel.set_title(title_of(name), loc="left")
    for panel in axes[len(names) :]:
        panel.set_visible(False)
    figure.supylabel(ylabel, fontsize=12)
    word = "{} dims" if other == "dim" else "{} neighbours"
    whole = Line2D([], [], color=GREY, linestyle="--", label="without the mapping")
    add_legend(figure, [*series_handles([word.format(s) for s in series]), whole])
    figure.alt = f"{ylabel} of the mapping against {x} on {', '.join(map(title_of, names))}"
    return figure


@drawing
def draw_turned(before: Array, after: Array, gold: Array, *, marked: Sequence[int] = ()) -> Drawing:
    """Cosine of every pair before and after the mapping, in three classes of gold score.

    Args:
        before: cosines under the system (n,).
        after: under the mapping (n,).
        gold: gold scores (n,).
        marked: pairs to ring.
    """
    check_same_length(before=before, after=after, gold=gold)
    figure, (axes,) = new_figure(height=4.2)
    low, high = np.quantile(gold, [1 / 3, 2 / 3])
    groups = (
        (gold < low, "lowest third of gold"),
        ((gold >= low) & (gold < high), "middle"),
        (gold >= high, "highest"),
    )
    for i, (part, name) in enumerate(groups):
        axes.plot(before[part], after[part], linestyle="none", alpha=0.55, label=name, **{**look(i), "markersize": 3.5})
    for i in marked:
        axes.plot(before[i], after[i], marker="o", markersize=13, markerfacecolor="none", color=GREY, markeredgewidth=2)
    axes.set_xlabel("cosine before")
    axes.set_ylabel("cosine after the mapping")
    handles, _ = axes.get_legend_handles_labels()
    add_legend(figure, handles)
    figure.alt = "cosine of every pair before and after the mapping, by third of its gold score"
    return figure
