"""Kernels: the matrix of their values, centred or not, the width that suits the rows, and what a
matrix must be for eigenvalues to be asked of it.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import pdist

from repro.reducers.neighbors import blocks_of, square_norms
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array, InputError, is_number, unit_rows

KERNELS = ("rbf", "poly", "sigmoid", "cosine", "linear")
BLOCK = 512  # Rows of a kernel matrix made at once
TOLD = 1e-5  # Error of an exponent from which on a value of rbf tells it
# Squared distance, relative to the squared norms, below which inner products then lose it
CLOSE = 1e-2


def kernel_values(
    A: Array,
    B: Array,
    kernel: str,
    *,
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 1.0,
) -> tuple[Array, float]:
    """Kernel of every row of A (m, D) with every row of B (n, D), as (m, n) values and the constant
    to add to each.

    rbf exp(−γ|a − b|²), poly (γ a·b + c)^degree, sigmoid tanh(γ a·b + c), cosine a·b / |a||b|,
    linear a·b.
    """
    if kernel == "cosine":
        A, B = unit_rows(A), unit_rows(B)
    if kernel == "rbf":
        K = _exponents(A, B, gamma)
        return np.expm1(K, out=K), 1.0
    K = A @ B.T
    if kernel in ("cosine", "linear"):
        return K, 0.0
    K *= gamma
    K += coef0
    constant = coef0**degree if kernel == "poly" else float(np.tanh(coef0))
    if kernel == "sigmoid":
        np.tanh(K, out=K)
    else:
        base = K.copy()
        # Products: numpy's power takes a hundred times as long below zero
        for _ in range(degree - 1):
            K *= base
    K -= constant
    return K, constant


def _exponents(A: Array, B: Array, gamma: float) -> Array:
    """−γ|a − b|² (m, n), from inner products; of long rows that lie close to one another from their
    differences, so that a row's value with itself is 1 at any scale.
    """
    squares_a, squares_b = square_norms(A), square_norms(B)
    K = A @ B.T
    K *= 2 * gamma
    K -= gamma * squares_a[:, None]
    K -= gamma * squares_b
    longest = float(squares_a.max(initial=0)) + float(squares_b.max(initial=0))
    if 4 * np.finfo(K.dtype).eps * gamma * longest > TOLD:
        reach = CLOSE * gamma * np.add.outer(squares_a, squares_b)
        near, far = np.nonzero(K + reach > 0)
        for part in blocks_of(len(near), A.shape[1]):
            differences = A[near[part]].astype(np.float64) - B[far[part]]
            K[near[part], far[part]] = -gamma * square_norms(differences)
    return np.asarray(np.minimum(K, 0, out=K))  # Above 0 by rounding alone


def median_gamma(X: Array) -> float:
    """1 / median squared distance between rows of X (n, D), of 2,000 rows drawn at random where
    there are more.
    """
    if len(X) > 2000:
        X = X[make_rng(0, "kpca median").choice(len(X), 2000, replace=False)]
    median = float(np.median(pdist(X, "sqeuclidean")))
    if not median > 0:
        raise InputError(
            "gamma is 'median', but the median distance is 0: most rows are equal, give gamma a "
            "number"
        )
    return 1 / median


def checked_gamma(X: Array, kernel: str, gamma: float | str | None) -> float:
    """γ as a number: 1/D for None, the rows' own for "median"; InputError for what is not
    positive.
    """
    if gamma is None:
        return 1 / X.shape[1]
    if gamma == "median" and kernel == "rbf":
        return median_gamma(X)
    if not (is_number(gamma) and 0 < gamma < np.inf):
        raise InputError(
            f"gamma is {gamma!r}: expected a number above 0, None for 1/D, or (rbf only) 'median'"
        )
    return float(gamma)


def symmetric(
    X: Array,
    dtype: DTypeLike,
    kernel: str,
    *,
    progress: bool = False,
    **options: Any,
) -> tuple[Array, float]:
    """The matrix (n, n) of `kernel_values` of X (n, D), each pair computed once, and their
    constant.
    """
    n, constant = len(X), 0.0
    K = np.empty((n, n), dtype)
    for rows in progress_bar(blocks_of(n, 1, BLOCK), desc="kernel matrix", show=progress):
        part, constant = kernel_values(X[rows], X[rows.start :], kernel, **options)
        K[rows, rows.start :] = part
        K[rows.start :, rows] = part.T
    return K, constant


def centre(K: Array) -> Array:
    """Turn K (n, n) into JKJ in place; returns the means (n,) that its columns had."""
    blocks = list(blocks_of(len(K), 1, BLOCK))
    means = np.concatenate([K[rows].mean(1, dtype=np.float64) for rows in blocks])
    of_rows = means - means.mean()
    for rows in blocks:
        K[rows] -= (of_rows[rows, None] + means).astype(K.dtype)
    return means


def add_noise(K: Array, scale: float, rng: np.random.Generator) -> None:
    """Add symmetric Gaussian noise to K (n, n) in place."""
    for rows in blocks_of(len(K), 1, BLOCK):
        noise = scale * rng.standard_normal((rows.stop - rows.start, len(K) - rows.start))
        square = noise[:, : len(noise)]
        square[:] = np.triu(square) + np.triu(square, 1).T
        K[rows, rows.start :] += noise.astype(K.dtype)
        K[rows.stop :, rows] += noise[:, len(noise) :].T.astype(K.dtype)


def smallest_of(K: Array, largest: float) -> float:
    """The smallest eigenvalue of K (n, n) to 1e-6 of the largest, as the top one of what is missing
    to it.
    """
    missing = LinearOperator(
        K.shape, matvec=lambda v: largest * v - K @ v.astype(K.dtype), dtype=np.float64
    )
    start = make_rng(0, "kpca smallest").standard_normal(len(K))
    return largest - float(
        eigsh(missing, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)[0]
    )


def check_overflow(values: Array) -> None:
    """Refuse eigenvalues whose roots, of which the scores are made, leave single precision."""
    if not (np.abs(values) < 1e60).all():
        raise InputError("kernel values overflow: scale X down, or lower gamma or degree")
