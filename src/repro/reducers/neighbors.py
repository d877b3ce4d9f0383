"""Nearest rows, exactly, and the weights that combine them to a row (method-lle in the book; Eqs.
1–8 of SBERT-LP).

Ties go to the smaller index, and a row is found again bit for bit. Each point is written as the
combination of its k nearest neighbours that comes closest to it, with weights that sum to one
(Roweis and Saul, 2000).
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from repro.types import Array, InputError, check_dim

Indices: TypeAlias = NDArray[np.int64]
BLOCK, PRODUCTS = 2**18, 2**23
"""Entries of a block of differences to neighbours, which stays in cache, and of one of products
with all rows: 64 MB.
"""
LARGEST = 8192  # Rows of which all inner products are kept: 512 MB
OVERFLOW = 1e150  # Coordinates beyond this have squared distances out of range
EPS = float(np.finfo(np.float64).eps)
# Rows of a small Gram matrix gathered at once, up to the diagonal's last entry among them
STRIPE = 32
# Squared distance, relative to the squared norms, below which it is not computed from inner
# products
CLOSE = 1e-4


def gram_matrix(X: Array) -> Array | None:
    """Inner products (n, n) of the centred rows of X (n, D) in float64, or None where they would
    take too much memory.

    Neighbours and weights both follow from them, without the D coordinates.
    """
    if len(X) > LARGEST:
        return None
    P = X - X.mean(0, dtype=np.float64)
    return np.asarray(P @ P.T)


def nearest(X: Array, k: int, Q: Array | None = None, *, gram: Array | None = None) -> Indices:
    """The k rows of X (n, D) nearest to each query by Euclidean distance, ties going to the smaller
    index.

    Distances from inner products settle every row whose k-th and next one differ by more than
    rounding: in single precision first, then in double. In the others, which hold ties or
    duplicates, the distances to the candidates are computed from differences, equal for equal rows.
    Without queries Q (m, D), X's own rows are asked for, themselves excluded, from `gram_matrix(X)`
    where it is at hand. Each row of the indices (m, k) is ascending.
    """
    n = len(X)
    check_dim(k, limit=n - (Q is None), what="n_neighbors")
    queries = X if Q is None else Q
    indices = np.tile(np.arange(k), (len(queries), 1))
    if k == n:
        return indices
    centre = X.mean(0, dtype=np.float64)
    # Far from the origin, products would lose the distances
    P = X - centre
    centred = None if Q is None else Q - centre
    both = [P] if centred is None else [P, centred]
    longest = max(float(np.abs(Z).max(initial=0.0)) for Z in both)
    if longest > OVERFLOW:
        raise InputError(
            f"rows reach {longest:.0e} from their mean: squares overflow; divide X by its largest "
            "entry"
        )
    size = max(float(square_norms(Z).max(initial=0.0)) for Z in both) ** 0.5 or 1.0
    offset = float(np.linalg.norm(centre))
    halves = square_norms(P) / 2
    left = np.arange(len(queries))
    precisions: list[Any] = [np.float64] if gram is not None else [np.float32, np.float64]
    for precision in precisions:
        if not len(left):
            break
        # Out of range sooner, less sure
        unit, most = (size, 2 * k + 64) if precision == np.float32 else (1.0, n)
        # Errors of two products over D coordinates and of the norms; of the centred rows themselves
        sums = (X.shape[1] + 16) * (float(np.finfo(precision).eps) + EPS)
        slack = (size * sums + 16 * (size + offset) * EPS) * size / unit**2
        R, half = (P / unit).astype(precision), (halves / unit**2).astype(precision)
        asked = R if centred is None else (centred / unit).astype(precision)
        later = []
        for rows in blocks_of(len(left), n, PRODUCTS):
            some = left[rows]
            # A slice of all rows lets numpy compute half of a symmetric product
            products = (
                (asked[rows] if len(left) == len(asked) else asked[some]) @ R.T
                if gram is None
                else gram[some]
            )
            candidates = _candidates(products, half, k, some if Q is None else None, slack)
            counts = np.count_nonzero(candidates, axis=1)
            exact, close = counts == k, (k < counts) & (counts <= most)
            indices[some[exact]] = (np.flatnonzero(candidates[exact]) % n).reshape(-1, k)
            indices[some[close]] = _nearest_among(X, queries[some[close]], candidates[close], k)
            later.append(some[~exact & ~close])
        left = np.concatenate(later)
    return indices


def _candidates(
    products: Array,
    halves: Array,
    k: int,
    own: Indices | None,
    slack: float,
) -> NDArray[np.bool_]:
    """Which fitted rows (m, n) may be among the k nearest, from their inner products with the
    queries, overwritten.

    `halves` of squared norms (n,), `own` places of the queries (m,), not to be found, `slack` the
    largest error.
    """
    # Halved and squared, less half the query's own square
    distances = np.subtract(halves, products, out=products)
    if own is not None:
        distances[np.arange(len(own)), own] = np.inf
    reach = np.partition(distances, k - 1, axis=1)[:, k - 1]
    return np.asarray(distances <= (reach + np.asarray(slack, reach.dtype))[:, None])


def _nearest_among(X: Array, Q: Array, candidates: NDArray[np.bool_], k: int) -> Indices:
    """The k candidates (m, n) nearest to each query by differences, ties going to the smaller
    index: (m, k).
    """
    indices = np.empty((len(Q), k), np.int64)
    for part in blocks_of(
        len(Q),
        int(np.count_nonzero(candidates, axis=1).max(initial=1)) * X.shape[1],
    ):
        query, row = np.nonzero(candidates[part])
        differences = X[row].astype(np.float64) - Q[part][query]
        nearest_first = np.lexsort((square_norms(differences), query))  # Stable
        place = np.arange(len(query)) - np.searchsorted(query, query)
        indices[part] = np.sort(row[nearest_first][place < k].reshape(-1, k), axis=1)
    return indices


def distances_to(X: Array, indices: Indices, Q: Array) -> Array:
    """Euclidean distance of each query (m, D) to its rows of X: (m, k) float64, exactly 0 for equal
    rows.
    """
    result = np.empty(indices.shape)
    for rows in blocks_of(len(Q), indices.shape[1] * X.shape[1]):
        differences = X[indices[rows]].astype(np.float64) - Q[rows, None]
        result[rows] = np.sqrt(np.einsum("mkd,mkd->mk", differences, differences))
    return result


class RowIndex:
    """Finds the rows exactly equal to one of X (n, D); minus zero equals zero."""

    def __init__(self, X: Array) -> None:
        self._seen: dict[bytes, int] = {}
        for i, row in enumerate(X.astype(np.float64) + 0.0):
            self._seen.setdefault(row.tobytes(), i)

    def find(self, Q: Array) -> Indices:
        """The first row of X equal to each row of Q (m, D), −1 where there is none (m,)."""
        return np.array(
            [self._seen.get(row.tobytes(), -1) for row in Q.astype(np.float64) + 0.0],
            np.int64,
        )


def square_norms(X: Array) -> Array:
    """Squared length of each row (n,)."""
    return np.asarray(np.einsum("ij,ij->i", X, X))


def blocks_of(rows: int, entries_per_row: int, entries: int | None = None) -> list[slice]:
    """Slices of `rows`, each of as many as have `entries` (by default BLOCK) in all, at least
    one.
    """
    size = max(1, (entries or BLOCK) // entries_per_row)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def reconstruction_weights(
    X: Array,
    indices: Indices,
    Q: Array,
    *,
    reg: float = 1e-3,
    gram: Array | None = None,
) -> Array:
    """Weights (m, k), summing to one, with which rows X[indices] best combine to each query (Eqs.
    3–8).

    G w = 1 is solved for the Gram matrix G of the differences to the neighbours, then w divided by
    its sum; `reg` · trace(G) on the diagonal makes it solvable when k exceeds the local dimension.
    Neighbours all equal to the query share the weight evenly. From `gram_matrix(X)`, computed where
    that pays, G follows by four terms, not D.
    """
    m, k = indices.shape
    if gram is None and 2 * m * k * k >= len(X) ** 2:
        gram = gram_matrix(X)
    weights = np.empty((m, k))
    one = np.ones(k)
    with threadpool_limits(1, user_api="blas"):  # Systems this small only lose by being shared out
        centre = X.mean(0, dtype=np.float64)
        P = X - centre
        for rows in blocks_of(m, k * max(k, X.shape[1])):
            near, centred = indices[rows], Q[rows] - centre
            G = _gram_of_differences(P, near, centred, gram)
            diagonal = np.einsum("mkk->mk", G)
            trace = diagonal.sum(1, keepdims=True)
            # Trace 0: G = I, whose solution is even
            diagonal += np.where(trace > 0, reg * trace, 1.0)
            for row, matrix in enumerate(G, rows.start):
                # Reads the lower triangle
                _, weights[row], failed = lapack.dposv(matrix.T, one, overwrite_a=1)
                if failed:
                    raise InputError(
                        f"reg is {reg}, and weights have no one solution: "
                        "expected more, such as 0.001"
                    )
    return weights / weights.sum(1, keepdims=True)


def _gram_of_differences(P: Array, indices: Indices, Q: Array, gram: Array | None) -> Array:
    """Inner products (m, k, k) of differences between queries Q (m, D) and rows of P (n, D), lower
    triangles at least.

    From those of the rows, (p − q)(p' − q) = pp' − pq − p'q + qq; where the neighbours are so close
    that this would lose digits, from the differences.
    """
    if gram is None:
        return _products_of_differences(P, indices, Q)
    k = indices.shape[1]
    across = (P[indices] @ Q[:, :, None])[:, :, 0]  # Pq
    own = square_norms(Q)[:, None]
    rest = across - own
    G = np.empty((*indices.shape, k))
    for start in range(0, k, STRIPE):
        stop = min(start + STRIPE, k)
        stripe = gram.ravel().take(
            indices[:, start:stop, None] * len(gram) + indices[:, None, :stop]
        )
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
    return sparse.csr_array(
        (weights.ravel(), indices.ravel(), np.arange(0, m * k + 1, k)),
        shape=(m, n),
    )
