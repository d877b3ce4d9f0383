"""How the tables score sentences under the mapping, and what a reader sees of them.

Similarity and votes of nearest neighbours; lines of the paper's tables beside ours, gains of the
mapping, and dots.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from repro.evaluation.classify import features_and_labels
from repro.evaluation.knn import knn_correct, knn_cv_correct
from repro.evaluation.labels import majority_share
from repro.evaluation.stats import Score
from repro.evaluation.sts import sts_spearman
from repro.methods import AVERAGE, MAJORITY
from repro.papers.sbertlp.terms import METRICS, SIZES, lp, network_of, printed_leads
from repro.report import figures, tables
from repro.report.curves import points
from repro.report.kinds import DATASETS, TITLES, paper_values, side_by_side, title_of
from repro.report.tables import Shown, names, wide
from repro.rows import only, ordered, parsed
from repro.runs.lines import Line, Task, TextTable
from repro.runs.scorers import Judged, accuracy
from repro.sets import DataSet, ScoredPairs
from repro.types import Array, InputError

K = 3  # Votes, Section 4.4.1


def sts_score(pairs: ScoredPairs) -> Callable[[TextTable, Sequence[int]], Array]:
    """Spearman of some pairs at some dims, for `grid_scores`."""
    first, second = pairs.texts1, pairs.texts2
    return lambda table, dims: np.asarray(
        sts_spearman(table[first], table[second], pairs.scores, dims=dims)
    )


def correct(
    table: TextTable,
    splits: Mapping[str, DataSet],
    *,
    k: int = K,
    self_neighbour: bool = False,
) -> NDArray[np.bool_]:
    """Which judged rows (n,) are right by a vote of k: the test split, or the whole set over ten
    folds.
    """
    names = ("train", "test") if "test" in splits else ("all",)
    for name in names:
        if name not in splits:
            raise InputError(f"no split {name!r} to vote by: the data has {', '.join(splits)}")
    sides = [
        side for name in names for side in features_and_labels(table.__getitem__, splits[name])
    ]
    judge = knn_correct if "test" in splits else knn_cv_correct
    return judge(*sides, k=k, self_neighbour=self_neighbour)


def classify(
    table: TextTable,
    name: str,
    splits: Mapping[str, DataSet],
    *,
    self_neighbour: bool = False,
) -> Score:
    """Accuracy of the vote, with the floor where no query votes for itself; intervals are drawn for
    all lines.
    """
    right = correct(table, splits, self_neighbour=self_neighbour)
    sides = (splits.get(name) or splits["all"] for name in ("train", "test"))
    fitted, judged = (features_and_labels(table.__getitem__, side)[1] for side in sides)
    metric, floor = (
        ("accuracy_self", None) if self_neighbour else ("accuracy", majority_share(fitted, judged))
    )
    return Score(metric, float(right.mean()), np.nan, np.nan, len(right), right, floor)


def votes(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
    """Accuracy of the vote, without and with a vote for oneself."""
    for self_neighbour in (False, True):
        yield from accuracy(partial(classify, self_neighbour=self_neighbour))(lines, task, seed)


SPELLINGS = {"BERT CLS-TOKEN": "BERT-CLS-TOKEN"}  # Tables 2 and 3 spell a row of Table 1 otherwise


def labelled(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of one metric with a column `line`: the method, and the setting of a mapping."""
    rows = only(frame, metric=metric).copy()
    setting = rows["setting"].fillna("")
    rows["method"] = rows["method"].replace(SPELLINGS)
    rows["line"] = rows["method"].where(setting == "", rows["method"] + ", " + setting)
    return rows


