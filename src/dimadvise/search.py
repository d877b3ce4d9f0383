"""Exact search in blocks: the nearest of the documents that have come so far, of every query at
once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dimadvise.coding import Deployment
from dimadvise.files import Block

# Numbers of documents, in the order in which they come
Places: TypeAlias = NDArray[np.integer[Any]]


class Nearest:
    """The `count` documents with the highest scores for each query.

    Few documents beat those that came before them, so each block costs one comparison with the last
    score that counts, and choosing the best is put off until many have passed.
    """

    def __init__(self, queries: int, count: int) -> None:
        """Begin without documents."""
        self._scores = np.full((queries, count), -np.inf, np.float32)
        self._places = np.full((queries, count), -1, np.int32)
        self._waiting: list[tuple[Places, Places, Block]] = []

    def add(self, scores: Block, start: int) -> None:
        """Block (queries, b) of the documents with the numbers from `start` on."""
        if not start and scores.shape[1] >= self._scores.shape[1]:
            self._keep(
                scores,
                np.broadcast_to(np.arange(scores.shape[1], dtype=np.int32), scores.shape),
            )
            return
        passed = np.flatnonzero(scores > self._scores.min(1, keepdims=True))
        places = np.divmod(passed, scores.shape[1])
        queries, columns = (numbers.astype(np.int32) for numbers in places)
        self._waiting.append((queries, columns + np.int32(start), scores.ravel()[passed]))
        if sum(len(batch[0]) for batch in self._waiting) > self._scores.size // 2:
            self._merge()

    def best(self) -> tuple[Places, Block]:
        """Numbers of the nearest so far (queries, count), best first, of equal ones the first, and
        their scores; -1 and minus infinity where none came.
        """
        self._merge()
        order = np.lexsort((self._places, -self._scores), axis=-1)
        return (
            np.take_along_axis(self._places, order, 1),
            np.take_along_axis(self._scores, order, 1),
        )

    def _merge(self) -> None:
        if not self._waiting:
            return
        queries, places, scores = (
            np.concatenate(batches) for batches in zip(*self._waiting, strict=True)
        )
        order = np.argsort(queries, kind="stable")
        queries, places, scores = queries[order], places[order], scores[order]
        of_each = np.bincount(queries, minlength=len(self._scores))
        column = np.arange(len(queries)) - np.repeat(np.cumsum(of_each) - of_each, of_each)
        more = np.full((len(of_each), int(of_each.max())), -np.inf, np.float32)
        where = np.full(more.shape, -1, np.int32)
        more[queries, column], where[queries, column] = scores, places
        self._keep(np.hstack([self._scores, more]), np.hstack([self._places, where]))
        self._waiting = []

    def _keep(self, scores: Block, places: NDArray[np.int32]) -> None:
        count = self._scores.shape[1]
        best = np.argpartition(scores, -count, axis=1)[:, -count:]
        self._scores = np.take_along_axis(scores, best, 1)
        self._places = np.take_along_axis(places, best, 1)


@dataclass(frozen=True)
class Found:
    """What all ways of storing found among the first `documents` of them."""

    documents: int
    places: list[Places]  # (queries, count) for each way
    scores: Block  # (queries, count) of those that the first way found
    seconds: list[float]
    """That scoring and keeping the best took for each way, all queries at once, documents decoded
    beforehand.
    """


def searched(
    ways: Sequence[Deployment],
    Q: Any,
    self_places: Places,
    blocks: Iterable[Any],
    count: int,
    stops: Sequence[int],
) -> Iterator[Found]:
    """Search documents that come in blocks as each way stores them; what is found is told after
    each of `stops`.

    Args:
        ways: of storing documents by one similarity, and asking for them.
        Q: queries (m, D) of full size.
        self_places: number of the document that a query itself is, which it never finds; -1 for
            none (m,).
        blocks: documents (b, D) of full size; no stop lies within a block.
        count: how many nearest are kept.
        stops: numbers of documents, ascending.
    """
    queries = [way.queries(Q) for way in ways]
    # Distances do not change if all is moved: about the mean of the queries numbers and rounding
    # errors are small
    distant = [way.similarity == "l2" and way.level != "binary" for way in ways]
    centres = [q.mean(0) for q in queries]
    queries = [
        q - centre if far else q for q, centre, far in zip(queries, centres, distant, strict=True)
    ]
    nearest = [Nearest(len(self_places), count) for _ in ways]
    seconds = [0.0] * len(ways)
    start = 0
    for block in blocks:
        inside = np.flatnonzero((self_places >= start) & (self_places < start + len(block)))
        for i, way in enumerate(ways):
            # Ways that share a map come one after the other.
            if not i or way.transform is not ways[i - 1].transform:
                shortened = way.vectors(block)
            stored = way.stored_of(shortened)
            if distant[i]:
                stored = stored - centres[i]
            began = perf_counter()
            scores = queries[i] @ stored.T
            if distant[i]:  # -|q - s|² but for |q|², the same for all
                scores = 2 * scores - np.einsum("ij,ij->i", stored, stored)
            scores[inside, self_places[inside] - start] = -np.inf
            nearest[i].add(scores, start)
            seconds[i] += perf_counter() - began
        start += len(block)
        if start in stops:
            best = [of_way.best() for of_way in nearest]
            yield Found(start, [places for places, _ in best], best[0][1], list(seconds))


def ranks(nearest: Places, found: Places) -> Places:
    """Place, from 0, of each wanted document among those found (m, k); the number found where it is
    not among them.
    """
    stride = int(max(nearest.max(), found.max())) + 2
    shift = stride * np.arange(len(found))[:, None]  # No two queries share a number
    order = np.argsort(found, axis=1)
    flat = (np.take_along_axis(found, order, 1) + shift).ravel()
    slots = np.minimum(np.searchsorted(flat, nearest + shift), flat.size - 1)
    return np.where(flat[slots] == nearest + shift, order.ravel()[slots], found.shape[1])
