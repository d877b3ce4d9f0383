"""ESE's figures, and the tables that more than one page shows.

`kind` says which kind of number is drawn: paper, recorded or live. Every line keeps its colour, whichever are drawn.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from repro.evaluation.seeds import FEWEST_SEEDS, estimate
from repro.methods import ESE, ESE_CODE, ESE_METHODS, RAW
from repro.papers.ese.claims import PLACES, by_backbone, only
from repro.report.figures import (
    GREY,
    Drawing,
    NothingToDraw,
    add_legend,
    checked,
    curves,
    drawing,
    look,
    new_figure,
    points,
    series_handles,
)
from repro.report.interactive import intervals
from repro.report.tables import wide
from repro.rows import parsed
from repro.types import Array

ORDER = (*ESE_METHODS, ESE_CODE)
"""every line keeps its place, and its colour, whichever are shown"""
by_method = partial(curves, color="method", order=ORDER, band=False)
"""a curve per line, without bands, which would hide the lines"""


def at_places(rows: pd.DataFrame, metric: str = "spearman", *, every_size: bool = False) -> pd.DataFrame:
    """Averages over the sets at the last layer and over the shallow ones, with their `place`; at full size alone."""
    parts = [rows.iloc[:0].assign(place="")]
    for _, own in by_backbone(rows):
        at = only(own, metric=metric)
        at = at[(at["layer"].isna() | (at["layer"] == own["layer"].max()))]
        at = at if every_size else only(at, dim=own["dim"].max())
        parts += [only(at, dataset=dataset).assign(place=place) for place, dataset in PLACES.items()]
    return pd.concat(parts, ignore_index=True)


def difference(cell: pd.DataFrame) -> str:
    """Mean over seeds, in points, with its 95 % interval over items; from three seeds on over the seeds, too."""
    e = estimate(cell, deterministic=cell["seed"].nunique() < FEWEST_SEEDS)
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"


def difference_rows(rows: pd.DataFrame, references: Mapping[str, str], *, every_size: bool = False) -> pd.DataFrame:
    """Each variant less what it differs from, where the two were compared, at both places, in the variants' order."""
    found = parsed(at_places(rows, "spearman_lead", every_size=every_size))
    found = found[found["rival"] == found["winner"].map(references)].assign(variant=lambda own: own["winner"])
    return found.sort_values("variant", key=lambda names: names.map(list(references).index), kind="stable")


def difference_table(rows: pd.DataFrame, references: Mapping[str, str], kind: str) -> pd.DataFrame:
    """The same for the reader: a line per variant and place, a column per size."""
    cells = difference_rows(rows, references, every_size=True).assign(against=lambda own: own["rival"])
    dims = sorted(cells["dim"].unique(), reverse=True)
    orders = {"variant": list(references), "place": list(PLACES), "dim": dims}
    names = {str(dim): f"{kind}, {dim} dims" for dim in dims}
    return wide(cells, ["variant", "against", "place"], "dim", difference, orders=orders, names=names)


def rank_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numerical rank of dependency matrices by layer: median, smallest and largest, and S₂/S₁ (audit E4)."""
    keys = ["backbone", "layer", "dim", "setting"]
    found = only(rows, metric="numerical_rank").groupby(keys, sort=False)
    table = found.agg(median=("value", "median"), smallest=("ci_low", "min"), largest=("ci_high", "max")).astype(int)
    ratio = only(rows, metric="second_share").groupby(keys)["value"].mean().map("{:.1e}".format)
    names = {"dim": "size", "setting": "matrix", "median": "rank, median", "ratio": "second by first"}
    return table.join(ratio.rename("ratio")).reset_index().rename(columns=names)


def repeat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far two calls on one batch agree, a line per decomposition (audit E6)."""
    names = {
        "sign_flips": "components that change sign, %",
        "column_cosine": "cosine of equal components, median, %",
        "last_cosine": "the last one's, %",
        "subspace_overlap": "overlap of the two spaces, %",
    }
    cells, names = rows[rows["metric"].isin(list(names))], names | {"dim": "k", "setting": "decomposition"}
    return wide(cells, ["backbone", "dim", "setting"], "metric", orders={"metric": list(names)}, names=names)


@drawing
def draw_differences(frame: pd.DataFrame, *, xlabel: str, kind: str) -> Drawing:
    """Differences with their intervals (fractions), a line per variant, a panel per place (Tables 1 and 2)."""
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
def draw_depth_cost(frame: pd.DataFrame, kind: str) -> Drawing:
    """Quality (points) against milliseconds, a panel per backbone, every point the layer that is read (Figure 6a)."""
    if frame.empty:
        raise NothingToDraw("no layer was timed and scored")
    backbones, names = list(dict.fromkeys(frame["backbone"])), [m for m in ORDER if m in set(frame["method"])]
    figure, axes = new_figure(1, len(backbones), height=4.0)
    for panel, (backbone, own) in zip(axes, by_backbone(frame), strict=True):
        for method in names:
            line = only(own, method=method).sort_values("layer")
            panel.plot(line["ms"], line["spearman"], linewidth=1.8, markersize=6, **look(ORDER.index(method)))
        offset: dict[str, Any] = {"xytext": (-6, 6), "textcoords": "offset points", "ha": "right", "fontsize": 11}
        for row in only(own, method=own["method"].iloc[-1]).itertuples():
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
def draw_joint_maps(maps: Mapping[str, tuple[Array, Array]], *, dim: int, full: int) -> Drawing:
    """By title, where each full embedding and its prefix lie in a map (n, 2), joined by a line (Figure 7)."""
    if not maps:
        raise NothingToDraw("no map was made")
    columns = min(2, len(maps))
    rows = -(-len(maps) // columns)
    figure, axes = new_figure(rows, columns, height=0.8 + 2.6 * rows)
    # filled circles for full embeddings, hollow squares for prefixes
    dots: list[dict[str, Any]] = [{**look(i), "markersize": 3.6, "markeredgewidth": 0.9} for i in range(2)]
    dots[1]["markerfacecolor"] = "none"
    for panel, (title, both) in zip(axes, maps.items(), strict=False):
        panel.add_collection(LineCollection(list(np.stack(both, axis=1)), colors=GREY, linewidths=0.6, alpha=0.35))
        for of_one, style in zip(both, dots, strict=True):
            panel.plot(*of_one.T, linestyle="none", **style)
        panel.set_title(title, loc="left", fontsize=10.5)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.set_aspect("equal", adjustable="datalim")
    for spare in axes[len(maps) :]:
        spare.set_visible(False)
    names = (f"all {full} numbers", f"the first {dim}")
    add_legend(figure, [Line2D([], [], linestyle="none", label=n, **d) for n, d in zip(names, dots, strict=True)])
    figure.alt = f"joint t-SNE maps of embeddings with {names[0]} and {names[1]}; mean distance: {'; '.join(maps)}"
    return figure


def chart_depth(frame: pd.DataFrame) -> Any:
    """Score of every layer (row) and size (column) of one line, chosen below; on pointing, with the lead over RAW.

    All lines share one scale of colours, so that they compare when another is chosen; seeds are averaged.
    """
    keys = ["method", "layer", "dim"]
    found = points(checked(frame, (*keys, "value")).assign(kind="live"), keys).drop(columns="kind").round(3)
    found = found.astype({"layer": int, "method": object})
    untouched = only(found, method=RAW).set_index(keys[1:])["value"]
    raw = untouched.reindex(pd.MultiIndex.from_frame(found[keys[1:]]))
    found["lead"] = (found["value"] - raw.to_numpy()).round(3)
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
