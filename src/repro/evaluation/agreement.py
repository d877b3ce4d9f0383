"""Agreement of two embeddings of the same texts, such as full ones and their prefixes, whatever their sizes.

What ESE's Figure 7 is after, without a map: both measures are 1 for equal embeddings, do not change when either side is
rotated or scaled, and need no common coordinates (audit E16).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.types import Array, InputError, check_dim, check_embeddings, check_same_length


def linear_cka(X: Any, Y: Any, *, weights: Any = None) -> float:
    """Linear centred kernel alignment, ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of centred columns (Kornblith et al., 2019).

    Args:
        X: embeddings (n, D).
        Y: others of the same texts (n, d).
        weights: how often each text counts (n,), such as the counts of a resample; None counts each once.

    Returns:
        0 for no linear relation … 1 for embeddings that are a rotation and a scaling of each other. NaN where one
        side is constant.

    Raises:
        InputError: for unusable embeddings, mismatched lengths, or weights that are negative or all 0.
    """
    X, Y = check_embeddings(X, "X"), check_embeddings(Y, "Y")
    check_same_length(X=X, Y=Y)
    X, Y = (_centred(Z, weights) for Z in (X, Y))
    cross, own_x, own_y = (_square_norm(A, B) for A, B in ((X, Y), (X, X), (Y, Y)))
    return float(cross / np.sqrt(own_x * own_y)) if own_x > 0 and own_y > 0 else float("nan")


def prefix_cka(X: Any, dims: Sequence[int], *, weights: Any = None) -> Array:
    """Linear CKA of X (n, D) with its own first columns, at every size of `dims` (len(dims),), from one product.

    All three norms are those of parts of XᵀX: its first d columns, all of it, and its first d rows and columns.

    Raises:
        InputError: for unusable embeddings, a size out of range, or weights that are negative or all 0.
    """
    X = check_embeddings(X)
    for dim in dims:
        check_dim(dim, limit=X.shape[1])
    squares = np.square(_gram(X, weights))
    columns = squares.sum(0)
    with np.errstate(invalid="ignore"):  # constant embeddings: 0 / 0
        return np.array([columns[:d].sum() / np.sqrt(columns.sum() * squares[:d, :d].sum()) for d in dims])


def cosine_agreement(X: Any, Y: Any, pairs: Any) -> float:
    """Spearman of the cosines of some pairs of texts under X with those of the same pairs under Y.

    Args:
        X: embeddings (n, D).
        Y: others of the same texts (n, d).
        pairs: rows of each pair (P, 2).

    Returns:
        1 if both order the pairs alike. NaN, with a warning, where all cosines of one side are equal.

    Raises:
        InputError: for unusable embeddings, mismatched lengths, or pairs that are not rows.
    """
    X, Y = check_embeddings(X, "X"), check_embeddings(Y, "Y")
    check_same_length(X=X, Y=Y)
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or not len(rows) or not np.issubdtype(rows.dtype, np.integer):
        raise InputError(f"pairs has shape {rows.shape} of {rows.dtype}: expected whole numbers (P, 2), a pair a line")
    if rows.min() < 0 or rows.max() >= len(X):
        raise InputError(f"pairs name rows {rows.min()} to {rows.max()}: expected 0 to {len(X) - 1}")
    return float(sts_spearman(X[rows[:, 0]], X[rows[:, 1]], pair_cosines(Y, rows)))


def pair_cosines(X: Array, pairs: NDArray[np.integer[Any]] | Sequence[Sequence[int]]) -> Array:
    """Cosine of each pair of rows of X (P,)."""
    rows = np.asarray(pairs)
    return np.asarray(prefix_cosines(X[rows[:, 0]], X[rows[:, 1]], [X.shape[1]])[0])


def _gram(X: Array, weights: Any) -> NDArray[np.float64]:
    """XᵀX of centred columns (D, D)."""
    X = _centred(X, weights)
    return np.asarray(X.T @ X)


def _centred(X: Array, weights: Any) -> NDArray[np.float64]:
    """Columns less their weighted mean, rows times the root of their weight: weighted products become plain ones."""
    w = np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)
    check_same_length(embeddings=X, weights=w)
    if not (w >= 0).all() or not w.sum() > 0:
        raise InputError(f"weights run from {w.min()} to {w.max()}: expected numbers of 0 or more, not all 0")
    X = np.asarray(X, np.float64)
    return np.asarray((X - w @ X / w.sum()) * np.sqrt(w)[:, None])


def _square_norm(A: NDArray[np.float64], B: NDArray[np.float64]) -> float:
    """‖AᵀB‖² of A (n, a) and B (n, b), through whichever of the products is smaller."""
    if len(A) < min(A.shape[1], B.shape[1]):
        return float(((A @ A.T) * (B @ B.T)).sum())
    return float(np.square(A.T @ B).sum())
