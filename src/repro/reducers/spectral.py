"""Eigenproblems of the reducers: signs fixed, a few eigenvectors out of many."""

import logging
from collections.abc import Callable
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
"""columns by which a Krylov space grows: wide enough for full speed, narrow enough for a high polynomial degree"""
TOLERANCE, RELATIVE = 1e-6, 1e-3
"""residual of converged pairs, relative to the largest eigenvalue, and to the smallest one asked for"""
NARROW, ROUNDS = 24, 3  # vectors by which the other Krylov spaces grow at once, and steps of inverse iteration at most
RESIDUAL = 1e-5  # of their converged pairs, relative to the largest eigenvalue among them
DENSE_BYTES = 17  # of the dense solver for each of the n² entries: the matrix and a copy in double precision


def orient(V: Array) -> Array:
    """The columns of V (n, p), each with its entry of largest modulus positive (the first, if several tie)."""
    size = np.abs(V)
    # entries within rounding of the largest count as tied, so that the choice does not hang on the last bit
    largest = np.argmax(size >= size.max(0) * (1 - 1e-9), axis=0)
    return np.asarray(V * np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0))


def top_eigenpairs(B: Array, count: int) -> tuple[Array, Array]:
    """The largest eigenvalues (count,), descending, and vectors (n, count) of a symmetric B (n, n), overwritten.

    The constant vector, which lies in its null space, is left aside.
    """
    n = len(B)
    pairs = _krylov(B, count) if _few(n, count) else None
    if pairs is None:
        _take_over(n, count)
        top = linalg.eigh(B, subset_by_index=(n - count, n - 1), overwrite_a=True, check_finite=False)
        pairs = top[0][::-1], top[1][:, ::-1]
    return pairs[0], orient(pairs[1])


def bottom_eigenpairs(A: Any, count: int) -> tuple[Array, Array]:
    """The smallest eigenvalues (count,), ascending, and vectors (n, count) of M = AᵀA, the constant vector aside.

    A few of many come from a Krylov space of the inverse; a dense solver takes over when many are asked for, or when
    the space does not show that it found them all. A is sparse (n, n), with the constant vector in its null space.
    """
    M = A.T.tocsr() @ A
    pairs = _inverse_krylov(A, M, count) if _few(M.shape[0], count, 8) else None
    if pairs is None:
        _take_over(len(M.indptr) - 1, count)
        pairs = _dense(M, count)
    return np.maximum(pairs[0], 0.0), orient(pairs[1])


def check_bottom_memory(n: int, count: int) -> None:
    """Refuse n rows whose matrix `bottom_eigenpairs` has no memory for."""
    check_memory(n, (5 if _few(n, count, 8) else DENSE_BYTES) * n * n)  # 4 in single precision, and what is sparse


def _take_over(n: int, count: int) -> None:
    """Say that the dense solver begins, which takes n³ steps, if it can."""
    if n >= 1000:
        log.warning("%d eigenvectors of %s rows are left to the dense solver, which may take long", count, f"{n:,}")
    check_memory(n, DENSE_BYTES * n * n)


def _dense(M: Any, count: int) -> tuple[Array, Array]:
    lifted = M.toarray()
    lifted += 2 * max(_bound(M), 1.0) / len(lifted)  # the constant vector ends above all others
    values, vectors = linalg.eigh(lifted, subset_by_index=(0, count - 1), overwrite_a=True, check_finite=False)
    return values, vectors


def _few(n: int, count: int, times: int = 12) -> bool:
    """Whether a Krylov space of `times` the eigenvectors wanted, which finds them, is small beside n."""
    return n >= max(times * count, 1000)


