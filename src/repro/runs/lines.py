"""Lines × tasks × scorer × contrasts: every score, the average and chosen leads, all on shared
resamples.

A scorer judges all lines of a task together, since their resamples are shared; what it returns can
be indexed by line and subtracted, so that a difference of two lines has an interval of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, permutations
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from repro import data
from repro.data.samples import gold_paragraphs
from repro.data.sampling import take
from repro.digests import digest
from repro.evaluation.classify import score_classification
from repro.evaluation.retrieve import is_yes_no, retrieve
from repro.evaluation.shared import (
    Weights,
    means_with,
    sentence_weights,
    shared_weights,
    spearman_with,
)
from repro.evaluation.stats import (
    RESAMPLES,
    Resampled,
    Score,
    bootstrap_mean,
    mean_draws,
    spearman_draws,
)
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.methods import AVERAGE, MAJORITY
from repro.rows import make_rows
from repro.sets import DataSet, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, InputError

SEVEN_SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
"""The similarity sets that papers average over; only all seven have an average."""


@dataclass(frozen=True)
class TextTable:
    """Embeddings X of distinct texts, looked up by text; a sweep over dims or tasks adds no forward
    pass.
    """

    index: Mapping[str, int]
    X: Array

    def __getitem__(self, texts: Sequence[str]) -> Array:
        """Rows of the given texts (n, dim), in their order."""
        try:
            return self.X[[self.index[text] for text in texts]]
        except KeyError as error:
            raise InputError(f"{error.args[0]!r} was not encoded with the others") from error

    def map(self, project: Callable[[Array], Array]) -> "TextTable":
        """The same texts under a projection of their embeddings, such as a pooler."""
        return TextTable(self.index, project(self.X))


@dataclass(frozen=True)
class Line:
    """One line of a table: the embeddings of all texts by one method at one size."""

    method: str
    dim: int | None  # None where it differs between the tasks
    # One table of all tasks; or one by task, where something is fitted for each
    tables: TextTable | Mapping[str, TextTable]
    setting: str = ""  # What a reducer was fitted on; empty where nothing was
    readout: str = "encoder"
    backbone: str | None = None  # Named only where lines differ in it
    n_train: int | None = None  # Said only where lines differ in it
    read: Mapping[str, Any] = field(default_factory=dict)
    """Columns that say how its encoder was trained and is read, as far as that is known."""

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows."""
        named = {
            "method": self.method,
            "dim": self.dim,
            "readout": self.readout,
            "setting": self.setting,
        }
        named |= self.read
        differing = {"backbone": self.backbone, "n_train": self.n_train}
        return named | {name: value for name, value in differing.items() if value is not None}

    @property
    def table(self) -> TextTable:
        """The embeddings of all tasks' texts."""
        if not isinstance(self.tables, TextTable):
            raise InputError(f"{self.method} has embeddings by task: {', '.join(self.tables)}")
        return self.tables

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.tables if isinstance(self.tables, TextTable) else self.tables[task]


@dataclass(frozen=True)
class Task(Mapping[str, DataSet]):
    """What lines are judged on: the splits of one dataset, by name."""

    name: str
    splits: Mapping[str, DataSet]
    available: Mapping[str, int] = field(default_factory=dict)  # Rows of each split before a draw
    # Where all rows are judged: the parts, tasks by name
    folds: Mapping[str, Any] = field(default_factory=dict)
    # Resamples of what is judged; None draws them for this task alone
    weights: Weights | None = None

    def __getitem__(self, split: str) -> DataSet:
        if split not in self.splits:
            raise InputError(
                f"{self.name!r} has no split {split!r}: it has {', '.join(self.splits)}"
            )
        return self.splits[split]

    def __contains__(self, split: object) -> bool:
        return split in self.splits

    def get(self, split: str, default: Any = None) -> Any:
        """A split, or the default where there is none of that name."""
        return self.splits.get(split, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.splits)

    def __len__(self) -> int:
        return len(self.splits)

    @property
    def judged(self) -> DataSet:
        """The test split, or the whole set where there is none."""
        return self.splits["test"] if "test" in self.splits else next(iter(self.splits.values()))

    @property
    def pairs(self) -> ScoredPairs:
        """What is judged, as scored pairs."""
        if not isinstance(self.judged, ScoredPairs):
            raise InputError(f"{self.name!r} is not a set of scored pairs")
        return self.judged


