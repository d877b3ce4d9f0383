"""What fewer dimensions keep of the structure of some points.

Linear CKA is what ESE's Figure 7 is after, without a map: it is 1 for equal embeddings, does not
change when either side is rotated or scaled, and needs no common coordinates (audit E16). Residual
variance (de Ridder and Duin, 2002) and Procrustes statistics (Goldberg and Ritov, 2009) are said to
pick the number of neighbours of a locally linear mapping (SBERT-LP, 2021, Section 4.6.1): they
compare it with what it was fitted on, and are the smaller the better.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from repro.types import Array, InputError, check_dims, check_embeddings, check_same_length

# Points, evenly spaced, whose distances, and whose neighbourhoods, are compared
SAMPLE, PLACES = 500, 100


def prefix_cka(X: Any, dims: Sequence[int], *, weights: Any = None) -> Array:
    """Linear centred kernel alignment of X (n, D) with its own first columns, at every size of
    `dims` (len(dims),).

    ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖) of centred columns (Kornblith et al., 2019), from 0 to 1; for a prefix Y
    all three norms are those of parts of XᵀX. NaN where X is constant. Weights (n,) say how often
    each text counts, as in a resample.
    """
    X = check_embeddings(X).astype(np.float64)
    dims = check_dims(dims, limit=X.shape[1])
    w = np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)
    check_same_length(embeddings=X, weights=w)
    if not (w >= 0).all() or not w.sum() > 0:
        raise InputError(
            f"weights run from {w.min()} to {w.max()}: expected numbers of 0 or more, not all 0"
        )
    X = (X - w @ X / w.sum()) * np.sqrt(w)[:, None]  # Weighted products become plain ones
    squares = np.square(X.T @ X)
    columns = squares.sum(0)
    alignments = []
    with np.errstate(invalid="ignore"):  # Constant embeddings: 0 / 0
        for d in dims:
            of_both = columns[:d].sum()
            norms = np.sqrt(columns.sum() * squares[:d, :d].sum())
            alignments.append(of_both / norms)
    return np.array(alignments)


def residual_variance(X: Array, Y: Array) -> float:
    """1 − ρ², ρ the correlation of the distances in X (n, D) with those in Y (n, p), over evenly
    spaced rows.
    """
    check_same_length(X=X, Y=Y)
    rows = _evenly(len(X), SAMPLE)
    before = pdist(X[rows].astype(np.float64))
    after = pdist(Y[rows].astype(np.float64))
    correlation = np.corrcoef(before, after)[0, 1]
    return float(1 - correlation**2)


def procrustes_statistic(X: Array, Y: Array, n_neighbors: int) -> float:
    """Mean over points of what no shift, turn and scaling of a point's neighbourhood in Y (n, p)
    brings onto that in X.

    For centred neighbourhoods A (k+1, D) and B (k+1, p) of k neighbours in X this is 1 − (Σ s_i)² /
    (‖A‖² ‖B‖²), s the singular values of AᵀB: 0 where the mapping only moved, turned and scaled the
    neighbourhood, below 1 always.
    """
    # Brings scikit-learn, which tables of scores do without
    from repro.reducers.neighbors import nearest

    check_same_length(X=X, Y=Y)
    indices = nearest(X, n_neighbors)  # (n, k)
    lost = []
    for i in _evenly(len(X), PLACES):
        around = np.r_[i, indices[i]]
        A = X[around].astype(np.float64)
        B = Y[around].astype(np.float64)
        A -= A.mean(0)
        B -= B.mean(0)
        size = (A**2).sum() * (B**2).sum()
        # AᵀB and the square root of A·Aᵀ times that of B·Bᵀ have the same singular values, the
        # latter only k + 1
        singular = np.linalg.svd(_root(A) @ _root(B), compute_uv=False).sum()
        lost.append(max(1 - singular**2 / size, 0.0) if size > 0 else 0.0)
    return float(np.mean(lost))


def _evenly(n: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))


def _root(A: Array) -> Array:
    values, vectors = np.linalg.eigh(A @ A.T)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