def printed(table: str, settings: Sequence[str], datasets: Sequence[str] = ()) -> pd.DataFrame:
    """Printed rows, those of the mapping once for each of our settings; with an average of
    `datasets` if all are.
    """
    paper = paper_values("sbertlp2021", table)
    paper = paper.assign(method=paper["method"].replace(SPELLINGS))
    if datasets:
        of_datasets = paper[paper["dataset"].isin(datasets)]
        scores = of_datasets.groupby(["method", "metric"], sort=False)["value"]
        averages = scores.mean()[scores.size() == len(datasets)].reset_index()
        paper = pd.concat([paper, averages.assign(dataset=AVERAGE)], ignore_index=True)
    mapped = paper["method"].str.endswith("-LP")
    copies = [paper[mapped].assign(setting=setting) for setting in settings]
    return pd.concat([paper[~mapped].assign(setting=""), *copies], ignore_index=True)


def beside_the_paper(
    printed: pd.DataFrame,
    past: pd.DataFrame,
    live: pd.DataFrame,
    caption: str,
) -> Shown:
    """Labelled lines of one dataset and metric, ours and then the paper's; the majority class comes
    last.
    """
    table = side_by_side(printed, past, live, keys=("line",))
    lines = dict.fromkeys([*live["line"], *printed["line"]])
    table = ordered(table, "line", [line for line in lines if line != MAJORITY])
    return tables.comparison(named(table, printed, past, live), caption=caption)


def named(table: pd.DataFrame, printed: pd.DataFrame, *ours: pd.DataFrame) -> pd.DataFrame:
    """A table with a column `line` as the paper's lines and the networks that stand there here."""
    networks = table["line"].map(names_of_lines(*ours)).fillna("not at hand")
    without_setting = table["line"].str.split(", ").str[0]
    line = without_setting.where(table["line"].isin(printed["line"]), "–")
    table = table.assign(line=line).rename(columns={"line": "in the paper"})
    table.insert(1, "here", networks)
    return table