def load_tasks(
    names: Sequence[str],
    source: str,
    *,
    probe_rows: int | None = None,
    whole: bool = False,
) -> dict[str, Task]:
    """Datasets as tasks, by name: dev and test of scored pairs, all splits of the others.

    `probe_rows` are kept of every split that is not of scored pairs, drawn at random; None keeps
    all. If those are judged `whole`, no split is set apart to learn from: folds of all their rows
    are judged by the others.
    """
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source, text="senteval")
        graded = isinstance(next(iter(splits.values())), ScoredPairs)
        used: dict[str, DataSet] = {}
        for split, rows in splits.items():
            if not graded:
                used[f"part: {split}" if whole else split] = take(rows, probe_rows)
            elif split in ("dev", "test"):
                used[split] = rows
        tasks[name] = Task(name, used)
    return tasks


def sets_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> list[DataSet]:
    """All sets of some tasks."""
    return list(chain.from_iterable(splits.values() for splits in tasks.values()))


def parts_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> dict[str, dict[str, DataSet]]:
    """What has to be encoded of some tasks: an entry of the store per split, which other pages may
    share.
    """
    parts = {}
    for name, splits in tasks.items():
        for split, rows in splits.items():
            parts[f"{name}/{split}"] = {split: rows}
    return parts


def describe(asked: Retrieval) -> str:
    """How many questions, paragraphs and gold paragraphs, in a line."""
    judgements, gold = sum(map(is_yes_no, asked.answers or ())), len(gold_paragraphs(asked))
    of_questions = f"{len(asked.queries):,} questions, {judgements} of them answered by yes or no"
    return (
        f"{of_questions}; {len(asked.documents):,} paragraphs, {gold:,} of them "
        f"supporting ({asked.source})"
    )


