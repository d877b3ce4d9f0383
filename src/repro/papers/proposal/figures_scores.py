"""Figures of scores: what a method, a size, a wording or a byte is worth, and what it costs."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from repro.methods import BEST_REDUCED, FULL_SIZE, TRAIN_OR_REDUCE
from repro.papers.proposal.choosing_rules import CALIBRATED, LABELS, NEIGHBOURS, SPECTRUM, TASK, setting_of
from repro.papers.proposal.claims import in_task_order
from repro.papers.proposal.quantisation import HAMMING, SHORTLIST
from repro.papers.proposal.quantisation_tables import LEVELS, SCORES, best_levels, by_bytes
from repro.papers.proposal.tables import AUGMENTATIONS, TITLES
from repro.report.curves import checked, curves
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
from repro.report.tables import over_seeds

PROMISES = {
    "share_kept": "measured with labels",
    "predicted": SPECTRUM,
    "neighbours_kept": NEIGHBOURS,
    "expected_share": CALIBRATED,
}
DOTTED: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 1.6}


def draw_train_or_reduce(rows: pd.DataFrame, *, kind: str = "live") -> Drawing:
    """Score against dim, a panel per task and a line per method; the full size is dashed."""
    own = in_task_order(rows[rows["metric"].isin(["spearman", "ndcg@10"]) & (rows["method"] != BEST_REDUCED)])
    full, below = own[own["method"] == FULL_SIZE], own[own["method"] != FULL_SIZE]
    order = [method for method in TRAIN_OR_REDUCE if method in set(below["method"])]
    label = f"full size ({', '.join(map(str, full['dim'].unique()))})"
    levels = (100 * full.groupby("dataset")["value"].mean()).reset_index().assign(label=label)
    metric = {"spearman": "Spearman", "ndcg@10": "nDCG@10"}
    below = below.assign(kind=kind, task=below["dataset"] + ", " + below["metric"].map(metric))
    levels["task"] = levels["dataset"].map(dict(zip(below["dataset"], below["task"], strict=True)))
    return curves(below, color="method", panel="task", order=order, levels=levels)


def draw_encoder_limits(rows: pd.DataFrame, chance: float, *, kind: str = "live") -> Drawing:
    """Sets realised and recall@2 against the number of leading columns, a line per encoder; seeds are averaged."""
    titles = {"sets_realised": "sets realised, %", "recall@2": "recall@2, %"}
    own = over_seeds(rows[rows["metric"].isin(list(titles))], ("method", "dim", "metric"))
    own = own.sort_values("metric", key=lambda metric: metric.map(list(titles).index), kind="stable")
    level = pd.DataFrame({"value": [100 * chance], "label": ["chance"], "metric": ["recall@2"]})
    order = sorted(set(own["method"]))  # the same looks however rows are ordered
    options: dict[str, Any] = {"order": order, "levels": level, "ylabel": "per cent", "share": True}
    return curves(own.assign(kind=kind), color="method", panel="metric", title=lambda m: titles[m], **options)


def draw_share_kept(rows: pd.DataFrame, target: float, *, kind: str = "live") -> Drawing:
    """Share of the full-size score by size, a panel per embedding, a line per world, its lower bound shaded."""
    own = over_seeds(rows[rows["metric"] == "share_kept"], ("method", "setting", "metric", "dim"))
    own = own.assign(kind=kind, ci_high=own["value"]).sort_values(["method", "setting"], kind="stable")
    level = pd.DataFrame({"value": [100 * target], "label": ["asked for"]})
    ylabel = "share of the score, %"
    return curves(own, color="setting", panel="method", levels=level, ylabel=ylabel, share=True)


def draw_retention(rows: pd.DataFrame, encoder: str, reducer: str, target: float, *, kind: str = "live") -> Drawing:
    """Share of the score kept by size with its bound, and what each rule promises without labels; a panel per task.

    Args:
        rows: of `retention_rows` and of `rule_rows`.
        encoder: whose curves.
        reducer: pca or truncate.
        target: share that is asked for.
        kind: of number.
    """
    fitted = (rows["method"] == CALIBRATED) & (rows["setting"] == setting_of(reducer, TASK))
    own = rows[((rows["method"] == reducer) | fitted) & (rows["backbone"] == encoder)]
    own = own[own["metric"].isin(list(PROMISES))]
    own = own.assign(
        kind=kind, curve=own["metric"].replace(PROMISES), ci_high=own["value"].where(own["ci_low"].notna())
    )
    level = pd.DataFrame({"value": [100 * target], "label": ["asked for"]})
    order, ylabel = [*PROMISES.values()], "share kept, %"
    return curves(own, color="curve", panel="dataset", order=order, levels=level, ylabel=ylabel, share=True)


@drawing
def draw_answers(
    rows: pd.DataFrame, rules: Sequence[str], reducer: str, target: float, *, kind: str = "live"
) -> Drawing:
    """The size that each rule names against the one that labels give, both as shares of the full size.

    Args:
        rows: of `rule_rows`; `dim` is the full size.
        rules: one panel each.
        reducer: pca or truncate.
        target: share that is asked for.
        kind: of number.
    """
    frame = checked(rows, ("backbone", "dataset", "dim", "method", "setting", "metric", "value"))
    frame = frame[(frame["metric"] == "answer") & (frame["setting"] == setting_of(reducer, TASK, target))]
    if frame.empty:
        raise NothingToDraw(f"no answers under {reducer} at {target:g}")
    frame = frame.assign(share=100 * frame["value"] / frame["dim"].astype(float))
    wide = frame.pivot_table(index=["backbone", "dataset"], columns="method", values="share", sort=False).reset_index()
    encoders = list(dict.fromkeys(wide["backbone"]))
    lines = -(-len(rules) // 2)
    figure, axes = new_figure(lines, min(2, len(rules)), height=1.6 + 2.3 * lines, sharex=True, sharey=True)
    least = float(wide[[LABELS, *rules]].min().min())
    for panel, rule in zip(axes, rules, strict=False):
        panel.plot([1, 200], [1, 200], color=GREY, linewidth=1.2, linestyle=(0, (4, 2)))
        for position, encoder in enumerate(encoders):
            points = wide[wide["backbone"] == encoder]
            panel.plot(points[LABELS], points[rule], linestyle="none", alpha=0.75, markersize=6, **look(position))
        panel.set_title(rule, loc="left")
        panel.set(xscale="log", yscale="log", xlim=(least / 1.4, 140), ylim=(least / 1.4, 140))
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(FixedLocator([3.125, 6.25, 12.5, 25, 50, 100]))
            axis.set_ticklabels(["3", "6", "12", "25", "50", "100"])
            axis.set_minor_locator(NullLocator())
    for panel in axes[len(rules) :]:
        panel.set_visible(False)
    for panel in axes[max(0, len(rules) - 2) : len(rules)]:
        panel.set_xlabel("size by labels, % of D")
    figure.suptitle(f"{kind}: {reducer}, to keep {100 * target:g} %", fontsize=11)
    figure.supylabel("size named without, % of D", fontsize=12)
    add_legend(figure, series_handles(encoders), columns=2)
    figure.alt = f"sizes named by {', '.join(rules)} against sizes by labels, {reducer}, to keep {100 * target:g} %"
    return figure


@drawing
def draw_augmentations(rows: pd.DataFrame) -> Drawing:
    """Alignment against uniformity, and Spearman on every set with its 95 % interval; seeds are averaged."""
    frame = checked(rows, ("method", "metric", "dataset", "value", "ci_low", "ci_high"))
    scores = frame[frame["metric"] == "spearman"]
    present = [name for name in AUGMENTATIONS if name in set(scores["method"])]
    datasets = [name for name in TITLES if name in set(scores["dataset"])]
    # each keeps its look from figure to figure, whichever others are at hand
    looks = {name: look(AUGMENTATIONS.index(name)) for name in present}
    figure, (plane, right) = new_figure(1, 2, height=3.9)
    for position, name in enumerate(present):
        place = frame[frame["method"] == name].groupby("metric")["value"].mean()
        plane.plot(place["uniformity"], place["alignment"], linestyle="none", **{**looks[name], "markersize": 9})
        means = 100 * scores[scores["method"] == name].groupby("dataset")[["value", "ci_low", "ci_high"]].mean()
        for row, dataset in enumerate(datasets):
            # one line for each augmentation, so that none hides another
            height, at = -row + 0.28 - 0.56 * position / max(1, len(present) - 1), means.loc[dataset]
            right.hlines(height, at["ci_low"], at["ci_high"], color=looks[name]["color"], linewidth=1.6)
            right.plot(at["value"], height, **looks[name])
    plane.set_xlabel("uniformity (left: wide)")
    plane.set_ylabel("alignment (low: close)")
    plane.margins(0.12)
    plane.xaxis.set_major_locator(MaxNLocator(nbins=4))
    right.set_xlabel("Spearman × 100")
    right.set_yticks([-row for row in range(len(datasets))], [TITLES[name] for name in datasets])
    right.set_ylim(-len(datasets) + 0.5, 0.5)
    right.grid(visible=False, axis="y")
    add_legend(figure, [Line2D([], [], linestyle="-", label=name, **looks[name]) for name in present])
    figure.alt = f"alignment against uniformity, and Spearman on {', '.join(datasets)}: {', '.join(present)}"
    return figure


@drawing
def draw_bytes(rows: pd.DataFrame, kind: str = "live") -> Drawing:
    """Three scores of one encoder against bytes, each point of the best reducer; and neighbours found by bits alone."""
    frame = checked(rows, ("backbone", "method", "setting", "dim", "metric", "value"))
    best, full = best_levels(frame), by_bytes(frame)
    full = full[full["bytes"].isna()].set_index("metric")["value"]
    levels = {level: look(i) for i, level in enumerate(LEVELS) if level in set(best["method"])}
    bits = {HAMMING: {**DOTTED, "linestyle": (0, (4, 2)), "linewidth": 1.5, "marker": "X"}}
    bits[SHORTLIST] = {**bits[HAMMING], "linestyle": "-"}
    drawn = [(metric, title, levels) for metric, title in SCORES.items()]
    drawn.append(("neighbours_kept", "neighbours by bits", {"binary": look(LEVELS.index("binary")), **bits}))
    figure, panels = new_figure(2, 2, height=6.8)
    for i, (panel, (metric, title, shown)) in enumerate(zip(panels, drawn, strict=True)):
        for method, looks in shown.items():
            own = best[(best["metric"] == metric) & (best["method"] == method)].sort_values("bytes")
            panel.plot(own["bytes"].astype(int), 100 * own["value"], **looks)
        if metric == "neighbours_kept":
            panel.set_ylim(-3, 103)
        elif metric in full:
            panel.axhline(100 * full[metric], **DOTTED)
        panel.set_title(title, loc="left")
        dim_axis(panel, sorted({int(size) for size in best["bytes"]}), room=WIDTH / 2 - 0.9, label=False)
        panel.set_xlabel("bytes per vector" if i > 1 else "")
    handles = [
        Line2D([], [], label=method, **{"linestyle": "-", **looks}) for method, looks in {**levels, **bits}.items()
    ]
    add_legend(figure, [*handles, Line2D([], [], label="full size", **DOTTED)])
    name = ", ".join(dict.fromkeys(frame["backbone"].dropna()))
    figure.suptitle(f"{name} ({kind})", x=0.01, ha="left", fontsize=12)
    figure.alt = f"{name}: similarity, retrieval and neighbours kept against bytes per vector, by level of quantisation"
    return figure
