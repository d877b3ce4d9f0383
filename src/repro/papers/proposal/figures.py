"""Figures of the theory pages: loss and geometry, distances under projection, retrieval limits, known dimension."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from repro.papers.proposal.geometry import EXPECTED, FREE, JENSEN, LIMIT, SAMPLED, SIMPLEX
from repro.papers.proposal.limits import CURVE, MOST
from repro.papers.proposal.limits import FREE as DESCENT
from repro.papers.proposal.microworld import INTRINSIC, KNOWN
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
from repro.report.tables import over_seeds

Look = Mapping[str, Any]
DASHED: Look = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 1.8}
THEORY: Look = {"color": GREY, "linestyle": (0, (5, 2)), "linewidth": 1.6}
LOSSES: Mapping[str, Look] = {
    EXPECTED: {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.4},
    JENSEN: {"color": PALETTE[1], "linestyle": (0, (5, 2)), "linewidth": 1.5},
    LIMIT: {"color": PALETTE[3], "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
    SIMPLEX: {"color": GREY, "linestyle": (0, (3, 1.5, 1, 1.5)), "linewidth": 1.5},
    SAMPLED: {"color": PALETTE[2], "linestyle": "none", "marker": "o", "markerfacecolor": "none"},
    FREE: {"color": PALETTE[2], "linestyle": "-", "linewidth": 1.6, "marker": "^"},
}
"""a curve of the theory is known by its line, what was simulated or optimised by its marker"""
LOG_FROM = 30.0
"""largest over smallest value from which on a panel has a logarithmic axis"""
MEASURED: Mapping[str, tuple[str, str, str]] = {
    "alignment": ("alignment (low: close)", "", ""),
    "uniformity": ("uniformity (low: wide)", "uniformity_limit", ""),
    "info_nce": ("InfoNCE, nats", "expected_info_nce", "expected_info_nce_filled"),
    "uniformity_dim": ("dims that uniformity fills", "", ""),
}
"""what is drawn of trained encoders: title, and what theory expects of all dims and of those filled"""
EXPECTATIONS: Mapping[str, Look] = {
    "theory, all dims": THEORY,
    "theory, dims filled": {"color": PALETTE[1], "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
}
CHI2: Look = {"color": PALETTE[1], "linestyle": (0, (5, 2)), "linewidth": 1.5}
BOUND: Look = {"color": PALETTE[3], "linestyle": "-", "linewidth": 1.8}
LARGEST_RATIO = 3.0
"""end of the axis of distortions: what lies above is beside the point"""


def _panels(count: int) -> tuple[Drawing, Sequence[Axes]]:
    """Panels two abreast; the place of a missing one stays empty."""
    columns = min(2, count)
    figure, axes = new_figure(ceil(count / columns), columns, height=1.2 + 2.2 * ceil(count / columns))
    for spare in axes[count:]:
        spare.set_visible(False)
    for lowest in axes[max(0, count - columns) : count]:
        lowest.set_xlabel("dimensions")
    return figure, axes[:count]


def _plot(axes: Axes, rows: pd.DataFrame, looks: Look, x: str = "dim", factor: float = 1.0) -> None:
    """Means over seeds against `x`."""
    means = factor * rows.groupby(x)["value"].mean()
    axes.plot(means.index, means, **looks)


@drawing
def draw_info_nce(rows: pd.DataFrame) -> Drawing:
    """InfoNCE of aligned points against dim, a panel per temperature and batch: theory, simulation, free points."""
    frame = checked(rows, ("method", "setting", "dim", "value"))
    settings = list(dict.fromkeys(frame["setting"]))
    figure, panels = _panels(len(settings))
    for panel, setting in zip(panels, settings, strict=True):
        # the endless-batch limit may be negative: a loss is not, and a logarithmic axis has no place for it
        own = frame[(frame["setting"] == setting) & (frame["value"] > 0)]
        for name, looks in LOSSES.items():
            line = own[own["method"] == name].sort_values("dim")
            panel.plot(line["dim"], line["value"], **looks)
            if line["ci_low"].notna().any():
                panel.vlines(line["dim"], line["ci_low"].clip(lower=1e-300), line["ci_high"], color=looks["color"])
        above = own.loc[own["method"] != LIMIT, "value"]
        if above.max() > LOG_FROM * above.min():
            panel.set_yscale("log")
        else:
            panel.set_ylim(0.98 * above.min(), 1.02 * above.max())
        panel.set_title(setting, loc="left", fontsize=10.5)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9, label=False)
    figure.supylabel("InfoNCE, nats", fontsize=12)
    present = [name for name in LOSSES if name in set(frame["method"])]
    add_legend(figure, [Line2D([], [], label=name, **LOSSES[name]) for name in present])
    figure.alt = f"InfoNCE against dimension: {', '.join(present)}; {'; '.join(settings)}"
    return figure


@drawing
def draw_geometry(rows: pd.DataFrame) -> Drawing:
    """Alignment, uniformity, InfoNCE and filled dimensions of trained encoders against dim, theory beside them."""
    frame = checked(rows, ("kind", "metric", "dim", "value"))
    shown = [metric for metric in MEASURED if metric in set(frame["metric"])]
    kinds = list(dict.fromkeys(frame["kind"]))
    figure, panels = _panels(len(shown))
    for panel, metric in zip(panels, shown, strict=True):
        title, *expected = MEASURED[metric]
        for position, kind in enumerate(kinds):
            own = frame[frame["kind"] == kind]
            for name, looks in zip([metric, *expected], [look(position), *EXPECTATIONS.values()], strict=True):
                _plot(panel, own[own["metric"] == name], looks)
        panel.set_title(title, loc="left", fontsize=10.5)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9, label=False)
    lines = [Line2D([], [], label=name, **looks) for name, looks in EXPECTATIONS.items()]
    add_legend(figure, [*series_handles(kinds), *lines])
    figure.alt = f"{', '.join(MEASURED[m][0] for m in shown)} of trained encoders against dimension"
    return figure


@drawing
def draw_distortion(rows: pd.DataFrame, theory: pd.DataFrame) -> Drawing:
    """Ratio of squared distances after and before against dim, a panel per encoder and method.

    Args:
        rows: of `projection_rows`; of several draws the outermost is drawn.
        theory: with backbone, dim, low and high (χ² quantiles), and eps (what the bound promises, NaN for nothing).
    """
    frame = checked(rows, ("backbone", "method", "dim", "metric", "value"))
    frame = frame[frame["metric"].str.startswith("distortion_")]
    cells = [(b, m) for b in dict.fromkeys(frame["backbone"]) for m in dict.fromkeys(frame["method"])]
    across = frame["method"].nunique()
    down = len(cells) // across
    figure, axes = new_figure(down, across, height=1.4 + 2.2 * down, sharex=True, sharey=True)
    for i, (panel, (backbone, method)) in enumerate(zip(axes, cells, strict=True)):
        own = frame[(frame["backbone"] == backbone) & (frame["method"] == method)]
        at = own.pivot_table(index="dim", columns="metric", values="value", aggfunc=["min", "max", "median"])
        for low, high, alpha in (("min", "max", 0.15), ("low", "high", 0.3)) if len(at) else ():
            ends = at["min"][f"distortion_{low}"], at["max"][f"distortion_{high}"]
            panel.fill_between(np.asarray(at.index), *ends, color=PALETTE[0], alpha=alpha, linewidth=0)
        if len(at):
            panel.plot(at.index, at["median"]["distortion_median"], color=PALETTE[0], linewidth=2.2)
        expected = theory[theory["backbone"] == backbone].sort_values("dim")
        for side in ("low", "high") if method == "GRP" else ():
            panel.plot(expected["dim"], expected[side], **CHI2)
        for sign in (-1, 1):
            panel.plot(expected["dim"], 1 + sign * expected["eps"], **BOUND)
        panel.set_ylim(0, LARGEST_RATIO)
        panel.set_title(f"{method}: {backbone}", loc="left", fontsize=9.5)
        lowest = i >= len(cells) - across
        dim_axis(panel, list(frame["dim"]), room=WIDTH / across - 0.9, label=lowest)
        panel.tick_params(labelbottom=lowest)
    figure.supylabel("squared distance, after / before", fontsize=12)
    handles = [
        Line2D([], [], color=PALETTE[0], linewidth=2.2, label="median"),
        Patch(facecolor=PALETTE[0], alpha=0.4, label="99 % of pairs"),
        Patch(facecolor=PALETTE[0], alpha=0.15, label="all pairs"),
        Line2D([], [], label="99 % by χ²", **CHI2),
        Line2D([], [], label="promised by the bound", **BOUND),
    ]
    add_legend(figure, handles)
    figure.alt = f"distortion of squared distances against dimension: {'; '.join(f'{m}, {b}' for b, m in cells)}"
    return figure


@drawing
def draw_cosine_error(rows: pd.DataFrame) -> Drawing:
    """Root mean square error of cosines, and Spearman kept, against dim; an encoder by colour, PCA by a dotted line."""
    frame = checked(rows, ("backbone", "method", "dim", "metric", "value"))
    backbones, dotted = list(dict.fromkeys(frame["backbone"])), (0, (1, 1.5))
    figure, (errors, scores) = new_figure(1, 2, height=3.8)
    by = {key: own for key, own in frame.groupby(["backbone", "method", "metric"])}
    for i, backbone in enumerate(backbones):
        for method, line in (("GRP", "-"), ("PCA", dotted)):
            for panel, metric, factor in ((errors, "cosine_rms", 1), (scores, "spearman", 100)):
                own = by.get((backbone, method, metric), frame.iloc[:0])
                _plot(panel, own, {"linestyle": line, **look(i)}, factor=factor)
        _plot(errors, by.get((backbone, "GRP", "cosine_rms_expected"), frame.iloc[:0]), {**THEORY, "linewidth": 1.5})
        for value in by[backbone, "full size", "spearman"]["value"].drop_duplicates():
            scores.axhline(100 * value, color=look(i)["color"], linewidth=0.9, alpha=0.6)
    errors.set_yscale("log")
    random = frame.loc[(frame["method"] == "GRP") & (frame["metric"] == "cosine_rms"), "value"]
    if len(random):
        errors.set_ylim(random.min() / 8, None)  # PCA at full size is exact to rounding, and would flatten the rest
    for panel, title in ((errors, "rms error of cosines"), (scores, "Spearman × 100")):
        panel.set_title(title, loc="left")
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9)
    handles = [Line2D([], [], label=name, **look(i)) for i, name in enumerate(backbones)]
    handles += [Line2D([], [], color=GREY, linestyle=s, label=name) for name, s in (("GRP", "-"), ("PCA", dotted))]
    add_legend(figure, [*handles, Line2D([], [], label="theory of GRP", **THEORY)], columns=2)
    figure.alt = f"error of cosines and Spearman kept, against dimension, under GRP and PCA: {', '.join(backbones)}"
    return figure


@drawing
def draw_free_limits(rows: pd.DataFrame) -> Drawing:
    """Share of top-2 sets that free embeddings realise by dim; and their smallest margin against documents."""
    frame = checked(rows, ("method", "setting", "dim", "metric", "value"))
    frame["documents"] = [int(str(setting).split()[0]) for setting in frame["setting"]]
    figure, (shares, margins) = new_figure(1, 2, height=4.1)
    free, curve = (frame[frame["method"] == name] for name in (DESCENT, CURVE))
    worlds = list(dict.fromkeys(free["setting"]))
    sets = frame[frame["metric"] == "sets_realised"]
    for i, world in enumerate(worlds):
        for method, looks in ((MOST, {"color": look(i)["color"], "linestyle": (0, (4, 2))}), (DESCENT, look(i))):
            _plot(shares, sets[(sets["method"] == method) & (sets["setting"] == world)], looks, factor=100)
    shares.set_title("sets realised, %", loc="left")
    dim_axis(shares, list(free["dim"]), room=WIDTH / 2 - 0.9)
    wide = free[(free["metric"] == "margin") & (free["value"] > 0)]  # the margin of embeddings that fail is no margin
    for dim, line in wide.groupby("dim"):
        if len(line) > 1:
            _plot(margins, line, {"color": PALETTE[5], "marker": "P", "markersize": 5}, "documents")
            end = line.loc[line["documents"].idxmax(), ["documents", "value"]]
            near: dict[str, Any] = {"xytext": (-12, -9), "textcoords": "offset points", "ha": "right", "fontsize": 10.5}
            margins.annotate(f"{dim} dims", tuple(end), **near)
    _plot(margins, curve[curve["metric"] == "margin"], DASHED, "documents")
    margins.set_title("smallest margin", loc="left")
    margins.set_yscale("log")
    margins.set_xlabel("documents")
    add_legend(figure, [*series_handles(worlds), Line2D([], [], label="by construction", **DASHED)])
    figure.alt = f"share of top-2 sets realised against dimension and smallest margin against documents: {worlds}"
    return figure


@drawing
def draw_intrinsic(rows: pd.DataFrame) -> Drawing:
    """Each estimator of intrinsic dimension against the number of factors, a line per embedding; seeds are averaged."""
    by = ("method", "setting", "metric")
    frame = over_seeds(checked(rows, (*by, "value")), by)
    frame["factors"] = [int(str(setting).split()[0]) for setting in frame["setting"]]
    names = sorted(set(frame["method"]) - {KNOWN})  # the same looks however rows are ordered
    figure, axes = new_figure(2, 2, height=5.4, sharex=True)
    for i, (panel, (metric, title)) in enumerate(zip(axes, INTRINSIC.items(), strict=True)):
        own = frame[frame["metric"] == metric]
        for name, looks in [*((name, look(k)) for k, name in enumerate(names)), (KNOWN, DASHED)]:
            _plot(panel, own[own["method"] == name], looks, "factors")
        panel.set_title(title, loc="left")
        panel.set_ylim(bottom=0)
        panel.set_xticks(sorted(set(frame["factors"])))
        panel.set_xlabel("factors of the world" if i >= 2 else "")
    figure.supylabel("dimensions", fontsize=12)
    add_legend(figure, [*series_handles(names), Line2D([], [], label=KNOWN, **DASHED)], columns=2)
    figure.alt = f"intrinsic dimension against the number of factors, known and of {', '.join(names)}"
    return figure
