"""Which rows: drawn for a smaller set, made into examples, put into batches; decided by seed and
name alone.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from repro.seeding import make_rng
from repro.sets import DataSet, LabelledPairs, Retrieval, Strings, WordVectors
from repro.types import InputError, check_dim

LIKE, UNLIKE, NEUTRAL = "entailment", "contradiction", "neutral"
POOL = 64
"""Batches that are sorted by length together."""


def take(data: DataSet, limit: int | None, *, seed: int = 0) -> DataSet:
    """Keep `limit` rows drawn at random, in their old order; a smaller limit is a subset of a
    larger one.

    Files are sorted by label, subset or article, hence the draw. Retrieval keeps `limit` queries
    and the documents judged for them, distractors included, so the search is easier than over all
    documents. Word vectors keep the most frequent words, for their order is a ranking.
    """
    if limit is None or check_dim(limit, what="limit") >= len(data):
        return data
    if isinstance(data, WordVectors):
        return data.keep(range(limit))
    rows = np.sort(make_rng(seed, "limit", data.name, data.split).permutation(len(data))[:limit])
    if isinstance(data, Retrieval):
        qrels = {
            query: data.qrels[query] for row in rows if (query := data.query_ids[row]) in data.qrels
        }
        judged = set(chain.from_iterable(qrels.values()))
        found = [row for row, document in enumerate(data.document_ids) if document in judged]
        data = data.keep(found, group=1, qrels=qrels)
    return data.keep(rows)


# Entailment pairs as examples of similarity; neutral ones are dropped, as AnglE does: are they
# alike? (Li & Li, 2024)


@dataclass(frozen=True, eq=False)
class Triples:
    """Premises, each with a hypothesis that follows from it and one that contradicts it."""

    queries: tuple[str, ...]
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.queries)


def checked_labels(pairs: LabelledPairs) -> Strings:
    """The labels of entailment pairs (n,), each of them entailment, contradiction or neutral."""
    unknown = sorted({str(label) for label in pairs.labels} - {LIKE, UNLIKE, NEUTRAL})
    if unknown:
        raise InputError(
            f"{pairs.name} has the label {unknown[0]!r}: expected {UNLIKE}, {LIKE}, {NEUTRAL}"
        )
    return pairs.labels


def like_or_unlike(
    pairs: LabelledPairs,
    limit: int | None = None,
    *,
    seed: int = 0,
) -> LabelledPairs:
    """The entailed and the contradicted pairs, `limit` of them drawn at random; an InputError if
    there are none.
    """
    rows = np.flatnonzero(checked_labels(pairs) != NEUTRAL)
    if not len(rows):
        raise InputError(
            f"{pairs.name} has neutral pairs only: expected some labelled {LIKE} or {UNLIKE}"
        )
    drawn = take(pairs.keep(rows), limit, seed=seed)
    assert isinstance(drawn, LabelledPairs)
    return drawn


def triples(pairs: LabelledPairs, limit: int | None = None, *, seed: int = 0) -> Triples:
    """Premises that have both an entailed and a contradicted hypothesis, `limit` triples drawn at
    random.

    The i-th entailed hypothesis of a premise goes with its i-th contradicted one; what is left over
    is dropped.
    """
    found: dict[str, dict[str, list[str]]] = defaultdict(
        lambda: {LIKE: [], UNLIKE: [], NEUTRAL: []}
    )
    for premise, hypothesis, label in zip(
        pairs.texts1,
        pairs.texts2,
        checked_labels(pairs),
        strict=True,
    ):
        found[premise][str(label)].append(hypothesis)
    rows = [
        (premise, positive, negative)
        for premise, by_label in found.items()
        for positive, negative in zip(by_label[LIKE], by_label[UNLIKE], strict=False)
    ]
    if not rows:
        none = f"no premise of {pairs.name} has both an entailed and a contradicted hypothesis"
        raise InputError(f"{none}: train on pairs instead")
    if limit is not None and check_dim(limit, what="limit") < len(rows):
        chosen = make_rng(seed, "limit", pairs.name, pairs.split, "triples").permutation(len(rows))[
            :limit
        ]
        rows = [rows[i] for i in np.sort(chosen)]
    return Triples(*zip(*rows, strict=True))


# Batches


@lru_cache(maxsize=2)
def epoch_order(n: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation of 0 … n-1 for one epoch; the same for every dim of a sweep, so comparisons are
    paired.
    """
    return make_rng(seed, "data order", epoch).permutation(n)


def bucketed_batches(
    lengths: NDArray[np.integer],
    batch_size: int,
    *,
    seed: int,
    epoch: int,
) -> list[NDArray[np.int64]]:
    """Shuffled batches of rows of like length: sort inside pools of `POOL` batches, then shuffle
    the batches.
    """
    order = epoch_order(len(lengths), seed=seed, epoch=epoch)
    span = batch_size * POOL
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), span):
        rows = order[start : start + span]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    batches = [rows for rows in batches if len(rows) == batch_size] or batches
    shuffled = make_rng(seed, "batch order", epoch).permutation(len(batches))
    return [batches[i] for i in shuffled]
