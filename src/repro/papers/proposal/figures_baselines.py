"""Quality against what it costs: every method by memory and by seconds, with its name beside it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from repro.methods import BASELINES
from repro.papers.proposal.claims import in_task_order
from repro.report.curves import checked
from repro.report.networks import names
from repro.report.style import GREY, Drawing, drawing, look, new_figure

COSTS = {"gb_per_million": "GB per million vectors", "encode_seconds": "seconds per million sentences, one thread"}
"""what a baseline costs: metric to the words below the axis"""
ROOM = 7.5
"""per cent of a panel's height that a name needs for itself"""


@drawing
def draw_baselines(rows: pd.DataFrame, *, kind: str = "live") -> Drawing:
    """Mean Spearman of every method against memory and against seconds, both on logarithmic axes.

    A method that may be kept sparse has two points in the first panel, joined: sparse and dense.
    """
    frame, said = checked(rows, ("method", "dataset", "setting", "metric", "value")), names(rows)
    scores = frame[frame["metric"] == "spearman"]
    means = 100 * scores.groupby("method")["value"].mean()
    # each method keeps its look from figure to figure; one that the proposal does not name comes last
    score = means.reindex(sorted(means.index, key=lambda m: [*BASELINES.values(), m].index(m)))
    figure, panels = new_figure(2, 1, height=7.6, sharey=True)
    for panel, (metric, words) in zip(panels, COSTS.items(), strict=True):
        own = frame[frame["metric"] == metric]
        for position, method in enumerate(score.index):
            spots = sorted(own.loc[own["method"] == method].groupby("setting", dropna=False)["value"].mean())
            style = look(position)
            panel.plot(spots, [score[method]] * len(spots), linestyle="none", markersize=8, **style)
            panel.plot(spots, [score[method]] * len(spots), linestyle=":", color=style["color"], alpha=0.6)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.12g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(words)
        panel.margins(y=0.12)
        cost = own.groupby("method")["value"].agg(["min", "nunique"]).reindex(score.index)
        _label(panel, cost["min"].rename(said), score.rename(said), cost["nunique"] > 1, float(own["value"].max()))
    sets = ", ".join(dict.fromkeys(in_task_order(scores)["dataset"]))
    panels[0].set_title(f"{kind}: mean Spearman × 100 of {sets}", loc="left")
    figure.alt = f"{kind}: Spearman against memory and against encoding time of {', '.join(score.rename(said).index)}"
    return figure


def _label(panel: Axes, x: pd.Series, y: pd.Series, twice: pd.Series, largest: float) -> None:
    """Names beside their points, moved apart where they would lie on each other; room for the one furthest right.

    The name of a method that is there twice stands above the line that joins its points.
    """
    span = float(np.log10(largest / x.min())) or 1.0
    left = np.log10(x.min()) - 0.06 * span
    right = max(np.log10(x.max()) + 0.36 * span, np.log10(largest) + 0.06 * span)
    panel.set_xlim(10**left, 10**right)
    bottom, top = panel.get_ylim()
    gap = ROOM / 100 * (top - bottom)
    heights = moved_apart(y.to_numpy(float) + 0.75 * gap * twice.to_numpy(bool), gap)
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
    for position, (method, height) in enumerate(zip(y.index, heights, strict=True)):
        place = (10 ** (np.log10(x[method]) + 0.035 * (right - left)), height)
        looks = {"color": look(position)["color"], "fontsize": 11, "va": "center", "arrowprops": line}
        panel.annotate(str(method), (x[method], y[method]), xytext=place, **looks)


def moved_apart(heights: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """The heights moved as little as one pass needs so that neighbours are at least `gap` apart, order kept.

    Runs of names that touch are spread evenly about their own mean.
    """

    def spread(run: list[float]) -> np.ndarray:
        return np.mean(run) + gap * (np.arange(len(run)) - (len(run) - 1) / 2)

    order = np.argsort(heights, kind="stable")
    runs: list[list[float]] = []
    for value in np.asarray(heights, float)[order]:
        runs.append([value])
        while len(runs) > 1 and spread(runs[-2])[-1] + gap > spread(runs[-1])[0]:
            runs[-2:] = [runs[-2] + runs[-1]]
    moved = np.empty(len(order))
    moved[order] = np.concatenate([spread(run) for run in runs])
    return moved
