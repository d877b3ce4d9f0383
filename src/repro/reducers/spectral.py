"""Eigenproblems of the reducers: signs fixed, a few eigenvectors out of many."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from repro.reducers.reducer import check_memory
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array

log = logging.getLogger(__name__)
WIDTH = 64
"""Columns by which kernel PCA's space grows: wide enough for full speed, narrow enough for a high
polynomial degree.
"""
# Columns for Isomap and LLE; steps of inverse iteration at most, 4 or so for 13,000 rows
NARROW, ROUNDS = 24, 12
RESIDUAL = 1e-5  # Of their converged pairs, relative to the largest eigenvalue among them
# Of the dense solver for each of the n² entries: the matrix and a copy in double precision
DENSE_BYTES = 17


def orient(V: Array) -> Array:
    """The columns of V (n, p), each with its entry of largest modulus positive (the first, if
    several tie).
    """
    size = np.abs(V)
    # Entries within rounding of the largest count as tied, so that the choice does not hang on the
    # last bit
    largest = np.argmax(size >= size.max(0) * (1 - 1e-9), axis=0)
    signs = np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0)
    return np.asarray(V * signs)


def top_eigenpairs(B: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues (count,), descending, and vectors (n, count) of a symmetric B (n, n),
    overwritten.

    The constant vector, which lies in its null space, is left aside.
    """
    n = len(B)
    pairs = _krylov(B, count) if _few(n, count) else None
    if pairs is None:
        _take_over(n, count)
        top = linalg.eigh(
            B,
            subset_by_index=(n - count, n - 1),
            overwrite_a=True,
            check_finite=False,
        )
        pairs = top[0][::-1], top[1][:, ::-1]
    return pairs[0], orient(pairs[1])


def bottom_eigenpairs(A: Any, count: int) -> tuple[Array, Array]:
    """The smallest eigenvalues (count,), ascending, and vectors (n, count) of M = AᵀA, the constant
    vector aside.

    A few of many come from a Krylov space of the inverse; a dense solver takes over when many are
    asked for, or when the space does not show that it found them all. A is sparse (n, n), with the
    constant vector in its null space.
    """
    M = A.T.tocsr() @ A
    pairs = _inverse_krylov(A, M, count) if _few(M.shape[0], count, 8) else None
    if pairs is None:
        _take_over(len(M.indptr) - 1, count)
        pairs = _dense(M, count)
    return np.maximum(pairs[0], 0.0), orient(pairs[1])


def check_bottom_memory(n: int, count: int) -> None:
    """Refuse n rows whose matrix `bottom_eigenpairs` has no memory for."""
    # 4 in single precision, and what is sparse
    check_memory(n, (5 if _few(n, count, 8) else DENSE_BYTES) * n * n)


def _take_over(n: int, count: int) -> None:
    """Say that the dense solver begins, which takes n³ steps, if it can."""
    if n >= 1000:
        log.warning(
            "%d eigenvectors of %s rows are left to the dense solver, which may take long",
            count,
            f"{n:,}",
        )
    check_memory(n, DENSE_BYTES * n * n)


def _dense(M: Any, count: int) -> tuple[Array, Array]:
    lifted = M.toarray()
    lifted += 2 * max(_bound(M), 1.0) / len(lifted)  # The constant vector ends above all others
    values, vectors = linalg.eigh(
        lifted,
        subset_by_index=(0, count - 1),
        overwrite_a=True,
        check_finite=False,
    )
    return values, vectors


def _few(n: int, count: int, times: int = 12) -> bool:
    """Whether a Krylov space of `times` the eigenvectors wanted, which finds them, is small beside
    n.
    """
    return n >= max(times * count, 1000)


def _krylov(B: Array, count: int) -> tuple[Array, Array] | None:
    """The top pairs from a block Krylov space of B, or None where its result is not sure."""
    first, most = max(7 * count, 8 * NARROW), max(9 * count, 12 * NARROW)
    return block_lanczos(
        B.__matmul__, _start(len(B)), count, first=first, most=most, close=lambda v: RESIDUAL * v[0]
    )


def _start(n: int) -> Array:
    return make_rng(0, "krylov", n).standard_normal((n, NARROW))


def hides(values: Array, width: int) -> bool:
    """Whether one of sorted eigenvalues shows `width` times: the space may lack vectors of it, if
    it held no more.
    """
    spread = np.abs(values[width - 1 :] - values[: max(0, len(values) - width + 1)])
    return bool((spread < 1e-11 * np.abs(values).max()).any())


