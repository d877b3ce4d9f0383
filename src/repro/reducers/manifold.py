"""Reducers that keep a manifold's geometry: isomap its distances along the data, lle its local combinations (§4.6)."""

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

from repro.reducers.locality import (
    Indices,
    RowIndex,
    bottom_eigenvectors,
    check_neighbors,
    distances_to,
    gram_matrix,
    nearest,
    reconstruction_weights,
    weight_matrix,
)
from repro.reducers.memory import check_memory
from repro.reducers.reducer import Reducer, check_components
from repro.reducers.spectral import check_bottom_memory, top_eigenpairs
from repro.types import Array, one_of

SCALES = ("unit_variance", "unit_norm")
KEPT = 4096
"""rows of which lle keeps the inner products, for `transform`: 128 MB"""


def neighbor_graph(X: Array, k: int) -> sparse.csr_array:
    """Distances (n, n) between points of which one is among the other's k nearest, in one piece.

    Where the points fall into several pieces, the shortest bridges that connect them are added, with a warning.
    """
    n = len(X)
    indices = nearest(X, k)
    starts, ends, lengths = np.repeat(np.arange(n), k), indices.ravel(), distances_to(X, indices, X).ravel()
    graph = _symmetric(starts, ends, lengths, n)
    pieces, labels = connected_components(graph, directed=False)
    if pieces == 1:
        return graph
    warnings.warn(
        f"the graph of {k} neighbours has {pieces} pieces: joined by their shortest bridges; raise n_neighbors",
        stacklevel=3,
    )
    bridges = _bridges(X, labels)
    spans = distances_to(X, bridges[:, 1:], X[bridges[:, 0]])[:, 0]
    return _symmetric(np.r_[starts, bridges[:, 0]], np.r_[ends, bridges[:, 1]], np.r_[lengths, spans], n)


def _symmetric(starts: Indices, ends: Indices, lengths: Array, n: int) -> sparse.csr_array:
    """Every edge once in each direction; edges of length 0, between duplicates, stay edges."""
    low, high = np.minimum(starts, ends), np.maximum(starts, ends)
    keys, first = np.unique(low * n + high, return_index=True)
    low, high, lengths = keys // n, keys % n, lengths[first]
    return sparse.coo_array((np.r_[lengths, lengths], (np.r_[low, high], np.r_[high, low])), shape=(n, n)).tocsr()


def _bridges(X: Array, labels: Indices) -> Indices:
    """The pairs (pieces − 1, 2) of a minimum spanning tree between pieces, grown from the first piece (Prim)."""
    n = len(X)
    reach, via = np.full(n, np.inf), np.zeros(n, np.int64)  # distance of every outside point to the tree
    outside = np.ones(n, bool)
    piece, pairs = 0, list[tuple[int, int]]()
    while True:
        inside = np.flatnonzero(labels == piece)
        outside[inside] = False
        others = np.flatnonzero(outside)
        if not len(others):
            return np.array(pairs)
        for start in range(0, len(inside), 256):
            part = inside[start : start + 256]
            between = cdist(X[part], X[others])  # (part, others)
            closest = between.argmin(0)
            shortest = between[closest, np.arange(len(others))]
            better = shortest < reach[others]
            reach[others[better]], via[others[better]] = shortest[better], part[closest[better]]
        end = others[np.argmin(reach[others])]
        pairs.append((via[end], end))
        piece = labels[end]


