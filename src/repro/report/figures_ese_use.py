"""Figures on the use of ESE's embeddings: what depth and size cost, and where prefixes lie beside the whole."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from repro.report.curves import draw_line, points
from repro.report.figures_ese import METHODS
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
from repro.types import Array


class Mapped(Protocol):
    """Sentences in one map: full embeddings and prefixes, (n, 2) each."""

    @property
    def full(self) -> Array:
        """Points of full embeddings."""
        ...

    @property
    def cut(self) -> Array:
        """Points of prefixes."""
        ...

    @property
    def distance(self) -> float:
        """Mean distance of a sentence's two points."""
        ...


@drawing
def draw_found(
    frame: pd.DataFrame, *, titles: Mapping[str, str], chance: Mapping[str, float], kind: str = "live"
) -> Drawing:
    """What a search finds against size: a row of panels per metric, a column per layer, shallow first (Table 3).

    Args:
        frame: rows of one backbone with method, layer, dim, metric and value (a fraction).
        titles: metrics to draw, with what they are called.
        chance: by metric, what a paragraph drawn at random scores: a dashed line.
        kind: which kind of number it is.
    """
    found = points(frame[frame["metric"].isin(list(titles))].assign(kind=kind), ["metric", "layer", "method", "dim"])
    metrics, layers = [m for m in titles if m in set(found["metric"])], sorted(set(found["layer"]))
    figure, axes = new_figure(len(metrics), len(layers), height=1.0 + 2.2 * len(metrics), sharey="row", sharex=True)
    for i, metric in enumerate(metrics):
        for j, layer in enumerate(layers):
            panel = axes[i * len(layers) + j]
            own = found[(found["metric"] == metric) & (found["layer"] == layer)]
            for method in _present(own):
                line = own[own["method"] == method].assign(low=float("nan"), high=float("nan"))
                draw_line(panel, line, kind, position=METHODS.index(method))
            if metric in chance:
                panel.axhline(100 * chance[metric], color=GREY, linestyle="--", linewidth=1.2)
            if i == 0:
                panel.set_title(f"layer {layer} ({kind})", loc="left")
            if j == 0:
                panel.set_ylabel(f"{fill(titles[metric], 24)}, %", fontsize=11)
            last = i == len(metrics) - 1
            dim_axis(panel, sorted(set(found["dim"])), room=WIDTH / len(layers) - 0.8, label=last)
            panel.tick_params(labelbottom=last)
        highest = max(*found.loc[found["metric"] == metric, "value"], 100 * chance.get(metric, 0))
        axes[i * len(layers)].set_ylim(0, 1.08 * highest)
    dashed = Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="a paragraph at random")
    add_legend(figure, [*_handles(found), dashed])
    figure.alt = (
        f"{' and '.join(titles[m] for m in metrics)}, per cent of questions, against size at layers "
        f"{', '.join(map(str, layers))}, for {', '.join(_present(found))}; dashed: a paragraph drawn at random; "
        f"numbers: {kind}"
    )
    return figure


@drawing
def draw_depth_cost(frame: pd.DataFrame, *, kind: str = "live", ylabel: str = "Spearman × 100") -> Drawing:
    """Quality against the milliseconds it takes, a panel per backbone, every point the layer that is read (Figure 6a).

    Args:
        frame: columns backbone, method, layer, ms and spearman (in points).
        kind: which kind of number it is.
        ylabel: what the quality is.
    """
    if frame.empty:
        raise NothingToDraw("no layer was timed and scored")
    backbones = list(dict.fromkeys(frame["backbone"]))
    figure, axes = new_figure(1, len(backbones), height=4.0)
    for panel, backbone in zip(axes, backbones, strict=True):
        own = frame[frame["backbone"] == backbone]
        for method in _present(own):
            line = own[own["method"] == method].sort_values("layer")
            panel.plot(line["ms"], line["spearman"], linewidth=1.8, markersize=6, **look(METHODS.index(method)))
            if method == _present(own)[-1]:
                for row in line.itertuples():
                    panel.annotate(
                        str(row.layer),
                        (row.ms, row.spearman),
                        xytext=(-6, 6),
                        textcoords="offset points",
                        ha="right",
                        fontsize=11,
                    )
        panel.set_xlim(0, 1.12 * own["ms"].max())
        panel.margins(y=0.12)
        panel.set_title(backbone, loc="left", fontsize=11)
        panel.set_xlabel("milliseconds")
    axes[0].set_ylabel(f"{ylabel} ({kind})")
    add_legend(figure, _handles(frame))
    figure.alt = (
        f"{ylabel} against milliseconds of encoding at every layer of {' and '.join(backbones)}, for "
        f"{', '.join(_present(frame))}; numbers: {kind}"
    )
    return figure


