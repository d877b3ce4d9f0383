"""How many top-2 sets embeddings of a dimension realise, with which margin, and how trained encoders fare."""

import pandas as pd
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
from repro.report.wide import over_seeds

DASHED = (0, (4, 2))


@drawing
def draw_free_limits(rows: pd.DataFrame) -> Drawing:
    """Share of top-2 sets that free embeddings realise by dim; and their smallest margin against documents.

    Args:
        rows: with method (gradient descent, curve, most possible), setting (such as `8 documents`), dim, metric, value.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("method", "setting", "dim", "metric", "value"))
    frame["documents"] = [int(str(setting).split()[0]) for setting in frame["setting"]]
    figure, (shares, margins) = new_figure(1, 2, height=4.1)
    free, curve = (frame[frame["method"] == name] for name in ("gradient descent", "curve"))
    worlds = list(dict.fromkeys(free["setting"]))
    for i, world in enumerate(worlds):
        for method, looks in (("most possible", {"color": look(i)["color"], "linestyle": DASHED}), (None, look(i))):
            source = free if method is None else frame[frame["method"] == method]
            line = source[(source["setting"] == world) & (source["metric"] == "sets_realised")].sort_values("dim")
            shares.plot(line["dim"], 100 * line["value"], **looks)
    shares.set_title("sets realised, %", loc="left")
    dim_axis(shares, list(free["dim"]), room=WIDTH / 2 - 0.9)
    # the margin of embeddings that fail is no margin
    wide = free[(free["metric"] == "margin") & (free["value"] > 0)]
    dims = sorted(set(wide["dim"]))
    for dim in dims:
        line = wide[wide["dim"] == dim].sort_values("documents")
        if len(line) > 1:
            margins.plot(line["documents"], line["value"], color=PALETTE[5], marker="P", markersize=5)
            end = (line["documents"].iloc[-1], line["value"].iloc[-1])
            margins.annotate(
                f"{dim} dims", end, xytext=(-12, -9), textcoords="offset points", ha="right", fontsize=10.5
            )
    exact = curve[curve["metric"] == "margin"].sort_values("documents")
    margins.plot(exact["documents"], exact["value"], color=GREY, linestyle=DASHED, linewidth=1.8)
    margins.set_title("smallest margin", loc="left")
    margins.set_yscale("log")
    margins.set_xlabel("documents")
    handles = series_handles(worlds)
    handles.append(Line2D([], [], color=GREY, linestyle=DASHED, label="by construction"))
    add_legend(figure, handles)
    figure.alt = f"share of top-2 sets realised against dimension and smallest margin against documents: {worlds}"
    return figure


@drawing
def draw_encoder_limits(rows: pd.DataFrame, chance: float) -> Drawing:
    """Sets realised and recall@2 against the number of leading columns, a line per encoder; seeds are averaged.

    Args:
        rows: with method, dim, metric and value.
        chance: recall@2 of documents in random order, dotted.

    Raises:
        InputError: if a column is missing.
    """
    by = ("method", "dim", "metric")
    frame = over_seeds(checked(rows, (*by, "value")), by)
    names = sorted(set(frame["method"]))  # the same looks however rows are ordered
    figure, panels = new_figure(1, 2, height=3.7, sharey=True)
    titles = {"sets_realised": "sets realised, %", "recall@2": "recall@2, %"}
    for panel, (metric, title) in zip(panels, titles.items(), strict=True):
        for position, name in enumerate(names):
            line = frame[(frame["method"] == name) & (frame["metric"] == metric)].sort_values("dim")
            panel.plot(line["dim"], 100 * line["value"], **look(position))
        panel.set_title(title, loc="left")
        panel.set_ylim(-3, 103)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / 2 - 0.9)
    panels[1].axhline(100 * chance, color=GREY, linestyle=":", linewidth=1.6)
    dotted = Line2D([], [], color=GREY, linestyle=":", linewidth=1.6, label="chance")
    add_legend(figure, [*series_handles(names), dotted], columns=2)
    figure.alt = f"top-2 sets realised and recall@2 against dimension: {', '.join(names)}"
    return figure
