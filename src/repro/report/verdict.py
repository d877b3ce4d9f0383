"""Verdicts: does our measurement bear a printed claim out? Rules of PROTOCOLS §5.10, one function each.

A claim is judged by an interval, never by a point: `value` with `low` … `high` (95 %), in points (×100)
for scores. First match wins; the rules are exhaustive, and exclusive by their order.
"""

from dataclasses import dataclass
from math import copysign, inf, isnan, log2, nan
from typing import Literal, TypeAlias, get_args

from repro.evaluation.seeds import FEWEST_SEEDS, MOST_SEEDS, POWER, reach, seeds_needed
from repro.types import InputError, one_of

Outcome: TypeAlias = str
MEANING: dict[Outcome, str] = {
    "reproduced": "on the paper's own network and data, our interval lies on the claim's side, near the printed size",
    "direction only": "on the paper's own network and data, the effect has the claimed sign, but not the printed size",
    "holds here": "on a network in the paper's place, our interval lies on the claim's side",
    "cannot tell": "our interval is too wide to tell; beside it stands what it would take",
    "does not hold here": "on a network in the paper's place, our interval contradicts the claim",
    "not reproduced": "on the paper's own network and data, our interval contradicts the claim",
    "does not apply": "this network cannot bear on the claim; beside it stands the condition that it fails",
    "not attempted": "no runs speak of it",
    "up": "on generated text, which judges no paper: above the null",
    "unclear": "on generated text, which judges no paper: not told from the null",
    "down": "on generated text, which judges no paper: below the null",
}
OUTCOMES: tuple[Outcome, ...] = tuple(MEANING)
"""in the order of the legend"""
ON_GENERATED: tuple[Outcome, ...] = ("up", "unclear", "down")
SILENT: tuple[Outcome, ...] = ("does not apply", "not attempted")
"""verdicts of a network that leave the word to another one"""
_WEAKEST_FIRST: tuple[Outcome, ...] = (
    *("not reproduced", "does not hold here", "not attempted", "does not apply", "cannot tell"),
    *("direction only", "holds here", "reproduced", *ON_GENERATED),
)
_SLACK = 1e-9
"""80.62 − 79.62 is a hair above 1 in binary"""
Test = Literal["effect", "sameness", "ratio", "trend"]
Answer = Literal["yes", "no", "open"]
SEEN = {"effect": 1.0, "trend": 0.5, "ratio": 1.0}
"""effects without a printed size that are worth seeing: a point, half of the way to a perfect trend, a doubling"""


@dataclass(frozen=True)
class Measurement:
    """One number that a claim is judged by."""

    claim_id: str
    test: Test
    value: float
    low: float
    """NaN, as `high`, where there are too few seeds for an interval"""
    high: float
    paper: float | None = None
    """the printed size, if one is printed; it is judged under scope `same` only"""
    null: float = 0.0
    """what the value would be if the claim were empty"""
    direction: int = 1
    """the claimed side of the null where no size is printed: +1 above, −1 below"""
    margin: float = 1.0
    """of sameness, in points"""
    scope: Literal["same", "substitute"] = "substitute"
    """`same` only if backbone, data, text and readout are the paper's"""
    seeds: int = 1
    what: str = ""
    """what was measured, in words"""
    network: str = ""
    generated: bool = False
    """read on generated text, which judges nobody"""
    unmet: str = ""
    """the condition of the claim that the network fails"""
    seed_sd: float = nan
    """between seeds; of a ratio in doublings, as the next"""
    item_error: float = 0.0
    """standard error over items"""
    cells: int = 1
    """how many were judged together"""

    @property
    def verdict(self) -> Outcome:
        """The rule of `test`, applied."""
        return outcome_of(self)

    @property
    def why(self) -> str:
        """What stands beside a verdict that does not decide: the condition that fails, or what it would take."""
        return {"does not apply": self.unmet, "cannot tell": remedy(self)}.get(self.verdict, "")


