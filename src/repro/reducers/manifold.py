"""Reducers that keep a manifold's geometry: isomap its distances, lle and sbertlp its local
combinations.

Isomap scales the paths along the neighbour graph (method-isomap in the book); the others span the
embedding that keeps the weights W of local reconstruction by bottom eigenvectors of M = (I − W)ᵀ(I
− W) (method-lle in the book; Eqs. 9–17 of SBERT-LP).
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree, shortest_path
from scipy.spatial.distance import cdist

from repro.reducers import neighbors as near
from repro.reducers.neighbors import (
    Indices,
    RowIndex,
    distances_to,
    gram_matrix,
    nearest,
    weight_matrix,
)
from repro.reducers.reducer import Reducer, check_memory, check_size, check_unequal
from repro.reducers.spectral import bottom_eigenpairs, check_bottom_memory, top_eigenpairs
from repro.types import Array, InputError, is_number, one_of

KEPT = 4096  # Rows of which lle keeps the inner products, for `transform`: 128 MB
NULL = 1e-10  # Eigenvalues of M below this are null


def neighbor_graph(X: Array, k: int) -> sparse.csr_array:
    """Distances (n, n) between points of which one is among the other's k nearest, in one piece.

    Where the points fall into several pieces, the shortest bridges that connect them are added,
    with a warning.
    """
    n = len(X)
    indices = nearest(X, k)
    starts = np.repeat(np.arange(n), k)
    ends = indices.ravel()
    lengths = distances_to(X, indices, X).ravel()
    graph = _symmetric(starts, ends, lengths, n)
    pieces, labels = connected_components(graph, directed=False)
    if pieces == 1:
        return graph
    warnings.warn(
        f"the graph of {k} neighbours has {pieces} pieces: joined by their shortest bridges; raise "
        "n_neighbors",
        stacklevel=4,
    )
    bridges = _bridges(X, labels)
    spans = distances_to(X, bridges[:, 1:], X[bridges[:, 0]])[:, 0]
    return _symmetric(
        np.r_[starts, bridges[:, 0]],
        np.r_[ends, bridges[:, 1]],
        np.r_[lengths, spans],
        n,
    )


def _symmetric(starts: Indices, ends: Indices, lengths: Array, n: int) -> sparse.csr_array:
    """Every edge once in each direction; edges of length 0, between duplicates, stay edges."""
    low = np.minimum(starts, ends)
    high = np.maximum(starts, ends)
    keys, first = np.unique(low * n + high, return_index=True)
    low, high = np.divmod(keys, n)
    both_ways = np.r_[low, high], np.r_[high, low]
    lengths = np.tile(lengths[first], 2)
    return sparse.coo_array((lengths, both_ways), shape=(n, n)).tocsr()


def _bridges(X: Array, labels: Indices) -> Indices:
    """The pairs (pieces − 1, 2) of points that join the pieces by a minimum spanning tree."""
    pieces = [np.flatnonzero(labels == piece) for piece in np.unique(labels)]
    shortest = np.zeros((len(pieces), len(pieces)))
    ends = {}
    for a, b in combinations(range(len(pieces)), 2):
        between = cdist(X[pieces[a]], X[pieces[b]])
        i, j = np.unravel_index(between.argmin(), between.shape)
        shortest[a, b] = max(between[i, j], np.finfo(np.float64).tiny)  # 0 would be no edge
        ends[a, b] = pieces[a][i], pieces[b][j]
    edges = zip(*minimum_spanning_tree(shortest).nonzero(), strict=True)
    return np.array([ends[edge] for edge in edges])


@dataclass(kw_only=True, eq=False, repr=False)
class Isomap(Reducer):
    """Classical scaling of the distances along the neighbour graph (Tenenbaum et al., 2000).

    −½ J D² J = VΛVᵀ for the shortest paths D; output V√Λ. With k = n − 1 every path is a straight
    line, and the output that of pca. A further row is placed by its paths through the k nearest
    fitted ones. `n_components` is at most the number of positive eigenvalues, k = `n_neighbors`
    below that of the rows. Fitted, it has `embedding_` (n, n_components), `eigenvalues_`
    (n_components,) and `distances_` (n, n).
    """

    n_neighbors: int = 5

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The embedding (n, n_components) of the fitted rows; `transform` would find it again, more
        slowly.
        """
        return self.fit(X).embedding_

    def _learn(self, X: Array) -> None:
        n = len(X)
        k = check_size(self.n_neighbors, n - 1, f"n - 1 of {n} rows", "n_neighbors")
        count = check_size(self.n_components, n - 1, f"n - 1 of {n} rows")
        check_unequal(X)
        check_memory(n, 24 * n * n)  # Paths, their squares, and what centres those
        self.fitted_ = X
        self.distances_ = shortest_path(neighbor_graph(X, k), method="D", directed=True)
        B = self.distances_**2
        B *= -0.5
        self._row_means = B.mean(0)
        B += self._row_means.mean() - self._row_means - self._row_means[:, None]
        self.eigenvalues_, self.vectors_ = top_eigenpairs(B, count)
        positive = int((self.eigenvalues_ > 1e-10 * max(self.eigenvalues_[0], 0.0)).sum())
        check_size(count, positive, "the positive eigenvalues of the path distances")
        embedding = self.vectors_ * np.sqrt(self.eigenvalues_)
        self.embedding_ = embedding.astype(np.float32, order="C")

    def _reduce(self, X: Array) -> Array:
        indices = nearest(self.fitted_, self.n_neighbors, X)
        steps = distances_to(self.fitted_, indices, X)
        projection = self.vectors_ / np.sqrt(self.eigenvalues_)
        Y = np.empty((len(X), len(self.eigenvalues_)), np.float32)
        for start in range(0, len(X), 256):
            part = slice(start, start + 256)
            ways = zip(indices[part], steps[part], strict=True)
            # (part, n)
            paths = np.stack(
                [(self.distances_[rows] + step[:, None]).min(0) for rows, step in ways]
            )
            # The columns of V sum to 0, so the query's own mean drops out
            Y[part] = (-0.5 * paths**2 - self._row_means) @ projection
        return Y


