"""Semantic textual similarity: Spearman of cosines against gold scores (method-sts,
method-prefix-scores in the book).
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from repro.evaluation.stats import Score, bootstrap_spearman, check_pairs, subset_members
from repro.sets import Embed, ScoredPairs
from repro.types import (
    Array,
    InputError,
    check_dims,
    check_embeddings,
    check_same_length,
    finite_vector,
    one_of,
)

log = logging.getLogger(__name__)
EPS = float(np.finfo(np.float64).eps)


def sts_spearman(
    X1: Any,
    X2: Any,
    scores: Any,
    *,
    dims: Sequence[int] | None = None,
    subsets: Any = None,
    aggregate: str = "all",
) -> Any:
    """Spearman correlation of the pairs' cosines with their gold scores.

    All prefix sizes `dims` are scored in one pass. `aggregate` is `all`, which ranks all pairs
    together, `mean` of the subsets' correlations, or `wmean`, weighed by their pairs: the
    literature has all three, and they differ.

    Returns:
        One float, or one per dim (len(dims),). NaN, with a warning, where cosines or scores are
        constant.

    Raises:
        InputError: for mismatched lengths, fewer than three pairs, non-finite embeddings or scores,
            or a dim out of range.
    """
    one_of(aggregate, ("all", "mean", "wmean"), "aggregate")
    scores = finite_vector(scores, "scores", 0)
    X1, X2 = check_embeddings(X1, "X1"), check_embeddings(X2, "X2")
    check_same_length(X1=X1, X2=X2, scores=scores)
    check_pairs(len(scores))
    members = subset_members(None if aggregate == "all" else subsets, len(scores))
    weights = np.array([len(rows) if aggregate == "wmean" else 1 for rows in members], float)
    cosines = prefix_cosines(X1, X2, [X1.shape[1]] if dims is None else dims)
    correlations = np.empty((len(cosines), len(members)))
    for i, of_dim in enumerate(cosines):
        for j, rows in enumerate(members):
            correlations[i, j] = _spearman(of_dim[rows], scores[rows])
    values = (correlations * weights).sum(1) / weights.sum()
    return float(values[0]) if dims is None else values


def score_sts(embed: Embed, pairs: ScoredPairs, *, aggregate: str = "all", seed: int = 0) -> Score:
    """Spearman of cosines with gold scores; `mean` and `wmean` average over subsets, without an
    interval.
    """
    X1, X2 = embed(pairs.texts1), embed(pairs.texts2)
    cosines = prefix_cosines(X1, X2, [X1.shape[1]])[0]
    if aggregate != "all":
        value = sts_spearman(X1, X2, pairs.scores, subsets=pairs.subsets, aggregate=aggregate)
        return Score(f"spearman_{aggregate}", value, np.nan, np.nan, len(pairs), cosines)
    interval = bootstrap_spearman(cosines, pairs.scores, subsets=pairs.subsets, seed=seed)
    return Score("spearman", interval.value, interval.low, interval.high, len(pairs), cosines)


def prefix_cosines(X1: Array, X2: Array, dims: Sequence[int]) -> Array:
    """Cosine of every pair at every prefix size, from one running sum: (len(dims), n) float64.

    A pair whose prefix is a zero vector has cosine 0; how many there are is logged. Vectors that
    are equal, or point the same way, have cosine 1 to the last bit: all such pairs are tied,
    and so are all of one cosine where numbers are whole.
    """
    X1, X2 = check_embeddings(X1, "X1"), check_embeddings(X2, "X2")
    if X1.shape != X2.shape:
        raise InputError(
            f"X1 has shape {X1.shape}, X2 {X2.shape}: expected the two sides of the same pairs"
        )
    columns = np.array(check_dims(dims, limit=X1.shape[1]), int) - 1
    cosines = np.empty((len(columns), len(X1)))
    zeros = 0
    for start in range(0, len(X1), 1024):  # Running sums of (n, dim) doubles stay in cache
        rows = slice(start, start + 1024)
        a = X1[rows].astype(np.float64)
        b = X2[rows].astype(np.float64)
        dots = (a * b).cumsum(1)[:, columns].T
        squares_a = (a * a).cumsum(1)[:, columns].T
        squares_b = (b * b).cumsum(1)[:, columns].T
        terms = columns[:, None] + 1
        cosines[:, rows] = cosines_from(dots, squares_a, squares_b, terms)
        zeros += int(((squares_a == 0) | (squares_b == 0)).sum())
    if zeros:
        log.info("%d cosines of zero vectors were set to 0", zeros)
    return cosines


def cosines_from(dots: Array, squares_a: Array, squares_b: Array, terms: Any) -> Array:
    """Cosines from inner products and squared lengths, of one shape, and how many terms each sums.

    Where a length is 0 the cosine is 0. What rounding of the sums can make of 1 or −1 is 1 or −1,
    so that all pairs of equal vectors are tied, as ranks need it: chance does not order them. So
    are all equal cosines of whole numbers.
    """
    mantissa, exponent = np.frexp(dots)
    mantissa_a, exponent_a = np.frexp(squares_a)
    mantissa_b, exponent_b = np.frexp(squares_b)
    # The square is rounded once, in a division, where the sums are whole numbers: equal cosines are
    # equal to the last bit, which √a·√b or √(a·b) below a sum does not make them. The powers of
    # two, which change no digit, are kept apart: with them the square could leave the range of
    # doubles.
    product = mantissa_a * mantissa_b
    squares = np.divide(mantissa * mantissa, product, out=np.zeros_like(product), where=product > 0)
    power = exponent_a + exponent_b
    odd = power % 2
    sizes = np.ldexp(np.sqrt(np.ldexp(squares, -odd)), exponent - (power - odd) // 2)
    cosines = np.copysign(sizes, mantissa)
    # Each sum is off by at most half an ulp a term, its square root by half of that.
    rounding = (np.asarray(terms) + 2) * EPS
    return np.where(np.abs(np.abs(cosines) - 1) <= rounding, np.sign(cosines), cosines)


def _spearman(cosines: Array, scores: Array) -> float:
    for kind, values in (("cosines", cosines), ("gold scores", scores)):
        if np.ptp(values) == 0:
            log.warning("Spearman is undefined: all %d %s are equal", len(values), kind)
            return float("nan")
    return float(spearmanr(cosines, scores).statistic)
