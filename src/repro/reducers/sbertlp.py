"""SBERT-LP: locality preserving embeddings of sentences, fitted on distinct rows (PROTOCOLS §4.7, Eqs. 1–17)."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from repro.reducers.locality import NULL
from repro.reducers.manifold import LLE
from repro.reducers.neighbors import Indices, RowIndex, check_neighbors, distances_to, gram_matrix, nearest
from repro.reducers.reducer import check_components
from repro.reducers.spectral import check_bottom_memory
from repro.types import Array, InputError


class SBERTLP(LLE):
    """Locally linear embedding as SBERT-LP uses it (2021): many neighbours, distinct rows, unit variance.

    Over the fitted distinct rows YᵀY/n = I and Σy = 0. Rows not fitted are combined from their k nearest fitted
    rows with the same weights; a row equal to a fitted one gets the very y that fitting gave it.

    Args:
        n_components: up to n − 1, n the number of distinct rows.
        n_neighbors: k, below the number of distinct rows.
        reg: ρ of the weights' regularisation.
        dedupe: fit on distinct rows; False keeps duplicates, of which groups larger than k split the graph.
    """

    scale = "unit_variance"

    def __init__(self, n_components: int = 2, *, n_neighbors: int = 30, reg: float = 1e-3, dedupe: bool = True) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.reg = reg
        self.dedupe = dedupe

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn `embedding_` (n, n_components), `eigenvalues_` and `weights_` (n, n) from the n distinct rows of X.

        Also `null_eigenvalues_`, how many eigenvalues beyond the first are null: each one is a direction in which
        parts of the neighbour graph float freely. A warning tells of them.

        Raises:
            InputError: for unusable X, k ≥ n, `n_components` beyond n − 1, or more rows than there is memory for.
        """
        rows = self._distinct(X)
        gram = gram_matrix(rows)
        return self._fit_distinct(rows, nearest(rows, self.n_neighbors, gram=gram), gram)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The embedding (rows of X, n_components); duplicates share theirs."""
        return self.fit(X).embedding_[self.rows_.find(self._new_input(X))]

    def _distinct(self, X: Any) -> Array:
        """The rows to fit (n, D), enough for `n_neighbors` and `n_components`."""
        X = self._fit_input(X, min_rows=2)
        kept = np.unique(RowIndex(X).find(X)) if self.dedupe else np.arange(len(X))  # the first of equal rows
        n, dropped = len(kept), len(X) - len(kept)
        try:
            check_neighbors(self.n_neighbors, n)
            count = check_components(self.n_components, n - 1, f"n - 1 of {n} rows")
        except InputError as error:
            raise InputError(f"{error}; {dropped} more rows are duplicates" if dropped else str(error)) from None
        check_bottom_memory(n, count)
        return X[kept] if dropped else X

    def _fit_distinct(self, X: Array, indices: Indices, gram: Array | None) -> Self:
        """Fit rows X (n, D) whose neighbours (n, k) are found already: weights of Eqs. 3–8, vectors of Eqs. 9–17."""
        self._fit_graph(X, indices, self.n_components, gram)
        self.null_eigenvalues_ = int((self.eigenvalues_ < NULL).sum())
        return self


def neighbour_sweep(X: Any, neighbors: Iterable[int], n_components: int, **options: Any) -> dict[int, SBERTLP]:
    """SBERT-LP fitted at every number of neighbours, from one search at the largest.

    Args:
        X: rows (n, D).
        neighbors: numbers of neighbours.
        n_components: of each; smaller sizes are prefixes.
        options: `reg` and `dedupe`, as for `SBERTLP`.

    Returns:
        Fitted reducers by number of neighbours, in the order given.

    Raises:
        InputError: as `SBERTLP.fit`, for the largest number of neighbours before anything is computed.
    """
    sizes = list(neighbors)
    if not sizes:
        raise InputError("no numbers of neighbours given: expected at least one, such as 30")
    reducers = {k: SBERTLP(n_components, n_neighbors=k, **options) for k in sizes}
    for reducer in reducers.values():
        rows = reducer._distinct(X)  # the same for all
    gram = gram_matrix(rows)
    wide = nearest(rows, max(sizes), gram=gram)  # (n, largest k), each row ascending by index
    order = np.argsort(distances_to(rows, wide, rows), axis=1, kind="stable")  # by distance, ties by index
    for k, reducer in reducers.items():
        reducer._fit_distinct(rows, np.sort(np.take_along_axis(wide, order[:, :k], axis=1), axis=1), gram)
    return reducers