@dataclass(kw_only=True, eq=False, repr=False)
class LLE(Reducer):
    """Locally linear embedding (Roweis and Saul, 2000): the bottom eigenvectors of M = (I − W)ᵀ(I −
    W).

    A row equal to a fitted one gets what fitting gave the first such row, so that transforming
    distinct fitted rows returns `embedding_`; any other is combined from its k nearest fitted ones.
    Fitted, it has `embedding_` (n, n_components), `eigenvalues_` (n_components,) and the sparse
    `weights_` (n, n). `null_eigenvalues_` counts those beyond the first: each one is a direction in
    which parts of the neighbour graph float freely.

    Args:
        n_components: up to n − 1.
        n_neighbors: k, below the number of fitted rows.
        scale: `unit_variance` has YᵀY/n = I; `unit_norm` has YᵀY = I, as scikit-learn does.
        reg: ρ of the weights' regularisation.
    """

    n_neighbors: int = 5
    scale: str = "unit_variance"
    reg: float = 1e-3

    def _learn(self, X: Array) -> None:
        one_of(self.scale, ("unit_variance", "unit_norm"), "scale")
        rows = self._to_fit(X)
        gram = gram_matrix(rows)
        self._fit_graph(rows, nearest(rows, self.n_neighbors, gram=gram), gram)

    def _to_fit(self, X: Array) -> Array:
        """The rows to fit (n, D), after a check that they are enough for `n_neighbors` and
        `n_components`.
        """
        if not (is_number(self.reg) and 0 <= self.reg < np.inf):
            raise InputError(f"reg is {self.reg}: expected a number of at least 0, such as 0.001")
        limit, why = len(X) - 1, f"n - 1 of {len(X)} rows"
        check_size(self.n_neighbors, limit, why, "n_neighbors")
        check_bottom_memory(len(X), check_size(self.n_components, limit, why))
        return X

    def _fit_graph(self, X: Array, indices: Indices, gram: Array | None) -> None:
        """Fit rows X (n, D) whose neighbours (n, k) are found already, by the eigenvectors beyond
        the constant one.
        """
        n = len(X)
        self.weights_ = weight_matrix(
            indices,
            near.reconstruction_weights(X, indices, X, reg=self.reg, gram=gram),
            n,
        )
        residual = sparse.eye_array(n, format="csr") - self.weights_
        self.eigenvalues_, vectors = bottom_eigenpairs(residual, self.n_components)
        self.null_eigenvalues_ = int((self.eigenvalues_ < NULL).sum())
        if self.null_eigenvalues_:
            warnings.warn(
                f"{self.null_eigenvalues_} eigenvalues below {NULL:g} beyond the first: "
                "the neighbour graph falls into parts, or groups of more than n_neighbors "
                "duplicates add null vectors. "
                "Fit on distinct rows or raise n_neighbors",
                stacklevel=4,
            )
        self.embedding_ = (vectors * (np.sqrt(n) if self.scale == "unit_variance" else 1.0)).astype(
            np.float32,
            "C",
        )
        self.fitted_, self.rows_ = X, RowIndex(X)
        self._gram = gram if n <= KEPT else None

    def _reduce(self, X: Array) -> Array:
        known = self.rows_.find(X)
        Y = self.embedding_[known]
        new = np.flatnonzero(known < 0)
        if len(new):
            indices = nearest(self.fitted_, self.n_neighbors, X[new])
            weights = near.reconstruction_weights(
                self.fitted_,
                indices,
                X[new],
                reg=self.reg,
                gram=self._gram,
            )
            Y[new] = weight_matrix(indices, weights, len(self.fitted_)) @ self.embedding_
        return Y


