"""What a contrastive loss can reach on a sphere of m dimensions (PROTOCOLS §7.1 to §7.3).

Embeddings that are spread uniformly over the sphere, with every positive at the same cosine, have an expected
InfoNCE that depends on three numbers only: dimension, temperature and batch. It is a closed form for an endless
batch, one integral for a finite one, and bounded from below by a simplex, whatever the embeddings are. All functions
raise InputError for a dim below 1, a temperature that is not above 0, a batch below 2, or a cosine outside −1 … 1.
"""

import numpy as np
from scipy.special import gammaln, hyp0f1, ive, log1p, logsumexp

from repro.types import Array, InputError, check_dim

INNER_NODES = 400  # Gauss-Legendre nodes over the angle between two points
OUTER_STEP, OUTER_END = 0.05, 4.2
"""of the trapezoid rule in ln s: the error of an analytic integrand falls exponentially, and e^−s ends below 1e-28"""


def log_moment(dim: int, t: float) -> float:
    """Ln E e^{t·⟨z, z′⟩} = ln ₀F₁(; m/2; t²/4) for z fixed and z′ uniform on the unit sphere of m dimensions.

    The same as ln[Γ(m/2)·(2/t)^{m/2−1}·I_{m/2−1}(t)]; the scaled Bessel function underflows where m is large against t,
    the series does not, and where t is large against m it is the other way round.
    """
    check_dim(dim)
    if not np.isfinite(t):
        raise InputError(f"t is {t}: expected a finite number")
    t = abs(float(t))
    if dim == 1:
        return t + float(log1p(np.exp(-2 * t))) - float(np.log(2))  # ln cosh t
    if dim > 2 or t < 709:  # beyond that, scipy's series of two dimensions is 0 where it should overflow
        with np.errstate(over="ignore"):
            series = hyp0f1(dim / 2, t * t / 4)
        if np.isfinite(series):
            return float(np.log(series))
    order = dim / 2 - 1
    return float(gammaln(dim / 2) + order * np.log(2 / t) + np.log(ive(order, t)) + t)


def uniformity_limit(dim: int) -> float:
    """Smallest possible `uniformity`, that of the uniform distribution: −4 + ln ₀F₁(; m/2; 4) (§7.2)."""
    return -4.0 + log_moment(dim, 4.0)


def expected_info_nce(dim: int, temperature: float, batch: int | None = None, *, positive_cosine: float = 1.0) -> float:
    """Expected InfoNCE of embeddings uniform on the sphere whose positives have one cosine (§7.2, §7.3).

    Args:
        dim: embedding size m.
        temperature: divides the cosines.
        batch: B, rows that compete; None gives the limit L∞ = lim (L_B − ln(B − 1)) of an endless batch.
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
    start = -max(float(np.log(batch - 1) + logsumexp(log_weights + exponents)), 0.0) - 40.0
    log_s = np.arange(start, OUTER_END + OUTER_STEP, OUTER_STEP)
    # 1 − ϕ(s)^{B−1} loses all digits where ϕ is near 1, so 1 − ϕ is summed, by expm1, and raised by log1p
    product = np.exp(np.minimum(log_s[:, None] + exponents[None, :], 700.0))
    missing = -(np.exp(log_weights) * np.expm1(-product)).sum(axis=1)  # 1 − ϕ(s)
    with np.errstate(divide="ignore"):
        rising = -np.expm1((batch - 1) * np.log1p(-np.minimum(missing, 1.0)))
    return float(OUTER_STEP * (np.exp(-np.exp(log_s)) * rising).sum())


def simplex_bound(temperature: float, batch: int) -> float:
    """Smallest InfoNCE that any B pairs can have, ln(1 + (B − 1)·e^{−B/((B−1)·temperature)}) (§7.3).

    Reached by B equidistant points, which exist from B − 1 dimensions on.
    """
    _check(temperature, batch, 1.0)
    return float(np.logaddexp(0.0, np.log(batch - 1) - batch / ((batch - 1) * temperature)))


def jensen_bound(dim: int, temperature: float, batch: int) -> float:
    """Largest value E L_B of aligned pairs can have, ln(1 + (B − 1)·e^{L∞}); nearly reached from 64 dims on (§7.3)."""
    _check(temperature, batch, 1.0)
    return float(np.logaddexp(0.0, np.log(batch - 1) + expected_info_nce(dim, temperature)))


def _angles(dim: int) -> tuple[Array, Array]:
    """Cosines t of a uniform point with a fixed one, and the logs of weights that sum to 1: density ∝ sin^{m−2}θ."""
    if dim == 1:
        return np.array([1.0, -1.0]), np.log([0.5, 0.5])
    nodes, weights = np.polynomial.legendre.leggauss(INNER_NODES)
    theta = (nodes + 1) * np.pi / 2
    log_weights = np.log(weights) + (dim - 2) * np.log(np.sin(theta))
    return np.cos(theta), log_weights - logsumexp(log_weights)


def _check(temperature: float, batch: int | None, positive_cosine: float) -> None:
    if not (temperature > 0 and np.isfinite(temperature)):
        raise InputError(f"temperature is {temperature}: expected a number above 0")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 2):
        raise InputError(f"batch is {batch!r}: expected a whole number of at least 2, or None for the limit")
    if not -1 <= positive_cosine <= 1:
        raise InputError(f"positive_cosine is {positive_cosine}: expected a cosine, -1 to 1")
