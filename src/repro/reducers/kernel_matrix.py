"""Kernels of rows: values, γ, and the centred matrix JKJ in blocks (PROTOCOLS §4.4).

Centring cancels any constant, so a kernel is computed less the constant it has at zero: on short rows, where that is
nearly all of it, nothing is lost to rounding.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg
from scipy.spatial.distance import pdist

from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array, InputError, check_embeddings, one_of

KERNELS = ("rbf", "poly", "sigmoid", "cosine", "linear")
BLOCK = 512
"""rows of a kernel matrix made at once"""


def kernel_values(
    A: Array, B: Array, kernel: str, *, gamma: float = 1.0, degree: int = 3, coef0: float = 1.0
) -> tuple[Array, float]:
    """Kernel of every row of A (m, D) with every row of B (n, D), as (m, n) values and the constant to add to each.

    rbf exp(−γ|a − b|²), poly (γ a·b + c)^degree, sigmoid tanh(γ a·b + c), cosine a·b / |a||b|, linear a·b.
    """
    if kernel == "cosine":
        A, B = unit_rows(A), unit_rows(B)
    K = A @ B.T
    if kernel == "rbf":
        K *= 2 * gamma
        K -= gamma * np.einsum("ij,ij->i", A, A)[:, None]
        K -= gamma * np.einsum("ij,ij->i", B, B)
        np.minimum(K, 0, out=K)  # minus a squared distance, but for rounding
        return np.expm1(K, out=K), 1.0
    if kernel in ("cosine", "linear"):
        return K, 0.0
    K *= gamma
    K += coef0
    constant = coef0**degree if kernel == "poly" else float(np.tanh(coef0))
    if kernel == "sigmoid":
        np.tanh(K, out=K)
    else:
        base = K.copy()
        for _ in range(degree - 1):  # products: numpy's power takes a hundred times as long below zero
            K *= base
    K -= constant
    return K, constant


def unit_rows(X: Array) -> Array:
    """Rows divided by their lengths; a zero row stays zero."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


def median_gamma(X: Array, *, seed: int = 0) -> float:
    """1 / median squared distance between rows of X (n, D), of 2,000 rows drawn at random where there are more.

    Raises:
        InputError: if most rows are equal.
    """
    if len(X) > 2000:
        X = X[make_rng(seed, "kpca median").choice(len(X), 2000, replace=False)]
    median = float(np.median(pdist(X, "sqeuclidean")))
    if not median > 0:
        raise InputError("gamma is 'median', but the median distance is 0: most rows are equal, give gamma a number")
    return 1 / median


def smallest_eigenvalue(
    X: Any, kernel: str = "rbf", *, gamma: float | str | None = None, degree: int = 3, coef0: float = 1.0
) -> float:
    """The smallest eigenvalue of the kernel matrix of X (n, D), uncentred: below zero, it is not positive definite.

    Of more rows than 4,000 take some: no part of a matrix has a smaller eigenvalue than the whole (Cauchy).

    Raises:
        InputError: for unusable X, more than 4,000 rows, or an unknown kernel.
    """
    X = check_embeddings(X).astype(np.float64)
    if len(X) > 4000:
        raise InputError(f"X has {len(X)} rows: expected at most 4,000, of which a sample bounds the rest from above")
    number = checked_gamma(X, one_of(kernel, KERNELS, "kernel"), gamma)
    K, constant = kernel_values(X, X, kernel, gamma=number, degree=degree, coef0=coef0)
    return float(linalg.eigvalsh(K + constant, overwrite_a=True, check_finite=False)[0])


def checked_gamma(X: Array, kernel: str, gamma: float | str | None) -> float:
    """γ as a number: 1/D for None, the rows' own for "median".

    Raises:
        InputError: for anything else that is not a positive number.
    """
    if gamma is None:
        return 1 / X.shape[1]
    if gamma == "median" and kernel == "rbf":
        return median_gamma(X)
    if isinstance(gamma, str) or not 0 < gamma < np.inf:
        raise InputError(f"gamma is {gamma!r}: expected a number above 0, None for 1/D, or (rbf only) 'median'")
    return float(gamma)


def kernel_matrix(
    X: Array, dtype: DTypeLike, kernel: str, *, progress: bool = False, **options: Any
) -> tuple[Array, float]:
    """The symmetric matrix (n, n) of `kernel_values` of X (n, D), each pair computed once, and their constant."""
    n, constant = len(X), 0.0
    K = np.empty((n, n), dtype)
    for rows in progress_bar(list(blocks(n)), desc="kernel matrix", show=progress):
        part, constant = kernel_values(X[rows], X[rows.start :], kernel, **options)
        K[rows, rows.start :] = part
        K[rows.start :, rows] = part.T
    return K, constant


def centre(K: Array) -> Array:
    """Turn K (n, n) into JKJ in place; returns the means (n,) that its columns had."""
    means = np.concatenate([K[rows].mean(1, dtype=np.float64) for rows in blocks(len(K))])
    for rows in blocks(len(K)):
        K[rows] -= ((means[rows] - means.mean())[:, None] + means).astype(K.dtype)
    return means


def add_noise(K: Array, scale: float, rng: np.random.Generator) -> None:
    """Add symmetric Gaussian noise to K (n, n) in place."""
    for rows in blocks(len(K)):
        noise = scale * rng.standard_normal((rows.stop - rows.start, len(K) - rows.start))
        square = noise[:, : len(noise)]
        square[:] = np.triu(square) + np.triu(square, 1).T
        K[rows, rows.start :] += noise.astype(K.dtype)
        K[rows.stop :, rows] += noise[:, len(noise) :].T.astype(K.dtype)


def blocks(n: int) -> Iterator[slice]:
    """Slices of BLOCK rows."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))