@dataclass(kw_only=True, eq=False, repr=False)
class SBERTLP(LLE):
    """SBERT-LP (2021): locally linear embedding with many neighbours and unit variance, fitted on
    distinct rows.

    Over these YᵀY/n = I and Σy = 0. `dedupe=False` keeps duplicates, of which groups larger than k
    split the graph.
    """

    shown: ClassVar[str] = "SBERT-LP"

    n_neighbors: int = 30
    scale: str = field(default="unit_variance", init=False)
    dedupe: bool = True

    def _to_fit(self, X: Array) -> Array:
        if self.dedupe:
            check_unequal(X)
        # The first of equal rows
        kept = np.unique(RowIndex(X).find(X)) if self.dedupe else np.arange(len(X))
        dropped = len(X) - len(kept)
        try:
            return super()._to_fit(X[kept] if dropped else X)
        except InputError as error:
            raise InputError(
                f"{error}; {dropped} more rows are duplicates" if dropped else str(error)
            ) from None


def neighbour_sweep(
    X: Any,
    neighbors: Iterable[int],
    n_components: int,
    **options: Any,
) -> dict[int, SBERTLP]:
    """SBERT-LP fitted to X (n, D) at every number of neighbours, in the order given, from one
    search at the largest.
    """
    reducers = {k: SBERTLP(n_components, n_neighbors=k, **options) for k in neighbors}
    if not reducers:
        raise InputError("no numbers of neighbours given: expected at least one, such as 30")
    for reducer in reducers.values():
        rows = reducer._to_fit(reducer._fit_input(X))  # The same for all
    gram = gram_matrix(rows)
    wide = nearest(rows, max(reducers), gram=gram)  # (n, largest k), each row ascending by index
    # By distance, ties by index
    order = np.argsort(distances_to(rows, wide, rows), axis=1, kind="stable")
    for k, reducer in reducers.items():
        reducer._fit_graph(
            rows,
            np.sort(np.take_along_axis(wide, order[:, :k], axis=1), axis=1),
            gram,
        )
    return reducers