def _inverse_krylov(A: Any, M: Any, count: int) -> tuple[Array, Array] | None:
    """The same from a block Krylov space of M⁻¹, or None where its result is not sure.

    M⁻¹ only steers the search, so its Cholesky factor is in single precision, lifted by 1e-6 of M's
    bound to stay definite, and so is the Krylov space. Eigenvalues, vectors and residuals are M's
    own, by Rayleigh and Ritz in double precision, after a step of inverse iteration that takes out
    what single precision left (Wilkinson, 1965).
    """
    n, bound = M.shape[0], _bound(M)
    # Symmetric: the transpose has the order that LAPACK overwrites
    lifted = M.astype(np.float32).toarray().T
    lifted += np.float32(2 * bound / n)  # The constant vector, of eigenvalue 0, moves away
    lifted[np.arange(n), np.arange(n)] += np.float32(1e-6 * bound)
    factor, failed = lapack.spotrf(lifted, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    start, first, most = (
        _start(n).astype(np.float32),
        max(7 * count // 2, 8 * NARROW),
        max(9 * count, 12 * NARROW),
    )
    options: dict[str, Any] = {
        "first": first,
        "most": min(most, n // 2),
        "more": max(NARROW // 2, count // 3),
    }
    found = block_lanczos(
        partial(_solve, factor), start, count, close=lambda v: RESIDUAL / 2 * v, **options
    )
    if found is None:
        return None
    V = found[1].astype(np.float64)
    images = A.T @ (A @ V)  # Of M; A has far fewer entries
    residuals = images - V * np.einsum("ij,ij->j", V, images)
    for _ in range(ROUNDS):
        V = V - _solve(factor, residuals)  # (M + lift)⁻¹V, each column by its own factor
        V -= V.mean(0)
        images = A.T @ (A @ V)
        try:
            values, S = linalg.eigh(V.T @ images, V.T @ V, check_finite=False)
        except linalg.LinAlgError:  # Dependent columns
            return None
        V, images = V @ S, images @ S
        residuals = images - V * values
        if np.linalg.norm(residuals[:, :count], axis=0).max() <= RESIDUAL * values[count - 1]:
            return None if hides(values[:count], NARROW) else (values[:count], V[:, :count])
    return None


def _solve(factor: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹B of B (n, any), in single precision, for the lower triangle L in `factor`."""
    Y = blas.strsm(1.0, factor, np.asfortranarray(B, np.float32), lower=1)
    return np.asarray(blas.strsm(1.0, factor, Y, lower=1, trans_a=1, overwrite_b=1))


def _bound(M: Any) -> float:
    """No eigenvalue of M exceeds its largest absolute row sum."""
    return float(abs(M).sum(axis=1).max())


def block_lanczos(
    apply: Callable[[Array], Array],
    start: Array,
    count: int,
    *,
    first: int,
    most: int,
    close: Callable[[Array], Any],
    more: int = 0,
    progress: bool = False,
) -> tuple[Array, Array] | None:
    """The largest eigenvalues of a symmetric operator on n numbers that sum to zero, and vectors;
    None where not sure.

    Golub and Underwood's (1977) block method with full reorthogonalisation, in the precision of
    `start` (n, width): one product per block is all that touches the operator. With some of `start`
    random, no eigenvector stays hidden. From `first` columns to `most` the residuals, read off the
    recurrence, are compared with what `close` makes of the values (count,), descending; the vectors
    (n, count) are orthonormal. `more` vectors come along, whatever their residuals.
    """
    n, width = start.shape
    most = min(width * -(-most // width), n - 1 - width)
    basis = np.empty((n, most), start.dtype, order="F")
    projected = np.zeros((most, most))
    with progress_bar(total=most, desc="eigenvectors", show=progress) as bar:
        step = _orthogonal(basis, 0, start)
        for size in range(width, most + 1, width):
            block = basis[:, size - width : size]
            block[:] = step[0]
            step = _orthogonal(basis, size, apply(block))
            bar.update(width)
            projected[:size, size - width : size] = step[1]
            if size < first:
                continue
            first = size + size // 8
            values, S = linalg.eigh(
                projected[:size, :size],
                lower=False,
                driver="evd",
                check_finite=False,
            )
            largest = slice(None, -count - more - 1, -1)  # Ascending as they come
            values, S = values[largest], S[:, largest]
            residuals = np.linalg.norm(step[2] @ S[-width:], axis=0)[:count]
            if (residuals <= close(values[:count])).all():
                if hides(values[:count], width):
                    return None
                return values, basis[:, :size] @ S.astype(start.dtype)
    return None


def _orthogonal(basis: Array, size: int, Z: Array) -> tuple[Array, Array, Array]:
    """Z (n, WIDTH) as Q·R, orthogonal to the constant and the first `size` columns, plus basis · C:
    Q, C and R.
    """
    C = np.zeros((size, Z.shape[1]))
    R = np.eye(Z.shape[1])
    left = 2
    for _ in range(8):  # Once loses orthogonality, twice is enough (Parlett, 1980)
        Z = Z - Z.mean(0)
        part = basis[:, :size].T @ Z
        Z -= basis[:, :size] @ part
        C += part @ R
        wide = Z.astype(np.float64, copy=False)
        try:
            factor = np.linalg.cholesky(wide.T @ wide).T
            wide = linalg.solve_triangular(factor, wide.T, trans="T", check_finite=False).T
        # Fewer directions than columns: the others are arbitrary, so once more
        except np.linalg.LinAlgError:
            wide, factor = np.linalg.qr(wide)
            left = 3
        Z, R, left = wide.astype(Z.dtype, order="F"), factor @ R, left - 1
        if not left:
            break
    return Z, C, R
