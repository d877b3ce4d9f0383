"""What share of a score fewer dimensions keep, and the smallest size that surely keeps enough (PROTOCOLS §7.6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError, check_same_length


class NoShareError(InputError):
    """A score that may be zero: a share of it means nothing."""


@dataclass(frozen=True)
class Retention:
    """Shares of the reference score, size by size."""

    share: NDArray[np.float64]
    """score / reference score (P,)"""
    low: NDArray[np.float64]
    """one-sided lower confidence bound of each share (P,)"""
    confidence: float
    """of each bound"""


def retention(values: Array, draws: Array, *, reference: int, confidence: float = 0.95) -> Retention:
    """Shares of the score of the column `reference`, on shared resamples.

    Args:
        values: scores (P,).
        draws: the same scores on resampled items (resamples, P).
        reference: column that all are compared with.
        confidence: of each lower bound.

    Raises:
        NoShareError: if the reference score may be zero.
    """
    check_same_length(values=values, draws=np.asarray(draws).T)
    base, drawn = float(values[reference]), draws[:, reference]
    usable = np.isfinite(drawn)
    if not base > 0 or not usable.any() or np.quantile(drawn[usable], 0.025) <= 0:
        low, high = np.quantile(drawn[usable], [0.025, 0.975]) if usable.any() else (np.nan, np.nan)
        raise NoShareError(
            f"the reference scores {base:.4f} [{low:.4f}, {high:.4f}]: a share of what may be zero says nothing. "
            "Use more labelled items, or labels that these embeddings can tell apart"
        )
    share = draws[usable] / drawn[usable, None]
    return Retention(np.asarray(values, np.float64) / base, np.nanquantile(share, 1 - confidence, axis=0), confidence)


def smallest_sufficient(dims: Sequence[int], low: Sequence[float], target: float) -> int | None:
    """The last size that passes on the way down from the largest, None if the largest fails.

    The order is fixed beforehand and the walk ends at the first failure, so the whole of it errs no more often than
    one bound does, without any correction for the number of sizes.

    Raises:
        InputError: for a target outside 0 … 1.
    """
    if not 0 < target <= 1:
        raise InputError(f"the target is {target}: expected a share above 0, at most 1, such as 0.99")
    check_same_length(dims=dims, low=low)
    passed = None
    for dim, bound in sorted(zip(dims, low, strict=True), reverse=True):
        if not bound >= target:
            break
        passed = dim
    return passed
