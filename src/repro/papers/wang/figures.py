"""Figures of Wang et al. (2023): the stages of two-step training, the grid of pairs, and a loss as a stack of parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from repro.methods import STAGE_NAMES
from repro.report.figures import (
    GREY,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    checked,
    curves,
    drawing,
    look,
    new_figure,
    points,
    thin,
)
from repro.report.tables import paper_values
from repro.rows import recorded_rows

STAGE_ORDER = list(STAGE_NAMES.values())
PARTS = ("encoder_loss", "pooler_loss")


def draw_stages(frame: pd.DataFrame) -> Drawing:
    """Scores (`spearman`) of the three stages by dim, below them what each step gained; a column per kind."""
    what = frame["metric"].map({"spearman": "score × 100", "spearman_gain": "gain, points"})
    frame = frame.assign(stage=frame["method"].map(STAGE_NAMES), what=what)
    nought = pd.DataFrame({"value": [0.0], "label": ["no gain"], "what": ["gain, points"]})
    return curves(frame, color="stage", row="what", panel="kind", order=STAGE_ORDER, levels=nought, ylabel="")


def draw_readme_figure() -> Drawing:
    """The README's figure: the three stages of Table 1 against dim, as printed and as recorded."""
    where = {"paper": "paper (RoBERTa-base)", "recorded": "recorded (repro-tiny)"}
    ours = recorded_rows("wang_table1").query("readout == 'pooler' and paper_table == 'table1'")
    rows = pd.concat([paper_values("wang2023", "table1").assign(kind="paper"), ours.assign(kind="recorded")])
    rows = rows[rows["metric"] == "spearman"].assign(stage=rows["method"].map(STAGE_NAMES))
    label = "STS-B, Spearman × 100"
    figure = curves(rows, color="stage", panel="kind", order=STAGE_ORDER, title=where.__getitem__, ylabel=label)
    figure.alt = "STS-B score of two-step training against embedding dimension, as printed and as recorded"
    return figure


@drawing
def draw_grid(matrix: pd.DataFrame, chosen: Sequence[tuple[int, int]] = ()) -> Drawing:
    """Score of every encoder (row) with every pooler (column), the best encoder of each pooler outlined (Figure 4).

    Pairs (encoder, pooler) that a rule chose are outlined too.
    """
    if matrix.empty:
        raise NothingToDraw("the matrix of encoders and poolers is empty")
    values = 100 * matrix.to_numpy(dtype=float)
    figure, (axes,) = new_figure(height=1.6 + 0.42 * len(matrix))
    image = axes.imshow(values, cmap="cividis", aspect="auto")
    middle = values.min() + 0.55 * np.ptp(values)
    for (i, j), value in np.ndenumerate(values):
        # cividis runs from dark to light: white letters on its lower half, black on its upper half
        ink, size = "white" if value < middle else "black", min(11.5, 84 / len(matrix.columns))
        axes.text(j, i, f"{value:.1f}", ha="center", va="center", color=ink, fontsize=size)
    dashed, orange = (0, (3, 1.5)), look(1)["color"]
    outlines: list[tuple[Any, str, Any, float]] = [
        (pair, orange, "-", 0.04) for pair in zip(matrix.idxmax(), matrix.columns, strict=True)
    ]
    outlines += [(pair, "white", dashed, 0.13) for pair in chosen]
    for (encoder, pooler), color, style, inset in outlines:
        corner = matrix.columns.get_loc(pooler) - 0.5 + inset, matrix.index.get_loc(encoder) - 0.5 + inset
        side = 1 - 2 * inset
        frame = axes.add_patch(Rectangle(corner, side, side, fill=False, ec=color, linewidth=2.2, linestyle=style))
        if color == "white":
            frame.set_path_effects([withStroke(linewidth=3.6, foreground="black")])
    axes.set_xticks(range(len(matrix.columns)), [str(d) for d in matrix.columns])
    axes.set_yticks(range(len(matrix)), [str(d) for d in matrix.index])
    axes.set(xlabel="pooler trained with dim", ylabel="encoder trained with dim")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="Spearman × 100", pad=0.02).outline.set_visible(False)
    handles = [Line2D([], [], color=orange, linewidth=2.5, label="best encoder of a pooler")]
    if chosen:
        handles.append(Line2D([], [], color=GREY, linewidth=2, linestyle=dashed, label="chosen on dev (white)"))
    add_legend(figure, handles)
    figure.alt = f"Spearman × 100 of {len(matrix)} encoders with {len(matrix.columns)} poolers"
    return figure


