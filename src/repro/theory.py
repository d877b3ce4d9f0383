"""Theory: what the dimension of an embedding can be expected to do, in formulas that take numbers
and arrays.

What a contrastive loss can reach on a sphere of m dimensions (method-moment, method-info-nce-limit,
method-finite-batch in the book): embeddings that are spread uniformly over the sphere, with every
positive at the same cosine, have an expected InfoNCE that depends on three numbers only: dimension,
temperature and batch. It is a closed form for an endless batch, one integral for a finite one, and
bounded from below by a simplex, whatever the embeddings are.

How many dimensions a cloud of points has, and what fewer of them keep
(method-johnson-lindenstrauss, method-intrinsic-dimension, method-predicted-similarity in the book):
neighbours see a curved sheet as what it is and are too low where the dimension is high, because the
points that would show it are too few; the spectrum sees the flat space that holds the sheet.

All functions raise InputError for numbers out of range, and for points that are all equal.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, hyp0f1, ive, log1p, logsumexp
from scipy.stats import entropy
from sklearn.neighbors import NearestNeighbors

from repro.types import (
    Array,
    InputError,
    above_zero,
    check_dim,
    check_dims,
    check_embeddings,
    is_number,
    one_of,
)

INNER_NODES = 400
"""Gauss-Legendre nodes over the angle between two points."""
OUTER_STEP = 0.05
"""Of the trapezoid rule in ln s: the error of an analytic integrand falls exponentially."""
OUTER_END = 4.2
"""Largest ln s, where e^−s is below 1e-28."""


def log_moment(dim: int, t: float) -> float:
    """Ln E e^{t·⟨z, z′⟩} = ln ₀F₁(; m/2; t²/4) for z fixed and z′ uniform on the unit sphere of m
    dimensions.

    The same as ln[Γ(m/2)·(2/t)^{m/2−1}·I_{m/2−1}(t)]; the scaled Bessel function underflows where m
    is large against t, the series does not, and where t is large against m it is the other way
    round.
    """
    check_dim(dim)
    if not (is_number(t) and np.isfinite(t)):
        raise InputError(f"t is {t}: expected a finite number")
    t = abs(float(t))
    if dim == 1:
        log_cosh = t + log1p(np.exp(-2 * t)) - np.log(2)
        return float(log_cosh)
    # Beyond that, scipy's series of two dimensions is 0 where it should overflow
    if dim > 2 or t < 709:
        with np.errstate(over="ignore"):
            series = hyp0f1(dim / 2, t * t / 4)
        if np.isfinite(series):
            return float(np.log(series))
    order = dim / 2 - 1
    log_bessel = np.log(ive(order, t)) + t
    return float(gammaln(dim / 2) + order * np.log(2 / t) + log_bessel)


def uniformity_limit(dim: int) -> float:
    """Smallest `uniformity` of endlessly many points, as if spread evenly: −4 + ln ₀F₁(; m/2; 4)
    (method-info-nce-limit in the book).
    """
    return -4.0 + log_moment(dim, 4.0)


def expected_info_nce(
    dim: int,
    temperature: float,
    batch: int | None = None,
    *,
    positive_cosine: float = 1.0,
) -> float:
    """Expected InfoNCE of embeddings uniform on the sphere whose positives have one cosine
    (method-info-nce-limit, method-finite-batch in the book).

    Args:
        dim: embedding size m.
        temperature: divides the cosines.
        batch: B, rows that compete; None gives the limit L∞ = lim (L_B − ln(B − 1)) of an endless
            batch.
        positive_cosine: a, cosine of every positive pair; 1 is perfect alignment.

    Returns:
        L∞, which may be negative, or E L_B in nats.
    """
    check_dim(dim)
    _check(temperature, batch, positive_cosine)
    if batch is None:
        return -positive_cosine / temperature + log_moment(dim, 1 / temperature)
    cosines, log_weights = _angles(dim)
    exponents = (cosines - positive_cosine) / temperature
    log_mean = float(np.log(batch - 1) + logsumexp(log_weights + exponents))
    start = -max(log_mean, 0.0) - 40.0
    log_s = np.arange(start, OUTER_END + OUTER_STEP, OUTER_STEP)
    # 1 − ϕ(s)^{B−1} loses all digits where ϕ is near 1, so 1 − ϕ is summed, by expm1, and raised by
    # log1p
    product = np.exp(np.minimum(log_s[:, None] + exponents[None, :], 700.0))
    missing = -(np.exp(log_weights) * np.expm1(-product)).sum(axis=1)  # 1 − ϕ(s)
    with np.errstate(divide="ignore"):
        rising = -np.expm1((batch - 1) * np.log1p(-np.minimum(missing, 1.0)))
    integrand = np.exp(-np.exp(log_s)) * rising
    return float(OUTER_STEP * integrand.sum())


def simplex_bound(temperature: float, batch: int) -> float:
    """Smallest InfoNCE that any B pairs can have, ln(1 + (B − 1)·e^{−B/((B−1)·temperature)})
    (method-finite-batch in the book).

    Reached by B equidistant points, which exist from B − 1 dimensions on.
    """
    _check(temperature, batch, 1.0)
    apart = batch / ((batch - 1) * temperature)
    return float(np.logaddexp(0.0, np.log(batch - 1) - apart))


def jensen_bound(dim: int, temperature: float, batch: int) -> float:
    """Largest value E L_B of aligned pairs can have, ln(1 + (B − 1)·e^{L∞}); nearly reached from 64
    dims on (method-finite-batch in the book).
    """
    _check(temperature, batch, 1.0)
    limit = expected_info_nce(dim, temperature)
    return float(np.logaddexp(0.0, np.log(batch - 1) + limit))


def _angles(dim: int) -> tuple[Array, Array]:
    """Cosines t of a uniform point with a fixed one, and the logs of weights that sum to 1: density
    ∝ sin^{m−2}θ.
    """
    if dim == 1:
        return np.array([1.0, -1.0]), np.log([0.5, 0.5])
    nodes, weights = np.polynomial.legendre.leggauss(INNER_NODES)
    theta = (nodes + 1) * np.pi / 2
    log_weights = np.log(weights) + (dim - 2) * np.log(np.sin(theta))
    return np.cos(theta), log_weights - logsumexp(log_weights)


def _check(temperature: float, batch: int | None, positive_cosine: float) -> None:
    above_zero(temperature, "temperature")
    is_count = isinstance(batch, int | np.integer) and not isinstance(batch, bool)
    if batch is not None and not (is_count and batch >= 2):
        raise InputError(
            f"a batch of {batch!r}: expected a whole number of at least 2, or None for the limit"
        )
    if not (is_number(positive_cosine) and -1 <= positive_cosine <= 1):
        raise InputError(f"positive_cosine is {positive_cosine}: expected a cosine, -1 to 1")


# Dimensions of a cloud of points


def two_nn(X: Array, *, discard: float = 0.1) -> float:
    """TwoNN (Facco et al., 2017): from the ratio μ = r₂/r₁ of every point's two nearest distances.

    μ follows a Pareto law whose exponent is the dimension. The largest ratios, a share `discard` of
    them that curvature and changing density spoil, are censored rather than dropped: (r −
    1)/(Σ_{i≤r} ln μ₍ᵢ₎ + (n − r)·ln μ₍ᵣ₎), which is unbiased. Equal rows of X (n, D) count once.
    """
    if not (is_number(discard) and 0 <= discard < 1):
        raise InputError(f"discard is {discard}: expected a share, 0 or more and below 1")
    r = _neighbour_distances(X, 2)
    log_ratio = np.sort(np.log(r[:, 1] / r[:, 0]))
    n = len(log_ratio)
    kept = max(2, int(np.floor(n * (1 - discard))))
    total = log_ratio[:kept].sum() + (n - kept) * log_ratio[kept - 1]
    if total <= 0:
        raise InputError(
            "every point has its two nearest neighbours at one distance: a lattice has no such "
            "dimension"
        )
    return float((kept - 1) / total)


def mle_dimension(X: Array, k: int = 20) -> float:
    """Maximum likelihood from k neighbours (Levina & Bickel, 2005), inverses averaged (MacKay &
    Ghahramani, 2005).

    n(k − 1)/Σᵢ Σ_{j<k} ln(T_k/T_j), with T_j the distance of point i to its j-th neighbour; k is 2
    or more.
    """
    if check_dim(k, what="k") < 2:
        raise InputError("k is 1: a ratio of distances needs at least 2 neighbours")
    T = _neighbour_distances(X, k)
    total = np.log(T[:, -1:] / T[:, :-1]).sum()
    if total <= 0:
        raise InputError(
            f"every point has its {k} nearest neighbours at one distance: use another k"
        )
    return float(len(T) * (k - 1) / total)


def participation_ratio(X: Array) -> float:
    """(Σλ)²/Σλ² of the covariance's eigenvalues λ: how many directions share the variance
    evenly.
    """
    variances = _spectrum(X) ** 2  # Of X as scaled, which cancels
    return float(variances.sum() ** 2 / (variances**2).sum())


def effective_rank(X: Array) -> float:
    """e^H with H the entropy of the centred matrix's singular values σ/Σσ (Roy & Vetterli,
    2007).
    """
    return float(np.exp(entropy(_spectrum(X))))


def _spectrum(X: Array) -> Array:
    """Singular values of the centred and scaled matrix, descending, by the smaller Gram matrix."""
    X = _centred(X, "there is no variance to count directions of")
    gram = X.T @ X if X.shape[0] >= X.shape[1] else X @ X.T
    values = np.linalg.eigvalsh(gram)[::-1]
    # What rounding leaves of an eigenvalue of zero is no direction
    directions = np.where(values > values[0] * 1e-13, values, 0.0)
    return np.sqrt(directions)


def _centred(X: Array, missing: str) -> Array:
    """X (n, D) less its mean, times the power of two that brings its largest deviation near 1.

    Rows are equal where they differ by no more than rounding of their own entries, whatever their
    scale; the error then says what is `missing`.
    """
    X = check_embeddings(X).astype(np.float64)
    apart = X - X[0]  # Exactly 0 for equal rows, which their mean may miss by rounding
    reach = float(np.abs(apart).max())
    if reach <= 4 * np.finfo(np.float64).eps * float(np.abs(X).max()):
        raise InputError(f"all rows of X are equal: {missing}")
    scaled = _near_one(apart)
    return np.asarray(scaled - scaled.mean(axis=0))


def _near_one(X: Array) -> Array:
    """X times the power of two that brings its largest entry to 0.5 or more, below 1.

    No digit changes, and squares stay within range.
    """
    _, exponent = np.frexp(np.abs(X).max())
    return np.asarray(np.ldexp(X, -int(exponent)))


def _neighbour_distances(X: Array, k: int) -> Array:
    """Distances (n, k) of every distinct row to its k nearest others, ascending, in any unit."""
    X = check_embeddings(X).astype(np.float64)
    X = np.unique(_near_one(X), axis=0)
    if len(X) < k + 1:
        raise InputError(f"X has {len(X)} distinct rows: {k} neighbours need at least {k + 1}")
    method = "kd_tree" if X.shape[1] <= 15 else "brute"
    distances, _ = NearestNeighbors(n_neighbors=k, algorithm=method).fit(X).kneighbors()
    # The brute-force product rounds distances of near-equal rows to 0
    return np.maximum(distances, np.finfo(np.float64).tiny)


def jl_dim(n: int, eps: float) -> int:
    """Random dimensions that suffice for all distances of n points to keep their squares within 1 ±
    eps.

    ⌈4·ln n/(eps²/2 − eps³/3)⌉ (Dasgupta & Gupta, 2003) promises that some projection does, drawn
    with a chance of 1/n. It does not depend on the dimension the points come from, so that it may
    exceed it and then says nothing.
    """
    if check_dim(n, what="n") < 2:
        raise InputError("n is 1: a distance needs at least 2 points")
    if not (is_number(eps) and 0 < eps < 1):
        raise InputError(f"eps is {eps}: expected a number between 0 and 1")
    return int(np.ceil(4 * math.log(n) / (eps**2 / 2 - eps**3 / 3)))


def predicted_similarity(X: Array, dims: Sequence[int], *, reducer: str = "pca") -> Array:
    """Predicted Spearman correlation (len(dims),) of reduced with full similarity over random pairs
    of rows of X.

    No label is needed, and no pair. If embeddings were Gaussian, the inner products of random pairs
    before and after a reduction would correlate by a number ρ that depends on the covariance C
    only. With its eigenvalues λ and participation ratio PR, ρ is √(Σ_{i≤d}λᵢ²/Σλᵢ²) for `pca`;
    √(d/(d + 1 + PR)) for `grp`, also above D; (1 + PR·(1/d − 1/D))^−½ for the first d coordinates
    of a random rotation, `rotate`; and ‖C_{·,S}‖²/(‖C‖·‖C_{S,S}‖), with S the first d coordinates
    as they stand, for `truncate`. Its Spearman form is (6/π)·asin(ρ/2), as if the products were
    Gaussian too: too high by 0.05 where only two directions are kept.
    """
    one_of(reducer, ("pca", "truncate", "grp", "rotate"), "reducer")
    X = _centred(X, "there is no similarity to keep")
    limit = None if reducer == "grp" else X.shape[1]
    d = np.array(check_dims(dims, limit=limit), dtype=np.int64)
    C = np.cov(X, rowvar=False, bias=True).reshape(X.shape[1], X.shape[1])
    whole = float((C**2).sum())
    ratio = float(np.trace(C)) ** 2 / whole  # Participation ratio
    if reducer == "pca":
        squared = np.sort(np.linalg.eigvalsh(C))[::-1] ** 2
        rho = np.sqrt(np.cumsum(squared)[d - 1] / squared.sum())
    elif reducer == "grp":
        rho = np.sqrt(d / (d + 1 + ratio))
    elif reducer == "rotate":
        rho = 1 / np.sqrt(1 + ratio * (1 / d - 1 / X.shape[1]))
    else:
        columns = np.cumsum((C**2).sum(axis=0))[d - 1]  # ‖C_{·,S}‖²
        corners = np.cumsum(np.cumsum(C**2, axis=0), axis=1)
        blocks = np.diagonal(corners)[d - 1]  # ‖C_{S,S}‖²
        rho = np.zeros(len(d))
        np.divide(columns, np.sqrt(whole * blocks), out=rho, where=blocks > 0)
    half = np.clip(rho, 0, 1) / 2
    return np.asarray(6 / np.pi * np.arcsin(half))
