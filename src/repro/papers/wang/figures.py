"""Figures of Wang et al. (2023): the stages of two-step training, the grid of pairs, and a loss as a stack of parts."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from repro.methods import STAGE_NAMES
from repro.report.compare import paper_values
from repro.report.curves import checked, curves, points
from repro.report.style import GREY, WIDTH, Drawing, NothingToDraw, add_legend, drawing, look, new_figure, thin
from repro.rows import recorded_rows
from repro.types import InputError

Pair = tuple[int, int]
PARTS = ("encoder_loss", "pooler_loss")
ORACLE, CHOSEN = "-", (0, (3, 1.5))
"""how the best encoder of a pooler is outlined, and the one that a rule chose"""


def draw_stages(frame: pd.DataFrame) -> Drawing:
    """Table 1 as a figure: scores of the three stages by dim, below them what each step gained; a column per kind.

    Args:
        frame: rows with kind, method, dim, value and metric (`spearman` and `spearman_gain`).
    """
    what = frame["metric"].map({"spearman": "score × 100", "spearman_gain": "gain, points"})
    frame = frame.assign(stage=frame["method"].map(STAGE_NAMES), what=what)
    nought = pd.DataFrame({"value": [0.0], "label": ["no gain"], "what": ["gain, points"]})
    order = list(STAGE_NAMES.values())
    return curves(frame, color="stage", row="what", panel="kind", order=order, levels=nought, ylabel="")


def draw_readme_figure() -> Drawing:
    """The README's figure: the three stages of Table 1 against dim, as printed and as recorded."""
    where = {"paper": "paper (RoBERTa-base)", "recorded": "recorded (repro-tiny)"}
    ours = recorded_rows("wang_table1").query("readout == 'pooler' and paper_table == 'table1'")
    rows = pd.concat([paper_values("wang2023", "table1").assign(kind="paper"), ours.assign(kind="recorded")])
    rows = rows[rows["metric"] == "spearman"].assign(stage=rows["method"].map(STAGE_NAMES))
    order = list(STAGE_NAMES.values())
    figure = curves(
        rows, color="stage", panel="kind", order=order, title=lambda kind: where[kind], ylabel="STS-B, Spearman × 100"
    )
    figure.alt = "STS-B score of two-step training against embedding dimension, as printed and as recorded"
    return figure


@drawing
def draw_grid(matrix: pd.DataFrame, *, chosen: Iterable[Pair] = ()) -> Drawing:
    """Score of every encoder (row) with every pooler (column), the best encoder of each pooler outlined (Figure 4).

    Args:
        matrix: fractions; index: dim of the encoder, columns: dim of the pooler.
        chosen: pairs (encoder, pooler) outlined as what a rule chose.

    Raises:
        InputError: for an empty matrix.
    """
    if matrix.empty or matrix.isna().all(axis=None):
        raise NothingToDraw("the matrix of encoders and poolers is empty")
    values = matrix.to_numpy(dtype=float) * 100
    encoders, poolers = [int(d) for d in matrix.index], [int(d) for d in matrix.columns]
    figure, (axes,) = new_figure(height=1.6 + 0.42 * len(encoders))
    image = axes.imshow(values, cmap="cividis", aspect="auto")
    middle = np.nanmin(values) + 0.55 * np.ptp(values[np.isfinite(values)])
    for (i, j), value in np.ndenumerate(values):
        # cividis runs from dark to light: white letters on its lower half, black on its upper half
        text, ink = ("" if np.isnan(value) else f"{value:.1f}"), "white" if value < middle else "black"
        axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=min(11.5, 84 / len(poolers)))
    best = [(int(matrix[column].idxmax()), int(column)) for column in matrix if matrix[column].notna().any()]
    for pairs, color, inset, style in ((best, look(1)["color"], 0.04, ORACLE), (chosen, "white", 0.13, CHOSEN)):
        for encoder, pooler in pairs:
            if encoder not in encoders or pooler not in poolers:
                raise InputError(
                    f"the pair ({encoder}, {pooler}) is not in the grid: encoders {encoders}, poolers {poolers}"
                )
            corner = (poolers.index(pooler) - 0.5 + inset, encoders.index(encoder) - 0.5 + inset)
            side = 1 - 2 * inset
            frame = Rectangle(corner, side, side, fill=False, edgecolor=color, linewidth=2.2, linestyle=style)
            axes.add_patch(frame)
            if color == "white":
                frame.set_path_effects([withStroke(linewidth=3.6, foreground="black")])
    axes.set_xticks(range(len(poolers)), [str(d) for d in poolers])
    axes.set_yticks(range(len(encoders)), [str(d) for d in encoders])
    axes.set(xlabel="pooler trained with dim", ylabel="encoder trained with dim")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label="Spearman × 100", pad=0.02).outline.set_visible(False)
    handles = [Line2D([], [], color=look(1)["color"], linewidth=2.5, label="best encoder of a pooler")]
    if list(chosen):
        handles.append(Line2D([], [], color=GREY, linewidth=2, linestyle=CHOSEN, label="chosen on dev (white)"))
    add_legend(figure, handles)
    figure.alt = f"Spearman × 100 of {len(encoders)} encoders with {len(poolers)} poolers"
    return figure


