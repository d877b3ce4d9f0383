"""Entailment pairs as examples of similarity: pairs that are like or unlike, or triples with one hypothesis of each.

Neutral pairs are dropped, as AnglE does (Li & Li, 2024): whether they are alike is not said.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.data.limit import take
from repro.seeding import make_rng
from repro.sets import LabelledPairs
from repro.types import InputError, check_dim, check_same_length

LIKE, UNLIKE, NEUTRAL = "entailment", "contradiction", "neutral"


@dataclass(frozen=True, eq=False)
class Triples:
    """Premises, each with a hypothesis that follows from it and one that contradicts it."""

    name: str
    source: str
    split: str
    queries: tuple[str, ...]
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    def __post_init__(self) -> None:
        check_same_length(queries=self.queries, positives=self.positives, negatives=self.negatives)

    def __len__(self) -> int:
        return len(self.queries)


def checked_labels(pairs: LabelledPairs) -> NDArray[Any]:
    """The labels of entailment pairs (n,).

    Raises:
        InputError: for a label that is none of the three.
    """
    unknown = sorted({str(label) for label in pairs.labels} - {LIKE, UNLIKE, NEUTRAL})
    if unknown:
        raise InputError(f"{pairs.name} has the label {unknown[0]!r}: expected {UNLIKE}, {LIKE}, {NEUTRAL}")
    return pairs.labels


def like_or_unlike(pairs: LabelledPairs, limit: int | None = None, *, seed: int = 0) -> LabelledPairs:
    """The entailed and the contradicted pairs, `limit` of them drawn at random.

    Raises:
        InputError: for a label that is none of the three, or if nothing is left.
    """
    labels = checked_labels(pairs)
    rows = np.flatnonzero(labels != NEUTRAL)
    if not len(rows):
        raise InputError(f"{pairs.name} has neutral pairs only: expected some labelled {LIKE} or {UNLIKE}")
    drawn = take(pairs.keep(rows), limit, seed=seed)
    assert isinstance(drawn, LabelledPairs)
    return drawn


def triples(pairs: LabelledPairs, limit: int | None = None, *, seed: int = 0) -> Triples:
    """Premises that have both an entailed and a contradicted hypothesis, `limit` triples drawn at random.

    The i-th entailed hypothesis of a premise goes with its i-th contradicted one; what is left over is dropped.

    Raises:
        InputError: for a label that is none of the three, or if no premise has both.
    """
    labels = checked_labels(pairs)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {LIKE: [], UNLIKE: [], NEUTRAL: []})
    for premise, hypothesis, label in zip(pairs.texts1, pairs.texts2, labels, strict=True):
        found[premise][str(label)].append(hypothesis)
    rows = [
        (premise, positive, negative)
        for premise, by_label in found.items()
        for positive, negative in zip(by_label[LIKE], by_label[UNLIKE], strict=False)
    ]
    if not rows:
        raise InputError(
            f"no premise of {pairs.name} has both an entailed and a contradicted hypothesis: train on pairs instead"
        )
    if limit is not None and check_dim(limit, what="limit") < len(rows):
        chosen = make_rng(seed, "limit", pairs.name, pairs.split, "triples").permutation(len(rows))[:limit]
        rows = [rows[i] for i in np.sort(chosen)]
    queries, positives, negatives = zip(*rows, strict=True)
    return Triples(pairs.name, pairs.source, pairs.split, queries, positives, negatives)
