"""Bootstrap resamples as counts, and rank correlations read from counts.

A resample is a vector of counts, one per item. Mean ranks follow from the counts by one cumulative sum
over values sorted once, so no resample is ever sorted: 2,000 resamples of STS-B take a tenth of a second
and equal a loop of `scipy.stats.spearmanr` to rounding.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.types import InputError, check_same_length

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK = 400_000
"""Counts held at once: resamples go through in chunks that stay in cache."""


class Ties(NamedTuple):
    """Values sorted once: their order, where each run of equal values starts, and the run of each item."""

    order: Counts
    starts: Counts
    run: Counts


def finite_vector(values: Any, name: str, at_least: int = 1) -> Floats:
    """Return `values` as a float64 vector.

    Raises:
        InputError: if it is not a vector, is shorter than `at_least`, or holds NaN, infinity or complex numbers.
    """
    if np.iscomplexobj(values):
        raise InputError(f"{name} holds complex numbers: expected real ones")
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or len(vector) < at_least:
        raise InputError(f"{name} has shape {vector.shape}: expected a vector of at least {at_least} numbers")
    if not np.isfinite(vector).all():
        bad = ~np.isfinite(vector)
        raise InputError(f"{name} has {int(bad.sum())} NaN or infinite values, first at {int(bad.argmax())}: drop them")
    return vector


def check_pairs(count: int) -> None:
    """Check that so many scored pairs have a rank correlation.

    Raises:
        InputError: for fewer than three.
    """
    if count < 3:
        raise InputError(
            f"{count} pairs are too few for a rank correlation: of two it is 1 or -1; expected at least 3, better 100"
        )


def tie_runs(values: Floats) -> Ties:
    """Sort once, and note where equal values sit together."""
    order = np.argsort(values, kind="stable")
    fresh = np.r_[True, np.diff(values[order]) != 0]
    run = np.empty(len(values), dtype=np.int64)
    run[order] = np.cumsum(fresh) - 1
    return Ties(order, np.flatnonzero(fresh), run)


def subset_members(subsets: Any, n: int, resamples: int) -> list[Counts]:
    """The item numbers of each subset; one subset of all items where none are named.

    Raises:
        InputError: if there is not one name per item, or fewer than one resample is asked for.
    """
    if resamples < 1:
        raise InputError(f"resamples is {resamples}: expected at least 1")
    if subsets is None:
        return [np.arange(n)]
    check_same_length(items=range(n), subsets=subsets)
    names = np.asarray(subsets)
    return [np.flatnonzero(names == name) for name in np.unique(names)]


def draw_counts(members: list[Counts], rows: int, rng: np.random.Generator) -> Counts:
    """How often each item is drawn in each of `rows` resamples, with replacement within its subset."""
    n = sum(len(m) for m in members)
    picks = np.concatenate([m[rng.integers(len(m), size=(rows, len(m)))] for m in members], axis=1)  # (rows, n)
    return np.bincount((picks + n * np.arange(rows)[:, None]).ravel(), minlength=rows * n).reshape(rows, n)


def spearman_of_counts(counts: Counts, many: Sequence[Ties], gold: Ties) -> Floats:
    """Spearman correlation with average ties of each resample and prediction (R, P); NaN where a side is constant.

    The ranks of the gold scores, and their products with the counts, are shared by all predictions.
    """
    n = counts[0].sum()
    middle = n * ((n + 1) / 2) ** 2  # ranks average (n + 1) / 2 whatever the ties, so moments stay exact in float64
    gold_ranks, gold_square = _mean_ranks(counts, gold)  # (R, n), (R,)
    weighted = counts * gold_ranks
    out = np.full((len(counts), len(many)), np.nan)
    for p, ties in enumerate(many):
        ranks, square = _mean_ranks(counts, ties)
        covariance = np.einsum("rn,rn->r", weighted, ranks) - middle
        spread = np.sqrt((square - middle) * (gold_square - middle))
        np.divide(covariance, spread, out=out[:, p], where=spread > 0)
    return out


def _mean_ranks(counts: Counts, ties: Ties) -> tuple[Floats, Floats]:
    per_run = np.add.reduceat(counts[:, ties.order], ties.starts, axis=1)  # (R, U)
    ranks = np.cumsum(per_run, axis=1) - (per_run - 1) / 2
    return ranks[:, ties.run], np.einsum("ru,ru,ru->r", per_run, ranks, ranks)  # (R, n), (R,)
