"""What fewer dimensions do to distances and cosines: the spread of distortions, beside χ² and the bound."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from repro.report.curves import checked
from repro.report.style import GREY, PALETTE, WIDTH, Drawing, add_legend, dim_axis, drawing, look, new_figure

CHI2: Mapping[str, Any] = {"color": PALETTE[1], "linestyle": (0, (5, 2)), "linewidth": 1.5}
BOUND: Mapping[str, Any] = {"color": PALETTE[3], "linestyle": "-", "linewidth": 1.8}
THEORY: Mapping[str, Any] = {"color": GREY, "linestyle": (0, (5, 2)), "linewidth": 1.5}
HIGHEST = 3.0
"""of the axis of distortions: what lies above is beside the point"""


@drawing
def draw_distortion(rows: pd.DataFrame, theory: pd.DataFrame) -> Drawing:
    """Ratio of squared distances after and before against dim, a panel per encoder and method.

    Args:
        rows: with backbone, method, dim, metric (distortion_min … distortion_max) and value; of several draws the
            outermost is drawn.
        theory: with backbone, dim, low and high (χ² quantiles), and eps (what the bound promises, NaN for nothing).

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("backbone", "method", "dim", "metric", "value"))
    frame = frame[frame["metric"].str.startswith("distortion_")]
    backbones, methods = (list(dict.fromkeys(frame[column])) for column in ("backbone", "method"))
    figure, axes = new_figure(len(backbones), len(methods), height=1.4 + 2.2 * len(backbones), sharex=True, sharey=True)
    for i, panel in enumerate(axes):
        backbone, method = backbones[i // len(methods)], methods[i % len(methods)]
        of_one = frame[(frame["backbone"] == backbone) & (frame["method"] == method)]
        _envelope(panel, of_one)
        expected = theory[theory["backbone"] == backbone].sort_values("dim")
        if method == "GRP":
            for side in ("low", "high"):
                panel.plot(expected["dim"], expected[side], **CHI2)
        for sign in (-1, 1):
            panel.plot(expected["dim"], 1 + sign * expected["eps"], **BOUND)
        panel.set_ylim(0, HIGHEST)
        panel.set_title(f"{method}: {backbone}", loc="left", fontsize=9.5)
        lowest = i >= len(axes) - len(methods)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / len(methods) - 0.9, label=lowest)
        panel.tick_params(labelbottom=lowest)
    figure.supylabel("squared distance, after / before", fontsize=12)
    color = PALETTE[0]
    handles = [
        Line2D([], [], color=color, linewidth=2.2, label="median"),
        Patch(facecolor=color, alpha=0.4, label="99 % of pairs"),
        Patch(facecolor=color, alpha=0.15, label="all pairs"),
        Line2D([], [], label="99 % by χ²", **CHI2),
        Line2D([], [], label="promised by the bound", **BOUND),
    ]
    add_legend(figure, handles)
    figure.alt = f"distortion of squared distances against dimension: {', '.join(methods)}; {', '.join(backbones)}"
    return figure


@drawing
def draw_cosine_error(rows: pd.DataFrame) -> Drawing:
    """Root mean square error of cosines, and Spearman kept, against dim; an encoder by colour, PCA by a dotted line.

    Args:
        rows: with backbone, method, dim, metric (cosine_rms, cosine_rms_expected, spearman) and value.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("backbone", "method", "dim", "metric", "value"))
    backbones = list(dict.fromkeys(frame["backbone"]))
    figure, (errors, scores) = new_figure(1, 2, height=3.8)
    for i, backbone in enumerate(backbones):
        of_one = frame[frame["backbone"] == backbone]
        looks = look(i)
        for method, line in (("GRP", "-"), ("PCA", (0, (1, 1.5)))):
            own = of_one[of_one["method"] == method]
            error = _mean(own, "cosine_rms")
            errors.plot(error.index, error, linestyle=line, **looks)
            score = 100 * _mean(own, "spearman")
            scores.plot(score.index, score, linestyle=line, **looks)
        expected = _mean(of_one[of_one["method"] == "GRP"], "cosine_rms_expected")
        errors.plot(expected.index, expected, **THEORY)
        full = of_one.loc[(of_one["method"] == "full size") & (of_one["metric"] == "spearman"), "value"]
        for value in full.drop_duplicates():
            scores.axhline(100 * value, color=looks["color"], linewidth=0.9, alpha=0.6)
    errors.set_yscale("log")
    random = frame.loc[(frame["method"] == "GRP") & (frame["metric"] == "cosine_rms"), "value"]
    if len(random):
        errors.set_ylim(random.min() / 8, None)  # PCA at full size is exact to rounding, and would flatten the rest
    errors.set_title("rms error of cosines", loc="left")
    scores.set_title("Spearman × 100", loc="left")
    for panel in (errors, scores):
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9)
    handles = [Line2D([], [], label=name, **look(i)) for i, name in enumerate(backbones)]
    handles += [
        Line2D([], [], color=GREY, linestyle="-", label="GRP"),
        Line2D([], [], color=GREY, linestyle=(0, (1, 1.5)), label="PCA"),
        Line2D([], [], label="theory of GRP", **THEORY),
    ]
    add_legend(figure, handles, columns=2)
    figure.alt = f"error of cosines and Spearman kept, against dimension, under GRP and PCA: {', '.join(backbones)}"
    return figure


def _envelope(axes: Axes, of_one: pd.DataFrame) -> None:
    """Median, the middle 99 % and the extremes of the pairs' distortions, over all draws."""
    table = of_one.pivot_table(index="dim", columns="metric", values="value", aggfunc=["min", "max", "median"])
    if table.empty:
        return
    dims, color = np.asarray(table.index), PALETTE[0]
    for low, high, alpha in (("distortion_min", "distortion_max", 0.15), ("distortion_low", "distortion_high", 0.3)):
        axes.fill_between(dims, table["min"][low], table["max"][high], color=color, alpha=alpha, linewidth=0)
    axes.plot(dims, table["median"]["distortion_median"], color=color, linewidth=2.2)


def _mean(rows: pd.DataFrame, metric: str) -> pd.Series:
    return rows[rows["metric"] == metric].groupby("dim")["value"].mean()
