"""Figures of Wang et al.'s side claims: what more candidates bring, and how near the pooler is to PCA."""

from collections.abc import Mapping

import pandas as pd

from repro.report.curves import points
from repro.report.style import (
    GREY,
    KIND_STYLE,
    WIDTH,
    Drawing,
    NothingToDraw,
    add_legend,
    dim_axis,
    drawing,
    look,
    new_figure,
)


@drawing
def draw_candidates(frame: pd.DataFrame, *, names: Mapping[str, str]) -> Drawing:
    """Mean score against the number of candidate dims, a panel per stage and a curve per target dim.

    Args:
        frame: live rows with method, dim, setting `candidates=k` and value (a fraction).
        names: methods to draw, with their titles.
    """
    rows = frame[frame["method"].isin(list(names)) & frame["setting"].str.startswith("candidates=")]
    if rows.empty:
        raise NothingToDraw("no rows whose setting is candidates=k")
    rows = rows.assign(candidates=rows["setting"].str.removeprefix("candidates=").astype(int))
    figure, axes = new_figure(1, len(names), height=3.4, sharex=True, sharey=True)
    for panel, (method, title) in zip(axes, names.items(), strict=True):
        for i, (dim, curve) in enumerate(rows[rows["method"] == method].groupby("dim")):
            curve = curve.groupby("candidates")["value"].mean()
            panel.plot(curve.index, 100 * curve, label=f"dim {dim}", **look(i), **KIND_STYLE["live"])
        panel.set_title(f"{title} (live)", loc="left")
        panel.set_xlabel("candidate dims")
        panel.set_xticks(sorted(set(rows["candidates"])))
    axes[0].set_ylabel("Spearman × 100")
    add_legend(figure, axes[0].get_legend_handles_labels()[0])
    figure.alt = f"score after {' and '.join(names.values())} against the number of candidate dims"
    return figure


@drawing
def draw_subspace(frame: pd.DataFrame, *, metric: str, ylabel: str) -> Drawing:
    """A measure of the pooler's row space against dim, a curve per activation, with what chance or PCA gives.

    Args:
        frame: live rows of `subspace_rows`.
        metric: `subspace_overlap` or `variance_kept`.
        ylabel: what it is.
    """
    rows = frame[frame["metric"] == metric]
    if rows.empty:
        raise NothingToDraw(f"no rows of metric {metric!r}")
    figure, (axes,) = new_figure(height=3.3)
    found = points(rows.assign(kind="live"), ["setting", "method", "dim"])
    for i, (setting, part) in enumerate(found[found["method"] == "trained pooler"].groupby("setting", sort=False)):
        label = f"trained pooler, {setting.removeprefix('activation=')}"
        axes.plot(part["dim"], part["value"], label=label, **look(i), **KIND_STYLE["live"])
    reference = found[found["method"] != "trained pooler"].groupby(["method", "dim"])["value"].mean()
    for method, style in (("PCA", "-."), ("untrained pooler", "--"), ("chance", ":")):
        if method in reference.index.get_level_values(0):
            line = reference[method]
            axes.plot(line.index, line, color=GREY, linestyle=style, linewidth=1.5, label=method)
    dim_axis(axes, sorted(set(found["dim"])), room=WIDTH - 0.9)
    axes.set_ylim(0, 104)
    axes.set_ylabel(ylabel)
    axes.set_title("live", loc="left")
    add_legend(figure, axes.get_legend_handles_labels()[0])
    figure.alt = f"{ylabel} of the trained pooler's row space, beside chance"
    return figure
