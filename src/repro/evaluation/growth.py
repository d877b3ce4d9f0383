"""How the neighbours that a reduction keeps fall as the collection grows: a law of the share of the
dimensions and of the size, fitted to what was measured in smaller collections.

    logit(kept) = β · terms(x, L),   x = log2 of the odds of the share of dimensions,
                                     L = log10(vectors / candidates)

Where there are as many candidates as vectors everything is kept, and L is 0. With terms in ln L
the fall from there slows down: every further tenfold takes less than the one before.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from repro.types import Array, InputError, check_same_length

Floats: TypeAlias = NDArray[np.float64]
# A fitted `kept_by`: it takes a share of the dimensions and a number of vectors.
Law: TypeAlias = Callable[[Any, Any], Floats]
Terms: TypeAlias = Callable[[Floats, Floats], list[Floats]]
RIDGE = 1e-4  # Keeps coefficients finite where everything is kept.
SHARES = np.linspace(0.005, 0.995, 991)  # Among which the share that is needed is looked for.


def slowing(share: Floats, scale: Floats) -> list[Floats]:
    """A parabola in the odds of the share, whose coefficients are lines in the logarithm of the
    size's logarithm.
    """
    x = np.log2(share / (1 - share))
    lasting = [np.ones_like(x), x, x**2]
    return lasting + [np.log(scale) * term for term in lasting]


def _design(terms: Terms, share: Any, size: Any, candidates: int) -> Floats:
    """Terms (n, k) of every share and size."""
    shares, sizes = np.broadcast_arrays(np.asarray(share, float), np.asarray(size, float))
    if not ((shares > 0) & (shares < 1)).all():
        raise InputError("shares of the dimensions lie between 0 and 1, both left out")
    if not (sizes > 1.5 * candidates).all():
        raise InputError(
            f"the smallest collection has {sizes.min():g} vectors: expected more than one and a "
            f"half times the {candidates} candidates, of which a part is right by chance"
        )
    return np.stack(terms(shares, np.log10(sizes / candidates)), axis=-1)


def kept_by(
    coefficients: Floats,
    share: Any,
    size: Any,
    *,
    candidates: int,
    terms: Terms = slowing,
) -> Floats:
    """Share of the ten neighbours that a law with these coefficients says are kept.

    Args:
        coefficients: of the form's terms.
        share: of the dimensions, between 0 and 1.
        size: vectors searched.
        candidates: how many nearest of the way are looked at; ten without re-scoring.
        terms: what the law is made of, from shares and log10(vectors / candidates).
    """
    return np.asarray(expit(_design(terms, share, size, candidates) @ coefficients))


def share_needed(law: Law, target: float, size: float) -> float:
    """The smallest share of the dimensions from which on a law keeps the target; NaN if none is."""
    below = np.flatnonzero(law(SHARES, size) < target)
    first = int(below[-1]) + 1 if len(below) else 0
    return float(SHARES[first]) if first < len(SHARES) else float("nan")


def fit_law(
    share: Array,
    size: Array,
    kept: Array,
    *,
    candidates: int = 10,
    terms: Terms = slowing,
) -> Law:
    """The law that fits best what was measured, as a regression of fractions (cross entropy): a
    function of a share of the dimensions and a size, whose first argument are its coefficients.

    Args:
        share: of the dimensions (n,), between 0 and 1.
        size: vectors searched (n,).
        kept: share of the ten neighbours that were kept (n,).
        candidates: how many nearest of the way were looked at; ten without re-scoring.
        terms: what the law is made of, from shares and log10(vectors / candidates).

    Raises:
        InputError: for a share outside 0 to 1, a collection hardly larger than the candidates,
            or fewer measurements than coefficients.
    """
    check_same_length(share=share, size=size, kept=kept)
    design = _design(terms, share, size, candidates)
    if len(design) < design.shape[1]:
        raise InputError(f"{len(design)} measurements: the law has {design.shape[1]} coefficients")
    measured = np.asarray(kept, np.float64)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        logits = design @ coefficients
        entropy = np.logaddexp(0, logits) - measured * logits
        slope = design.T @ (expit(logits) - measured) + RIDGE * coefficients
        return float(entropy.sum() + RIDGE / 2 * coefficients @ coefficients), slope

    fitted = minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS")
    return partial(kept_by, fitted.x, candidates=candidates, terms=terms)