@dataclass(frozen=True)
class Means:
    """Means of outcomes (…, n), and a bootstrap of their own for every mean and every difference of
    two.
    """

    items: Array
    seed: int

    def __getitem__(self, index: Any) -> "Means":
        return Means(self.items[index], self.seed)

    def __sub__(self, other: "Means") -> "Means":
        return Means(self.items - other.items, self.seed)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns value, ci_low, ci_high and n_judged of a row."""
        return bootstrap_mean(self.items, seed=self.seed).columns


@dataclass(frozen=True)
class Judged:
    """All lines on one task by one metric."""

    metric: str
    # `Resampled` or `Means`: indexed by line, subtracted, and written as the columns of a row
    scores: Any
    floor: float | None = None  # What the majority class gives


Scorer: TypeAlias = Callable[[Sequence[Line], Task, int], Iterator[Judged]]
"""Lines, task and seed to their scores, one for each metric."""


def similarity(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
    """Spearman of cosines with the gold scores of the judged pairs."""
    folds = {name: fold.pairs for name, fold in (task.folds or {task.name: task}).items()}
    cosines = []
    for line in lines:
        of_folds = [cosines_of(line.on(name), pairs) for name, pairs in folds.items()]
        cosines.append(np.concatenate(of_folds))
    scores = np.concatenate([pairs.scores for pairs in folds.values()])
    if task.weights is not None:
        yield Judged("spearman", spearman_with(task.weights, cosines, scores))
        return
    subsets = np.concatenate([pairs.subsets for pairs in folds.values()])
    yield Judged("spearman", spearman_draws(cosines, scores, subsets=subsets, seed=seed))


def similarities(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    seed: int,
) -> dict[str, Resampled]:
    """Spearman of all lines by set, each set on shared resamples; of the seven sets only STS-B and
    their average.
    """
    whole = set(tasks) == set(SEVEN_SETS)
    drawn = drawn_together(tasks, seed) if whole else tasks
    by_set = {name: next(similarity(lines, task, seed)) for name, task in drawn.items()}
    if whole:
        by_set = {"stsb": by_set["stsb"], AVERAGE: _mean(list(by_set.values()))}
    return {name: judged.scores for name, judged in by_set.items()}


def accuracy(classify: Callable[[TextTable, str, Mapping[str, DataSet]], Score]) -> Scorer:
    """Accuracy by any classifier: embeddings, name and splits of a labelled task to its score."""

    def scorer(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
        scores = [classify(line.on(task.name), task.name, task.splits) for line in lines]
        if task.weights is None:
            plain = mean_draws([score.items for score in scores], seed=seed)
        else:
            plain = means_with(task.weights, [score.items for score in scores])
        values = np.array([score.value for score in scores])
        # Nested accuracy is a mean over folds, a hair apart from that over rows
        shifted = replace(plain, value=values, draws=plain.draws + (values - plain.value))
        yield Judged(scores[0].metric, shifted, scores[0].floor)

    return scorer


def retrieval(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
    """How well questions find their documents, nDCG@10, searched for among all."""
    asked = task.judged
    assert isinstance(asked, Retrieval)
    ids: dict[str, Any] = {"query_ids": asked.query_ids, "corpus_ids": asked.document_ids}
    gains = []
    for line in lines:
        table = line.on(task.name)
        retrieved = retrieve(table[asked.queries], table[asked.documents], asked.qrels, **ids)
        gains.append(retrieved.ndcg(10))
    yield Judged("ndcg@10", Means(np.stack(gains), seed))


def by_kind(store: Store, *, protocol: str = "logreg") -> Scorer:
    """Similarity of scored pairs, nDCG of questions; where there are labels, accuracy of a linear
    probe.
    """

    def scorer(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
        if isinstance(task.judged, ScoredPairs):
            return similarity(lines, task, seed)
        if isinstance(task.judged, Retrieval):
            return retrieval(lines, task, seed)
        probe = partial(stored_classification, store=store, protocol=protocol, seed=seed)
        return accuracy(probe)(lines, task, seed)

    return scorer


def drawn_together(
    tasks: Mapping[str, Task],
    seed: int,
    draw: Callable[..., dict[str, Weights]] = shared_weights,
) -> dict[str, Task]:
    """The tasks with resamples in which an item has one weight in all tasks that hold it."""
    weights = draw({name: task.judged for name, task in tasks.items()}, seed=seed)
    return {name: replace(task, weights=weights[name]) for name, task in tasks.items()}


def widths_of_average(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    seed: int,
) -> pd.DataFrame:
    """Half-widths of the 95 % intervals of the average similarity of lines, and of each later
    line's lead over the first, in points: of sets drawn each by itself; with one weight per pair in
    all of them; with one weight per cluster of pairs that share sentences.
    """
    ways = {
        "each set by itself": tasks,
        "one weight per pair": drawn_together(tasks, seed),
        "sentence clusters": drawn_together(tasks, seed, sentence_weights),
    }
    halves = {}
    for way, drawn in ways.items():
        of_tasks = [next(similarity(lines, task, seed)) for task in drawn.values()]
        scores = _mean(of_tasks).scores
        shown = {line.method: scores[k] for k, line in enumerate(lines)}
        for k, line in enumerate(lines[1:], start=1):
            shown[f"{line.method} − {lines[0].method}"] = scores[k] - scores[0]
        ends = {name: score.interval for name, score in shown.items()}
        halves[way] = {name: 50 * (e.high - e.low) for name, e in ends.items()}
    table = pd.DataFrame(halves).rename_axis("line").reset_index()
    for way in list(ways)[1:]:
        table[f"{way}, times as wide"] = table[way] / table["each set by itself"]
    return table


def score_rows(
    lines: Sequence[Line],
    tasks: Mapping[str, Task],
    scorer: Scorer,
    *,
    contrasts: Sequence[Callable[[Line, Line], bool]] = (),
    average: bool = False,
    **shared: Any,
) -> pd.DataFrame:
    """Score of every line on every task, their averages, and leads of some lines over others with
    paired intervals.

    A line is compared with another where one of the contrasts says so of the two. A lead is a row
    of method `A − B` and metric `…_lead`, at the size of the first, and where the second is fitted
    on nothing in the setting of the first. The average over the tasks is a dataset of its own; in
    its resamples an item has one weight in all tasks that hold it. Folds and bootstrap have the
    `seed` that the rows share.
    """
    rows: list[dict[str, Any]] = []
    if average:
        tasks = drawn_together(tasks, int(shared["seed"]))
    bar = progress_bar(tasks.items(), desc="scoring", show=True)
    by_task = {name: list(scorer(lines, task, int(shared["seed"]))) for name, task in bar}
    if average:
        by_task[AVERAGE] = [_mean(of_metric) for of_metric in zip(*by_task.values(), strict=True)]
    for name, metrics in by_task.items():
        for judged in metrics:
            rows += [{"dataset": name, **row} for row in _rows_of(judged, lines, contrasts)]
    return make_rows(rows, **shared)


def _rows_of(
    judged: Judged,
    lines: Sequence[Line],
    contrasts: Sequence[Callable[[Line, Line], bool]],
) -> Iterator[dict[str, Any]]:
    """What the majority class gives, the score of every line, and leads, all by one metric."""
    scores, metric = judged.scores, dict[str, Any](metric=judged.metric)
    if judged.floor is not None:
        yield {"method": MAJORITY, **metric, "value": judged.floor}
    metric["resamples"] = len(scores.draws) if isinstance(scores, Resampled) else RESAMPLES
    for k, line in enumerate(lines):
        yield {**line.columns, **metric, **scores[k].columns}
    for (a, first), (b, second) in permutations(enumerate(lines), 2):
        if any(contrast(first, second) for contrast in contrasts):
            lead = {
                "method": f"{first.method} − {second.method}",
                "setting": second.setting or first.setting,
                "dim": first.dim,
                "metric": f"{judged.metric}_lead",
                "resamples": metric["resamples"],
            }
            yield {**second.columns, **lead, **(scores[a] - scores[b]).columns}


def _mean(judged: Sequence[Judged]) -> Judged:
    """The mean over tasks, resample by resample."""
    floors = [of_task.floor for of_task in judged if of_task.floor is not None]
    mean = Resampled.averaged([of_task.scores for of_task in judged])
    return Judged(judged[-1].metric, mean, float(np.mean(floors)) if floors else None)


def stored_classification(
    table: TextTable,
    name: str,
    splits: Mapping[str, DataSet],
    store: Store,
    *,
    protocol: str = "logreg",
    seed: int = 0,
) -> Score:
    """`score_classification`, from the store if these very embeddings were probed before."""
    probed = {split: _content(table, rows) for split, rows in splits.items()}

    def probe() -> dict[str, Array]:
        score = score_classification(table.__getitem__, splits, protocol=protocol, seed=seed)
        return {name: np.array(value) for name, value in asdict(score).items()}

    stored = store.remember(
        "scores",
        {"dataset": name, "splits": probed, "protocol": protocol, "seed": seed},
        probe,
        code="repro.evaluation.classify",
    )
    fields = {name: array if name == "items" else array.item() for name, array in stored.items()}
    return Score(**fields)


def _content(table: TextTable, rows: DataSet) -> str:
    """Digest of the embeddings and labels of a split, row by row."""
    if not isinstance(rows, LabelledTexts | LabelledPairs):
        return rows.name  # What is wrong with it `score_classification` says
    sides = [rows.texts] if isinstance(rows, LabelledTexts) else [rows.texts1, rows.texts2]
    return digest({"X": [table[side] for side in sides], "y": list(rows.labels)})


def cosines_of(table: TextTable, pairs: ScoredPairs) -> Array:
    """Cosine of every pair (n,)."""
    X1, X2 = table[pairs.texts1], table[pairs.texts2]
    return np.asarray(prefix_cosines(X1, X2, [X1.shape[1]])[0])


def spearman_of(
    table: TextTable,
    pairs: ScoredPairs,
    project: Callable[[Array], Array] = np.asarray,
) -> float:
    """Spearman of the cosines with the gold scores of some pairs, of projections of their
    embeddings.
    """
    X1, X2 = (project(table[side]) for side in (pairs.texts1, pairs.texts2))
    return float(sts_spearman(X1, X2, pairs.scores))
