"""How the neighbours that a reduction keeps fall as the collection grows: a law of the share of the
dimensions and of the size, fitted to what was measured in smaller collections.

    logit(kept) = β · terms(x, L),   x = log2 of the odds of the share of dimensions,
                                     L = log10(vectors / candidates)

Where there are as many candidates as vectors everything is kept, and L is 0. With terms in ln L
the fall from there slows down: every further tenfold takes less than the one before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from repro.types import Array, InputError, check_same_length, one_of

Floats: TypeAlias = NDArray[np.float64]
RIDGE = 1e-4  # Keeps coefficients finite where everything is kept.
SHARES = np.linspace(0.005, 0.995, 991)  # Among which the share that is needed is looked for.


def _straight(share: Floats, scale: Floats) -> list[Floats]:
    """A line in the logarithm of the share and in that of the size, and their product."""
    x = np.log2(share)
    return [np.ones_like(x), x, scale, x * scale]


def _bent(share: Floats, scale: Floats) -> list[Floats]:
    """A parabola in the odds of the share, whose coefficients are lines in the size's logarithm."""
    x = np.log2(share / (1 - share))
    return [np.ones_like(x), x, x**2, scale, x * scale, x**2 * scale]


def _slowing(share: Floats, scale: Floats) -> list[Floats]:
    """The same parabola, with lines in the logarithm of the size's logarithm."""
    return _bent(share, np.log(scale))


FORMS: Mapping[str, Callable[[Floats, Floats], list[Floats]]] = MappingProxyType(
    {"straight": _straight, "bent": _bent, "slowing": _slowing}
)
"""What a law may be made of, by name."""


def _design(form: str, share: Any, size: Any, candidates: int) -> Floats:
    """Terms (n, k) of every share and size."""
    shares, sizes = np.broadcast_arrays(np.asarray(share, float), np.asarray(size, float))
    if not ((shares > 0) & (shares < 1)).all():
        raise InputError("shares of the dimensions lie between 0 and 1, both left out")
    if not (sizes > 1.5 * candidates).all():
        raise InputError(
            f"the smallest collection has {sizes.min():g} vectors: expected more than one and a "
            f"half times the {candidates} candidates, of which a part is right by chance"
        )
    terms = FORMS[one_of(form, tuple(FORMS), "form")]
    return np.stack(terms(shares, np.log10(sizes / candidates)), axis=-1)


@dataclass(frozen=True, eq=False)
class Law:
    """A fitted law of one way to reduce and to code, for so many candidates."""

    form: str  # A name of `FORMS`.
    candidates: int  # How many nearest of the way are looked at.
    coefficients: Floats

    def kept(self, share: Any, size: Any) -> Floats:
        """Share of the ten neighbours kept, by share of the dimensions and vectors searched."""
        return np.asarray(
            expit(_design(self.form, share, size, self.candidates) @ self.coefficients)
        )

    def share_needed(self, target: float, size: float) -> float:
        """The smallest share of the dimensions from which on the target is kept; NaN if none is."""
        below = np.flatnonzero(self.kept(SHARES, size) < target)
        if not len(below):
            return float(SHARES[0])
        first = int(below[-1]) + 1
        return float(SHARES[first]) if first < len(SHARES) else float("nan")


def fit_law(
    share: Array,
    size: Array,
    kept: Array,
    *,
    candidates: int = 10,
    form: str = "slowing",
) -> Law:
    """The law that fits best what was measured, as a regression of fractions (cross entropy).

    Args:
        share: of the dimensions (n,), between 0 and 1.
        size: vectors searched (n,).
        kept: share of the ten neighbours that were kept (n,).
        candidates: how many nearest of the way were looked at; ten without re-scoring.
        form: a name of `FORMS`.

    Raises:
        InputError: for a share outside 0 to 1, a collection hardly larger than the candidates, an
            unknown form, or fewer measurements than coefficients.
    """
    check_same_length(share=share, size=size, kept=kept)
    terms = _design(form, share, size, candidates)
    if len(terms) < terms.shape[1]:
        raise InputError(
            f"{len(terms)} measurements: the form {form} has {terms.shape[1]} coefficients"
        )
    measured = np.asarray(kept, np.float64)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        logits = terms @ coefficients
        entropy = np.logaddexp(0, logits) - measured * logits
        slope = terms.T @ (expit(logits) - measured) + RIDGE * coefficients
        return float(entropy.sum() + RIDGE / 2 * coefficients @ coefficients), slope

    fitted = minimize(loss, np.zeros(terms.shape[1]), jac=True, method="BFGS")
    return Law(form, candidates, fitted.x)
