"""Worlds of known dimension: estimates of it against the number of factors, and the share of a score by size."""

import pandas as pd
from matplotlib.lines import Line2D

from repro.report.claims_proposal.microworld import INTRINSIC, NAMES
from repro.report.curves import checked
from repro.report.style import GREY, WIDTH, Drawing, add_legend, dim_axis, drawing, look, new_figure, series_handles
from repro.report.wide import over_seeds

KNOWN = "known"
LINE = ("method", "setting", "metric")


@drawing
def draw_intrinsic(rows: pd.DataFrame) -> Drawing:
    """Each estimator of intrinsic dimension against the number of factors, a line per embedding; seeds are averaged.

    Args:
        rows: with method, setting (such as `3 factors`), metric and value; those of the method `known` are dashed.

    Raises:
        InputError: if a column is missing.
    """
    frame = over_seeds(checked(rows, (*LINE, "value")), LINE)
    frame["factors"] = [int(str(setting).split()[0]) for setting in frame["setting"]]
    names = sorted(set(frame["method"]) - {KNOWN})  # the same looks however rows are ordered
    figure, axes = new_figure(2, 2, height=5.4, sharex=True)
    for i, (panel, metric) in enumerate(zip(axes, INTRINSIC, strict=True)):
        of_one = frame[frame["metric"] == metric]
        for position, name in enumerate(names):
            line = of_one[of_one["method"] == name].sort_values("factors")
            panel.plot(line["factors"], line["value"], **look(position))
        truth = of_one[of_one["method"] == KNOWN].sort_values("factors")
        panel.plot(truth["factors"], truth["value"], color=GREY, linestyle=(0, (4, 2)), linewidth=1.8)
        panel.set_title(NAMES[metric], loc="left")
        panel.set_ylim(bottom=0)
        panel.set_xticks(sorted(set(frame["factors"])))
        if i >= 2:
            panel.set_xlabel("factors of the world")
    figure.supylabel("dimensions", fontsize=12)
    dashed = Line2D([], [], color=GREY, linestyle=(0, (4, 2)), linewidth=1.8, label="known")
    add_legend(figure, [*series_handles(names), dashed], columns=2)
    figure.alt = f"intrinsic dimension against the number of factors, known and of {', '.join(names)}"
    return figure


@drawing
def draw_share_kept(rows: pd.DataFrame, target: float) -> Drawing:
    """Share of the full-size score by size, a panel per embedding and a line per world, with its lower bound.

    Seeds are averaged.

    Args:
        rows: with method, setting, dim, metric (`share_kept`), value and ci_low.
        target: share that is asked for, dotted.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows[rows["metric"] == "share_kept"], (*LINE, "dim", "value", "ci_low"))
    frame = over_seeds(frame, (*LINE, "dim"))
    methods, worlds = (sorted(set(frame[column])) for column in ("method", "setting"))
    figure, axes = new_figure(1, len(methods), height=3.9, sharey=True)
    for panel, method in zip(axes, methods, strict=True):
        for position, world in enumerate(worlds):
            line = frame[(frame["method"] == method) & (frame["setting"] == world)].sort_values("dim")
            panel.plot(line["dim"], 100 * line["value"], **look(position))
            panel.fill_between(
                line["dim"],
                100 * line["ci_low"],
                100 * line["value"],
                color=look(position)["color"],
                alpha=0.1,
                linewidth=0,
            )
        panel.axhline(100 * target, color=GREY, linestyle=":", linewidth=1.6)
        panel.set_title(method, loc="left", fontsize=10)
        dim_axis(panel, list(frame["dim"]), room=WIDTH / len(methods) - 0.9)
    axes[0].set_ylabel("share of the score, %")
    axes[0].set_ylim(bottom=40)
    dotted = Line2D([], [], color=GREY, linestyle=":", linewidth=1.6, label="asked for")
    add_legend(figure, [*series_handles(worlds), dotted])
    figure.alt = f"share of the full-size score against dimension: {', '.join(methods)}; {', '.join(worlds)}"
    return figure
