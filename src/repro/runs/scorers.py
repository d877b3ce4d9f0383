"""Scorers: all lines of a task judged together by one metric, since their resamples are shared.

What a scorer returns can be indexed by line and subtracted, so that a difference of two lines has
an interval of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from repro.digests import digest
from repro.evaluation.classify import score_classification
from repro.evaluation.retrieve import retrieve
from repro.evaluation.shared import means_with, spearman_with
from repro.evaluation.stats import Score, bootstrap_mean, mean_draws, spearman_draws
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.runs.lines import Line, Task, TextTable
from repro.sets import DataSet, LabelledPairs, LabelledTexts, Retrieval, ScoredPairs
from repro.store import Store
from repro.types import Array


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
