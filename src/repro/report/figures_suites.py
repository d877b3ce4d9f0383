"""Tables 3 and 4 as curves: every method against dim, one panel per kind of number."""

import pandas as pd

from repro.report.curves import draw_line
from repro.report.points import kinds_of, points
from repro.report.style import GREY, WIDTH, Drawing, add_legend, dim_axis, drawing, new_figure, series_handles


@drawing
def draw_methods(frame: pd.DataFrame, *, series: str = "line", ylabel: str, floor: float | None = None) -> Drawing:
    """Score against dim of every method, a panel each for paper, recorded and live: levels differ, order is compared.

    Args:
        frame: rows with kind, dim, value (a fraction) and the series column.
        series: the column that names a method.
        ylabel: what the score is.
        floor: score ×100 of the majority class in our data, drawn in our panels.
    """
    found = points(frame, [series, "dim"])
    names, kinds = list(dict.fromkeys(found[series])), kinds_of(found)
    figure, axes = new_figure(1, len(kinds), height=3.9, sharex=True)
    for panel, kind in zip(axes, kinds, strict=True):
        of_kind = found[found["kind"] == kind]
        for name, part in of_kind.groupby(series, sort=False):
            draw_line(panel, part, kind, position=names.index(str(name)))
        if floor is not None and kind != "paper":
            panel.axhline(floor, color=GREY, linestyle=":", linewidth=1.2)
            panel.annotate(
                "majority class",
                (0.98, floor),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                color=GREY,
                fontsize=10,
            )
        panel.set_title(kind, loc="left")
        dim_axis(panel, sorted(set(found["dim"])), room=WIDTH / len(kinds) - 0.7)
    axes[0].set_ylabel(ylabel)
    add_legend(figure, series_handles(names))
    figure.alt = f"{ylabel} of {', '.join(names)} against dimension, {' and '.join(kinds)} each in a panel"
    return figure
