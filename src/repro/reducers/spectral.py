"""Eigenproblems of the reducers: signs fixed, a few eigenvectors out of many."""

from typing import Any

import numpy as np
from scipy import linalg

from repro.types import Array


def orient(V: Array) -> Array:
    """The columns of V (n, p), each with its entry of largest modulus positive (the first, if several tie)."""
    size = np.abs(V)
    # entries within rounding of the largest count as tied, so that the choice does not hang on the last bit
    largest = np.argmax(size >= size.max(0) * (1 - 1e-9), axis=0)
    return np.asarray(V * np.where(V[largest, np.arange(V.shape[1])] < 0, -1.0, 1.0))


def bottom_eigenpairs(M: Any, count: int) -> tuple[Array, Array]:
    """The smallest eigenvalues (count,), ascending, and vectors (n, count) of M on the complement of the constant.

    Args:
        M: sparse, symmetric and positive semidefinite (n, n), with the constant vector in its null space.
        count: how many, at most n − 1.
    """
    n = M.shape[0]
    top = float(abs(M).sum(1).max())  # no eigenvalue exceeds it
    dense = M.toarray()
    dense += 2 * max(top, 1.0) / n  # lifts the constant vector above all others
    values, vectors = linalg.eigh(dense, subset_by_index=(0, count - 1), overwrite_a=True, check_finite=False)
    return np.maximum(values, 0.0), orient(vectors)
