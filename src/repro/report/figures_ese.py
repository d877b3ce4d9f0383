"""Figures of ESE's pages: score by layer, score by size at every layer, and the sweep of the compressed size."""

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from repro.methods import ESE_CODE, ESE_METHODS
from repro.report.curves import draw_line, kinds_of, points
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
)
from repro.types import InputError

METHODS = (*ESE_METHODS, ESE_CODE)
"""every line keeps its colour, whichever are drawn"""
MOST_PANELS = 12


@drawing
def draw_by_depth(
    frame: pd.DataFrame, *, threshold: Mapping[str, float] | None = None, ylabel: str = "Spearman × 100"
) -> Drawing:
    """Score at full size against the layer, a panel per backbone; a dashed line is the score that layers are to pass.

    Args:
        frame: rows with kind, backbone, method, layer and value (a fraction); of one metric, size and dataset.
        threshold: by backbone, in points.
        ylabel: what the score is.
    """
    found = points(frame, ["backbone", "method", "layer"])
    backbones = list(dict.fromkeys(found["backbone"]))
    figure, axes = new_figure(1, len(backbones), height=3.9)
    for panel, backbone in zip(axes, backbones, strict=True):
        of_panel = found[found["backbone"] == backbone]
        for method in _present(of_panel):
            for kind in kinds_of(of_panel):
                line = of_panel[(of_panel["method"] == method) & (of_panel["kind"] == kind)]
                if len(line):
                    line = _plain(line.assign(dim=line["layer"].astype(int)), of_panel)
                    draw_line(panel, line, kind, position=METHODS.index(method))
        if threshold and backbone in threshold:
            panel.axhline(threshold[backbone], color=GREY, linestyle="--", linewidth=1.2)
        panel.set_title(backbone, loc="left", fontsize=11)
        panel.set_xlabel("layer")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes[0].set_ylabel(ylabel)
    kinds = kinds_of(found)
    handles = _handles(found)
    add_legend(figure, [*handles, *(kind_handles(kinds) if len(kinds) > 1 else [])], columns=2)
    figure.alt = (
        f"{ylabel} against the layer for {', '.join(_present(found))} on {' and '.join(backbones)}; "
        f"numbers: {', '.join(kinds)}"
    )
    return figure


@drawing
def draw_by_size(
    frame: pd.DataFrame, *, layers: Sequence[int] | None = None, kind: str = "live", ylabel: str = "Spearman × 100"
) -> Drawing:
    """Score against size, a panel per layer (Figure 3); with two layers, the middle and the last one, Figure 4.

    Args:
        frame: rows with method, layer, dim and value (a fraction); of one backbone, metric, dataset and kind.
        layers: the layers drawn; None takes all but the embedding output.
        kind: which kind of number it is.
        ylabel: what the score is.

    Raises:
        InputError: for more layers than fit.
    """
    found = points(frame.assign(kind=kind), ["method", "layer", "dim"])
    shown = sorted({int(x) for x in found["layer"] if x > 0} if layers is None else set(layers))
    found = found[found["layer"].isin(shown)]
    if found.empty:
        raise NothingToDraw(f"no row of layers {list(shown)}")
    if len(shown) > MOST_PANELS:
        raise InputError(f"{len(shown)} layers do not fit one figure: name at most {MOST_PANELS} of them")
    columns = min(len(shown), 3 if len(shown) > 4 else 2)
    rows = ceil(len(shown) / columns)
    figure, axes = new_figure(rows, columns, height=1.0 + 2.2 * rows, sharey=True)
    for i, layer in enumerate(shown):
        for method in _present(found):
            line = found[(found["layer"] == layer) & (found["method"] == method)]
            if len(line):
                draw_line(axes[i], _plain(line, found), kind, position=METHODS.index(method))
        axes[i].set_title(f"layer {layer}", loc="left")
        lowest = i + columns >= len(shown)
        dim_axis(axes[i], sorted(set(found["dim"])), room=WIDTH / columns - 0.8, label=lowest)
    for spare in axes[len(shown) :]:
        spare.set_visible(False)
    figure.supylabel(f"{ylabel} ({kind})", fontsize=12)
    add_legend(figure, _handles(found), columns=2)
    figure.alt = (
        f"{ylabel} of {', '.join(_present(found))} against size, a panel for each of layers "
        f"{', '.join(map(str, shown))}; numbers: {kind}"
    )
    return figure