def _krylov(B: Array, count: int) -> tuple[Array, Array] | None:
    """The top pairs from a block Krylov space of B, or None where its result is not sure."""
    n = len(B)
    last = max(9 * count, 12 * NARROW)
    basis = np.empty((n, last + NARROW), order="F")
    images = np.empty_like(basis)  # of B
    Z = make_rng(0, "krylov", n).standard_normal((n, NARROW))
    for size in range(0, last, NARROW):
        images[:, size : size + NARROW] = B @ _extend(basis, size, Z)
        Z = images[:, size : size + NARROW]
        if size + NARROW >= last or 0 <= size + NARROW - max(7 * count, 8 * NARROW) < NARROW:
            values, vectors, residuals = _ritz(basis[:, : size + NARROW], -images[:, : size + NARROW], count)
            if np.linalg.norm(residuals, axis=0).max() <= RESIDUAL * np.abs(values).max():
                return None if hides(values, NARROW) else (-values, vectors)
    return None


def _ritz(basis: Array, images: Array, count: int) -> tuple[Array, Array, Array]:
    """Lowest values (count,), vectors and residuals (n, count) of an operator on the span of the basis (n, size)."""
    projected = basis.T @ images
    values, S = linalg.eigh(projected, subset_by_index=(0, count - 1), overwrite_a=True, check_finite=False)
    vectors = basis @ S
    return values, vectors, images @ S - vectors * values


def hides(values: Array, width: int) -> bool:
    """Whether one of sorted eigenvalues shows `width` times: the space may lack vectors of it, if it held no more."""
    spread = np.abs(values[width - 1 :] - values[: max(0, len(values) - width + 1)])
    return bool((spread < 1e-11 * np.abs(values).max()).any())


def _inverse_krylov(A: Any, M: Any, count: int) -> tuple[Array, Array] | None:
    """The same from a block Krylov space of M⁻¹, or None where its result is not sure.

    M⁻¹ only steers the search, so its Cholesky factor is in single precision, lifted by 1e-6 of M's bound to stay
    definite, and so is the Krylov space. Eigenvalues, vectors and residuals are M's own, by Rayleigh and Ritz in
    double precision, after a step of inverse iteration that takes out what single precision left (Wilkinson, 1965).
    """
    n, bound = M.shape[0], _bound(M)
    lifted = M.astype(np.float32).toarray().T  # symmetric: the transpose has the order that LAPACK overwrites
    lifted += np.float32(2 * bound / n)  # the constant vector, of eigenvalue 0, moves away
    lifted[np.arange(n), np.arange(n)] += np.float32(1e-6 * bound)
    factor, failed = lapack.spotrf(lifted, lower=1, overwrite_a=1, clean=0)
    V = None if failed else _lanczos(lambda Z: _solve(factor, Z), n, count)
    if V is None:
        return None
    images = A.T @ (A @ V)  # of M; A has far fewer entries
    residuals = images - V * np.einsum("ij,ij->j", V, images)
    for _ in range(ROUNDS):
        V = _orthonormal(V - _solve(factor, residuals))  # (M + lift)⁻¹V, each column by its own factor
        if V is None:
            return None
        values, V, residuals = _ritz(V, A.T @ (A @ V), V.shape[1])
        if np.linalg.norm(residuals[:, :count], axis=0).max() <= RESIDUAL * values[count - 1]:
            return None if hides(values[:count], NARROW) else (values[:count], V[:, :count])
    return None


