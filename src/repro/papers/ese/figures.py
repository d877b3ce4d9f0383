"""ESE's figures: curves by layer, size and compressed size; a grid to choose from; differences, cost and maps.

`kind` says which kind of number is drawn: paper, recorded or live. Every line keeps its colour, whichever are drawn.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from repro.methods import ESE, RAW
from repro.papers.ese.compression import Joint
from repro.papers.ese.tables import ORDER, SHORT
from repro.report.curves import checked, curves, points
from repro.report.interactive import intervals
from repro.report.style import GREY, Drawing, NothingToDraw, add_legend, drawing, look, new_figure, series_handles

by_method = partial(curves, color="method", order=ORDER, band=False)
"""a curve per line, without bands, which would hide the lines"""


def draw_by_depth(frame: pd.DataFrame, thresholds: Mapping[str, float], kind: str) -> Drawing:
    """Score at full size against the layer, a panel per backbone; dashed, the score in points that layers are to pass.

    Args:
        frame: rows with backbone, method, layer and value (a fraction); of one metric, size and dataset.
        thresholds: by backbone.
        kind: of number.
    """
    levels = pd.DataFrame(thresholds.items(), columns=["backbone", "value"]).assign(label="to be passed")
    label = f"Spearman × 100 ({kind})"
    frame = frame.assign(kind=kind)
    return by_method(frame, x="layer", panel="backbone", levels=levels, ylabel=label, xlabel="layer")


def draw_by_size(frame: pd.DataFrame, kind: str, layers: Sequence[int] | None = None) -> Drawing:
    """Score against size, a panel per layer (Figure 3); with two layers, the middle and the last one, Figure 4.

    Args:
        frame: rows with method, layer, dim and value (a fraction); of one backbone, metric and dataset.
        kind: of number.
        layers: the layers drawn; None takes the last twelve, without the embedding output.
    """
    wanted = sorted({int(layer) for layer in frame["layer"] if layer > 0})[-12:] if layers is None else layers
    own = frame[frame["layer"].isin(wanted)].sort_values("layer", kind="stable").assign(kind=kind)
    return by_method(own, panel="layer", title="layer {}".format, ylabel=f"Spearman × 100 ({kind})", share=True)


def draw_compression_sizes(frame: pd.DataFrame, kind: str) -> Drawing:
    """Score after training with compressed size k, beside RAW and MRL, which have none (Figure 5).

    Args:
        frame: of `repro.papers.ese.tables.size_rows`.
        kind: of number.
    """
    label = f"Spearman × 100 ({kind})"
    return by_method(frame.assign(kind=kind), band=True, panel="place", ylabel=label, xlabel="compressed size k")


def draw_found(frame: pd.DataFrame, kind: str, metrics: Sequence[str], chance: Mapping[str, float]) -> Drawing:
    """What a search finds against size: a line of panels per metric, a column per layer, shallow first (Table 3).

    Args:
        frame: rows of one backbone with method, layer, dim, metric and value (a fraction).
        kind: of number.
        metrics: those drawn.
        chance: by metric, what a paragraph drawn at random scores: a dashed line.
    """
    parts = [frame[frame["metric"] == metric].sort_values("layer", kind="stable") for metric in metrics]
    own = pd.concat(parts).assign(kind=kind, metric=lambda own: own["metric"].map(SHORT))
    known = [(SHORT[metric], 100 * chance[metric]) for metric in metrics if metric in chance]
    levels = pd.DataFrame(known, columns=["metric", "value"]).assign(label="a paragraph at random")
    return by_method(
        own, row="metric", panel="layer", levels=levels, title="layer {}".format, ylabel=f"% ({kind})", share="row"
    )


def draw_size_cost(frame: pd.DataFrame, kind: str) -> Drawing:
    """Milliseconds against size: encoding and search above, search alone below, a column per backbone (Figure 6b).

    Args:
        frame: rows with backbone, method, dim, metric and value, in seconds.
        kind: of number.
    """
    titles = {"total_seconds": "encode + search", "search_seconds": "search"}
    own = frame[frame["metric"].isin(list(titles))].sort_values("metric", ascending=False, kind="stable")
    own = own.assign(kind=kind, value=10 * own["value"], metric=own["metric"].map(titles))  # drawn × 100
    return by_method(own, row="metric", panel="backbone", ylabel=f"milliseconds ({kind})", share="row")


@drawing
def draw_depth_cost(frame: pd.DataFrame, kind: str) -> Drawing:
    """Quality against the milliseconds it takes, a panel per backbone, every point the layer that is read (Figure 6a).

    Args:
        frame: columns backbone, method, layer, ms and spearman (in points).
        kind: of number.
    """
    if frame.empty:
        raise NothingToDraw("no layer was timed and scored")
    backbones, names = list(dict.fromkeys(frame["backbone"])), [m for m in ORDER if m in set(frame["method"])]
    figure, axes = new_figure(1, len(backbones), height=4.0)
    for panel, backbone in zip(axes, backbones, strict=True):
        own = frame[frame["backbone"] == backbone]
        for method in names:
            line = own[own["method"] == method].sort_values("layer")
            panel.plot(line["ms"], line["spearman"], linewidth=1.8, markersize=6, **look(ORDER.index(method)))
        offset: dict[str, Any] = {"xytext": (-6, 6), "textcoords": "offset points", "ha": "right", "fontsize": 11}
        for row in own[own["method"] == own["method"].iloc[-1]].itertuples():
            panel.annotate(str(row.layer), (row.ms, row.spearman), **offset)
        panel.set_xlim(0, 1.12 * own["ms"].max())
        panel.margins(y=0.12)
        panel.set_title(backbone, loc="left", fontsize=11)
        panel.set_xlabel("milliseconds")
    axes[0].set_ylabel(f"Spearman × 100 ({kind})")
    add_legend(figure, [handle for handle in series_handles(ORDER) if handle.get_label() in names])
    figure.alt = f"Spearman × 100 against milliseconds of encoding at every layer of {' and '.join(backbones)} ({kind})"
    return figure


@drawing
def draw_differences(frame: pd.DataFrame, *, xlabel: str, kind: str) -> Drawing:
    """Differences to a default with their intervals, a line per variant, a panel per place (Table 2).

    Args:
        frame: rows with variant, place, value, ci_low and ci_high (fractions).
        xlabel: what the difference is.
        kind: of number.
    """
    found = points(frame.assign(kind=kind), ["variant", "place"])
    names, places = list(dict.fromkeys(found["variant"])), list(dict.fromkeys(found["place"]))
    figure, axes = new_figure(1, len(places), height=1.6 + 0.34 * len(names), sharey=True)
    y = np.arange(len(names))
    for i, (panel, place) in enumerate(zip(axes, places, strict=True)):
        own = found[found["place"] == place].set_index("variant").reindex(names)
        reach = np.abs(np.vstack([own["value"] - own["low"], own["high"] - own["value"]]))
        if np.isfinite(reach).any():
            panel.errorbar(own["value"], y, xerr=reach, fmt="none", ecolor=GREY, elinewidth=1.4, capsize=0)
        panel.plot(own["value"], y, linestyle="none", markersize=6, **look(i))
        panel.axvline(0, color=GREY, linewidth=1.0)
        panel.set_yticks(y, names, fontsize=10.5)
        panel.set_title(place, loc="left")
        panel.grid(visible=False, axis="y")
    axes[0].invert_yaxis()
    figure.supxlabel(xlabel, fontsize=12)
    figure.alt = f"{xlabel} of {', '.join(names)}, {' and '.join(places)}, with intervals; numbers: {kind}"
    return figure


@drawing
def draw_joint_maps(maps: Sequence[Joint], *, dim: int, full: int) -> Drawing:
    """Where every sentence's full embedding and its prefix lie in one map, joined by a line (Figure 7).

    Args:
        maps: one for each panel.
        dim: size of the prefix.
        full: full size.
    """
    if not maps:
        raise NothingToDraw("no map was made")
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    figure, axes = new_figure(rows, columns, height=0.8 + 2.6 * rows)
    # filled circles for full embeddings, hollow squares for prefixes
    dots: list[dict[str, Any]] = [{**look(i), "markersize": 3.6, "markeredgewidth": 0.9} for i in range(2)]
    dots[1]["markerfacecolor"] = "none"
    said = [f"{m.line.method}, {m.form}: {m.distance:.1f}" for m in maps]
    for panel, title, m in zip(axes, said, maps, strict=False):
        joined = list(np.stack([m.full, m.cut], axis=1))
        panel.add_collection(LineCollection(joined, colors=GREY, linewidths=0.6, alpha=0.35))
        for points_of, style in zip((m.full, m.cut), dots, strict=True):
            panel.plot(*points_of.T, linestyle="none", **style)
        panel.set_title(title, loc="left", fontsize=10.5)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.set_aspect("equal", adjustable="datalim")
    for spare in axes[len(maps) :]:
        spare.set_visible(False)
    names = (f"all {full} numbers", f"the first {dim}")
    add_legend(figure, [Line2D([], [], linestyle="none", label=n, **d) for n, d in zip(names, dots, strict=True)])
    figure.alt = f"joint t-SNE maps of embeddings with {names[0]} and {names[1]}; mean distance: {'; '.join(said)}"
    return figure


def chart_depth(frame: pd.DataFrame) -> Any:
    """Score of every layer (row) and size (column) of one line, chosen below; on pointing, with the lead over RAW.

    All lines share one scale of colours, so that they compare when another is chosen.

    Args:
        frame: rows with method, layer, dim, value (a fraction), and perhaps ci_low and ci_high; of one backbone,
            dataset and kind. Cells that recur, as seeds do, are averaged.

    Raises:
        InputError: if a column is missing.
    """
    keys = ["method", "layer", "dim"]
    found = points(checked(frame, (*keys, "value")).assign(kind="live"), keys).drop(columns="kind").round(3)
    found = found.astype({"layer": int, "method": object})
    untouched = found[found["method"] == RAW].set_index(keys[1:])["value"]
    raw = untouched.reindex(pd.MultiIndex.from_frame(found[keys[1:]]))
    found = found.assign(lead=(found["value"] - raw.to_numpy()).round(3))
    found["interval"] = intervals(found.pop("low"), found.pop("high"))
    names = [method for method in ORDER if method in set(found["method"])]
    low, high = float(found["value"].min()), float(found["value"].max())
    choice = alt.selection_point(
        fields=["method"],
        bind=alt.binding_radio(options=names, name="line: "),
        value=[{"method": ESE if ESE in names else names[-1]}],
    )
    shown = {"method:N": "line", "layer:O": "layer", "dim:O": "dim", "value:Q": "Spearman × 100"}
    tooltip = [alt.Tooltip(name, title=title) for name, title in shown.items()]
    tooltip += [alt.Tooltip("interval:N"), alt.Tooltip("lead:Q", title="lead over RAW", format="+.2f")]
    x = alt.X("dim:O", title="dimensions", sort="ascending", axis=alt.Axis(labelAngle=0))
    y = alt.Y("layer:O", title="layer", sort="descending")
    base = alt.Chart(found).transform_filter(choice).encode(x=x, y=y, tooltip=tooltip)
    scale = alt.Scale(scheme="cividis", domain=[low, high])
    cells = base.mark_rect().encode(color=alt.Color("value:Q", title="Spearman × 100", scale=scale))
    # white letters on the dark half of the colours, black on the bright one
    letters = alt.condition(f"datum.value < {(low + high) / 2:.3f}", alt.value("white"), alt.value("black"))
    numbers = base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".1f"), color=letters)
    return alt.layer(cells, numbers).add_params(choice).properties(height=60 + 34 * found["layer"].nunique())
