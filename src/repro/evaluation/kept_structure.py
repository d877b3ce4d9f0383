"""How much of the shape of some points a mapping keeps, told without a task.

Two statistics that are said to pick the number of neighbours of a locally linear mapping (SBERT-LP, 2021, Section
4.6.1). Both compare a mapping with what it was fitted on and are the smaller the better: residual variance over all
distances (de Ridder and Duin, 2002), Procrustes statistics over each neighbourhood (Goldberg and Ritov, 2009).
"""

import numpy as np
from scipy.spatial.distance import pdist

from repro.reducers.neighbors import nearest
from repro.types import Array, check_same_length

SAMPLE, PLACES = 500, 100
"""points, evenly spaced, whose distances, and whose neighbourhoods, are compared"""


def residual_variance(X: Array, Y: Array) -> float:
    """1 − ρ², ρ the correlation of the distances in X (n, D) with those in Y (n, p), over evenly spaced rows."""
    check_same_length(X=X, Y=Y)
    rows = np.unique(np.linspace(0, len(X) - 1, min(SAMPLE, len(X))).astype(int))
    return float(1 - np.corrcoef(pdist(X[rows].astype(np.float64)), pdist(Y[rows].astype(np.float64)))[0, 1] ** 2)


def procrustes_statistic(X: Array, Y: Array, n_neighbors: int) -> float:
    """Mean over points of what no shift, turn and scaling of a point's neighbourhood in Y brings onto that in X.

    For centred neighbourhoods A (k+1, D) and B (k+1, p) this is 1 − (Σ s_i)² / (‖A‖² ‖B‖²), s the singular values of
    AᵀB: 0 where the mapping only moved, turned and scaled the neighbourhood, below 1 always.

    Args:
        X: fitted rows (n, D).
        Y: their coordinates (n, p).
        n_neighbors: k of the mapping.
    """
    check_same_length(X=X, Y=Y)
    indices = nearest(X, n_neighbors)  # (n, k)
    rows = np.unique(np.linspace(0, len(X) - 1, min(PLACES, len(X))).astype(int))
    lost = []
    for i in rows:
        around = np.r_[i, indices[i]]
        A, B = (Z[around].astype(np.float64) for Z in (X, Y))
        A, B = A - A.mean(0), B - B.mean(0)
        size = (A**2).sum() * (B**2).sum()
        # AᵀB and the square root of A·Aᵀ times that of B·Bᵀ have the same singular values, the latter only k + 1
        singular = np.linalg.svd(_root(A) @ _root(B), compute_uv=False).sum()
        lost.append(max(1 - singular**2 / size, 0.0) if size > 0 else 0.0)
    return float(np.mean(lost))


def _root(A: Array) -> Array:
    values, vectors = np.linalg.eigh(A @ A.T)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
