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


def together(cells: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """Numbers with joint intervals; those of too few seeds for one say nothing, as long as others
    do.
    """
    with_interval = {key: e for key, e in cells.items() if not isnan(e.low)} or cells
    n = len(with_interval)
    jointly = {}
    for key, e in with_interval.items():
        is_joint = e.ends or e.cells >= n
        jointly[key] = e if is_joint else replace(e, cells=n)
    return jointly


def lowest(cells: Mapping[K, Estimate], pick: Callable[..., Any] = min) -> tuple[K, Estimate]:
    """Where "more at every …" is hardest to hold, with the interval of the smallest (what `pick`
    picks) of all ends.
    """
    cells = together(cells)
    key = pick(cells, key=lambda k: cells[k].value)
    lower = pick(cells.values(), key=lambda e: e.low)
    upper = pick(cells.values(), key=lambda e: e.high)
    # The claim holds if the end that lies towards the null passes it
    deciding = lower if pick is min else upper
    return key, replace(
        cells[key],
        ends=(lower.low, upper.high),
        extreme=len(cells) > 1,
        centres=(lower.value, upper.value),
        errors=(deciding.seed_sd, deciding.item_error),
    )


def highest(cells: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "less at every …" is hardest to hold; or the best of several."""
    return lowest(cells, max)


def farthest(cells: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "unchanged at every …" is hardest to hold; of several, the interval of how far it is,
    to its side.
    """
    cells = together(cells)
    key = max(cells, key=lambda k: abs(cells[k].value))
    e = cells[key]
    if len(cells) == 1 or isnan(e.low):
        return key, e
    least = max(max(0.0, other.low, -other.high) for other in cells.values())
    deciding = max(cells.values(), key=lambda other: max(-other.low, other.high))
    most = max(-deciding.low, deciding.high)
    ends = (least, most) if e.value >= 0 else (-most, -least)
    errors = (deciding.seed_sd, deciding.item_error)
    return key, replace(e, ends=ends, extreme=True, errors=errors)


def average(cells: Cells, *, same_items: bool = True) -> tuple[tuple[Any, ...], Estimate]:
    """All cells together; sets of texts share no items."""
    return (), mean(list(cells.values()), same_items=same_items)
