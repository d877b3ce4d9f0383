"""Figures on SBERT-LP (2021): gains of the mapping beside the printed ones, and one number against another."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from repro.methods import AVERAGE
from repro.papers.sbertlp.claims import METRICS, SIZES, lp, printed_leads
from repro.papers.sbertlp.lines import network_of
from repro.report.curves import title_of
from repro.report.style import GREY, Drawing, NothingToDraw, add_legend, drawing, look, new_figure, series_handles
from repro.types import Array


def gains_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The leads of mapped systems over their own systems, by system, dataset and metric."""
    sides = [method.split(" − ") for method in rows["method"]]
    kept = [len(pair) == 2 and pair[0] == lp(pair[1]) for pair in sides]
    metric = rows["metric"].str.removesuffix("_lead")
    return rows.assign(method=[pair[-1] for pair in sides], metric=metric).loc[kept]


def printed_gains(table: str, gains: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """What the paper prints of some gains of ours, in the same columns; where it prints none there is no row."""
    leads = {method: printed_leads(table, method).dropna() / 100 for method in SIZES}
    wanted = gains[["method", by]].drop_duplicates().itertuples(index=False, name=None)
    found = [(method, name, leads[method][name]) for method, name in wanted if name in leads.get(method, ())]
    return pd.DataFrame(found, columns=["method", by, "value"])


@drawing
def draw_gains(
    rows: pd.DataFrame, table: str, *, by: str = "dataset", ylabel: str, titles: Mapping[str, str] | None = None
) -> Drawing:
    """What the mapping adds to its system on every dataset: ours with intervals, the printed one hollow and grey.

    Args:
        rows: of one table, scores and leads.
        table: of the paper, whose gains stand beside.
        by: what stands along the axis, dataset or metric.
        ylabel: of the gains.
        titles: other names for what stands along the axis.
    """
    ours = gains_of(rows)
    ours = ours[ours["metric"] == METRICS[table]] if table in METRICS else ours
    frame = pd.concat([printed_gains(table, ours, by).assign(kind="paper"), ours.assign(kind="live")])
    frame = frame.replace({"method": {method: network_of(rows, method) for method in frame["method"].unique()}})
    if frame.empty:
        raise NothingToDraw("no mapped system was measured")
    methods, names = list(dict.fromkeys(frame["method"])), list(dict.fromkeys(frame[by]))
    names = [n for n in names if n != AVERAGE] + [n for n in names if n == AVERAGE]
    settings = list(dict.fromkeys(frame.loc[frame["kind"] != "paper", "setting"]))
    figure, axes = new_figure(len(methods), 1, height=1.1 + 2.3 * len(methods), sharex=True)
    for panel, method in zip(axes, methods, strict=True):
        panel.axhline(0, color=GREY, linewidth=1)
        of_method = frame[frame["method"] == method]
        printed = of_method[of_method["kind"] == "paper"]
        at = [names.index(name) for name in printed[by]]
        panel.plot(at, 100 * printed["value"], color=GREY, marker="D", markerfacecolor="none", linestyle="none", ms=8)
        for i, setting in enumerate(settings):
            ours = of_method[(of_method["kind"] != "paper") & (of_method["setting"] == setting)]
            x = np.array([names.index(name) for name in ours[by]]) + 0.2 * (i - (len(settings) - 1) / 2)
            value, low, high = (100 * ours[c].to_numpy(float) for c in ("value", "ci_low", "ci_high"))
            panel.errorbar(x, value, yerr=[value - low, high - value], linestyle="none", elinewidth=1.6, **look(i))
        panel.set_title(method, loc="left")
        panel.set_ylabel(ylabel)
    axes[-1].set_xticks(range(len(names)), [(titles or {}).get(name, title_of(name)) for name in names])
    printed_handle = Line2D([], [], color=GREY, marker="D", markerfacecolor="none", linestyle="none", label="paper")
    handles = [printed_handle] if (frame["kind"] == "paper").any() else []
    add_legend(figure, [*handles, *series_handles(settings)], columns=2)
    figure.alt = f"{ylabel} of the mapping over {' and '.join(methods)} on {', '.join(map(title_of, names))}"
    return figure


@drawing
def draw_dots(
    groups: Mapping[str, tuple[Array, Array]],
    *,
    xlabel: str,
    ylabel: str,
    diagonal: bool = False,
    ringed: Sequence[tuple[float, float]] = (),
    small: bool = False,
) -> Drawing:
    """One number against another, a colour per group.

    Args:
        groups: name of each to its x and y.
        xlabel: what x is.
        ylabel: what y is.
        diagonal: draw the line on which both are equal.
        ringed: points to ring.
        small: small, faint dots, where there are many.
    """
    if not sum(len(x) for x, _ in groups.values()):
        raise NothingToDraw("there is no point")
    figure, (axes,) = new_figure(height=4.2)
    if diagonal:
        every = np.concatenate([x for x, _ in groups.values()])
        ends = (float(every.min()) - 2, float(every.max()) + 2)
        axes.plot(ends, ends, color=GREY, linewidth=1.2, linestyle="--")
    for i, (name, (x, y)) in enumerate(groups.items()):
        marks = {**look(i), **({"markersize": 3.5, "alpha": 0.55} if small else {})}
        axes.plot(x, y, linestyle="none", label=name, **marks)
    for point in ringed:
        axes.plot(*point, marker="o", markersize=13, markerfacecolor="none", color=GREY, markeredgewidth=2)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    add_legend(figure, axes.get_legend_handles_labels()[0])
    figure.alt = f"{ylabel} against {xlabel}: {', '.join(groups)}"
    return figure