class Isomap(Reducer):
    """Classical scaling of the distances along the neighbour graph (Tenenbaum et al., 2000).

    −½ J D² J = VΛVᵀ for the shortest paths D; output V√Λ. With k = n − 1 every path is a straight line, and the
    output that of pca.

    Args:
        n_components: up to the number of positive eigenvalues.
        n_neighbors: k, below the number of fitted rows.
    """

    def __init__(self, n_components: int = 2, *, n_neighbors: int = 5) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn `embedding_` (n, n_components), `eigenvalues_` (n_components,) and `distances_` (n, n) from X (n, D).

        Raises:
            InputError: for unusable X, k ≥ n, `n_components` beyond the positive eigenvalues, or more rows than there
                is memory for.
        """
        X = self._fit_input(X, min_rows=2)
        n = len(X)
        k = check_neighbors(self.n_neighbors, n)
        count = check_components(self.n_components, n - 1, f"n - 1 of {n} rows")
        check_memory(n, 24 * n * n)  # paths, their squares, and what centres those
        self.fitted_ = X
        self.distances_ = shortest_path(neighbor_graph(X, k), method="D", directed=True)
        B = self.distances_**2
        B *= -0.5
        self._row_means = B.mean(0)
        B += self._row_means.mean() - self._row_means - self._row_means[:, None]
        self.eigenvalues_, self.vectors_ = top_eigenpairs(B, count)
        positive = int((self.eigenvalues_ > 1e-10 * max(self.eigenvalues_[0], 0.0)).sum())
        check_components(count, positive, "the positive eigenvalues of the path distances")
        self.embedding_ = (self.vectors_ * np.sqrt(self.eigenvalues_)).astype(np.float32, order="C")
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The embedding (n, n_components) of the fitted rows; `transform` would find it again, more slowly."""
        return self.fit(X).embedding_

    def transform(self, X: Any) -> Array:
        """Embed X (m, D) as float32 (m, n_components) by its paths through the k nearest fitted rows."""
        X = self._new_input(X)
        indices = nearest(self.fitted_, self.n_neighbors, X)
        steps = distances_to(self.fitted_, indices, X)
        projection = self.vectors_ / np.sqrt(self.eigenvalues_)
        Y = np.empty((len(X), len(self.eigenvalues_)), np.float32)
        for start in range(0, len(X), 256):
            part = slice(start, start + 256)
            paths = np.stack(
                [
                    (self.distances_[rows] + step[:, None]).min(0)
                    for rows, step in zip(indices[part], steps[part], strict=True)
                ]
            )  # (part, n)
            # the columns of V sum to 0, so the query's own mean drops out
            Y[part] = (-0.5 * paths**2 - self._row_means) @ projection
        return Y


class LLE(Reducer):
    """Locally linear embedding (Roweis and Saul, 2000): the bottom eigenvectors of M = (I − W)ᵀ(I − W).

    Args:
        n_components: up to n − 1.
        n_neighbors: k, below the number of fitted rows.
        scale: `unit_variance` has YᵀY/n = I; `unit_norm` has YᵀY = I, as scikit-learn does.
        reg: ρ of the weights' regularisation.
    """

    _gram: Array | None = None

    def __init__(
        self, n_components: int = 2, *, n_neighbors: int = 5, scale: str = "unit_variance", reg: float = 1e-3
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.reg = reg

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn `embedding_` (n, n_components), `eigenvalues_` (n_components,) and `weights_` (n, n) from X (n, D).

        Raises:
            InputError: for unusable X, k ≥ n, `n_components` beyond n − 1, an unknown scale, or more rows than there is
                memory for.
        """
        X = self._fit_input(X, min_rows=2)
        one_of(self.scale, SCALES, "scale")
        k = check_neighbors(self.n_neighbors, len(X))
        count = check_components(self.n_components, len(X) - 1, f"n - 1 of {len(X)} rows")
        check_bottom_memory(len(X), count)
        gram = gram_matrix(X)
        return self._fit_graph(X, nearest(X, k, gram=gram), count, gram)

    def _fit_graph(self, X: Array, indices: Indices, count: int, gram: Array | None) -> Self:
        """Fit rows X (n, D) whose neighbours (n, k) are found already, from `gram_matrix(X)`."""
        n = len(X)
        self.weights_ = weight_matrix(indices, reconstruction_weights(X, indices, X, reg=self.reg, gram=gram), n)
        self.eigenvalues_, vectors = bottom_eigenvectors(self.weights_, count)
        self.embedding_ = (vectors * (np.sqrt(n) if self.scale == "unit_variance" else 1.0)).astype(np.float32, "C")
        self.fitted_, self.rows_ = X, RowIndex(X)
        self._gram = gram if n <= KEPT else None
        return self

    def transform(self, X: Any) -> Array:
        """Embed X (m, D) as float32 (m, n_components) by its reconstruction from the k nearest fitted rows.

        A row equal to a fitted one gets what fitting gave the first such row, so that transforming distinct fitted
        rows returns `embedding_`.
        """
        X = self._new_input(X)
        known = self.rows_.find(X)
        Y = self.embedding_[known]
        new = np.flatnonzero(known < 0)
        if len(new):
            indices = nearest(self.fitted_, self.n_neighbors, X[new])
            weights = reconstruction_weights(self.fitted_, indices, X[new], reg=self.reg, gram=self._gram)
            W = weight_matrix(indices, weights, len(self.fitted_))
            Y[new] = W @ self.embedding_
        return Y
