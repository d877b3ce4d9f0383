"""Which of several cells speaks for all of them, and with which interval: a claim is judged where
it is weakest.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isnan
from typing import Any, TypeVar

from repro.evaluation.seeds import Estimate, mean

K = TypeVar("K")
Cells = Mapping[tuple[Any, ...], Estimate]


def together(at: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """Numbers with joint intervals; those of too few seeds for one say nothing, as long as others
    do.
    """
    known = {key: e for key, e in at.items() if not isnan(e.low)} or at
    n = len(known)
    jointly = {}
    for key, e in known.items():
        is_joint = e.ends or e.cells >= n
        jointly[key] = e if is_joint else replace(e, cells=n)
    return jointly


def lowest(at: Mapping[K, Estimate], pick: Callable[..., Any] = min) -> tuple[K, Estimate]:
    """Where "more at every …" is hardest to hold, with the interval of the smallest (what `pick`
    picks) of all ends.
    """
    at = together(at)
    key = pick(at, key=lambda k: at[k].value)
    lower = pick(at.values(), key=lambda e: e.low)
    upper = pick(at.values(), key=lambda e: e.high)
    # The claim holds if the end that lies towards the null passes it
    deciding = lower if pick is min else upper
    return key, replace(
        at[key],
        ends=(lower.low, upper.high),
        extreme=len(at) > 1,
        centres=(lower.value, upper.value),
        errors=(deciding.seed_sd, deciding.item_error),
    )


def highest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "less at every …" is hardest to hold; or the best of several."""
    return lowest(at, max)


def farthest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "unchanged at every …" is hardest to hold; of several, the interval of how far it is,
    to its side.
    """
    at = together(at)
    key = max(at, key=lambda k: abs(at[k].value))
    e = at[key]
    if len(at) == 1 or isnan(e.low):
        return key, e
    least = max(max(0.0, other.low, -other.high) for other in at.values())
    deciding = max(at.values(), key=lambda other: max(-other.low, other.high))
    most = max(-deciding.low, deciding.high)
    ends = (least, most) if e.value >= 0 else (-most, -least)
    errors = (deciding.seed_sd, deciding.item_error)
    return key, replace(e, ends=ends, extreme=True, errors=errors)


def average(at: Cells, *, same_items: bool = True) -> tuple[tuple[Any, ...], Estimate]:
    """All cells together; sets of texts share no items."""
    return (), mean(list(at.values()), same_items=same_items)
