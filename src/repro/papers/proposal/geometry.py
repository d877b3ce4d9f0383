"""InfoNCE, alignment and uniformity of trained encoders against dimension, beside what theory
expects.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from repro import theory
from repro.evaluation.stats import bootstrap_mean
from repro.methods import END_TO_END
from repro.rows import Row, make_rows
from repro.runs.lines import TextTable
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.terminal import complain
from repro.types import Array, InputError, unit_rows

MOST_DIMS = 1 << 14  # dims up to which a uniformity is looked for
# Gold score (of 5) from which on a pair counts as positive, as where SimCSE measures alignment
MATCHING = 4.0
ROUNDS = 8  # Batches that every positive is in, at least


def setting_of(temperature: float, batch: int) -> str:
    """The column that tells conditions of the theory apart."""
    return f"τ = {temperature:g}, B = {batch:,}"


def positives_of(pairs: ScoredPairs) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both sides of the pairs that mean the same, each sentence used once, so that no positive is
    also a negative.
    """
    positives: dict[str, str] = {}
    used: set[str] = set()
    for a, b, score in zip(pairs.texts1, pairs.texts2, pairs.scores, strict=True):
        if score >= MATCHING and a != b and used.isdisjoint((a, b)):
            positives[a] = b
            used |= {a, b}
    if len(positives) < 2:
        raise InputError(
            f"{pairs.name} has {len(positives)} pairs with a gold score of {MATCHING:g} or more: "
            "expected 2"
        )
    return tuple(positives), tuple(positives.values())


def uniformity_of(X: Array) -> float:
    """Ln of the mean Gaussian potential over all pairs of rows (method-geometry in the book), from
    one Gram matrix of unit rows (n, dim).
    """
    upper = (X @ X.T)[np.triu_indices(len(X), 1)].astype(np.float64)
    return float(-4 + logsumexp(4 * upper) - np.log(len(upper)))  # ‖u − v‖² = 2 − 2⟨u, v⟩


def geometry_of(
    table: TextTable,
    pairs: ScoredPairs,
    sides: tuple[Sequence[str], Sequence[str]],
    seed: int,
) -> tuple[Array, Array, list[Row]]:
    """Both sides of the positives as unit rows, and the rows of their alignment and of all
    sentences' uniformity.
    """
    Z1, Z2 = (unit_rows(table[side]) for side in sides)
    away = bootstrap_mean(2 - 2 * (Z1 * Z2).sum(axis=1), seed=seed)
    spread = uniformity_of(unit_rows(table[list(dict.fromkeys(texts_of(pairs)))]))
    return (
        Z1,
        Z2,
        [{"metric": "alignment", **away.columns}, {"metric": "uniformity", "value": spread}],
    )


def uniformity_dim(uniformity: float) -> int | None:
    """The smallest dimension whose best possible uniformity is as low: how much of a sphere the
    embeddings fill.

    None if not even `MOST_DIMS` dimensions reach it.
    """
    dims = range(1, MOST_DIMS + 1)  # The limit falls as the dimension grows
    index = bisect_left(dims, -uniformity, key=lambda dim: -theory.uniformity_limit(dim))
    return dims[index] if index < len(dims) else None


def batch_losses(Z1: Array, Z2: Array, *, temperature: float, batch: int, seed: int = 0) -> Array:
    """InfoNCE of every positive pair (P,) in random batches, averaged over its rounds; unit rows
    (P, dim).
    """
    rng = make_rng(seed, "batches of positives")
    logits = (Z1 @ Z2.T).astype(np.float64) / temperature
    total, count = np.zeros(len(Z1)), np.zeros(len(Z1))
    while count.min() < ROUNDS:
        rows = rng.permutation(len(Z1))[:batch]
        of_batch = logits[np.ix_(rows, rows)]
        total[rows] += logsumexp(of_batch, axis=1) - np.diag(of_batch)
        count[rows] += 1
    return np.asarray(total / count)


def geometry_rows(
    tables: Mapping[int, TextTable],
    pairs: ScoredPairs,
    *,
    temperature: float,
    batch: int,
    seed: int,
    **shared: Any,
) -> pd.DataFrame:
    """Alignment, uniformity and InfoNCE of embeddings by dim, with what theory expects at their
    positive cosine.

    Pairs that mean the same are the positives; where a batch would hold more of them than there
    are, it holds all, of which the terminal tells.
    """
    sides = positives_of(pairs)
    count = len(sides[0])
    if count < batch:
        complain(f"{count} positive pairs do not fill a batch of {batch}: one batch of all")
        batch = count

    def measured(dim: int) -> Iterator[Row]:
        Z1, Z2, rows = geometry_of(tables[dim], pairs, sides, seed)
        yield from rows
        yield {"metric": "uniformity_limit", "value": theory.uniformity_limit(dim)}
        filled = uniformity_dim(rows[1]["value"])
        if filled is not None:
            yield {"metric": "uniformity_dim", "value": filled}
        losses = batch_losses(Z1, Z2, temperature=temperature, batch=batch, seed=seed)
        yield {"metric": "info_nce", **bootstrap_mean(losses, seed=seed).columns}
        cosine = float(np.clip((Z1 * Z2).sum(axis=1).mean(), -1, 1))
        for metric, sphere in (("expected_info_nce", dim), ("expected_info_nce_filled", filled)):
            if sphere is not None:
                value = theory.expected_info_nce(sphere, temperature, batch, positive_cosine=cosine)
                yield {"metric": metric, "value": value}

    columns = {
        "dataset": pairs.name,
        "setting": setting_of(temperature, batch),
        "readout": "pooler",
        "method": END_TO_END,
    }
    rows = [{**row, **columns, "dim": dim} for dim in tables for row in measured(dim)]
    return make_rows(rows, seed=seed, **shared)
