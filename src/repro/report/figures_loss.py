"""Where a narrow pooler loses (Wang et al., 2023, Figure 3): both readouts by dim, and the loss as a stack of parts."""

from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from repro.report.curves import checked, draw_line, kinds_of, points
from repro.report.style import (
    GREY,
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
    thin,
)

READOUTS = ("encoder", "pooler")
PARTS = ("encoder_loss", "pooler_loss")
TOTAL = "total_loss"


@drawing
def draw_readouts(frame: pd.DataFrame, *, ylabel: str = "Spearman × 100") -> Drawing:
    """Score of the encoder's and of the pooler's output against dim, a panel per network.

    Args:
        frame: rows with kind, network, readout, dim and value (a fraction), of one metric.
        ylabel: what the score is.

    Raises:
        InputError: if a column is missing.
    """
    found = points(frame, ["network", "readout", "dim"])
    networks = list(dict.fromkeys(found["network"]))
    figure, panels, room = _panels(len(networks))
    for panel, network in zip(panels, networks, strict=True):
        of_one = found[found["network"] == network]
        for i, readout in enumerate(READOUTS):
            for kind in kinds_of(of_one):
                draw_line(panel, of_one[(of_one["kind"] == kind) & (of_one["readout"] == readout)], kind, position=i)
        dim_axis(panel, list(of_one["dim"]), room=room, label=False)
        panel.set_title(network, loc="left")
    figure.supylabel(ylabel, fontsize=12)
    names = [f"{readout}'s output" for readout in READOUTS]
    add_legend(figure, [*series_handles(names), *kind_handles(list(found["kind"]))], columns=2)
    figure.alt = (
        f"{ylabel} of both readouts against dimension: {', '.join(networks)}; numbers: {', '.join(kinds_of(found))}"
    )
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
    found = points(frame[frame["metric"].isin([*PARTS, TOTAL])], ["network", "metric", "dim"])
    shown = list(dict.fromkeys(zip(found["kind"], found["network"], strict=True)))
    figure, panels, room = _panels(len(shown))
    for panel, (kind, network) in zip(panels, shown, strict=True):
        of_one = found[(found["kind"] == kind) & (found["network"] == network)]
        _stack(panel, of_one, network, hollow=kind == "paper", room=room)
        panel.set_title(f"{network} ({kind})", loc="left")
    figure.supylabel("loss, points", fontsize=12)
    bars = [Patch(facecolor=look(i)["color"], alpha=0.85, label=part.replace("_", " ")) for i, part in enumerate(PARTS)]
    sum_of_both = Line2D([], [], color=GREY, marker="D", linestyle="none", markersize=5, label="total loss")
    add_legend(figure, [*bars, sum_of_both])
    named = ", ".join(f"{kind} {network}" for kind, network in shown)
    figure.alt = f"loss of the encoder and of the pooler, in points, stacked by dimension: {named}"
    return figure


def _panels(count: int) -> tuple[Drawing, list[Axes], float]:
    """Panels two abreast, and the inches each has for its labels; the place of a missing one stays empty."""
    columns = min(2, count)
    rows = ceil(count / columns)
    figure, axes = new_figure(rows, columns, height=1.3 + 2.2 * rows)
    for spare in axes[count:]:
        spare.set_visible(False)
    for lowest in axes[max(0, count - columns) : count]:
        lowest.set_xlabel("dimensions of the pooler")
    return figure, axes[:count], WIDTH / columns - 0.9


def _stack(axes: Axes, of_one: pd.DataFrame, network: str, *, hollow: bool, room: float) -> None:
    """Two bars on top of each other per dim, the total beside them; printed ones are hollow, like printed markers."""
    table = of_one.pivot_table(index="dim", columns="metric", values="value").sort_index()
    lacking = [part for part in PARTS if part not in table or table[part].isna().any()]
    if lacking:
        raise NothingToDraw(f"{network} lacks {lacking[0]} at some dim: a stack needs both parts of every dim")
    x = np.arange(len(table))
    encoder, pooler = (table[part].to_numpy() for part in PARTS)
    same_side = encoder * pooler > 0
    for i, (part, bottom) in enumerate(((encoder, np.zeros(len(x))), (pooler, np.where(same_side, encoder, 0.0)))):
        color = look(i)["color"]
        axes.bar(
            x,
            part,
            bottom=bottom,
            width=0.58,
            facecolor="none" if hollow else color,
            edgecolor=color,
            linewidth=1.3,
            alpha=0.85,
            hatch="///" if hollow and i else None,
        )
    total = of_one[of_one["metric"] == TOTAL].set_index("dim").reindex(table.index)
    reach = np.vstack([total["value"] - total["low"], total["high"] - total["value"]])
    beside = x + 0.4
    if np.isfinite(reach).any():
        axes.errorbar(beside, total["value"], yerr=np.abs(reach), fmt="none", ecolor=GREY, elinewidth=1.5, capsize=0)
    axes.plot(beside, encoder + pooler, color=GREY, marker="D", linestyle="none", markersize=4.5)
    axes.axhline(0, color=GREY, linewidth=0.9)
    dims = [int(dim) for dim in table.index]
    written = thin([len(str(dim)) for dim in dims], room)
    axes.set_xticks(written, [str(dims[i]) for i in written])
    axes.grid(visible=False, axis="x")
