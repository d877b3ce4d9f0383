"""How well random directions keep distances: the Johnson-Lindenstrauss bound, and what happens (PROTOCOLS §7.4)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from repro.types import Array, InputError, check_dim, check_embeddings


def jl_dim(n: int, eps: float, *, failure: float | None = None) -> int:
    """Dimensions that suffice for all distances of n points to keep their squares within 1 ± eps.

    ⌈4·ln n/(eps²/2 − eps³/3)⌉ (Dasgupta & Gupta, 2003) promises a projection that works with a chance of 1/n only;
    with `failure` δ, ⌈2·ln(n(n−1)/δ)/(eps²/2 − eps³/3)⌉ promises all pairs with probability 1 − δ. Neither depends on
    the dimension the points come from, so that either may exceed it and then says nothing.

    Raises:
        InputError: if n < 2, or eps or failure lies outside 0 … 1.
    """
    if check_dim(n, what="n") < 2:
        raise InputError("n is 1: a distance needs at least 2 points")
    if not 0 < eps < 1:
        raise InputError(f"eps is {eps}: expected a number between 0 and 1")
    if failure is not None and not 0 < failure < 1:
        raise InputError(f"failure is {failure}: expected a probability between 0 and 1")
    wanted = 4 * np.log(n) if failure is None else 2 * np.log(n * (n - 1) / failure)
    return int(np.ceil(wanted / (eps**2 / 2 - eps**3 / 3)))


def distortion_quantiles(dim: int, probabilities: Array | list[float]) -> Array:
    """Quantiles of ‖Rx‖²/‖x‖² for a Gaussian projection onto `dim` directions: χ²_d/d, whatever x is."""
    check_dim(dim)
    q = np.asarray(probabilities, np.float64)
    if not ((q >= 0) & (q <= 1)).all():
        raise InputError(f"probabilities are {q.tolist()}: expected numbers from 0 to 1")
    return np.asarray(chi2.ppf(q, dim) / dim)


def cosine_error(dim: int, cosine: float) -> float:
    """Standard deviation of a cosine after a Gaussian projection, about (1 − ρ²)/√d."""
    check_dim(dim)
    if not -1 <= cosine <= 1:
        raise InputError(f"cosine is {cosine}: expected -1 to 1")
    return float((1 - cosine**2) / np.sqrt(dim))


def pair_distortion(X: Array, Y: Array, *, pairs: int | None = None, seed: int = 0) -> Array:
    """‖yᵢ − yⱼ‖²/‖xᵢ − xⱼ‖² of pairs of rows: 1 is undistorted.

    Args:
        X: original rows (n, D).
        Y: the same rows, reduced (n, d); scale them first if the reducer changes lengths on the whole.
        pairs: how many pairs are drawn; None takes all n(n−1)/2.
        seed: of the drawn pairs.

    Returns:
        One ratio per pair of different rows; pairs of equal rows are left out, since nothing divides by their distance.

    Raises:
        InputError: for fewer than two rows, different numbers of rows, or rows that are all equal.
    """
    X, Y = check_embeddings(X).astype(np.float64), check_embeddings(Y, "Y").astype(np.float64)
    if len(X) != len(Y):
        raise InputError(f"lengths differ: X has {len(X)} rows, Y has {len(Y)}; expected the same rows in both")
    if len(X) < 2:
        raise InputError("X has 1 row: a distance needs at least 2")
    i, j = _pairs(len(X), pairs, seed)
    before, after = ((M[i] - M[j]) for M in (X, Y))
    squared = np.einsum("nd,nd->n", before, before)
    apart = squared > 0
    if not apart.any():
        raise InputError("all rows of X are equal: there is no distance to keep")
    after = after[apart]
    return np.asarray(np.einsum("nd,nd->n", after, after) / squared[apart])


def _pairs(n: int, pairs: int | None, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    total = n * (n - 1) // 2
    if pairs is None or pairs >= total:
        i, j = np.triu_indices(n, 1)
        return i, j
    rng = np.random.default_rng(seed)
    i = rng.integers(0, n, check_dim(pairs, what="pairs"))
    j = (i + rng.integers(1, n, len(i))) % n  # never i itself
    return i, j