def _lanczos(apply: Callable[[Array], Array], n: int, count: int) -> Array | None:
    """The `count` leading Ritz vectors, and a few more, of a positive definite operator (n, n), in single precision.

    Block Lanczos with full reorthogonalisation (Golub and Underwood, 1977) until every residual, read off the
    recurrence, is within a fraction of RESIDUAL of its value; None where the space grows too large for that.
    """
    check, last = max(7 * count // 2, 8 * NARROW), min(max(9 * count, 12 * NARROW), n // 2)
    basis = np.empty((n, last + NARROW), np.float32, order="F")
    T = np.zeros((last, last))  # the operator on the basis; its upper triangle
    basis[:, :NARROW] = np.linalg.qr(_centred(make_rng(0, "krylov", n).standard_normal((n, NARROW))))[0]
    for size in range(NARROW, last + 1, NARROW):
        newest = slice(size - NARROW, size)
        Z = _centred(apply(basis[:, newest]))
        for first in (max(0, size - 2 * NARROW), 0):  # the recurrence's own two blocks, then what rounding left of all
            overlaps = basis[:, first:size].T @ Z
            Z -= basis[:, first:size] @ overlaps
            T[first:size, newest] += overlaps
        basis[:, size : size + NARROW], coupling = np.linalg.qr(Z)
        if size >= check:
            values, S = linalg.eigh(T[:size, :size], lower=False, driver="evd", check_finite=False)
            values, S = values[: -count - 1 - NARROW // 2 : -1], S[:, : -count - 1 - NARROW // 2 : -1]
            residuals = np.linalg.norm(coupling @ S[newest], axis=0)[:count]
            if (residuals <= RESIDUAL / 2 * values[:count]).all():
                return (basis[:, :size] @ S.astype(np.float32)).astype(np.float64)
            check = size + size // 8
    return None


def _centred(Z: Array) -> Array:
    return np.asarray(Z - Z.mean(0), np.float32)


def _orthonormal(V: Array) -> Array | None:
    """Columns, nearly orthonormal already, made so and orthogonal to the constant; None if they are dependent."""
    V = V - V.mean(0)
    try:
        R = linalg.cholesky(V.T @ V, check_finite=False)
    except linalg.LinAlgError:
        return None
    return np.asarray(linalg.solve_triangular(R, V.T, trans=1, check_finite=False).T)


def _extend(basis: Array, size: int, Z: Array) -> Array:
    """Write Z, made orthonormal and orthogonal to the constant and the first `size` columns, into the next ones."""
    Z = Z - Z.mean(0)
    for _ in range(2):  # once loses orthogonality, twice is enough (Parlett, 1980)
        Z -= basis[:, :size] @ (basis[:, :size].T @ Z)
    Z = np.linalg.qr(Z)[0]
    basis[:, size : size + Z.shape[1]] = Z
    return Z


def _solve(factor: Array, B: Array) -> Array:
    """(LLᵀ)⁻¹B of B (n, any), in single precision, for the lower triangle L in `factor`."""
    Y = blas.strsm(1.0, factor, np.asfortranarray(B, np.float32), lower=1)
    return np.asarray(blas.strsm(1.0, factor, Y, lower=1, trans_a=1, overwrite_b=1))


def _bound(M: Any) -> float:
    """No eigenvalue of M exceeds its largest absolute row sum."""
    return float(abs(M).sum(axis=1).max())


def block_lanczos(K: Array, start: Array, count: int, *, progress: bool = False) -> tuple[Array, Array] | None:
    """The largest eigenvalues of K (n, n), whose rows sum to zero, and vectors; None where it is not sure of them.

    Golub and Underwood's (1977) block method with full reorthogonalisation, in K's own precision: one product with K
    per block is all that touches n² entries. With some of `start` (n, WIDTH) random, no eigenvector stays hidden. The
    values (count,) are in descending order, the vectors (n, count) orthonormal.
    """
    n, most = len(K), WIDTH * -(-(5 * count + 6 * WIDTH) // WIDTH)  # columns at which the search is given up
    basis = np.empty((n, most), K.dtype, order="F")
    projected = np.zeros((most, most))
    with progress_bar(total=most, desc="eigenvectors", show=progress) as bar:
        step = _orthogonal(basis, 0, start.astype(K.dtype))
        for size in range(WIDTH, min(most, n - 1 - WIDTH) + 1, WIDTH):
            block = basis[:, size - WIDTH : size]
            block[:] = step[0]
            step = _orthogonal(basis, size, K @ block)
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


def _orthogonal(basis: Array, size: int, Z: Array) -> tuple[Array, Array, Array]:
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