def outcome_of(m: Measurement) -> Outcome:
    """Apply the rule that the measurement declares."""
    one_of(m.test, get_args(Test), "test")
    if m.seeds < 1 or isnan(m.value):
        return "not attempted"
    if m.low > m.high:
        raise InputError(f"{m.claim_id}: the interval runs from {m.low} to {m.high}: expected low ≤ high")
    if m.generated:
        return moved(m)
    if m.unmet:
        return "does not apply"
    said = answer(m)
    if said == "open":
        return "cannot tell"
    if m.scope == "substitute":
        return "holds here" if said == "yes" else "does not hold here"
    return "not reproduced" if said == "no" else "reproduced" if size_agrees(m) else "direction only"


def answer(m: Measurement) -> Answer:
    """What the interval says of the claim's direction; the printed size is not asked."""
    if isnan(m.low) or isnan(m.high):
        return "open"
    if m.test == "sameness":
        return sameness(m.low, m.high, margin=m.margin)
    if m.test == "ratio":
        for number in (m.value, m.low, m.high, m.null):
            if number <= 0:
                raise InputError(f"{m.claim_id}: a ratio of {number}: expected numbers above 0")
    towards = 0.0 if m.paper is None else m.paper - m.null  # a printed size says which side of the null is claimed
    return effect(m.low, m.high, null=m.null, side=int(copysign(1, towards)) if towards else m.direction)


def effect(low: float, high: float, *, null: float = 0.0, side: int = 1) -> Answer:
    """A difference, an order or a ratio: is the interval wholly on the claimed side of the null?"""
    if low == high == null:  # nothing is unknown, and there is no effect
        return "no"
    if low <= null <= high:
        return "open"
    return "yes" if (low > null) == (side > 0) else "no"


def sameness(low: float, high: float, *, margin: float = 1.0) -> Answer:
    """No change of note: does the interval lie within ±margin?"""
    if -margin - _SLACK <= low and high <= margin + _SLACK:
        return "yes"
    return "open" if low <= margin and high >= -margin else "no"


def size_agrees(m: Measurement) -> bool:
    """Is the value within half of the printed size of it, or half a point; for ratios within a factor of two?"""
    if m.paper is None or m.test == "sameness":
        return True
    if m.test == "ratio":
        return abs(log2(m.value / m.paper)) <= 1.0 + _SLACK
    return abs(m.value - m.paper) <= max(0.5, 0.5 * abs(m.paper)) + _SLACK


def moved(m: Measurement) -> Outcome:
    """Which side of the null the value lies on, by its interval; of one seed by the items alone: nobody is judged."""
    low, high = m.low, m.high
    if isnan(low) and m.item_error > 0 and m.test != "ratio":
        low, high = (m.value + sign * reach(inf) * m.item_error for sign in (-1, 1))
    if isnan(low) or isnan(high):
        return "unclear"
    return "up" if low > m.null else "down" if high < m.null else "unclear"


def remedy(m: Measurement) -> str:
    """What it would take to tell, at 80 % power for the printed size, or for one that is worth seeing."""
    if isnan(m.seed_sd):
        return f"{m.seeds} of at least {FEWEST_SEEDS} seeds" if isnan(m.low) else ""
    if m.test == "sameness":
        size = m.margin
    elif m.paper is None or m.paper == m.null:
        size = SEEN[m.test]
    else:
        size = abs(log2(m.paper / m.null)) if m.test == "ratio" else abs(m.paper - m.null)
    # sameness is bounded on both sides: each may fail in half of the cases that fail
    seeds = seeds_needed(m.seed_sd, m.item_error, size, m.cells, 0.9 if m.test == "sameness" else POWER)
    seen = f"to see {f'a factor of {2**size:.3g}' if m.test == 'ratio' else f'an effect of {size:.3g}'}"
    if seeds is None:
        return f"items too few {seen}"
    if m.seed_sd == 0:
        return f"enough items {seen}: the value lies near the bound"
    if seeds <= m.seeds:
        return f"enough seeds {seen}: the value lies near the bound"
    return f"{seeds if seeds <= MOST_SEEDS else f'more than {MOST_SEEDS}'} seeds {seen}, at 80 % power"


def worst(outcomes: list[Outcome]) -> Outcome:
    """The verdict of a claim of several parts that must all hold: its weakest, a contradiction weighing most."""
    return min(outcomes, key=_WEAKEST_FIRST.index) if outcomes else "not attempted"
