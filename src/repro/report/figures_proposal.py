"""Quality against what it costs, and training against reduction: figures of the proposal's experiments."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from repro.methods import BASELINES, BEST_REDUCED, FULL_SIZE, TRAIN_OR_REDUCE
from repro.report.claims_proposal.train_or_reduce import in_task_order
from repro.report.curves import checked, points
from repro.report.networks import names
from repro.report.style import GREY, WIDTH, Drawing, add_legend, dim_axis, drawing, look, new_figure, series_handles

AXES = {"gb_per_million": "GB per million vectors", "encode_seconds": "seconds per million sentences, one thread"}
"""what a baseline costs: metric to the words below the axis"""
ROOM = 7.5
"""per cent of a panel's height that a name needs for itself"""
SCORES = {"spearman": "Spearman × 100", "ndcg@10": "nDCG@10 × 100"}
"""metrics of `draw_train_or_reduce`"""


@drawing
def draw_baselines(rows: pd.DataFrame, *, kind: str = "live") -> Drawing:
    """Mean Spearman of every method against memory and against seconds, both on logarithmic axes.

    A method that may be kept sparse has two points in the first panel, joined: sparse and dense.

    Args:
        rows: with method, dataset, setting, metric (spearman, gb_per_million, encode_seconds) and value.
        kind: of number, for the title.

    Raises:
        InputError: if a column is missing.
    """
    frame, named = checked(rows, ("method", "dataset", "setting", "metric", "value")), set(BASELINES.values())
    said = names(rows)
    scores = frame[frame["metric"] == "spearman"]
    means = 100 * scores.groupby("method")["value"].mean()
    # each method keeps its look from figure to figure; one that the proposal does not name comes last
    score = means.reindex([*(m for m in BASELINES.values() if m in means), *(m for m in means.index if m not in named)])
    figure, panels = new_figure(2, 1, height=7.6, sharey=True)
    for panel, (metric, words) in zip(panels, AXES.items(), strict=True):
        own = frame[frame["metric"] == metric]
        low = own.groupby("method")["value"].min()
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
        twice = own.groupby("method")["value"].nunique().reindex(score.index) > 1
        x, y = (each.rename(said) for each in (low.reindex(score.index), score))
        _label(panel, x, y, twice, float(own["value"].max()))
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
    heights = apart(y.to_numpy(float) + 0.75 * gap * twice.to_numpy(bool), gap)
    for position, (method, height) in enumerate(zip(y.index, heights, strict=True)):
        panel.annotate(
            str(method),
            (x[method], y[method]),
            xytext=(10 ** (np.log10(x[method]) + 0.035 * (right - left)), height),
            color=look(position)["color"],
            fontsize=11,
            va="center",
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )


def apart(heights: Sequence[float] | np.ndarray, gap: float) -> np.ndarray:
    """The heights moved as little as one pass needs so that neighbours are at least `gap` apart, order kept.

    Runs of names that touch are spread evenly about their own mean.
    """
    order = np.argsort(heights, kind="stable")
    runs: list[list[float]] = []
    for value in np.asarray(heights, float)[order]:
        runs.append([value])
        while len(runs) > 1 and _top(runs[-2], gap) + gap > _bottom(runs[-1], gap):
            runs[-2:] = [runs[-2] + runs[-1]]
    moved = np.empty(len(order))
    placed = [_bottom(run, gap) + i * gap for run in runs for i in range(len(run))]
    moved[order] = placed
    return moved


def _bottom(run: Sequence[float], gap: float) -> float:
    return float(np.mean(run)) - gap * (len(run) - 1) / 2


def _top(run: Sequence[float], gap: float) -> float:
    return float(np.mean(run)) + gap * (len(run) - 1) / 2


@drawing
def draw_train_or_reduce(rows: pd.DataFrame, *, kind: str = "live") -> Drawing:
    """Score against dim, a panel per task and a line per method; the full size is a grey line across.

    Args:
        rows: with method, dataset, metric (spearman or ndcg@10), dim, value, ci_low and ci_high; of several seeds the
            mean is drawn with one standard deviation around it.
        kind: of number, for the title.

    Raises:
        InputError: if a column is missing.
    """
    wanted = rows[rows["metric"].isin(list(SCORES)) & (rows["method"] != BEST_REDUCED)]
    frame = checked(wanted, ("method", "dataset", "metric", "dim", "value"))
    full, below = frame[frame["method"] == FULL_SIZE], frame[frame["method"] != FULL_SIZE]
    tasks = list(dict.fromkeys(in_task_order(below)["dataset"]))
    methods = [method for method in TRAIN_OR_REDUCE if method in set(below["method"])]
    drawn = points(below.assign(kind=kind), ("method", "dataset", "dim"))
    figure, panels = new_figure(len(tasks), 1, height=1.3 + 2.5 * len(tasks), sharex=True)
    for i, (panel, task) in enumerate(zip(panels, tasks, strict=True)):
        for position, method in enumerate(methods):
            line = drawn[(drawn["dataset"] == task) & (drawn["method"] == method)].sort_values("dim")
            panel.plot(line["dim"], line["value"], linestyle="-", linewidth=2, **look(position))
        level = 100 * full.loc[full["dataset"] == task, "value"].mean()
        panel.axhline(level, color=GREY, linestyle=(0, (4, 2)), linewidth=1.4)
        metric = SCORES[below.loc[below["dataset"] == task, "metric"].iloc[0]]
        panel.set_title(f"{kind}: {task}, {metric}", loc="left")
        dim_axis(panel, list(below["dim"]), room=WIDTH - 0.9, label=i == len(tasks) - 1)
    size = int(full["dim"].iloc[0])
    dashed = Line2D([], [], color=GREY, linestyle=(0, (4, 2)), linewidth=1.4, label=f"full size ({size})")
    add_legend(figure, [*series_handles(methods), dashed], columns=2)
    figure.alt = f"{kind}: score against dimension of {', '.join(methods)} on {', '.join(tasks)}"
    return figure