@drawing
def draw_decomposition(frame: pd.DataFrame) -> Drawing:
    """Encoder loss and pooler loss stacked by dim, a panel per network and kind of number (Figure 3c).

    Parts of one sign are stacked; a negative part, a gain, hangs below zero, so that the parts add up to the total,
    which is marked beside them, with its interval where there is one.

    Args:
        frame: rows with kind, network, dim, value (a fraction) and metric: encoder_loss, pooler_loss, total_loss.

    Raises:
        InputError: if a column is missing, or a dim has one part only.
    """
    frame = checked(frame, ("kind", "network", "dim", "metric", "value"))
    found = points(frame[frame["metric"].isin([*PARTS, "total_loss"])], ["network", "metric", "dim"])
    shown = list(found.groupby(["kind", "network"], sort=False))
    columns = min(2, len(shown))
    rows = -(-len(shown) // columns)
    figure, axes = new_figure(rows, columns, height=1.3 + 2.2 * rows)
    for panel, ((kind, network), own) in zip(axes, shown, strict=False):
        _stack(panel, own, network, hollow=kind == "paper", room=WIDTH / columns - 0.9)
        panel.set_title(f"{network} ({kind})", loc="left")
    for lowest in axes[max(0, len(shown) - columns) : len(shown)]:
        lowest.set_xlabel("dimensions of the pooler")
    for spare in axes[len(shown) :]:
        spare.set_visible(False)
    figure.supylabel("loss, points", fontsize=12)
    bars = [Patch(facecolor=look(i)["color"], alpha=0.85, label=part.replace("_", " ")) for i, part in enumerate(PARTS)]
    add_legend(figure, [*bars, Line2D([], [], color=GREY, marker="D", linestyle="none", label="total loss")])
    named = ", ".join(f"{kind} {network}" for (kind, network), _ in shown)
    figure.alt = f"loss of the encoder and of the pooler, in points, stacked by dimension: {named}"
    return figure


def _stack(axes: Axes, own: pd.DataFrame, network: str, *, hollow: bool, room: float) -> None:
    """Two bars on top of each other per dim, the total beside them; printed ones are hollow, like printed markers."""
    table = own.pivot_table(index="dim", columns="metric", values="value").sort_index()
    lacking = [part for part in PARTS if part not in table or table[part].isna().any()]
    if lacking:
        raise NothingToDraw(f"{network} lacks {lacking[0]} at some dim: a stack needs both parts of every dim")
    x, (encoder, pooler) = np.arange(len(table)), (table[part].to_numpy() for part in PARTS)
    bottoms = (np.zeros(len(x)), np.where(encoder * pooler > 0, encoder, 0.0))
    for i, (part, bottom) in enumerate(zip((encoder, pooler), bottoms, strict=True)):
        color, hatch = look(i)["color"], "///" if hollow and i else None
        face = "none" if hollow else color
        axes.bar(x, part, 0.58, bottom, facecolor=face, edgecolor=color, linewidth=1.3, alpha=0.85, hatch=hatch)
    total = own[own["metric"] == "total_loss"].set_index("dim").reindex(table.index)
    reach = np.vstack([total["value"] - total["low"], total["high"] - total["value"]])
    if np.isfinite(reach).any():
        axes.errorbar(x + 0.4, total["value"], yerr=np.abs(reach), fmt="none", ecolor=GREY, elinewidth=1.5, capsize=0)
    axes.plot(x + 0.4, encoder + pooler, color=GREY, marker="D", linestyle="none", markersize=4.5)
    axes.axhline(0, color=GREY, linewidth=0.9)
    written = thin([len(str(dim)) for dim in table.index], room)
    axes.set_xticks(written, [str(table.index[i]) for i in written])
    axes.grid(visible=False, axis="x")
