"""The top eigenpairs of a large centred kernel matrix, by block Lanczos in its own precision.

Golub and Underwood's (1977) block method with full reorthogonalisation. One product with the matrix per block is all
that touches n² entries; the projected matrix falls out of the orthogonalisation, and the residuals of the pairs out
of its last block, so that looking whether they have converged costs nothing of size n.
"""

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from repro.reducers.spectral import orient
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array

WIDTH = 64
"""columns of a block: wide enough for full speed of the product, narrow enough for a high polynomial degree"""
TOLERANCE = 1e-6
"""residual of converged pairs, relative to the largest eigenvalue"""
RELATIVE = 1e-3
"""and relative to the smallest one asked for"""
SINGLE = 1e-5
"""an eigenvalue below this share of the largest drowns in the rounding of a matrix in single precision"""


def block_lanczos(
    K: Array, start: Array, count: int, *, progress: bool = False
) -> tuple[Array, Array, float, float] | None:
    """The largest eigenvalues of K, or None where the method is not sure to have found them.

    Args:
        K: symmetric (n, n), float32 or float64, whose rows sum to zero but for rounding.
        start: first block (n, WIDTH); with some of it random, no eigenvector stays hidden.
        count: how many.
        progress: show a bar of columns.

    Returns:
        Eigenvalues (count,), descending, in float64; orthonormal vectors (n, count) in K's precision; the smallest
        Ritz value, which lies above K's smallest eigenvalue; and the largest residual, as a share of the largest
        eigenvalue.
    """
    n, most = len(K), most_columns(count)
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
                if _hides(top):
                    return None
                vectors = basis[:, :size] @ S.astype(K.dtype)
                return top, orient(vectors).astype(K.dtype, copy=False), float(values[0]), residual / top[0]
    return None


def most_columns(count: int) -> int:
    """Size of the Krylov space at which the search for `count` pairs is given up."""
    return WIDTH * -(-(5 * count + 6 * WIDTH) // WIDTH)


def smallest_of(K: Array, largest: float) -> float:
    """The smallest eigenvalue of K (n, n) to 1e-6 of the largest, as the top one of what is missing to it."""
    missing = LinearOperator(K.shape, matvec=lambda v: largest * v - K @ v.astype(K.dtype), dtype=np.float64)
    start = make_rng(0, "kpca smallest").standard_normal(len(K))
    return largest - float(eigsh(missing, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)[0])


def _orthonormal(basis: Array, size: int, Z: Array) -> tuple[Array, Array, Array]:
    """Split Z (n, WIDTH) into QR orthogonal to the constant and the first `size` columns, plus basis · C.

    Returns:
        Q (n, WIDTH), C (size, WIDTH) and R (WIDTH, WIDTH).
    """
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


def _hides(values: Array) -> bool:
    """Whether an eigenvalue shows WIDTH times: it may be there more often, with vectors the space cannot hold."""
    spread = values[: max(0, len(values) - WIDTH + 1)] - values[WIDTH - 1 :]
    return bool((spread < 1e-11 * values[0]).any())
