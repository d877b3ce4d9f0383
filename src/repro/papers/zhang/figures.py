"""Figures 1 to 4 of Zhang et al. (2024), score against size, and Table 1 as multiples of PCA's seconds."""

from itertools import product

import numpy as np
import pandas as pd

from repro.papers.zhang.losses import ORDER, TOLERANCE, encoders_of, full_size
from repro.report.curves import curves
from repro.report.style import GREY, WIDTH, Drawing, NothingToDraw, add_legend, dim_axis, drawing, look, new_figure


@drawing
def draw_reduced(frame: pd.DataFrame, *, ylabel: str, kind: str = "live", floor: float | None = None) -> Drawing:
    """Score against size of every method: a row of panels per encoder, a column per setting.

    A grey line is the score at full size, with a band down to what costs 1 % of it, and a dotted
    line stands at half the dims.

    Args:
        frame: scores of one kind and one metric, with backbone, setting, method, dim and value (a fraction).
        ylabel: what the score is.
        kind: which kind of number it is.
        floor: score ×100 of the majority class, if there is one.

    Raises:
        InputError: if an encoder has no score at full size.
    """
    place = {method: i for i, method in enumerate(ORDER)}
    drawn = frame[frame["method"].isin(ORDER) & ~frame["setting"].fillna("").str.contains(",")].dropna(subset="dim")
    drawn = drawn.assign(kind=kind)
    encoders, settings = (list(dict.fromkeys(drawn[column])) for column in ("backbone", "setting"))
    for lacking in set(encoders) - set(encoders_of(frame)):
        raise NothingToDraw(f"{lacking!r} has no score at full size to compare with")
    drawn = drawn.sort_values(
        ["backbone", "setting", "method"],
        key=lambda c: c.map({**place, **{name: i for i, name in enumerate((*encoders, *settings))}}),
        kind="stable",
    )
    figure = curves(
        drawn,
        color="method",
        panel="setting",
        row="backbone",
        order=ORDER,
        band=False,
        ylabel=f"{ylabel} ({kind})",
        share="row",
    )
    for axes, (encoder, _) in zip(figure.axes, product(encoders, settings), strict=False):
        full, score = full_size(frame, encoder)
        sizes = {int(dim) for line in axes.get_lines() for dim in np.asarray(line.get_xdata())}
        dim_axis(axes, [*sizes, full], room=WIDTH / len(settings) - 1.2, label=False)
        axes.axhspan(score * (1 - TOLERANCE / 100), score, color=GREY, alpha=0.25, linewidth=0)
        axes.axhline(score, color=GREY, linewidth=1.2)
        axes.axvline(full / 2, color=GREY, linestyle=":", linewidth=1.3)
        if floor is not None:
            axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.0)
        axes.get_lines()[0].set_markersize(7.5)  # kernel PCA often lies on PCA, the first
    figure.alt += "; grey: full size and one per cent below it; dotted: half the dimensions"
    return figure


@drawing
def draw_seconds(frame: pd.DataFrame) -> Drawing:
    """Times of PCA on a log axis, a panel per operation: the printed ones hollow, ours filled.

    Args:
        frame: what `times_of_pca` gives.
    """
    if frame.empty:
        raise NothingToDraw("no ratios were given")
    paper = frame["kind"] == "paper"
    frame = frame.assign(series=frame["kind"].where(paper, frame["kind"] + ", " + frame["reducers"]))
    operations, series, methods = (list(dict.fromkeys(frame[c])) for c in ("operation", "series", "method"))
    figure, panels = new_figure(1, len(operations), height=3.8, sharey=True)
    for axes, operation in zip(panels, operations, strict=True):
        for i, name in enumerate(series):
            own = frame[(frame["operation"] == operation) & (frame["series"] == name)]
            places = [methods.index(m) + 0.22 * (i - (len(series) - 1) / 2) for m in own["method"]]
            marks = {**look(i), **({"color": GREY, "markerfacecolor": "none"} if name == "paper" else {})}
            axes.plot(own["value"], places, label=name, linestyle="none", markersize=8, **marks)
        axes.axvline(1, color=GREY, linewidth=1.0)
        axes.set_xscale("log")
        axes.set_yticks(range(len(methods)), methods)
        axes.set_title(operation, loc="left")
        axes.set_xlabel("times PCA's seconds")
    panels[0].invert_yaxis()
    add_legend(figure, panels[0].get_legend_handles_labels()[0])
    said = f"{', '.join(methods)} as multiples of PCA's, {' and '.join(operations)}: {', '.join(series)}"
    figure.alt = f"seconds of {said}"
    return figure
