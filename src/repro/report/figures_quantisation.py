"""Scores against bytes per vector, a line per level: fewer dimensions of many bits, or more of few."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from repro.report.claims_proposal.quantisation import LEVELS, METRICS, best_levels, by_bytes
from repro.report.curves import checked
from repro.report.style import GREY, WIDTH, Drawing, add_legend, dim_axis, drawing, look, new_figure, series_handles

BIT_SEARCHES = ("binary, queries too", "binary, then float")
DASHED = (0, (4, 2))


@drawing
def draw_bytes(rows: pd.DataFrame, kind: str = "live") -> Drawing:
    """Three scores of one encoder against bytes, each point of the best reducer; and neighbours found by bits alone.

    Args:
        rows: of one encoder, with method, setting, dim, metric and value.
        kind: of number, for the title.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("backbone", "method", "setting", "dim", "metric", "value"))
    best, full = best_levels(frame), by_bytes(frame)
    full = full[full["bytes"].isna()].set_index("metric")["value"]
    levels = [level for level in LEVELS if level in set(best["method"])]
    figure, panels = new_figure(2, 2, height=6.8)
    sizes = sorted({int(size) for size in best["bytes"]})
    for panel, (metric, title) in zip(panels, METRICS.items(), strict=False):
        for level in levels:
            _line(panel, best, metric, level, **look(LEVELS.index(level)))
        if metric in full and metric != "neighbours_kept":
            panel.axhline(100 * full[metric], color=GREY, linestyle=":", linewidth=1.6)
        panel.set_title(title, loc="left")
    bits = panels[3]
    _line(bits, best, "neighbours_kept", "binary", **look(LEVELS.index("binary")))
    for method, dashes in zip(BIT_SEARCHES, (DASHED, "-"), strict=True):
        _line(bits, best, "neighbours_kept", method, color=GREY, marker="X", linestyle=dashes)
    bits.set_title("neighbours by bits", loc="left")
    bits.set_ylim(-3, 103)
    panels[2].set_ylim(-3, 103)
    for i, panel in enumerate(panels):
        dim_axis(panel, sizes, room=WIDTH / 2 - 0.9, label=False)
        if i > 1:
            panel.set_xlabel("bytes per vector")
    handles = [handle for handle in series_handles(LEVELS) if handle.get_label() in levels]
    handles += [
        Line2D([], [], color=GREY, marker="X", linestyle=dashes, label=method)
        for method, dashes in zip(BIT_SEARCHES, (DASHED, "-"), strict=True)
    ]
    handles.append(Line2D([], [], color=GREY, linestyle=":", linewidth=1.6, label="full size"))
    add_legend(figure, handles)
    name = ", ".join(dict.fromkeys(frame["backbone"].dropna()))
    figure.suptitle(f"{name} ({kind})", x=0.01, ha="left", fontsize=12)
    figure.alt = f"{name}: similarity, retrieval and neighbours kept against bytes per vector, by level of quantisation"
    return figure


def _line(panel: Axes, best: pd.DataFrame, metric: str, method: str, **looks: Any) -> None:
    own = best[(best["metric"] == metric) & (best["method"] == method)].sort_values("bytes")
    panel.plot(own["bytes"].astype(int), 100 * own["value"], **looks)
