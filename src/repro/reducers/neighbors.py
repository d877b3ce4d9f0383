"""Nearest rows, exactly: ties go to the smaller index, a row is found again bit for bit (PROTOCOLS §4.7, step 2)."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError, check_dim

Indices: TypeAlias = NDArray[np.int64]
BLOCK = 2**18
"""entries of a block of differences to neighbours: it stays in cache"""
PRODUCTS = 2**23
"""entries of a block of inner products with all rows: 64 MB in double precision"""
LARGEST = 8192
"""rows of which all inner products are kept: 512 MB"""
OVERFLOW = 1e150
"""coordinates beyond this have squared distances out of range"""
EPS = float(np.finfo(np.float64).eps)


def check_neighbors(n_neighbors: Any, n: int) -> int:
    """Return k as an int in 1 … n − 1.

    Raises:
        InputError: if it is not; the message gives the limit.
    """
    try:
        return check_dim(n_neighbors, limit=n - 1, what="n_neighbors")
    except InputError as error:
        raise InputError(f"{error} (n - 1 of {n} rows): fit on more rows or ask for fewer neighbours") from None


def gram_matrix(X: Array) -> Array | None:
    """Inner products (n, n) of the centred rows of X (n, D) in float64, or None where they would take too much memory.

    Neighbours and weights both follow from them, without the D coordinates.
    """
    if len(X) > LARGEST:
        return None
    P = X - X.mean(0, dtype=np.float64)
    return np.asarray(P @ P.T)


def nearest(X: Array, k: int, Q: Array | None = None, *, gram: Array | None = None) -> Indices:
    """The k rows of X (n, D) nearest to each query by Euclidean distance, ties going to the smaller index.

    Distances from inner products settle every row whose k-th and next one differ by more than rounding: in single
    precision first, then in double. In the others, which hold ties or duplicates, the distances to the candidates are
    computed from differences, equal for equal rows.

    Args:
        X: fitted rows (n, D).
        k: how many.
        Q: queries (m, D); None asks for the neighbours of X's own rows, themselves excluded.
        gram: `gram_matrix(X)`, where it is at hand and Q is None.

    Returns:
        Indices (m, k), each row ascending.

    Raises:
        InputError: for k below 1 or above n, without Q above n − 1, or distances out of double precision's range.
    """
    n = len(X)
    check_dim(k, limit=n - (Q is None), what="n_neighbors")
    queries = X if Q is None else Q
    indices = np.tile(np.arange(k), (len(queries), 1))
    if k == n:
        return indices
    centre = X.mean(0, dtype=np.float64)
    P, centred = X - centre, None if Q is None else Q - centre  # far from the origin, products would lose the distances
    longest = max(float(np.abs(Z).max(initial=0.0)) for Z in (P, centred) if Z is not None)
    if longest > OVERFLOW:
        raise InputError(f"rows reach {longest:.0e} from their mean: squares overflow; divide X by its largest entry")
    size = max(float(square_norms(Z).max(initial=0.0)) for Z in (P, centred) if Z is not None) ** 0.5 or 1.0
    offset = float(np.linalg.norm(centre))
    halves = square_norms(P) / 2
    left = np.arange(len(queries))
    precisions: list[Any] = [np.float64] if gram is not None else [np.float32, np.float64]
    for precision in precisions:
        if not len(left):
            break
        unit, most = (size, 2 * k + 64) if precision == np.float32 else (1.0, n)  # out of range sooner, less sure
        # errors of two products over D coordinates and of the norms; of the centred rows themselves
        sums = (X.shape[1] + 16) * (float(np.finfo(precision).eps) + EPS)
        slack = (size * sums + 16 * (size + offset) * EPS) * size / unit**2
        R, half = (P / unit).astype(precision), (halves / unit**2).astype(precision)
        asked = R if centred is None else (centred / unit).astype(precision)
        later = []
        for rows in blocks_of(len(left), n, PRODUCTS):
            some = left[rows]
            # a slice of all rows lets numpy compute half of a symmetric product
            products = (asked[rows] if len(left) == len(asked) else asked[some]) @ R.T if gram is None else gram[some]
            candidates = _candidates(products, half, k, some if Q is None else None, slack)
            counts = np.count_nonzero(candidates, axis=1)
            exact, close = counts == k, (k < counts) & (counts <= most)
            indices[some[exact]] = (np.flatnonzero(candidates[exact]) % n).reshape(-1, k)
            indices[some[close]] = _nearest_among(X, queries[some[close]], candidates[close], k)
            later.append(some[~exact & ~close])
        left = np.concatenate(later)
    return indices


def _candidates(products: Array, halves: Array, k: int, own: Indices | None, slack: float) -> NDArray[np.bool_]:
    """Which fitted rows may be among the k nearest of each query (m, n).

    Args:
        products: of queries and fitted rows (m, n); overwritten.
        halves: halved squared norms of the fitted rows (n,).
        k: how many.
        own: the query's own place among the fitted rows (m,), not to be found.
        slack: largest error of the difference between two halved squared distances.
    """
    distances = np.subtract(halves, products, out=products)  # halved and squared, less half the query's own square
    if own is not None:
        distances[np.arange(len(own)), own] = np.inf
    reach = np.partition(distances, k - 1, axis=1)[:, k - 1]
    return np.asarray(distances <= (reach + np.asarray(slack, reach.dtype))[:, None])


def _nearest_among(X: Array, Q: Array, candidates: NDArray[np.bool_], k: int) -> Indices:
    """The k candidates (m, n) nearest to each query by differences, ties going to the smaller index: (m, k)."""
    indices = np.empty((len(Q), k), np.int64)
    for part in blocks_of(len(Q), int(np.count_nonzero(candidates, axis=1).max(initial=1)) * X.shape[1]):
        query, row = np.nonzero(candidates[part])
        differences = X[row].astype(np.float64) - Q[part][query]
        nearest_first = np.lexsort((square_norms(differences), query))  # stable
        place = np.arange(len(query)) - np.searchsorted(query, query)
        indices[part] = np.sort(row[nearest_first][place < k].reshape(-1, k), axis=1)
    return indices


def distances_to(X: Array, indices: Indices, Q: Array) -> Array:
    """Euclidean distance of each query (m, D) to its rows of X: (m, k) float64, exactly 0 for equal rows."""
    result = np.empty(indices.shape)
    for rows in blocks_of(len(Q), indices.shape[1] * X.shape[1]):
        differences = X[indices[rows]].astype(np.float64) - Q[rows, None]
        result[rows] = np.sqrt(np.einsum("mkd,mkd->mk", differences, differences))
    return result


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


def square_norms(X: Array) -> Array:
    """Squared length of each row (n,)."""
    return np.asarray(np.einsum("ij,ij->i", X, X))


def blocks_of(rows: int, entries_per_row: int, entries: int | None = None) -> list[slice]:
    """Slices of `rows`, each of as many as have `entries` (by default BLOCK) in all, at least one."""
    size = max(1, (entries or BLOCK) // entries_per_row)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]
