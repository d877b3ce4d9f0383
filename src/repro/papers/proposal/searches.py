"""Searches by many ways at once: each sees the documents of a collection as they come by.

A *way* is a reducer, a size and a level. Documents are reduced, brought to length 1, coded and read
back; queries are reduced and stay floats, but for the way whose two sides are bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.evaluation import quantise as coding
from repro.methods import FULL_SIZE
from repro.reducers import REDUCER_NAMES, make_reducer
from repro.reducers.reducer import Reducer
from repro.rows import Row
from repro.types import Array, told_as, unit_rows

NEIGHBOURS = 10
FULL = "none"  # The reducer of a way that keeps all dimensions.
HAMMING = "binary, queries too"


class Way(NamedTuple):
    """One way to store a vector."""

    reducer: str  # A name of `repro.reducers`, or `FULL`.
    dim: int
    level: str

    @property
    def columns(self) -> Row:
        """Columns of its rows, but for the setting."""
        method = FULL_SIZE if self.reducer == FULL else REDUCER_NAMES[self.reducer]
        return {"method": method, "dim": self.dim, "readout": "encoder"}

    @property
    def bytes(self) -> int:
        """Bytes of one stored vector."""
        level = "binary" if self.level == HAMMING else self.level
        return coding.vector_bytes(self.dim, level)


class Nearest:
    """The k nearest documents of every query, as pieces of a collection come by."""

    def __init__(self, queries: int, k: int) -> None:
        self.cosines = np.full((queries, k), -np.inf, np.float32)
        self.rows = np.full((queries, k), -1, np.int64)

    def offer(self, cosines: Array, first_row: int) -> None:
        """Take in the documents from `first_row` on, with their cosines (m, b); ties go to the
        lower row.
        """
        queries, k = self.cosines.shape
        nearer = cosines > self.cosines[:, -1:]
        if np.count_nonzero(nearer) > 2 * queries * k:
            # As of the first documents: most are behind the k nearest of this very piece.
            nearer &= cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]
        query, column = np.divmod(np.flatnonzero(nearer), cosines.shape[1])
        if not len(query):
            return
        counts = np.bincount(query, minlength=queries)
        place = k + np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = np.full((queries, k + int(counts.max())), -np.inf, np.float32)
        rows = np.full(values.shape, -1, np.int64)
        values[:, :k] = self.cosines
        rows[:, :k] = self.rows
        values[query, place] = cosines[query, column]
        rows[query, place] = first_row + column
        # What is known stands before what is new, and both by row: a stable order keeps ties so.
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        self.cosines = np.take_along_axis(values, order, axis=1)
        self.rows = np.take_along_axis(rows, order, axis=1)


@dataclass(eq=False)
class Search:
    """What one way has found so far."""

    asking: Array  # Queries as the way compares them.
    nearest: Nearest = field(repr=False)
    questions: Array | None = None
    # By question, the cosines of its relevant paragraphs.
    gold_cosines: list[Array] = field(default_factory=list)
    # By question, how many documents are nearer than each of these.
    ahead: list[NDArray[np.int64]] = field(default_factory=list)

    def see(self, paragraphs: Array, relevant: Sequence[NDArray[np.int64]]) -> None:
        """Take in decoded paragraphs (p, dim), before all documents; the questions are set."""
        assert self.questions is not None
        for cosines, rows in zip(self.questions @ paragraphs.T, relevant, strict=True):
            self.gold_cosines.append(cosines[rows])
            self.ahead.append((cosines > cosines[rows, None]).sum(axis=1))

    def offer(self, C: Array, first_row: int) -> None:
        """Take in decoded documents C (b, dim) of length 1."""
        self.nearest.offer(self.asking @ C.T, first_row)
        if self.questions is None:
            return
        cosines = self.questions @ C.T
        for number, of_gold in enumerate(self.gold_cosines):
            nearer = [np.count_nonzero(cosines[number] > cosine) for cosine in of_gold]
            self.ahead[number] += np.array(nearer)

    def kept(self, truth: NDArray[np.int64], depth: int) -> Array:
        """Share of each query's true neighbours among its first `depth`."""
        first = self.nearest.rows[:, :depth]
        among_first = (truth[:, :, None] == first[:, None, :]).any(axis=2)
        return among_first.mean(axis=1)

    def ndcg(self) -> Array:
        """nDCG@10 of each question."""
        values = []
        for ahead in self.ahead:
            ranks = np.sort(ahead) + 1
            gained = (1 / np.log2(ranks + 1.0))[ranks <= NEIGHBOURS].sum()
            best_ranks = 1 + np.arange(min(len(ranks), NEIGHBOURS))
            ideal = (1 / np.log2(best_ranks + 1.0)).sum()
            values.append(gained / ideal)
        return np.array(values)


class Coder:
    """One reducer with all its ways: from unit rows to what each way reads back from its store."""

    def __init__(self, reducer: str, ways: Sequence[Way], teaching: Array, seed: int) -> None:
        self.ways = list(ways)
        self.fitted: Reducer | None = None
        if reducer != FULL:
            largest = max(way.dim for way in ways)
            with told_as(n_components="dim"):
                self.fitted = make_reducer(reducer, largest, seed=seed).fit(teaching)
        self.books: dict[Way, coding.Codebook] = {}
        for way, rows in self._reduced(teaching):
            level = "binary" if way.level == HAMMING else way.level
            self.books[way] = coding.fit_codebook(rows, level)

    def _reduced(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Rows of length 1 at the size of every way; ways of one size share them."""
        Y = X if self.fitted is None else self.fitted.transform(X)
        at_size: dict[int, Array] = {}
        for way in self.ways:
            if way.dim not in at_size:
                prefix = X if self.fitted is None else self.fitted.prefix(Y, way.dim)
                at_size[way.dim] = unit_rows(np.asarray(prefix, np.float32))
            yield way, at_size[way.dim]

    def stored(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Documents as every way reads them back, rows of one length."""
        for way, rows in self._reduced(X):
            if way.level == "float32":
                yield way, rows
                continue
            book = self.books[way]
            decoded = coding.dequantise(coding.quantise(rows, book), book)
            # Signs have one length already; as ±1 their products with signs are whole numbers, so
            # that ties are ties.
            yield way, decoded if book.level == "binary" else unit_rows(decoded)

    def queries(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Queries as every way compares them: floats, or bits where these are the way."""
        for way, rows in self._reduced(X):
            book = self.books[way]
            if way.level == HAMMING:
                yield way, coding.dequantise(coding.quantise(rows, book), book)
            else:
                yield way, np.asarray(coding.prepare_queries(rows, book), np.float32)
