"""Dimensions that a cloud of points has, and what fewer of them keep (PROTOCOLS §7.4 to §7.6).

How many it has is estimated from neighbours or from the spectrum. Neighbours see a curved sheet as what it is and are
too low where the dimension is high, because the points that would show it are too few; the spectrum sees the flat
space that holds the sheet. All functions raise InputError for numbers out of range and for points that are all equal.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.neighbors import NearestNeighbors

from repro.types import Array, InputError, check_dim, check_embeddings, one_of


def two_nn(X: Array, *, discard: float = 0.1) -> float:
    """TwoNN (Facco et al., 2017): from the ratio μ = r₂/r₁ of every point's two nearest distances.

    μ follows a Pareto law whose exponent is the dimension. The largest ratios, a share `discard` of them that curvature
    and changing density spoil, are censored rather than dropped: (r − 1)/(Σ_{i≤r} ln μ₍ᵢ₎ + (n − r)·ln μ₍ᵣ₎), which is
    unbiased. Equal rows of X (n, D) count once.
    """
    if not 0 <= discard < 1:
        raise InputError(f"discard is {discard}: expected a share, 0 or more and below 1")
    r = _neighbour_distances(X, 2)
    log_ratio = np.sort(np.log(r[:, 1] / r[:, 0]))
    n = len(log_ratio)
    kept = max(2, int(np.floor(n * (1 - discard))))
    total = log_ratio[:kept].sum() + (n - kept) * log_ratio[kept - 1]
    if total <= 0:
        raise InputError("every point has its two nearest neighbours at one distance: a lattice has no such dimension")
    return float((kept - 1) / total)


def mle_dimension(X: Array, k: int = 20) -> float:
    """Maximum likelihood from k neighbours (Levina & Bickel, 2005), inverses averaged (MacKay & Ghahramani, 2005).

    n(k − 1)/Σᵢ Σ_{j<k} ln(T_k/T_j), with T_j the distance of point i to its j-th neighbour; k is 2 or more.
    """
    if check_dim(k, what="k") < 2:
        raise InputError("k is 1: a ratio of distances needs at least 2 neighbours")
    T = _neighbour_distances(X, k)
    total = np.log(T[:, -1:] / T[:, :-1]).sum()
    if total <= 0:
        raise InputError(f"every point has its {k} nearest neighbours at one distance: use another k")
    return float(len(T) * (k - 1) / total)


def participation_ratio(X: Array) -> float:
    """(Σλ)²/Σλ² of the covariance's eigenvalues λ: how many directions share the variance evenly."""
    variances = _spectrum(X) ** 2
    return float(variances.sum() ** 2 / (variances**2).sum())


def effective_rank(X: Array) -> float:
    """e^H with H the entropy of the centred matrix's singular values σ/Σσ (Roy & Vetterli, 2007)."""
    singular = _spectrum(X)
    share = singular / singular.sum()
    share = share[share > 0]
    return float(np.exp(-(share * np.log(share)).sum()))


def _spectrum(X: Array) -> Array:
    """Singular values of the centred matrix, descending, by the smaller Gram matrix."""
    X = check_embeddings(X).astype(np.float64)
    X = X - X.mean(axis=0)
    gram = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
    values = np.linalg.eigvalsh(gram)[::-1]
    if not values[0] > np.finfo(np.float64).eps * len(X) * max(1.0, float(np.abs(X).max()) ** 2):
        raise InputError("all rows of X are equal: there is no variance to count directions of")
    # what rounding leaves of an eigenvalue of zero is no direction
    return np.sqrt(np.where(values > values[0] * 1e-13, values, 0.0))


def _neighbour_distances(X: Array, k: int) -> Array:
    """Distances (n, k) of every distinct row to its k nearest other rows, ascending."""
    X = np.unique(check_embeddings(X).astype(np.float64), axis=0)
    if len(X) < k + 1:
        raise InputError(f"X has {len(X)} distinct rows: {k} neighbours need at least {k + 1}")
    method = "kd_tree" if X.shape[1] <= 15 else "brute"
    distances, _ = NearestNeighbors(n_neighbors=k, algorithm=method).fit(X).kneighbors()
    # the brute-force product rounds distances of near-equal rows to 0
    return np.maximum(distances, np.finfo(np.float64).tiny)


def jl_dim(n: int, eps: float) -> int:
    """Random dimensions that suffice for all distances of n points to keep their squares within 1 ± eps.

    ⌈4·ln n/(eps²/2 − eps³/3)⌉ (Dasgupta & Gupta, 2003) promises that some projection does, drawn with a chance of 1/n.
    It does not depend on the dimension the points come from, so that it may exceed it and then says nothing.
    """
    if check_dim(n, what="n") < 2:
        raise InputError("n is 1: a distance needs at least 2 points")
    if not 0 < eps < 1:
        raise InputError(f"eps is {eps}: expected a number between 0 and 1")
    return int(np.ceil(4 * np.log(n) / (eps**2 / 2 - eps**3 / 3)))


def predicted_similarity(X: Array, dims: Sequence[int], *, reducer: str = "pca") -> Array:
    """Predicted Spearman correlation (len(dims),) of reduced with full similarity over random pairs of rows of X.

    No label is needed, and no pair. If embeddings were Gaussian, the inner products of random pairs before and after a
    reduction would correlate by a number ρ that depends on the covariance C only. With its eigenvalues λ and
    participation ratio PR, ρ is √(Σ_{i≤d}λᵢ²/Σλᵢ²) for `pca`; √(d/(d + 1 + PR)) for `grp`, also above D;
    (1 + PR·(1/d − 1/D))^−½ for the first d coordinates of a random rotation, `rotate`; and
    ‖C_{·,S}‖²/(‖C‖·‖C_{S,S}‖), with S the first d coordinates as they stand, for `truncate`. Its Spearman form is
    (6/π)·asin(ρ/2), as if the products were Gaussian too: too high by 0.05 where only two directions are kept.
    """
    one_of(reducer, ("pca", "truncate", "grp", "rotate"), "reducer")
    X = check_embeddings(X).astype(np.float64)
    limit = None if reducer == "grp" else X.shape[1]
    d = np.array([check_dim(dim, limit=limit) for dim in dims], dtype=np.int64)
    C = np.cov(X, rowvar=False, bias=True).reshape(X.shape[1], X.shape[1])
    whole = float((C**2).sum())
    if not whole > 0:
        raise InputError("all rows of X are equal: there is no similarity to keep")
    ratio = float(np.trace(C)) ** 2 / whole  # participation ratio
    if reducer == "pca":
        squared = np.sort(np.linalg.eigvalsh(C))[::-1] ** 2
        rho = np.sqrt(np.cumsum(squared)[d - 1] / squared.sum())
    elif reducer == "grp":
        rho = np.sqrt(d / (d + 1 + ratio))
    elif reducer == "rotate":
        rho = 1 / np.sqrt(1 + ratio * (1 / d - 1 / X.shape[1]))
    else:
        columns = np.cumsum((C**2).sum(axis=0))[d - 1]  # ‖C_{·,S}‖²
        blocks = np.diagonal(np.cumsum(np.cumsum(C**2, axis=0), axis=1))[d - 1]  # ‖C_{S,S}‖²
        rho = np.divide(columns, np.sqrt(whole * blocks), out=np.zeros(len(d)), where=blocks > 0)
    return np.asarray(6 / np.pi * np.arcsin(np.clip(rho, 0, 1) / 2))
