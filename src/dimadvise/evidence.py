"""What a size is judged by: graded pairs, classes or relevant documents among the rows of one
matrix of embeddings.

Each kind says in which folds its rows lie, so that no map has seen what it is judged by, and what
becomes of every item under a map (`outcomes`), from which scores and their bounds follow.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from dimadvise.bounds import (
    Retention,
    mean_influence,
    share_bounds,
    spearman_influence,
    unchanged_bounds,
)
from dimadvise.folds import FOLDS, Folds, equal_rows, even_folds
from dimadvise.unseen import NEVER, Rows, Shortened, Split
from dimadvise.vectors import Vectors
from repro.evaluation.labels import stratified_folds
from repro.evaluation.logistic import fit_logistic
from repro.evaluation.retrieve import retrieve
from repro.evaluation.sts import prefix_cosines
from repro.types import Array, InputError, check_same_length

FEWEST = 30  # Items below which no interval is worth printing
LEARNT = (FOLDS / (FOLDS - 1)) ** 0.5
"""How much more than their items scores of a classifier vary: what it learnt varies too, and folds
learn much alike.
"""
CHOOSING = 500  # Rows that are enough to choose a penalty by
PENALTIES = 2.0 ** np.arange(-1, 10, 2)
"""C of the classifier, one of which is chosen for each halving by rows that are not judged."""


@dataclass(frozen=True)
class Evidence(ABC):
    """Something that scores embeddings by a metric."""

    metric: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ("truncate", "svd", "pca")
    """Maps that are tried unless told otherwise."""
    levels: ClassVar[tuple[str, ...]] = ("int8", "lloyd5", "lloyd4", "lloyd3", "binary")
    """Fewer bits that are, too."""
    parts: ClassVar[int] = 3  # Sizes that are, to each halving
    sees_lengths: ClassVar[bool] = False  # Whether a row's length counts, not its direction alone
    wider: ClassVar[float] = 1  # How much more than their items scores vary
    items: int = field(init=False)  # How many items are judged

    @property
    def unfitted(self) -> Rows:
        """Rows that no map is fitted on."""
        return np.zeros(0, np.int64)

    @abstractmethod
    def folds(self, vectors: Vectors, *, seed: int) -> Folds:
        """Folds of the judged rows, equal vectors in one."""

    @abstractmethod
    def splits(self, folds: Folds) -> list[Split]:
        """The folds that each of the maps needed must not have seen."""

    @abstractmethod
    def outcomes(self, shortened: Shortened, folds: Folds) -> Array:
        """What becomes of each item at every size (sizes, items), by maps that have not seen its
        rows.
        """

    @property
    @abstractmethod
    def links(self) -> Rows:
        """Rows that each item rests on (items, k)."""

    def bounds(
        self,
        outcomes: Array,
        folds: Folds,
        *,
        confidence: float,
    ) -> tuple[Array, Retention]:
        """Scores (P,) of outcomes (P, items), means unless told otherwise, and the shares of the
        first that they keep, with lower bounds.
        """
        influence = mean_influence(outcomes)
        links = folds.same_of(self.links)
        retention = share_bounds(influence, links, confidence=confidence, wider=self.wider)
        # Items of equal rows prove no more than one does
        group = np.unique(links, return_inverse=True)[1].ravel()
        by_group = np.stack([np.bincount(group, row) / np.bincount(group) for row in outcomes])
        proven = unchanged_bounds(by_group, confidence=confidence)
        return influence.scores, Retention(retention.share, np.minimum(retention.low, proven))

    def _check_items(self, items: int, noun: str) -> None:
        if items < FEWEST:
            raise InputError(
                f"{items} {noun}: at least {FEWEST} are needed before an interval means anything, "
                "and several hundred to tell a loss of one per cent; without labels the advice is "
                "a prediction"
            )
        object.__setattr__(self, "items", items)


@dataclass(frozen=True)
class Pairs(Evidence):
    """Graded pairs of rows: Spearman correlation of their cosines with the grades."""

    metric = "spearman"
    parts = 4
    first: Rows
    second: Rows
    grades: Array

    def __post_init__(self) -> None:
        check_same_length(first=self.first, second=self.second, grades=self.grades)
        self._check_items(len(self.grades), "pairs")
        if len(np.unique(self.grades)) < 2:
            raise InputError(
                f"all {self.items} pairs have the grade {self.grades[0]}: nothing to rank by"
            )

    def folds(self, vectors: Vectors, *, seed: int) -> Folds:
        """Rows that pairs link lie in one fold, unless so many are linked that they would fill more
        than one.
        """
        rows = np.unique([self.first, self.second])
        same = equal_rows(vectors, rows)
        sides = [same[np.searchsorted(rows, side)] for side in (self.first, self.second)]
        n = int(same.max()) + 1
        linked = connected_components(
            csr_matrix((np.ones(self.items), sides), shape=(n, n)),
            directed=False,
        )[1]
        large = np.bincount(linked)[linked] > max(n / FOLDS, 2)
        # Each row by itself: its pairs fall into two folds
        linked[large] = linked.max() + 1 + np.arange(large.sum())
        members = np.unique(linked, return_inverse=True)[1]
        return Folds(rows, even_folds(np.bincount(members), seed)[members][same], same)

    def splits(self, folds: Folds) -> list[Split]:
        """Those of the folds that pairs lie in."""
        return list(self._in_splits(folds))

    def outcomes(self, shortened: Shortened, folds: Folds) -> Array:
        """Cosines (sizes, pairs)."""
        cosines = np.empty((len(shortened.sizes), self.items))
        for split, in_split in self._in_splits(folds).items():
            rows = self.first[in_split], self.second[in_split]
            sides = [shortened.at_sizes(side, split) for side in rows]
            for place, (first, second) in enumerate(zip(*sides, strict=True)):
                cosines[place, in_split] = prefix_cosines(first, second, [first.shape[1]])[0]
        return cosines

    def bounds(
        self,
        outcomes: Array,
        folds: Folds,
        *,
        confidence: float,
    ) -> tuple[Array, Retention]:
        """Spearman correlations (P,) and shares of the first."""
        if (outcomes[0] == outcomes[0, 0]).all():
            raise InputError(
                f"all {self.items} pairs have the cosine {outcomes[0, 0]:.4g}: nothing to rank by, "
                "so give other pairs"
            )
        influence = spearman_influence(outcomes, self.grades)
        links = folds.same_of(self.links)
        return influence.scores, share_bounds(influence, links, confidence=confidence)

    @property
    def links(self) -> Rows:
        """Both rows of each pair (pairs, 2)."""
        return np.stack([self.first, self.second], axis=1)

    def _in_splits(self, folds: Folds) -> dict[Split, NDArray[np.bool_]]:
        """Which pairs lie in each split (pairs,)."""
        placed = np.sort(folds.fold_of(self.links), axis=1)  # (pairs, 2)
        in_splits = {}
        for both in np.unique(placed, axis=0):
            split = tuple(np.unique(both).tolist())
            in_splits[split] = (placed == both).all(axis=1)
        return in_splits


@dataclass(frozen=True)
class Classes(Evidence):
    """A class for each of some rows: accuracy of a linear classifier on rows that it did not learn
    from, five folds.
    """

    metric = "accuracy"
    # A classifier takes seconds to learn, and does not see whether a mean was subtracted.
    methods = ("truncate", "pca")
    levels = ("int8", "lloyd4", "binary")
    sees_lengths = True
    wider = LEARNT
    rows: Rows
    labels: NDArray[np.str_]

    def __post_init__(self) -> None:
        check_same_length(rows=self.rows, labels=self.labels)
        self._check_items(len(self.labels), "labelled rows")

    def folds(self, vectors: Vectors, *, seed: int) -> Folds:
        """Classes are spread evenly; a vector that repeats another goes where that one is."""
        order = np.argsort(self.rows)
        rows, fold = self.rows[order], stratified_folds(self.labels, FOLDS, seed)[order]
        same = equal_rows(vectors, rows)
        return Folds(rows, fold[np.unique(same, return_index=True)[1]][same], same)

    def splits(self, folds: Folds) -> list[Split]:
        """Each fold by itself."""
        return [(int(fold),) for fold in np.unique(folds.fold)]

    def outcomes(self, shortened: Shortened, folds: Folds) -> Array:
        """Which rows are told right (sizes, rows) by a classifier that has not seen them, as little
        as its map has.
        """
        fold = folds.fold_of(self.rows)
        right = np.empty((len(shortened.sizes), self.items))
        for (judged,) in self.splits(folds):
            chosen_at, penalty = np.inf, math.nan
            stored = shortened.at_sizes(self.rows, (judged,))
            for place, (size, X) in enumerate(zip(shortened.sizes, stored, strict=True)):
                # One scale for all columns: a penalty must not mean more for one size than another
                spread = float(np.sqrt(X[fold != judged].var(axis=0).sum()))
                scaled = (X / max(spread, 1e-12)).astype(np.float32)
                # What serves best hardly changes between sizes, and takes most of the time to find
                if 2 * size <= chosen_at:
                    chosen_at, penalty = size, self._penalty(scaled, fold, judged)
                learnt = (fold != judged)[None]
                is_right = self._right(scaled, learnt, np.array([penalty]))
                right[place, fold == judged] = is_right[0, fold == judged]
        return right

    @property
    def links(self) -> Rows:
        """The labelled rows."""
        return self.rows[:, None]

    def _penalty(self, X: Array, fold: Rows, judged: int) -> float:
        """The penalty that serves best on other folds than the judged one in turn, of which a few
        do if they are large.
        """
        others, sizes = np.unique(fold[fold != judged], return_counts=True)
        inner = others[np.cumsum(sizes) - sizes < CHOOSING].tolist()
        tried_on = np.stack([fold == f for f in inner])
        members = np.repeat((fold != judged) & ~tried_on, len(PENALTIES), axis=0)
        tried = self._right(X, members, np.tile(PENALTIES, len(inner)))
        right = tried.reshape(len(inner), len(PENALTIES), -1) & tried_on[:, None]
        served = right.sum(axis=(0, 2))
        return float(PENALTIES[int(np.argmax(served))])

    def _right(self, X: Array, members: NDArray[np.bool_], penalties: Array) -> NDArray[np.bool_]:
        """Which rows each classifier tells right (K, n), learnt from its members (K, n)."""
        models = fit_logistic(X, self.labels, members, penalties, tolerance=1e-3, max_iter=200)
        return np.asarray(models.predict(X) == self.labels)


@dataclass(frozen=True)
class Search(Evidence):
    """Queries and documents among the rows: nDCG@10 of exact cosine search.

    Maps are fitted on the documents, which are there to be searched, and never on queries.
    """

    metric = "ndcg@10"
    queries: Rows
    documents: Rows
    # Position of a query to positions of documents to relevance
    qrels: Mapping[int, Mapping[int, float]]

    def __post_init__(self) -> None:
        self._check_items(len(self._asked), "queries with a relevant document")

    @property
    def unfitted(self) -> Rows:
        """The queries."""
        return self.queries

    def folds(self, vectors: Vectors, *, seed: int) -> Folds:
        """Queries, in no fold."""
        rows = np.sort(self.queries)
        return Folds(rows, np.full(len(rows), NEVER), equal_rows(vectors, rows))

    def splits(self, folds: Folds) -> list[Split]:
        """One map for all."""
        return [()]

    def outcomes(self, shortened: Shortened, folds: Folds) -> Array:
        """nDCG@10 of each query that has a relevant document (sizes, queries)."""
        queries = shortened.at_sizes(self.queries, asked=True)
        stored = shortened.at_sizes(self.documents)
        sides = zip(queries, stored, strict=True)
        return np.stack([retrieve(Q, C, self.qrels).ndcg(10) for Q, C in sides])

    @property
    def links(self) -> Rows:
        """The queries that have a relevant document."""
        return self.queries[self._asked, None]

    @property
    def _asked(self) -> list[int]:
        """Positions of the queries that have a relevant document."""
        return sorted(
            query for query, judged in self.qrels.items() if any(v > 0 for v in judged.values())
        )