@drawing
def draw_size_cost(frame: pd.DataFrame, *, kind: str = "live") -> Drawing:
    """Milliseconds against size: encoding and search above, search alone below, a column per backbone (Figure 6b).

    Bars over the points reach from the fastest to the slowest round.

    Args:
        frame: rows of the metrics `total_seconds` and `search_seconds` with backbone, method, dim, value, ci_low and
            ci_high.
        kind: which kind of number it is.
    """
    titles = {"total_seconds": "encode + search", "search_seconds": "search"}
    drawn = frame[frame["metric"].isin(list(titles))]
    if drawn.empty:
        raise NothingToDraw("no size was timed")
    backbones = list(dict.fromkeys(drawn["backbone"]))
    figure, axes = new_figure(len(titles), len(backbones), height=5.4, sharex="col")
    for i, (metric, title) in enumerate(titles.items()):
        for j, backbone in enumerate(backbones):
            panel = axes[i * len(backbones) + j]
            own = drawn[(drawn["backbone"] == backbone) & (drawn["metric"] == metric)]
            present = _present(own)
            for place, method in enumerate(present):
                line = own[own["method"] == method].groupby("dim")[["value", "ci_low", "ci_high"]].mean() * 1000
                # side by side, for the lines are expected to lie on each other
                x = line.index.to_numpy(float) * 2 ** (0.12 * (place - (len(present) - 1) / 2))
                reach = [line["value"] - line["ci_low"], line["ci_high"] - line["value"]]
                panel.errorbar(
                    x,
                    line["value"],
                    yerr=np.abs(reach),
                    linewidth=1.4,
                    elinewidth=1.0,
                    markersize=5,
                    **look(METHODS.index(method)),
                )
            dim_axis(panel, sorted(set(own["dim"])), room=WIDTH / len(backbones) - 0.9, label=i == len(titles) - 1)
            panel.tick_params(labelbottom=i == len(titles) - 1)
            panel.set_ylim(bottom=0)
            panel.set_title(backbone if i == 0 else "", loc="left", fontsize=11)
            if j == 0:
                panel.set_ylabel(f"{title}, ms ({kind})", fontsize=11)
    add_legend(figure, _handles(drawn))
    figure.alt = (
        f"milliseconds of encoding and search, and of search alone, against size, for {', '.join(_present(drawn))} on "
        f"{' and '.join(backbones)}; numbers: {kind}"
    )
    return figure


@drawing
def draw_joint_maps(maps: Sequence[tuple[str, Mapped]], *, dim: int, full: int) -> Drawing:
    """Where every sentence's full embedding and its prefix lie in one map, joined by a line (Figure 7).

    Args:
        maps: a title and a map for each panel.
        dim: size of the prefix.
        full: full size.

    Raises:
        InputError: if there is no map.
    """
    if not maps:
        raise NothingToDraw("no map was made")
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    figure, axes = new_figure(rows, columns, height=0.8 + 2.6 * rows)
    for panel, (title, found) in zip(axes, maps, strict=False):
        panel.add_collection(
            LineCollection(list(np.stack([found.full, found.cut], axis=1)), colors=GREY, linewidths=0.6, alpha=0.35)
        )
        panel.plot(*found.full.T, linestyle="none", **_dots(0))
        panel.plot(*found.cut.T, linestyle="none", **_dots(1))
        panel.set_title(f"{title}: {found.distance:.1f}", loc="left", fontsize=10.5)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.set_aspect("equal", adjustable="datalim")
    for spare in axes[len(maps) :]:
        spare.set_visible(False)
    names = (f"all {full} numbers", f"the first {dim}")
    add_legend(figure, [Line2D([], [], linestyle="none", label=name, **_dots(i)) for i, name in enumerate(names)])
    said = ", ".join(f"{title} {found.distance:.1f}" for title, found in maps)
    figure.alt = (
        f"joint t-SNE maps of embeddings with all {full} numbers and with the first {dim}; mean distance: {said}"
    )
    return figure


def _dots(i: int) -> dict[str, Any]:
    """Filled circles for full embeddings, hollow squares for prefixes."""
    filled = look(i)["color"] if i == 0 else "none"
    return {**look(i), "markersize": 3.6, "markeredgewidth": 0.9, "markerfacecolor": filled}


def _present(frame: pd.DataFrame) -> list[str]:
    names = set(frame["method"])
    return [method for method in METHODS if method in names]


def _handles(frame: pd.DataFrame) -> list[Line2D]:
    present = _present(frame)
    return [h for h, m in zip(series_handles(METHODS), METHODS, strict=True) if m in present]
