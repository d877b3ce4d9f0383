"""What a size is judged by: graded pairs, classes or relevant documents among the rows of one matrix of embeddings.

Each kind scores several versions of the embeddings on the same resampled items, so that their ratios have bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.classify import stratified_folds
from repro.evaluation.logistic import fit_logistic
from repro.evaluation.retrieve import retrieve
from repro.evaluation.stats import accuracy_draws, mean_draws, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.types import Array, InputError, check_same_length

Rows = NDArray[np.int64]
FOLDS = 5
RESAMPLES = 2000
FEWEST = 30
"""items below which no interval is worth printing"""


class Evidence(Protocol):
    """Something that scores embeddings."""

    @property
    def metric(self) -> str:
        """What the score is."""
        ...

    @property
    def items(self) -> int:
        """How many items are resampled."""
        ...

    @property
    def judged(self) -> Rows:
        """Rows that a reducer fitted on them would know beforehand; the documents of a search it may know."""
        ...

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples (resamples, P)."""
        ...


@dataclass(frozen=True)
class Pairs:
    """Graded pairs of rows: Spearman correlation of their cosines with the grades."""

    first: Rows
    second: Rows
    grades: Array

    def __post_init__(self) -> None:
        check_same_length(first=self.first, second=self.second, grades=self.grades)
        _enough(len(self.grades), "pairs")
        if len(np.unique(self.grades)) < 2:
            raise InputError(f"all {len(self.grades)} pairs have the grade {self.grades[0]}: nothing to rank by")

    @property
    def metric(self) -> str:
        """Spearman correlation."""
        return "spearman"

    @property
    def items(self) -> int:
        """Pairs."""
        return len(self.grades)

    @property
    def judged(self) -> Rows:
        """Both sides of the pairs."""
        return np.concatenate([self.first, self.second])

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the pairs (resamples, P)."""
        cosines = [prefix_cosines(X[self.first], X[self.second], [X.shape[1]])[0] for X in versions]
        return spearman_draws(cosines, self.grades, resamples=RESAMPLES, seed=seed)


@dataclass(frozen=True)
class Classes:
    """A class for each of some rows: accuracy of a linear classifier on rows that it did not learn from, five folds."""

    rows: Rows
    labels: NDArray[np.str_]

    def __post_init__(self) -> None:
        check_same_length(rows=self.rows, labels=self.labels)
        _enough(len(self.labels), "labelled rows")

    @property
    def metric(self) -> str:
        """Accuracy."""
        return "accuracy"

    @property
    def items(self) -> int:
        """Labelled rows."""
        return len(self.labels)

    @property
    def judged(self) -> Rows:
        """The labelled rows."""
        return self.rows

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the rows (resamples, P)."""
        folds = stratified_folds(self.labels, FOLDS, seed)
        members = np.stack([folds != fold for fold in range(FOLDS)])  # (K, n)
        return accuracy_draws(
            [self._right(X[self.rows], folds, members) for X in versions], resamples=RESAMPLES, seed=seed
        )

    def _right(self, X: Array, folds: Rows, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
        # one scale for all columns: a penalty must not mean more for one size than for another
        X = (X / max(float(np.sqrt(X.var(axis=0).sum())), 1e-12)).astype(np.float32)
        models = fit_logistic(X, self.labels, members, np.full(FOLDS, 32.0), tolerance=1e-3, max_iter=200)
        predicted = models.predict(X)  # (K, n)
        return np.asarray(predicted[folds, np.arange(len(X))] == self.labels)


@dataclass(frozen=True)
class Search:
    """Queries and documents among the rows: nDCG@10 of exact cosine search."""

    queries: Rows
    documents: Rows
    qrels: Mapping[int, Mapping[int, float]]
    """position of a query to positions of documents to relevance"""

    def __post_init__(self) -> None:
        _enough(
            sum(any(v > 0 for v in judged.values()) for judged in self.qrels.values()),
            "queries with a relevant document",
        )

    @property
    def metric(self) -> str:
        """Normalised discounted cumulative gain."""
        return "ndcg@10"

    @property
    def items(self) -> int:
        """Queries that have a relevant document."""
        return sum(any(v > 0 for v in judged.values()) for judged in self.qrels.values())

    @property
    def judged(self) -> Rows:
        """The queries."""
        return self.queries

    def draws(self, versions: Sequence[Array], *, seed: int) -> tuple[Array, Array]:
        """Scores of each version (P,), and the same on shared resamples of the queries (resamples, P)."""
        gains = [retrieve(X[self.queries], X[self.documents], self.qrels).ndcg(10) for X in versions]
        return mean_draws(gains, resamples=RESAMPLES, seed=seed)


def _enough(n: int, what: str) -> None:
    if n < FEWEST:
        raise InputError(
            f"{n} {what}: at least {FEWEST} are needed before an interval means anything, and several "
            "hundred to tell a loss of one per cent; without labels the advice is a prediction"
        )
