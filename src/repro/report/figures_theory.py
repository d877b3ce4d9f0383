"""What theory expects of a dimension, beside what is measured: InfoNCE, alignment and uniformity against dim."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from repro.report.curves import checked
from repro.report.style import (
    GREY,
    PALETTE,
    WIDTH,
    Drawing,
    add_legend,
    dim_axis,
    drawing,
    look,
    new_figure,
    series_handles,
)

CURVES: Mapping[str, Mapping[str, Any]] = {
    "expected": {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.4},
    "Jensen bound": {"color": PALETTE[1], "linestyle": (0, (5, 2)), "linewidth": 1.5},
    "endless batch": {"color": PALETTE[3], "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
    "simplex bound": {"color": GREY, "linestyle": (0, (3, 1.5, 1, 1.5)), "linewidth": 1.5},
    "Monte Carlo": {"color": PALETTE[2], "linestyle": "none", "marker": "o", "markerfacecolor": "none"},
    "free points": {"color": PALETTE[2], "linestyle": "-", "linewidth": 1.6, "marker": "^"},
}
"""a curve of the theory is known by its line, what was simulated or optimised by its marker"""
MEASURED: Mapping[str, str] = {
    "alignment": "alignment (low: close)",
    "uniformity": "uniformity (low: wide)",
    "info_nce": "InfoNCE, nats",
    "uniformity_dim": "dims that uniformity fills",
}
"""what is drawn of trained encoders, with its title"""
ALL_DIMS, FILLED = "theory, all dims", "theory, dims filled"
THEORY: Mapping[str, Mapping[str, Any]] = {
    ALL_DIMS: {"color": GREY, "linestyle": (0, (5, 2)), "linewidth": 1.6},
    FILLED: {"color": PALETTE[1], "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
}
BESIDE: Mapping[tuple[str, str], str] = {
    ("uniformity", ALL_DIMS): "uniformity_limit",
    ("info_nce", ALL_DIMS): "expected_info_nce",
    ("info_nce", FILLED): "expected_info_nce_filled",
}
"""what theory puts beside a measured metric"""
LOG_FROM = 30.0
"""largest over smallest value from which on a panel has a logarithmic axis"""


@drawing
def draw_info_nce(rows: pd.DataFrame) -> Drawing:
    """InfoNCE of aligned points against dim on a logarithmic scale, a panel per temperature and batch.

    Args:
        rows: with method (a name of `CURVES`), setting, dim and value; `ci_low` and `ci_high` become error bars.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("method", "setting", "dim", "value"))
    settings = list(dict.fromkeys(frame["setting"]))
    figure, panels = _panels(len(settings))
    for panel, setting in zip(panels, settings, strict=True):
        of_one = frame[frame["setting"] == setting]
        for name, looks in CURVES.items():
            # the endless-batch limit may be negative: a loss is not, and a logarithmic axis has no place for it
            line = of_one[(of_one["method"] == name) & (of_one["value"] > 0)].sort_values("dim")
            panel.plot(line["dim"], line["value"], **looks)
            if line["ci_low"].notna().any():
                panel.vlines(line["dim"], line["ci_low"].clip(lower=1e-300), line["ci_high"], color=looks["color"])
        above = of_one.loc[(of_one["value"] > 0) & (of_one["method"] != "endless batch"), "value"]
        if above.max() > LOG_FROM * above.min():
            panel.set_yscale("log")
        else:
            panel.set_ylim(0.98 * above.min(), 1.02 * above.max())
        panel.set_title(setting, loc="left", fontsize=10.5)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9, label=False)
    figure.supylabel("InfoNCE, nats", fontsize=12)
    present = [name for name in CURVES if name in set(frame["method"])]
    add_legend(figure, [Line2D([], [], label=name, **CURVES[name]) for name in present])
    figure.alt = f"InfoNCE against dimension: {', '.join(present)}; {'; '.join(settings)}"
    return figure


@drawing
def draw_geometry(rows: pd.DataFrame) -> Drawing:
    """Alignment, uniformity, InfoNCE and filled dimensions of trained encoders against dim, theory beside them.

    Args:
        rows: with kind, metric, dim and value; seeds are averaged.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("kind", "metric", "dim", "value"))
    shown = [metric for metric in MEASURED if metric in set(frame["metric"])]
    kinds = list(dict.fromkeys(frame["kind"]))
    figure, panels = _panels(len(shown))
    for panel, metric in zip(panels, shown, strict=True):
        for position, kind in enumerate(kinds):
            of_kind = frame[frame["kind"] == kind]
            _line(panel, of_kind[of_kind["metric"] == metric], look(position))
            for name, looks in THEORY.items():
                _line(panel, of_kind[of_kind["metric"] == BESIDE.get((metric, name))], looks)
        panel.set_title(MEASURED[metric], loc="left", fontsize=10.5)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9, label=False)
    lines = [Line2D([], [], label=name, **looks) for name, looks in THEORY.items()]
    add_legend(figure, [*series_handles(kinds), *lines])
    figure.alt = f"{', '.join(MEASURED[m] for m in shown)} of trained encoders against dimension"
    return figure


def _line(axes: Axes, rows: pd.DataFrame, looks: Mapping[str, Any]) -> None:
    means = rows.groupby("dim", as_index=False)["value"].mean()
    axes.plot(means["dim"], means["value"], **looks)


def _panels(count: int) -> tuple[Drawing, Sequence[Axes]]:
    """Panels two abreast; the place of a missing one stays empty."""
    columns = min(2, count)
    rows = ceil(count / columns)
    figure, axes = new_figure(rows, columns, height=1.2 + 2.2 * rows)
    for spare in axes[count:]:
        spare.set_visible(False)
    for lowest in axes[max(0, count - columns) : count]:
        lowest.set_xlabel("dimensions")
    return figure, axes[:count]
