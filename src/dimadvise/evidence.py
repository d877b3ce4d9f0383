"""What a size is judged by: graded pairs, classes or relevant documents among the rows of one matrix of embeddings.

Each kind scores several versions of the embeddings on the same resampled items, so that their ratios have bounds.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.classify import stratified_folds
from repro.evaluation.logistic import fit_logistic
from repro.evaluation.retrieve import retrieve
from repro.evaluation.stats import mean_draws, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.types import Array, InputError, check_same_length

Rows = NDArray[np.int64]
FOLDS = 5
RESAMPLES = 2000
FEWEST = 30  # items below which no interval is worth printing
PENALTIES = 2.0 ** np.arange(-1, 10, 2)
"""C of the classifier, one of which is chosen for each size by rows that are not judged"""


@dataclass(frozen=True)
class Evidence(ABC):
    """Something that scores embeddings by a metric."""

    metric: ClassVar[str]
    items: int = field(init=False)  # how many items are resampled
    judged: Rows = field(init=False)
    """rows that a reducer fitted on them would know beforehand; the documents of a search it may know"""

    @abstractmethod
    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the items (resamples, P)."""

    def _judges(self, items: int, what: str, judged: Rows) -> None:
        if items < FEWEST:
            raise InputError(
                f"{items} {what}: at least {FEWEST} are needed before an interval means anything, and several "
                "hundred to tell a loss of one per cent; without labels the advice is a prediction"
            )
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "judged", judged)


@dataclass(frozen=True)
class Pairs(Evidence):
    """Graded pairs of rows: Spearman correlation of their cosines with the grades."""

    metric = "spearman"
    first: Rows
    second: Rows
    grades: Array

    def __post_init__(self) -> None:
        check_same_length(first=self.first, second=self.second, grades=self.grades)
        self._judges(len(self.grades), "pairs", np.concatenate([self.first, self.second]))
        if len(np.unique(self.grades)) < 2:
            raise InputError(f"all {self.items} pairs have the grade {self.grades[0]}: nothing to rank by")

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the pairs (resamples, P)."""
        cosines = [prefix_cosines(X[self.first], X[self.second], [X.shape[1]])[0] for X in versions]
        return spearman_draws(cosines, self.grades, resamples=RESAMPLES, seed=seed)


@dataclass(frozen=True)
class Classes(Evidence):
    """A class for each of some rows: accuracy of a linear classifier on rows that it did not learn from, five folds."""

    metric = "accuracy"
    rows: Rows
    labels: NDArray[np.str_]

    def __post_init__(self) -> None:
        check_same_length(rows=self.rows, labels=self.labels)
        self._judges(len(self.labels), "labelled rows", self.rows)

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the rows (resamples, P)."""
        folds = stratified_folds(self.labels, FOLDS, seed)
        right = [self._right(X[self.rows], folds) for X in versions]
        return mean_draws(right, resamples=RESAMPLES, seed=seed)

    def _right(self, X: Array, folds: Rows) -> NDArray[np.bool_]:
        """Which rows are told right by the model that has not seen them (n,)."""
        # one scale for all columns: a penalty must not mean more for one size than for another
        X = (X / max(float(np.sqrt(X.var(axis=0).sum())), 1e-12)).astype(np.float32)
        members = np.stack([folds != fold for fold in range(FOLDS)])  # (K, n)
        next_fold = np.roll(~members, -1, axis=0)  # (K, n), of which each model's penalty is chosen

        def told(learnt: NDArray[np.bool_], penalties: Array) -> NDArray[np.bool_]:
            models = fit_logistic(X, self.labels, learnt, penalties, tolerance=1e-3, max_iter=200)
            return np.asarray(models.predict(X) == self.labels)  # (models, n)

        count = len(PENALTIES)
        tried = told(np.repeat(members & ~next_fold, count, axis=0), np.tile(PENALTIES, FOLDS))
        score = np.einsum("kgn,kn->kg", tried.reshape(FOLDS, count, -1), next_fold, dtype=np.float64)
        return told(members, PENALTIES[score.argmax(axis=1)])[folds, np.arange(len(X))]


@dataclass(frozen=True)
class Search(Evidence):
    """Queries and documents among the rows: nDCG@10 of exact cosine search."""

    metric = "ndcg@10"
    queries: Rows
    documents: Rows
    qrels: Mapping[int, Mapping[int, float]]  # position of a query to positions of documents to relevance

    def __post_init__(self) -> None:
        items = sum(any(v > 0 for v in judged.values()) for judged in self.qrels.values())
        self._judges(items, "queries with a relevant document", self.queries)

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the queries (resamples, P)."""
        gains = [retrieve(X[self.queries], X[self.documents], self.qrels).ndcg(10) for X in versions]
        return mean_draws(gains, resamples=RESAMPLES, seed=seed)
