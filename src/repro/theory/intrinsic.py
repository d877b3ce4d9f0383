"""How many dimensions a cloud of points really has, from neighbours and from the spectrum (PROTOCOLS §7.5).

Those from neighbours see a curved sheet as what it is and are too low where the dimension is high, because the points
that would show it are too few. Those from the spectrum see the flat space that holds the sheet.
"""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from repro.types import Array, InputError, check_dim, check_embeddings


def two_nn(X: Array, *, discard: float = 0.1) -> float:
    """TwoNN (Facco et al., 2017): from the ratio μ = r₂/r₁ of every point's two nearest distances.

    μ follows a Pareto law whose exponent is the dimension. The largest ratios, which curvature and changing density
    spoil, are censored rather than dropped: (r − 1)/(Σ_{i≤r} ln μ₍ᵢ₎ + (n − r)·ln μ₍ᵣ₎), which is unbiased.

    Args:
        X: points (n, D); equal rows count once.
        discard: share of the largest ratios that is censored.

    Raises:
        InputError: for fewer than three distinct rows, or a share outside 0 … 1.
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

    n(k − 1)/Σᵢ Σ_{j<k} ln(T_k/T_j), with T_j the distance of point i to its j-th neighbour.

    Raises:
        InputError: for k < 2, or not more than k distinct rows.
    """
    if check_dim(k, what="k") < 2:
        raise InputError("k is 1: a ratio of distances needs at least 2 neighbours")
    T = _neighbour_distances(X, k)
    total = np.log(T[:, -1:] / T[:, :-1]).sum()
    if total <= 0:
        raise InputError(f"every point has its {k} nearest neighbours at one distance: use another k")
    return float(len(T) * (k - 1) / total)


def participation_ratio(X: Array) -> float:
    """(Σλ)²/Σλ² of the covariance's eigenvalues λ: how many directions share the variance evenly.

    Raises:
        InputError: if all rows are equal.
    """
    variances = _spectrum(X) ** 2
    return float(variances.sum() ** 2 / (variances**2).sum())


def effective_rank(X: Array) -> float:
    """e^H with H the entropy of the centred matrix's singular values σ/Σσ (Roy & Vetterli, 2007).

    Raises:
        InputError: if all rows are equal.
    """
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
