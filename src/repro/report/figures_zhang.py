"""Figures 1 to 4 of Zhang et al. (2024): score against size, a panel per encoder and setting."""

from typing import Any

import pandas as pd

from repro.methods import FULL_SIZE, TRUNCATE, ZHANG_METHODS
from repro.report.curves import draw_line, points
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

METHODS = (*ZHANG_METHODS, TRUNCATE)
"""every method keeps its colour, whichever are drawn"""


@drawing
def draw_reduced(
    frame: pd.DataFrame, *, ylabel: str, kind: str = "live", tolerance: float = 1.0, floor: float | None = None
) -> Drawing:
    """Score against size of every method: a row of panels per encoder, a column per setting.

    A grey line is the score at full size, with a band down to what costs `tolerance` per cent of it, and a dotted
    line stands at half the dims.

    Args:
        frame: rows of one kind with backbone, setting, method, dim and value (a fraction); of one metric.
        ylabel: what the score is.
        kind: which kind of number it is.
        tolerance: per cent of the full-size score.
        floor: score ×100 of the majority class, if there is one.

    Raises:
        InputError: if an encoder has no score at full size.
    """
    drawn = frame[frame["method"].isin(METHODS) & ~frame["setting"].fillna("").str.contains(",")]
    found = points(drawn.assign(kind=kind), ["backbone", "setting", "method", "dim"])
    encoders, settings = list(dict.fromkeys(found["backbone"])), list(dict.fromkeys(found["setting"]))
    figure, axes = new_figure(
        len(encoders), len(settings), height=0.9 + 2.5 * len(encoders), sharey="row", sharex="row"
    )
    present = [m for m in METHODS if m in set(found["method"])]
    for row, encoder in enumerate(encoders):
        whole = frame[(frame["backbone"] == encoder) & (frame["method"] == FULL_SIZE)]
        if whole.empty:
            raise NothingToDraw(f"{encoder!r} has no score at full size to compare with")
        full, score = int(whole["dim"].max()), 100 * float(whole["value"].mean())
        for column, setting in enumerate(settings):
            panel = axes[row * len(settings) + column]
            of_panel = found[(found["backbone"] == encoder) & (found["setting"] == setting)]
            panel.axhspan(score * (1 - tolerance / 100), score, color=GREY, alpha=0.25, linewidth=0)
            panel.axhline(score, color=GREY, linewidth=1.2)
            panel.axvline(full / 2, color=GREY, linestyle=":", linewidth=1.3)
            if floor is not None:
                panel.axhline(floor, color=GREY, linestyle="--", linewidth=1.0)
            for method in present:
                line = of_panel[of_panel["method"] == method].assign(low=float("nan"), high=float("nan"))
                if len(line):
                    draw_line(panel, line, kind, position=METHODS.index(method))
                    if method == "PCA":  # kernel PCA often lies on it
                        panel.get_lines()[-1].set_markersize(7.5)
            panel.set_title(setting, loc="left")
            sizes = sorted({*found.loc[found["backbone"] == encoder, "dim"], full})
            dim_axis(panel, sizes, room=WIDTH / len(settings) - 1.2, label=row == len(encoders) - 1)
        axes[row * len(settings)].set_ylabel(f"{encoder}\n{ylabel} ({kind})", fontsize=10)
    add_legend(figure, [h for h, m in zip(series_handles(METHODS), METHODS, strict=True) if m in present])
    figure.alt = (
        f"{ylabel} of {', '.join(present)} against dimension for {' and '.join(encoders)}, {' and '.join(settings)}; "
        "grey: full size and one per cent below it; dotted: half the dimensions"
    )
    return figure


@drawing
def draw_seconds(frame: pd.DataFrame) -> Drawing:
    """Times of PCA on a log axis, a panel per operation: the printed ones hollow, ours filled.

    Args:
        frame: columns method, operation, series and value; the series `paper` is the printed one.
    """
    if frame.empty:
        raise NothingToDraw("no ratios were given")
    operations, series = list(dict.fromkeys(frame["operation"])), list(dict.fromkeys(frame["series"]))
    methods = list(dict.fromkeys(frame["method"]))
    figure, axes = new_figure(1, len(operations), height=3.8, sharey=True)
    for panel, operation in zip(axes, operations, strict=True):
        for i, name in enumerate(series):
            own = frame[(frame["operation"] == operation) & (frame["series"] == name)]
            places = [methods.index(m) + 0.22 * (i - (len(series) - 1) / 2) for m in own["method"]]
            panel.plot(own["value"], places, label=name, linestyle="none", markersize=8, **_series(name, i))
        panel.axvline(1, color=GREY, linewidth=1.0)
        panel.set_xscale("log")
        panel.set_yticks(range(len(methods)), methods)
        panel.set_title(operation, loc="left")
        panel.set_xlabel("times PCA's seconds")
    axes[0].invert_yaxis()
    add_legend(figure, axes[0].get_legend_handles_labels()[0])
    figure.alt = (
        f"seconds of {', '.join(methods)} as multiples of PCA's, {' and '.join(operations)}: {', '.join(series)}"
    )
    return figure


def _series(name: str, position: int) -> dict[str, Any]:
    return {**look(position), "color": GREY, "markerfacecolor": "none"} if name == "paper" else look(position)
