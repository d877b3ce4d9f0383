"""What each way to make positives does: its place between alignment and uniformity, and its scores."""

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from repro.report.claims_proposal.augmentation import ORDER, TITLES, in_order
from repro.report.curves import checked
from repro.report.style import Drawing, add_legend, drawing, look, new_figure


@drawing
def draw_augmentations(rows: pd.DataFrame) -> Drawing:
    """Alignment against uniformity, and Spearman on every set with its 95 % interval; seeds are averaged.

    Args:
        rows: with method, metric (`alignment`, `uniformity`, `spearman`), dataset, value, ci_low and ci_high.

    Raises:
        InputError: if a column is missing.
    """
    frame = checked(rows, ("method", "metric", "dataset", "value", "ci_low", "ci_high"))
    scores = frame[frame["metric"] == "spearman"]
    names, datasets = in_order(scores["method"], ORDER), in_order(scores["dataset"], list(TITLES))
    # each keeps its look from figure to figure, whichever others are at hand
    looks = {name: look(ORDER.index(name) if name in ORDER else len(ORDER)) for name in names}
    figure, (plane, right) = new_figure(1, 2, height=3.9)
    for position, name in enumerate(names):
        own = frame[frame["method"] == name]
        place = own[own["metric"].isin(["alignment", "uniformity"])].groupby("metric")["value"].mean()
        plane.plot(place["uniformity"], place["alignment"], linestyle="none", **{**looks[name], "markersize": 9})
        means = scores[scores["method"] == name].groupby("dataset")[["value", "ci_low", "ci_high"]].mean()
        for row, dataset in enumerate(datasets):
            # one line for each augmentation, so that none hides another
            height = -row + 0.28 - 0.56 * position / max(1, len(names) - 1)
            at = 100 * means.loc[dataset]
            right.hlines(height, at["ci_low"], at["ci_high"], color=looks[name]["color"], linewidth=1.6)
            right.plot(at["value"], height, **looks[name])
    plane.set_xlabel("uniformity (left: wide)")
    plane.set_ylabel("alignment (low: close)")
    plane.margins(0.12)
    plane.xaxis.set_major_locator(MaxNLocator(nbins=4))
    right.set_xlabel("Spearman × 100")
    right.set_yticks([-row for row in range(len(datasets))], [TITLES.get(name, name) for name in datasets])
    right.set_ylim(-len(datasets) + 0.5, 0.5)
    right.grid(visible=False, axis="y")
    add_legend(figure, [Line2D([], [], linestyle="-", label=name, **looks[name]) for name in names])
    figure.alt = f"alignment against uniformity, and Spearman on {', '.join(datasets)}: {', '.join(names)}"
    return figure
