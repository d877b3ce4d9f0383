"""Local reconstruction: the weights and the matrix M of locally linear methods (PROTOCOLS §4.7).

Each point is written as the combination of its k nearest neighbours that comes closest to it, with weights that
sum to one (Roweis and Saul, 2000). The embedding that keeps those weights is spanned by the bottom eigenvectors
of M = (I − W)ᵀ(I − W).
"""

import warnings

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from repro.reducers.neighbors import (
    Indices,
    RowIndex,
    blocks_of,
    check_neighbors,
    distances_to,
    gram_matrix,
    nearest,
    square_norms,
)
from repro.reducers.spectral import bottom_eigenpairs
from repro.types import Array

STRIPE = 32
"""rows of a small Gram matrix gathered at once, up to the diagonal's last entry among them"""
CLOSE = 1e-4
"""squared distance, relative to the squared norms, below which it is not computed from inner products"""
NULL = 1e-10
"""eigenvalues of M below this are null"""


def reconstruction_weights(
    X: Array, indices: Indices, Q: Array, *, reg: float = 1e-3, gram: Array | None = None
) -> Array:
    """Weights (m, k), summing to one, with which rows X[indices] best combine to each query (Eqs. 3–8).

    G w = 1 is solved for the Gram matrix G of the differences to the neighbours, then w divided by its sum;
    `reg` · trace(G) on the diagonal makes it solvable when k exceeds the local dimension. Neighbours all equal
    to the query share the weight evenly.

    Args:
        X: fitted rows (n, D).
        indices: neighbours of each query (m, k).
        Q: queries (m, D).
        reg: ρ.
        gram: `gram_matrix(X)`, from which G follows by four terms instead of D; computed where that pays.
    """
    m, k = indices.shape
    if gram is None and 2 * m * k * k >= len(X) ** 2:
        gram = gram_matrix(X)
    weights = np.empty((m, k))
    one = np.ones(k)
    with threadpool_limits(1, user_api="blas"):  # systems this small only lose by being shared out
        centre = X.mean(0, dtype=np.float64)
        P = X - centre
        for rows in blocks_of(m, k * max(k, X.shape[1])):
            near, centred = indices[rows], Q[rows] - centre
            G = _gram_of_differences(P, near, centred, gram)
            diagonal = np.einsum("mkk->mk", G)
            trace = diagonal.sum(1, keepdims=True)
            diagonal += np.where(trace > 0, reg * trace, 1.0)  # trace 0: G = I, whose solution is even
            for row, matrix in enumerate(G, rows.start):
                weights[row] = lapack.dposv(matrix.T, one, overwrite_a=1)[1]  # reads the lower triangle
    return weights / weights.sum(1, keepdims=True)


def _gram_of_differences(P: Array, indices: Indices, Q: Array, gram: Array | None) -> Array:
    """Inner products (m, k, k) of the differences between queries Q (m, D) and their rows of P (n, D).

    Only the lower triangle is sure to be filled.

    From those of the rows, (p − q)(p' − q) = pp' − pq − p'q + qq; where the neighbours are so close that this
    would lose digits, from the differences.
    """
    if gram is None:
        return _products_of_differences(P, indices, Q)
    k = indices.shape[1]
    across = (P[indices] @ Q[:, :, None])[:, :, 0]  # pq
    own = square_norms(Q)[:, None]
    rest = across - own
    G = np.empty((*indices.shape, k))
    for start in range(0, k, STRIPE):
        stop = min(start + STRIPE, k)
        stripe = gram.ravel().take(indices[:, start:stop, None] * len(gram) + indices[:, None, :stop])
        stripe -= across[:, start:stop, None]
        stripe -= rest[:, None, :stop]
        G[:, start:stop, :stop] = stripe
    squares = gram.diagonal()[indices].sum(1) + k * own[:, 0]
    close = np.flatnonzero(np.einsum("mkk->m", G) <= CLOSE * squares)
    G[close] = _products_of_differences(P, indices[close], Q[close])
    return G


def _products_of_differences(P: Array, indices: Indices, Q: Array) -> Array:
    differences = P[indices] - Q[:, None]  # (m, k, D)
    return np.asarray(differences @ differences.transpose(0, 2, 1))


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


__all__ = [
    "NULL",
    "Indices",
    "RowIndex",
    "bottom_eigenvectors",
    "check_neighbors",
    "distances_to",
    "gram_matrix",
    "nearest",
    "reconstruction_weights",
    "weight_matrix",
]
