"""Lower confidence bounds of the share of a score that is kept, from what each item does to either
score.

A score's influence values ψ (n,) are its derivatives by the weights of its items; the variance of a
score over samples of items is that of their mean, and two scores on the same items covary as their
values do. The share r = a / b is below τ by chance as rarely as a − τb is above 0, which has a
known variance for every τ and is solved for τ (Fieller, 1954). Items that share a row do not vary
by themselves: products of the values of any two of them count too (Aronow, Samii and Assenova,
2015). What resamples say instead was tried, as percentiles, BCa and studentised ones, and held less
often.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.stats import beta, rankdata, t

from repro.types import Array, InputError

Floats: TypeAlias = NDArray[np.float64]
CAREFUL = 100
"""Items at which the error allowed is halved: of few items, skewed scores exceed a bound more often
than promised.
"""

MANY = 20  # Items that got worse, from which on their number is as good as normally distributed


class NoShareError(InputError):
    """A score that may be zero: a share of it means nothing."""


class Retention(NamedTuple):
    """Shares (P,) of a reference score, and the one-sided lower confidence bound of each (P,)."""

    share: Floats
    low: Floats


def smallest_sufficient(dims: Sequence[int], low: Sequence[float], target: float) -> int | None:
    """The last size that passes on the way down from the largest, None if the largest fails.

    The order is fixed beforehand and the walk ends at the first failure, so the whole of it errs no
    more often than one bound does, without any correction for the number of sizes.
    """
    if not 0 < target <= 1:
        raise InputError(
            f"the target is {target}: expected a share above 0, at most 1, such as 0.99"
        )
    passed = None
    for dim, bound in sorted(zip(dims, low, strict=True), reverse=True):
        if not bound >= target:
            break
        passed = dim
    return passed


class Influence(NamedTuple):
    """Scores (P,) and the influence values of the items on each (P, n), which sum to 0."""

    scores: Floats
    values: Floats


def mean_influence(outcomes: Array) -> Influence:
    """Of means of outcomes (P, n)."""
    outcomes = np.asarray(outcomes, np.float64)
    means = outcomes.mean(1)
    return Influence(means, outcomes - means[:, None])


def spearman_influence(outcomes: Array, gold: Array) -> Influence:
    """Of Spearman correlations of outcomes (P, n) with gold (n,), average ranks for ties.

    An item counts by its own ranks and by those that it lifts: all above it, in either order.
    """
    G, above_gold = _ranks(gold)
    influences = [_correlation(*_ranks(x), G, above_gold) for x in outcomes]
    return Influence(
        np.array([score for score, _ in influences]),
        np.stack([values for _, values in influences]),
    )


def share_bounds(
    influence: Influence,
    links: Any,
    *,
    confidence: float,
    wider: float = 1.0,
) -> Retention:
    """Share that each score (P,) keeps of the first, and its one-sided lower bound, NaN where none
    can be given.

    Args:
        influence: scores and influence values; the first is the reference.
        links: rows that each item rests on (n, k), the same number for the same row.
        confidence: of each bound.
        wider: by how much standard deviations exceed what the items account for.

    Raises:
        NoShareError: if the reference may be zero or less: 0 lies in its 95 % interval.
    """
    scores, values = influence
    n, base = values.shape[1], float(scores[0])
    spreads = [wider**2 * spread for spread in _covariances(values, np.asarray(links))]
    variance = max(max(float(spread[0, 0]), 0.0) for spread in spreads)
    half = float(t.ppf(0.975, n - 1) * np.sqrt(variance))
    if not base - half > 0:
        raise NoShareError(
            f"the reference scores {base:.4f} [{base - half:.4f}, {base + half:.4f}]: "
            "a share of what may be zero says nothing. Use more labelled items, or labels that "
            "these embeddings can tell apart"
        )
    reach = float(t.ppf(1 - (1 - confidence) / (1 + CAREFUL / n), n - 1))
    low = np.min([_fieller(scores, spread, reach) for spread in spreads], axis=0)
    return Retention(scores / base, low)


def unchanged_bounds(outcomes: Array, *, confidence: float) -> Floats:
    """What the items that got worse prove of shares at most (P,): of means of outcomes (P, n)
    between 0 and 1.

    If only c of n right ones turn wrong, their share among all items is bounded exactly (Clopper
    and Pearson, 1934): where none does, by 1 − (1 − confidence)^(1/n), which is 3.7 / n at 97.5 %,
    and no variance of zero says less. Parts of an outcome lost add up to c. Gains count as they
    were seen. Where `MANY` got worse or more, variances say it better: infinite.
    """
    outcomes = np.asarray(outcomes, np.float64)
    n, change = outcomes.shape[1], outcomes - outcomes[0]
    lost, gained = np.maximum(-change, 0).sum(1), np.maximum(change, 0).mean(1)
    most = np.where(lost < n, beta.ppf(confidence, lost + 1, np.maximum(n - lost, 1e-9)), 1.0)
    proven = 1 - (most - gained) / max(float(outcomes[0].mean()), 1e-300)
    return np.asarray(np.where((change < 0).sum(1) < MANY, proven, np.inf))


def _covariances(values: Floats, links: NDArray[Any]) -> list[Floats]:
    """Covariances of the scores (P, P): of items by themselves, and of those that share rows if any
    do.
    """
    n = values.shape[1]
    of_items = values @ values.T / (n * (n - 1))
    numbers = np.unique(links, return_inverse=True)[1].reshape(len(links), -1)  # (n, k)
    items = np.repeat(np.arange(n), numbers.shape[1])
    incidence = csr_matrix((np.ones(numbers.size), (items, numbers.ravel())))
    incidence.data[:] = 1  # An item of one row twice rests on one row
    if incidence.sum(0).max() < 2:
        return [of_items]
    of_rows = np.asarray(incidence.T @ values.T).T  # (P, rows)
    counted = np.asarray(incidence.sum(1)).ravel() - 1  # An item meets itself in each of its rows
    return [of_items, (of_rows @ of_rows.T - (values * counted) @ values.T) / (n * (n - 1))]


def _fieller(scores: Floats, spread: Floats, reach: float) -> Floats:
    """The smallest share τ of the first score for which a − τb lies within `reach` standard
    deviations of 0.
    """
    square = reach**2
    A = scores[0] ** 2 - square * spread[0, 0]
    B = scores * scores[0] - square * spread[0]
    C = scores**2 - square * np.diag(spread)
    if A <= 0:
        return np.full(len(scores), np.nan)
    return np.asarray((B - np.sqrt(np.maximum(B**2 - A * C, 0))) / A)


def _ranks(values: Array) -> tuple[Floats, Any]:
    """Ranks as shares of the items less ½ (n,), and what sums W (n,) over the items above each,
    halves for ties.
    """
    values = np.asarray(values, np.float64)
    n = len(values)
    order = np.argsort(values, kind="stable")
    first, last = (np.searchsorted(values[order], values, side) for side in ("left", "right"))

    def above(W: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(W[order])])
        return np.asarray((sums[-1] - (sums[first] + sums[last]) / 2) / n)

    return (rankdata(values) - 0.5) / n - 0.5, above


def _correlation(R: Floats, above: Any, G: Floats, above_gold: Any) -> tuple[float, Floats]:
    n = len(R)
    covariance = R @ G / n
    a = R @ R / n
    b = G @ G / n
    if not (a > 0 and b > 0):
        return float("nan"), np.zeros(n)
    scale = np.sqrt(a * b)
    score = covariance / scale
    of_covariance = _centred(R * G + above(G) + above_gold(R))
    of_a = _centred(R**2 + 2 * above(R))
    of_b = _centred(G**2 + 2 * above_gold(G))
    return float(score), of_covariance / scale - score / 2 * (of_a / a + of_b / b)


def _centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean())
