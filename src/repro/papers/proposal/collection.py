"""What is searched, who asks and what teaches: a corpus in one random order, and its embeddings.

The sentences of a corpus are put into one random order. The first of them ask, the next teach maps
and codebooks, and all others are the collection: every size that is judged is a prefix of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.seeding import make_rng
from repro.types import Array, InputError, unit_rows


class Texts(NamedTuple):
    """A corpus in random order, cut into who asks, what teaches and what is searched."""

    asking: list[str]
    teaching: list[str]
    searched: list[str]


def draw_texts(texts: Sequence[str], *, asking: int, teaching: int, seed: int = 0) -> Texts:
    """Put the distinct texts of a corpus into one random order and cut it.

    Raises:
        InputError: if nothing is left to be searched.
    """
    distinct = list(dict.fromkeys(texts))
    if asking + teaching >= len(distinct):
        raise InputError(
            f"asking is {asking} and teaching {teaching}: the corpus has {len(distinct)} distinct "
            "texts, of which some must be left to be searched"
        )
    order = make_rng(seed, "collection").permutation(len(distinct))
    shuffled = [distinct[i] for i in order]
    end = asking + teaching
    return Texts(shuffled[:asking], shuffled[asking:end], shuffled[end:])


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions and the paragraphs that answer them, which are searched for among the
    collection.
    """

    name: str
    questions: Array  # (q, D)
    paragraphs: Array  # (p, D)
    # By question, the rows of the paragraphs that support its answer.
    relevant: Sequence[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Collection:
    """Embeddings of everything; rows need not have length 1."""

    name: str
    asking: Array  # (m, D)
    teaching: Array  # (f, D)
    searched: Sequence[Array]  # Blocks (…, D) of the documents, in their random order.
    asked: Questions | None = None

    @classmethod
    def of_shards(
        cls,
        name: str,
        shards: Sequence[Array],
        *,
        asking: int,
        teaching: int,
        asked: Questions | None = None,
    ) -> "Collection":
        """The collection whose embeddings follow each other in blocks: of who asks, of what teaches
        and of all that is searched, which is not copied.
        """
        head: list[Array] = []
        searched: list[Array] = []
        remaining = asking + teaching
        for shard in shards:
            head.append(shard[:remaining])
            searched.append(shard[remaining:])
            remaining -= len(head[-1])
        first = np.concatenate(head)
        return cls(name, first[:asking], first[asking:], searched, asked)

    @property
    def size(self) -> int:
        """Documents that there are."""
        return sum(len(block) for block in self.searched)

    def blocks(self, sizes: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """The documents in pieces that end where a size is reached: their number so far, and unit
        rows.
        """
        bounds = sorted(set(sizes))
        seen = 0
        for block in self.searched:
            start = 0
            while start < len(block) and seen < bounds[-1]:
                next_bound = next(bound for bound in bounds if bound > seen)
                stop = min(len(block), start + next_bound - seen)
                seen += stop - start
                yield seen, unit_rows(np.asarray(block[start:stop], np.float32))
                start = stop