@drawing
def draw_compression_sizes(
    frame: pd.DataFrame, *, baselines: Mapping[tuple[str, str], float], ylabel: str = "Spearman × 100"
) -> Drawing:
    """Score after training with compressed size k, and the baselines' best as horizontal lines (Figure 5).

    Args:
        frame: rows with kind, place (last layer or shallow average), dim (the size k) and value (a fraction).
        baselines: (place, method) to a score in points.
        ylabel: what the score is.
    """
    found = points(frame, ["place", "dim"])
    places = list(dict.fromkeys(found["place"]))
    figure, axes = new_figure(1, len(places), height=3.7)
    for panel, place in zip(axes, places, strict=True):
        of_panel = found[found["place"] == place]
        for kind in kinds_of(of_panel):
            draw_line(panel, of_panel[of_panel["kind"] == kind], kind, position=METHODS.index("ESE"))
        for (where, method), score in baselines.items():
            if where == place:
                panel.axhline(score, color=look(METHODS.index(method))["color"], linestyle=":", linewidth=1.6)
        panel.set_title(place, loc="left")
        dim_axis(panel, sorted(set(found["dim"])), room=WIDTH / len(places) - 0.9, label=False)
        panel.set_xlabel("compressed size k")
    axes[0].set_ylabel(ylabel)
    names = list(dict.fromkeys(method for _, method in baselines))
    lines = [
        Line2D([], [], color=look(METHODS.index(m))["color"], linestyle=":", linewidth=1.6, label=m) for m in names
    ]
    add_legend(figure, [*_handles(found.assign(method="ESE")), *lines, *kind_handles(kinds_of(found))])
    figure.alt = (
        f"{ylabel} of ESE against the compressed size it was trained with, {' and '.join(places)}, "
        f"beside {', '.join(names)}"
    )
    return figure


@drawing
def draw_differences(frame: pd.DataFrame, *, xlabel: str, kind: str = "live") -> Drawing:
    """Differences to a default with their intervals, a line per variant, a panel per place (Table 2).

    Args:
        frame: rows with variant, place, value, ci_low and ci_high (fractions).
        xlabel: what the difference is.
        kind: which kind of number it is.
    """
    found = points(frame.assign(kind=kind), ["variant", "place"])
    names, places = list(dict.fromkeys(found["variant"])), list(dict.fromkeys(found["place"]))
    figure, axes = new_figure(1, len(places), height=1.3 + 0.34 * len(names), sharey=True)
    for i, (panel, place) in enumerate(zip(axes, places, strict=True)):
        own = found[found["place"] == place].set_index("variant").reindex(names)
        y = np.arange(len(names))
        reach = np.abs(np.vstack([own["value"] - own["low"], own["high"] - own["value"]]))
        if np.isfinite(reach).any():
            panel.errorbar(own["value"], y, xerr=reach, fmt="none", ecolor=GREY, elinewidth=1.4, capsize=0)
        panel.plot(own["value"], y, linestyle="none", color=look(i)["color"], marker=look(i)["marker"], markersize=6)
        panel.axvline(0, color=GREY, linewidth=1.0)
        panel.set_yticks(y, names, fontsize=10.5)
        panel.set_title(place, loc="left")
        panel.set_xlabel(xlabel)
        panel.grid(visible=False, axis="y")
    axes[0].invert_yaxis()
    figure.alt = f"{xlabel} of {', '.join(names)}, {' and '.join(places)}, with intervals; numbers: {kind}"
    return figure


def _present(found: pd.DataFrame) -> list[str]:
    """The lines drawn, in their fixed order.

    Raises:
        InputError: for a line that has no colour.
    """
    names = set(found["method"])
    unknown = sorted(names - set(METHODS))
    if unknown:
        raise InputError(f"no colour for the line {unknown[0]!r}: choose from {', '.join(METHODS)}")
    return [method for method in METHODS if method in names]


def _plain(line: pd.DataFrame, panel: pd.DataFrame) -> pd.DataFrame:
    """A line without its band where several share a panel: bands would hide the lines, leads have intervals."""
    return line if panel["method"].nunique() == 1 else line.assign(low=float("nan"), high=float("nan"))


def _handles(found: pd.DataFrame) -> list[Line2D]:
    present = _present(found)
    return [h for h, m in zip(series_handles(METHODS), METHODS, strict=True) if m in present]
