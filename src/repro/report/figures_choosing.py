"""The advisor on trial: shares of a score measured and promised by size, and answers with and without labels."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from repro.report.curves import checked
from repro.report.style import (
    GREY,
    PALETTE,
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

CURVES = {
    "share_kept": ("measured with labels", PALETTE[0], "-"),
    "predicted": ("spectrum", PALETTE[1], (0, (5, 2))),
    "neighbours_kept": ("neighbours", PALETTE[2], (0, (1, 1.5))),
    "expected_share": ("calibrated", PALETTE[3], (0, (6, 1.5, 1, 1.5))),
}
"""metric to label, colour and line"""


@drawing
def draw_retention(rows: pd.DataFrame, encoder: str, reducer: str, target: float) -> Drawing:
    """Share of the score kept by size with its bound, and what each rule promises without labels; a panel per task.

    Args:
        rows: of `retention_rows` and of `rule_rows` with the task left out: backbone, dataset, method, setting, dim,
            metric, value and ci_low.
        encoder: whose curves.
        reducer: pca or truncate.
        target: share that is asked for, dotted.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("backbone", "dataset", "method", "setting", "dim", "metric", "value", "ci_low"))
    own = (frame["method"] == reducer) | (
        (frame["method"] == "calibrated") & (frame["setting"] == f"{reducer}, task left out")
    )
    frame = frame[own & (frame["backbone"] == encoder) & frame["metric"].isin(list(CURVES))]
    if frame.empty:
        raise NothingToDraw(f"no curves of {encoder} under {reducer}")
    tasks = list(dict.fromkeys(frame["dataset"]))
    columns = min(2 if len(tasks) <= 4 else 3, len(tasks))
    lines = -(-len(tasks) // columns)
    figure, axes = new_figure(lines, columns, height=1.5 + 1.9 * lines, sharex=True)
    for i, panel in enumerate(axes):
        if i >= len(tasks):
            panel.set_visible(False)
            continue
        of_one = frame[frame["dataset"] == tasks[i]].sort_values("dim")
        for metric, (_, color, style) in CURVES.items():
            line = of_one[of_one["metric"] == metric]
            panel.plot(line["dim"], 100 * line["value"], color=color, linestyle=style, linewidth=1.8)
            if metric == "share_kept":
                panel.fill_between(
                    line["dim"].astype(int),
                    100 * line["ci_low"],
                    100 * line["value"],
                    color=color,
                    alpha=0.2,
                    linewidth=0,
                )
        panel.axhline(100 * target, color=GREY, linestyle=":", linewidth=1.2)
        panel.set_title(tasks[i], loc="left")
        highest = of_one.loc[of_one["metric"] == "share_kept", "value"].max()
        panel.set_ylim(40, max(108.0, 104 * float(highest)))
        lowest = i + columns >= len(tasks)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / columns - 0.9, label=lowest)
        panel.tick_params(labelbottom=lowest)
    figure.suptitle(f"{encoder}, {reducer}", fontsize=11)
    figure.supylabel("share kept, %", fontsize=12)
    handles = [Line2D([], [], color=c, linestyle=s, linewidth=1.8, label=name) for name, c, s in CURVES.values()]
    add_legend(figure, handles, columns=2)
    figure.alt = (
        f"share of the score kept against dimension, measured and promised, {encoder}, {reducer}: {', '.join(tasks)}"
    )
    return figure


@drawing
def draw_answers(
    rows: pd.DataFrame, rules: Sequence[str], reducer: str, target: float, *, kind: str = "live"
) -> Drawing:
    """The size that each rule names against the one that labels give, both as shares of the full size.

    Args:
        rows: of `rule_rows`: backbone, dataset, dim (the full size), method, setting, metric and value.
        rules: one panel each.
        reducer: pca or truncate.
        target: share that is asked for.
        kind: live or recorded, written above.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("backbone", "dataset", "dim", "method", "setting", "metric", "value"))
    frame = frame[(frame["metric"] == "answer") & (frame["setting"] == f"{reducer}, task left out, keep {target:g}")]
    if frame.empty:
        raise NothingToDraw(f"no answers under {reducer} at {target:g}")
    frame = frame.assign(share=100 * frame["value"] / frame["dim"].astype(float))
    wide = frame.pivot_table(index=["backbone", "dataset"], columns="method", values="share", sort=False).reset_index()
    encoders = list(dict.fromkeys(wide["backbone"]))
    lines = -(-len(rules) // 2)
    figure, axes = new_figure(lines, min(2, len(rules)), height=1.6 + 2.3 * lines, sharex=True, sharey=True)
    for panel, rule in zip(axes, rules, strict=False):
        panel.plot([1, 200], [1, 200], color=GREY, linewidth=1.2, linestyle=(0, (4, 2)))
        for position, encoder in enumerate(encoders):
            points = wide[wide["backbone"] == encoder]
            panel.plot(points["labels"], points[rule], linestyle="none", alpha=0.75, markersize=6, **look(position))
        panel.set_title(rule, loc="left")
        _share_axes(panel, float(wide[["labels", *rules]].min().min()))
    for panel in axes[len(rules) :]:
        panel.set_visible(False)
    for panel in axes[max(0, len(rules) - 2) : len(rules)]:
        panel.set_xlabel("size by labels, % of D")
    figure.suptitle(f"{kind}: {reducer}, to keep {100 * target:g} %", fontsize=11)
    figure.supylabel("size named without, % of D", fontsize=12)
    add_legend(figure, series_handles(encoders), columns=2)
    figure.alt = f"sizes named by {', '.join(rules)} against sizes by labels, {reducer}, to keep {100 * target:g} %"
    return figure


def _share_axes(panel: Axes, least: float) -> None:
    for axis, limit in ((panel.xaxis, panel.set_xlim), (panel.yaxis, panel.set_ylim)):
        (panel.set_xscale if axis is panel.xaxis else panel.set_yscale)("log", base=2)
        axis.set_major_locator(FixedLocator([3.125, 6.25, 12.5, 25, 50, 100]))
        axis.set_ticklabels(["3", "6", "12", "25", "50", "100"])
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
        limit(least / 1.4, 140)
