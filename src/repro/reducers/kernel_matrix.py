"""Kernels of rows: values, γ, the centred matrix JKJ in blocks, and its top eigenpairs (PROTOCOLS §4.4).

Centring cancels any constant, so a kernel is computed less the constant it has at zero: on short rows, where that is
nearly all of it, nothing is lost to rounding.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import pdist

from repro.reducers.spectral import hides, orient
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array, InputError, unit_rows

KERNELS = ("rbf", "poly", "sigmoid", "cosine", "linear")
BLOCK = 512
"""rows of a kernel matrix made at once"""
WIDTH = 64
"""columns by which a Krylov space grows: wide enough for full speed, narrow enough for a high polynomial degree"""
TOLERANCE, RELATIVE = 1e-6, 1e-3
"""residual of converged pairs, relative to the largest eigenvalue, and to the smallest one asked for"""
SINGLE = 1e-5
"""an eigenvalue below this share of the largest drowns in the rounding of a matrix in single precision"""


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


def median_gamma(X: Array, *, seed: int = 0) -> float:
    """1 / median squared distance between rows of X (n, D), of 2,000 rows drawn at random where there are more."""
    if len(X) > 2000:
        X = X[make_rng(seed, "kpca median").choice(len(X), 2000, replace=False)]
    median = float(np.median(pdist(X, "sqeuclidean")))
    if not median > 0:
        raise InputError("gamma is 'median', but the median distance is 0: most rows are equal, give gamma a number")
    return 1 / median


def checked_gamma(X: Array, kernel: str, gamma: float | str | None) -> float:
    """γ as a number: 1/D for None, the rows' own for "median"; InputError for what is not positive."""
    if gamma is None:
        return 1 / X.shape[1]
    if gamma == "median" and kernel == "rbf":
        return median_gamma(X)
    if isinstance(gamma, str) or not 0 < gamma < np.inf:
        raise InputError(f"gamma is {gamma!r}: expected a number above 0, None for 1/D, or (rbf only) 'median'")
    return float(gamma)


def blocks(n: int) -> Iterator[slice]:
    """Slices of BLOCK rows."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def symmetric(
    X: Array, dtype: DTypeLike, kernel: str, *, progress: bool = False, **options: Any
) -> tuple[Array, float]:
    """The matrix (n, n) of `kernel_values` of X (n, D), each pair computed once, and their constant."""
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


def block_lanczos(K: Array, start: Array, count: int, *, progress: bool = False) -> tuple[Array, Array] | None:
    """The largest eigenvalues of K (n, n), whose rows sum to zero, and vectors; None where it is not sure of them.

    Golub and Underwood's (1977) block method with full reorthogonalisation, in K's own precision. One product with K
    per block is all that touches n² entries; the projected matrix falls out of the orthogonalisation, and the residuals
    out of its last block. With some of `start` (n, WIDTH) random, no eigenvector stays hidden.

    Returns:
        Eigenvalues (count,), descending, in float64, and orthonormal vectors (n, count) in K's precision.
    """
    n, most = len(K), WIDTH * -(-(5 * count + 6 * WIDTH) // WIDTH)  # columns at which the search is given up
    basis = np.empty((n, most), K.dtype, order="F")
    projected = np.zeros((most, most))
    with progress_bar(total=most, desc="eigenvectors", show=progress) as bar:
        step = _orthonormal(basis, 0, start.astype(K.dtype))
        for size in range(WIDTH, min(most, n - 1 - WIDTH) + 1, WIDTH):
            block = basis[:, size - WIDTH : size]
            block[:] = step[0]
            step = _orthonormal(basis, size, K @ block)
            bar.update(WIDTH)
            projected[:size, size - WIDTH : size] = step[1]
            if size < 2 * count:
                continue
            values, S = linalg.eigh(projected[:size, :size], lower=False, check_finite=False)
            top, S = values[: -count - 1 : -1], S[:, : -count - 1 : -1]
            residual = float(np.linalg.norm(step[2] @ S[-WIDTH:], axis=0).max())
            if residual <= min(TOLERANCE * top[0], RELATIVE * top[-1]):
                if hides(top, WIDTH):
                    return None
                return top, orient(basis[:, :size] @ S.astype(K.dtype)).astype(K.dtype, copy=False)
    return None


def smallest_of(K: Array, largest: float) -> float:
    """The smallest eigenvalue of K (n, n) to 1e-6 of the largest, as the top one of what is missing to it."""
    missing = LinearOperator(K.shape, matvec=lambda v: largest * v - K @ v.astype(K.dtype), dtype=np.float64)
    start = make_rng(0, "kpca smallest").standard_normal(len(K))
    return largest - float(eigsh(missing, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)[0])


def _orthonormal(basis: Array, size: int, Z: Array) -> tuple[Array, Array, Array]:
    """Z (n, WIDTH) as Q·R, orthogonal to the constant and the first `size` columns, plus basis · C: Q, C and R."""
    C, R, left = np.zeros((size, Z.shape[1])), np.eye(Z.shape[1]), 2
    for _ in range(8):  # once loses orthogonality, twice is enough (Parlett, 1980)
        Z = Z - Z.mean(0)
        part = basis[:, :size].T @ Z
        Z -= basis[:, :size] @ part
        C += part @ R
        wide = Z.astype(np.float64, copy=False)
        try:
            factor = np.linalg.cholesky(wide.T @ wide).T
            wide = linalg.solve_triangular(factor, wide.T, trans="T", check_finite=False).T
        except np.linalg.LinAlgError:  # fewer directions than columns: the others are arbitrary, so once more
            wide, factor = np.linalg.qr(wide)
            left = 3
        Z, R, left = wide.astype(Z.dtype, order="F"), factor @ R, left - 1
        if not left:
            break
    return Z, C, R