@drawing
def draw_decomposition(frame: pd.DataFrame) -> Drawing:
    """Encoder loss and pooler loss stacked by dim, a panel per network and kind of number (Figure 3c).

    Parts of one sign are stacked; a negative part, a gain, hangs below zero, so that the parts add up to the total,
    which is marked beside them, with its interval where there is one. Printed bars are hollow.
    """
    frame = checked(frame, ("kind", "network", "dim", "metric", "value"))
    found = points(frame[frame["metric"].isin([*PARTS, "total_loss"])], ["network", "metric", "dim"])
    shown = list(found.groupby(["kind", "network"], sort=False))
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure, axes = new_figure(rows, columns, height=1.3 + 2.2 * rows)
    colors = [look(i)["color"] for i in range(2)]
    for panel, ((kind, network), own) in zip(axes, shown, strict=False):
        table = own.pivot(index="dim", columns="metric", values="value").sort_index().reindex(columns=PARTS)
        if table.isna().any(axis=None):
            raise NothingToDraw(f"{network} lacks a part of its loss at some dim: a stack needs both of every dim")
        x, (encoder, pooler) = np.arange(len(table)), table.to_numpy().T
        bottoms = (0 * encoder, np.where(encoder * pooler > 0, encoder, 0.0))
        for part, bottom, color, hatch in zip((encoder, pooler), bottoms, colors, (None, "///"), strict=True):
            face, hatch = ("none", hatch) if kind == "paper" else (color, None)
            look_of_bar = {"facecolor": face, "edgecolor": color, "linewidth": 1.3, "alpha": 0.85, "hatch": hatch}
            panel.bar(x, part, 0.58, bottom, **look_of_bar)
        total = own[own["metric"] == "total_loss"].set_index("dim").reindex(table.index)
        reach = np.abs([total["value"] - total["low"], total["high"] - total["value"]])
        if np.isfinite(reach).any():
            panel.errorbar(x + 0.4, total["value"], yerr=reach, fmt="none", ecolor=GREY, elinewidth=1.5, capsize=0)
        panel.plot(x + 0.4, encoder + pooler, color=GREY, marker="D", linestyle="none", markersize=4.5)
        panel.axhline(0, color=GREY, linewidth=0.9)
        written = thin([len(str(dim)) for dim in table.index], WIDTH / columns - 0.9)
        panel.set_xticks(written, [str(table.index[i]) for i in written])
        panel.grid(visible=False, axis="x")
        panel.set_title(f"{network} ({kind})", loc="left")
    for lowest in axes[max(0, len(shown) - columns) : len(shown)]:
        lowest.set_xlabel("dimensions of the pooler")
    for spare in axes[len(shown) :]:
        spare.set_visible(False)
    figure.supylabel("loss, points", fontsize=12)
    bars = [Patch(facecolor=c, alpha=0.85, label=part.replace("_", " ")) for c, part in zip(colors, PARTS, strict=True)]
    add_legend(figure, [*bars, Line2D([], [], color=GREY, marker="D", linestyle="none", label="total loss")])
    named = ", ".join(f"{kind} {network}" for (kind, network), _ in shown)
    figure.alt = f"loss of the encoder and of the pooler, in points, stacked by dimension: {named}"
    return figure
