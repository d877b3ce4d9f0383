"""Verdicts: does our measurement bear a printed claim out? Rules of PROTOCOLS §5.10, one function each.

A claim is judged by an interval, never by a point: `value` with `low` … `high` (95 %), in points (×100)
for scores. First match wins; the rules are exhaustive, and exclusive by their order.
"""

from dataclasses import dataclass
from math import isnan, log2
from typing import Literal

from repro.types import InputError, one_of

Outcome = Literal["reproduced", "within noise", "direction only", "not reproduced", "not attempted"]
OUTCOMES: tuple[Outcome, ...] = ("reproduced", "within noise", "direction only", "not reproduced", "not attempted")
"""from best to least"""
_WEAKEST_FIRST: tuple[Outcome, ...] = (
    "not reproduced",
    "not attempted",
    "within noise",
    "direction only",
    "reproduced",
)
_SLACK = 1e-9
"""80.62 − 79.62 is a hair above 1 in binary"""
MEANING: dict[str, str] = {
    "reproduced": "our interval lies on the claim's side, and the size agrees where one is printed",
    "within noise": "our interval is too wide to tell",
    "direction only": "the effect has the claimed sign, but not the printed size",
    "not reproduced": "our interval contradicts the claim",
    "not attempted": "too few runs to speak",
}
Test = Literal["effect", "sameness", "cell", "ratio", "trend"]
TESTS: tuple[Test, ...] = ("effect", "sameness", "cell", "ratio", "trend")


@dataclass(frozen=True)
class Measurement:
    """One number that a claim is judged by."""

    claim_id: str
    test: Test
    value: float
    low: float
    high: float
    paper: float | None = None
    """the printed size, if one is printed"""
    null: float = 0.0
    """what the value would be if the claim were empty"""
    direction: int = 1
    """the claimed side of the null where no size is printed: +1 above, −1 below"""
    margin: float = 1.0
    """of sameness, in points"""
    scope: Literal["same", "substitute"] = "substitute"
    """`same` only if backbone, data, text and readout are the paper's"""
    contrast: tuple[float, float] | None = None
    """of a cell: our interval for its lead over the reference cell; positive is the paper's side"""
    seeds: int = 1
    what: str = ""
    """what was measured, in words"""

    @property
    def verdict(self) -> Outcome:
        """The rule of `test`, applied."""
        return outcome_of(self)


def outcome_of(m: Measurement) -> Outcome:
    """Apply the rule that the measurement declares.

    Raises:
        InputError: for an unknown test, or an interval that is turned around.
    """
    one_of(m.test, TESTS, "test")
    if m.seeds < 1 or isnan(m.value) or isnan(m.low) or isnan(m.high):
        return "not attempted"
    if m.low > m.high:
        raise InputError(f"{m.claim_id}: the interval runs from {m.low} to {m.high}: expected low ≤ high")
    if m.test == "sameness":
        return sameness(m.low, m.high, margin=m.margin)
    if m.test == "cell":
        if m.paper is None:
            raise InputError(f"{m.claim_id}: a cell needs the printed number")
        return cell(m.value, m.low, m.high, m.paper, scope=m.scope, contrast=m.contrast)
    if m.test == "ratio":
        return ratio(m.value, m.low, m.high, paper=m.paper, null=m.null, direction=m.direction)
    return effect(m.value, m.low, m.high, paper=m.paper, null=m.null, direction=m.direction)


def effect(
    value: float,
    low: float,
    high: float,
    *,
    paper: float | None = None,
    null: float = 0.0,
    direction: int = 1,
    tolerance: float | None = None,
) -> Outcome:
    """A difference or an order: is the interval wholly on the paper's side of the null, and the size right?"""
    side = direction if paper is None or paper == null else (1 if paper > null else -1)
    if low <= null <= high:
        return "within noise" if paper is None or low <= paper <= high else "not reproduced"
    if (low > null) != (side > 0):
        return "not reproduced"
    if paper is None:
        return "reproduced"
    allowed = max(0.5, 0.5 * abs(paper)) if tolerance is None else tolerance
    return "reproduced" if abs(value - paper) <= allowed + _SLACK else "direction only"


def sameness(low: float, high: float, *, margin: float = 1.0) -> Outcome:
    """No change of note: does the interval lie within ±margin?"""
    if -margin - _SLACK <= low and high <= margin + _SLACK:
        return "reproduced"
    return "within noise" if low <= margin and high >= -margin else "not reproduced"


def cell(
    value: float,
    low: float,
    high: float,
    paper: float,
    *,
    scope: str = "substitute",
    contrast: tuple[float, float] | None = None,
) -> Outcome:
    """One printed number; under scope `substitute` only its contrast with a reference cell can be borne out."""
    half = (high - low) / 2
    if scope == "same":
        if abs(value - paper) <= 1.0 + _SLACK and half <= 3.0:
            return "reproduced"
        if abs(value - paper) <= half + _SLACK:
            return "within noise"
    return "direction only" if contrast is not None and contrast[0] > 0 else "not reproduced"


def ratio(
    value: float, low: float, high: float, *, paper: float | None = None, null: float = 1.0, direction: int = 1
) -> Outcome:
    """How many times: an effect on log₂, where the size is right within a factor of two.

    Raises:
        InputError: for a ratio that is not above 0.
    """
    for name, number in (("value", value), ("low", low), ("high", high), ("null", null)):
        if number <= 0:
            raise InputError(f"ratio {name} is {number}: expected a number above 0")
    printed = None if paper is None else log2(paper)
    return effect(
        log2(value), log2(low), log2(high), paper=printed, null=log2(null), direction=direction, tolerance=1.0
    )


def worst(outcomes: list[Outcome]) -> Outcome:
    """The verdict of a claim of several parts that must all hold: its weakest, a contradiction weighing most."""
    return min(outcomes, key=_WEAKEST_FIRST.index) if outcomes else "not attempted"