def by_dataset(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A line per system, by its network, and setting, a column per dataset; scores ×100, averaged
    over seeds.
    """
    rows = labelled(frame, metric)
    if rows.empty:
        return rows
    if "backbone" in rows:
        rows = rows.assign(line=rows["line"].map(names_of_lines(rows)))
    rows = rows[rows["dataset"].isin([*DATASETS.values(), AVERAGE])]
    lines = [line for line in dict.fromkeys(rows["line"]) if line != MAJORITY]
    orders = {"line": lines, "dataset": [*DATASETS.values(), AVERAGE]}
    return wide(rows, ["line"], "dataset", orders=orders, names=TITLES)


def missing_paper(printed: pd.DataFrame, systems: pd.DataFrame) -> pd.DataFrame:
    """Systems that are not at hand, with what the paper prints for their row and how to get
    them.
    """
    value = (100 * printed.drop_duplicates("line").set_index("line")["value"]).to_dict()
    shown = systems.assign(paper=[value.get(SPELLINGS.get(row, row)) for row in systems["row"]])
    return shown.rename(columns={"row": "the paper's row"})[
        ["system", "the paper's row", "paper", "missing"]
    ]


def names_of_lines(*frames: pd.DataFrame) -> dict[str, str]:
    """Lines of our rows to the networks they were measured on, each with its setting."""
    network_by_method = names(*frames)
    return {
        line: line.replace(method, network_by_method[method], 1)
        for frame in frames
        for line, method in frame[["line", "method"]].drop_duplicates().itertuples(index=False)
    }


def gains_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The leads of mapped systems over their own systems, by system, dataset and metric."""
    rows = parsed(rows)
    gains = only(rows, winner=rows["rival"].map(lp, na_action="ignore"))
    metric = gains["metric"].str.removesuffix("_lead")
    return gains.assign(method=gains["rival"], metric=metric)


def printed_gains(table: str, gains: pd.DataFrame, by: str = "dataset") -> pd.DataFrame:
    """What the paper prints of some gains of ours, in the same columns; where it prints none there
    is no row.
    """
    leads = {method: printed_leads(table, method).dropna() / 100 for method in SIZES}
    curves = gains[["method", by]].drop_duplicates().itertuples(index=False, name=None)
    paper_rows = [
        (method, name, leads[method][name])
        for method, name in curves
        if name in leads.get(method, ())
    ]
    return pd.DataFrame(paper_rows, columns=["method", by, "value"])


@figures.drawing
def draw_gains(
    rows: pd.DataFrame,
    table: str,
    *,
    by: str = "dataset",
    ylabel: str,
    titles: Mapping[str, str] | None = None,
) -> figures.Drawing:
    """What the mapping adds to its system on every dataset, or metric: ours with intervals, the
    printed one hollow.
    """
    ours = gains_of(rows)
    ours = only(ours, metric=METRICS[table]) if table in METRICS else ours
    if ours.empty:
        raise figures.NothingToDraw("no mapped system was measured")
    paper = printed_gains(table, ours, by).assign(kind="paper", setting="")
    gains = points(pd.concat([paper, ours.assign(kind="live")]), ["method", "setting", by])
    networks = {method: network_of(rows, method) for method in gains["method"].unique()}
    names = sorted(gains[by].unique(), key=AVERAGE.__eq__)
    gains["place"] = gains[by].map(names.index)
    settings = list(ours["setting"].unique())
    height = 1.1 + min(2.3 * len(networks), 6.0)  # A taller one is shown smaller
    figure, axes = figures.new_figure(len(networks), 1, height=height, sharex=True)
    for panel, (method, network) in zip(axes, networks.items(), strict=True):
        panel.axhline(0, color=figures.GREY, linewidth=1)
        printed = only(gains, method=method, kind="paper")
        panel.plot(printed["place"], printed["value"], **figures.PRINTED)
        for i, setting in enumerate(settings):
            dots = only(gains, method=method, kind="live", setting=setting)
            beside = 0.2 * (i - (len(settings) - 1) / 2)
            panel.errorbar(
                dots["place"] + beside,
                dots["value"],
                yerr=[dots["value"] - dots["low"], dots["high"] - dots["value"]],
                linestyle="none",
                elinewidth=1.6,
                **figures.look(i),
            )
        panel.set_title(fill(network, 60), loc="left", fontsize=figures.SMALLEST)
        panel.margins(y=0.12)  # No diamond is cut
    figure.supylabel(ylabel, fontsize=12)
    labels = [(titles or {}).get(name, title_of(name)) for name in names]
    axes[-1].set_xticks(range(len(names)), labels)
    handles = [Line2D([], [], label="paper", **figures.PRINTED)] if len(paper) else []
    figures.add_legend(figure, [*handles, *figures.series_handles(settings)], columns=2)
    figure.alt = (
        f"{ylabel} of the mapping, by {', '.join(labels)}; panels: {'; '.join(networks.values())}"
    )
    return figure


@figures.drawing
def draw_dots(
    groups: Mapping[str, tuple[Array, Array]],
    *,
    xlabel: str,
    ylabel: str,
    diagonal: bool = False,
    ringed: Sequence[tuple[float, float]] = (),
    small: bool = False,
) -> figures.Drawing:
    """One number against another, a colour per group; perhaps with the line on which both are
    equal, and rings.
    """
    if not sum(len(x) for x, _ in groups.values()):
        raise figures.NothingToDraw("there is no point")
    figure, (axes,) = figures.new_figure(height=4.2)
    if diagonal:
        every = np.concatenate([x for x, _ in groups.values()])
        ends = (float(every.min()) - 2, float(every.max()) + 2)
        axes.plot(ends, ends, color=figures.GREY, linewidth=1.2, linestyle="--")
    for i, (name, (x, y)) in enumerate(groups.items()):
        marks = {**figures.look(i), **({"markersize": 3.5, "alpha": 0.55} if small else {})}
        axes.plot(x, y, linestyle="none", label=name, **marks)
    for point in ringed:
        axes.plot(
            *point,
            marker="o",
            markersize=13,
            markerfacecolor="none",
            color=figures.GREY,
            markeredgewidth=2,
        )
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    figures.add_legend(figure, axes.get_legend_handles_labels()[0])
    figure.alt = f"{ylabel} against {xlabel}: {', '.join(groups)}"
    return figure
