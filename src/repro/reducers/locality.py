"""Neighbours and local reconstruction: the weights and the matrix M of locally linear methods (PROTOCOLS §4.7).

Each point is written as the combination of its k nearest neighbours that comes closest to it, with weights that
sum to one (Roweis and Saul, 2000). The embedding that keeps those weights is spanned by the bottom eigenvectors
of M = (I − W)ᵀ(I − W).
"""

import warnings
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from repro.reducers.spectral import bottom_eigenpairs
from repro.types import Array, InputError, check_dim

Indices: TypeAlias = NDArray[np.int64]
BLOCK = 2**20
"""entries of a block of distances or of differences to neighbours: it stays in cache"""
NULL = 1e-10
"""eigenvalues of M below this are null"""


def check_neighbors(n_neighbors: Any, n: int) -> int:
    """Return k as an int in 1 … n − 1.

    Raises:
        InputError: if it is not; the message gives the limit.
    """
    try:
        return check_dim(n_neighbors, limit=n - 1, what="n_neighbors")
    except InputError as error:
        raise InputError(f"{error} (n - 1 of {n} rows): fit on more rows or ask for fewer neighbours") from None


def nearest(X: Array, k: int, Q: Array | None = None) -> Indices:
    """The k rows of X (n, D) nearest to each query by Euclidean distance, ties going to the smaller index.

    scikit-learn's search settles every row whose k-th and next distances differ by more than rounding; in the
    others, which hold ties or duplicates, the distances are computed from differences, equal for equal rows.

    Args:
        X: fitted rows (n, D).
        k: how many.
        Q: queries (m, D); None asks for the neighbours of X's own rows, themselves excluded.

    Returns:
        Indices (m, k), each row ascending.

    Raises:
        InputError: for k below 1 or above n, without Q above n − 1.
    """
    n, D = X.shape
    check_dim(k, limit=n - (Q is None), what="n_neighbors")
    queries = X if Q is None else Q
    wanted = min(k + 1 + (Q is None), n)  # the next one too, and the row itself
    found, indices = NearestNeighbors(algorithm="brute").fit(X).kneighbors(queries, wanted)  # (m, wanted), ascending
    settled = np.ones(len(queries), bool)
    if Q is None:
        own = indices == np.arange(n)[:, None]
        settled = own.any(1)  # not where it has more duplicates than places
        own[~settled, -1] = True
        found, indices = found[~own].reshape(n, -1), indices[~own].reshape(n, -1)
    if indices.shape[1] > k:
        scale = max(float(np.einsum("ij,ij->i", Z, Z, dtype=np.float64).max()) for Z in (X, queries))
        settled &= found[:, k] ** 2 - found[:, k - 1] ** 2 > np.finfo(np.float64).eps * (D + 8) * 4 * scale
    indices = indices[:, :k]
    unsettled = np.flatnonzero(~settled)
    for start in range(0, len(unsettled), size := max(1, BLOCK // n)):
        rows = unsettled[start : start + size]
        exact = cdist(queries[rows], X, "sqeuclidean")
        if Q is None:
            exact[np.arange(len(rows)), rows] = np.inf
        indices[rows] = np.argsort(exact, axis=1, kind="stable")[:, :k]
    return np.sort(indices, axis=1).astype(np.int64)


def distances_to(X: Array, indices: Indices, Q: Array) -> Array:
    """Euclidean distance of each query (m, D) to its rows of X: (m, k) float64, exactly 0 for equal rows."""
    result = np.empty(indices.shape)
    for rows in _blocks(len(Q), indices.shape[1] * X.shape[1]):
        differences = X[indices[rows]].astype(np.float64) - Q[rows, None]
        result[rows] = np.sqrt(np.einsum("mkd,mkd->mk", differences, differences))
    return result


def reconstruction_weights(X: Array, indices: Indices, Q: Array, *, reg: float = 1e-3) -> Array:
    """Weights (m, k), summing to one, with which rows X[indices] best combine to each query (Eqs. 3–8).

    G w = 1 is solved for the Gram matrix G of the differences to the neighbours, then w divided by its sum;
    `reg` · trace(G) on the diagonal makes it solvable when k exceeds the local dimension. Neighbours all equal
    to the query share the weight evenly.
    """
    m, k = indices.shape
    weights = np.empty((m, k))
    one = np.ones(k)
    with threadpool_limits(1, user_api="blas"):  # systems this small only lose by being shared out
        for rows in _blocks(m, k * X.shape[1]):
            differences = X[indices[rows]].astype(np.float64) - Q[rows, None]  # (block, k, D)
            G = differences @ differences.transpose(0, 2, 1)
            diagonal = np.einsum("mkk->mk", G)
            trace = diagonal.sum(1, keepdims=True)
            diagonal += np.where(trace > 0, reg * trace, 1.0)  # trace 0: G = I, whose solution is even
            for row, matrix in enumerate(G, rows.start):
                weights[row] = lapack.dposv(matrix.T, one, overwrite_a=1)[1]
    return weights / weights.sum(1, keepdims=True)


def weight_matrix(indices: Indices, weights: Array, n: int) -> sparse.csr_array:
    """The sparse W (m, n) whose row i holds the weights of point i at its neighbours."""
    m, k = indices.shape
    return sparse.csr_array((weights.ravel(), indices.ravel(), np.arange(0, m * k + 1, k)), shape=(m, n))


def bottom_eigenvectors(W: sparse.csr_array, count: int) -> tuple[Array, Array]:
    """Eigenvalues (count,) and vectors (n, count) 2 … count + 1 of M = (I − W)ᵀ(I − W), ascending.

    The first belongs to the constant vector, which every W with row sums of one maps to itself; the others are
    orthogonal to it, so their columns sum to zero. A warning tells of further null vectors: groups of points
    that no weight connects, such as more than k duplicates.
    """
    A = sparse.eye_array(W.shape[0], format="csr") - W
    values, vectors = bottom_eigenpairs(A, count)
    null = int((values < NULL).sum())
    if null:
        warnings.warn(
            f"{null} eigenvalues below {NULL:g} beyond the first: the neighbour graph falls into parts, or groups "
            "of more than n_neighbors duplicates add null vectors. Fit on distinct rows or raise n_neighbors",
            stacklevel=3,
        )
    return values, vectors


class RowIndex:
    """Finds the rows exactly equal to one of X (n, D)."""

    def __init__(self, X: Array) -> None:
        self._seen: dict[bytes, int] = {}
        for i, row in enumerate(_canonical(X)):
            self._seen.setdefault(row.tobytes(), i)

    def find(self, Q: Array) -> Indices:
        """The first row of X equal to each row of Q (m, D), −1 where there is none (m,)."""
        return np.array([self._seen.get(row.tobytes(), -1) for row in _canonical(Q)], np.int64)


def _canonical(X: Array) -> Array:
    return np.asarray(X.astype(np.float64) + 0.0)  # minus zero equals zero


def _blocks(rows: int, entries_per_row: int) -> list[slice]:
    size = max(1, BLOCK // 8 // entries_per_row)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
