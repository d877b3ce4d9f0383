"""From a measurement to its verdict: whether an interval bears a claim out, and what it would take.

The rules are those of method-verdicts in the book. A claim is judged by an interval, never by a
point: `value` with `low` … `high` (95 %), in points (×100) for scores; the first rule that matches
wins.
"""

from dataclasses import dataclass, replace
from math import ceil, hypot, inf, isnan, log2, log10, nan, sqrt
from typing import Literal

from scipy.special import ndtri, stdtrit

from repro.evaluation.power import (
    FEWEST_SEEDS,
    MOST_SEEDS,
    POWER,
    error_of_mean,
    items_needed,
    reach,
    seeds_needed,
)
from repro.report.outcomes import NOT_SEEN, REASONS, Answer, Outcome, Testable
from repro.types import InputError

MARGIN_POINTS = 1.0  # What counts as no change, in points
_SLACK = 1e-9  # 80.62 − 79.62 is a hair above 1 in binary
Test = Literal["effect", "sameness", "ratio", "trend"]
SEEN = {"effect": 1.0, "trend": 0.5, "ratio": 1.0}
"""Effects without a printed size that are worth seeing: a point, half of the way to a perfect
trend, a doubling.
"""


@dataclass(frozen=True)
class Measurement:
    """One number that a claim is judged by."""

    claim_id: str
    test: Test
    value: float
    low: float  # NaN, as `high`, where there are too few seeds for an interval
    high: float
    paper: float | None = None  # The printed size, if one is printed
    null: float = 0.0  # What the value would be if the claim were empty
    direction: int = 1  # The claimed side of the null where no size is printed: +1 above, −1 below
    margin: float = MARGIN_POINTS  # Of sameness, in points
    scope: Literal["same", "substitute"] = "substitute"
    """`same` only if backbone, data, text, readout and protocol are the paper's."""
    seeds: int = 1
    what: str = ""  # What was measured, in words
    network: str = ""
    generated: bool = False  # Read on generated text, which judges nobody
    unit: str = "points"
    testable: Testable = "analogue"
    # The statement is a size, which this measure has not or this network has elsewhere: no interval
    # of it can hold the printed one
    sized: bool = False
    unmet: str = ""  # The condition of the claim that the network fails
    unknown: str = ""  # The condition that no row tells of, and what it would take
    missing: str = ""  # What would have to be at hand for the claim to be tested
    likely: str = ""  # The likely reason, in one word, if the claim is not seen
    seed_sd: float = nan  # Between seeds; of a ratio in doublings, as the next
    item_error: float = 0.0  # Standard error over items
    deciding: tuple[float, float] | None = None
    """The same two of the cell whose end decides, where it is another one."""
    cells: int = 1  # How many were judged together
    extreme: bool = False  # The smallest or largest of several, whose ends are bounds
    centres: tuple[float, float] | None = None  # The values of the cells that these ends are of
    # Of its claim, on all networks: one of many has many chances to be contradicted wrongly
    parts: int = 1
    networks: int = 1  # That may bear on the claim: one of many has many chances to hold wrongly

    @property
    def verdict(self) -> Outcome:
        """The rule of `test`, applied."""
        if self.missing or self.seeds < 1 or isnan(self.value):
            return "not attempted"
        if self.generated:
            return moved(self)
        if self.unmet:
            return "does not apply"
        if self.testable == "question":
            return "cannot tell" if self.unknown or answer(self) == "open" else "answered"
        outcome = answer_among_all(self)
        if self.unknown or outcome == "open":
            return "cannot tell"
        same = self.scope == "same"
        if outcome == "no":
            return "not reproduced" if same else "not seen here"
        if not size_agrees(self):
            return "direction only"
        return "reproduced" if same else "holds here"

    @property
    def why(self) -> str:
        """What stands beside a verdict: the condition that fails, what it would take to tell, what
        is missing, or the likely reason.
        """
        verdict = self.verdict
        if verdict == "not attempted":
            return self.missing or self.what
        if verdict == "does not apply":
            return self.unmet
        if verdict in NOT_SEEN:
            return f"Likely reason: {REASONS[self.likely]}." if self.likely else ""
        if verdict != "cannot tell":
            return ""
        beyond = self.paper is not None and (self.paper < self.low or self.paper > self.high)
        if self.unknown or not beyond:
            return self.unknown or remedy(self)
        # What it would take to see a size that is excluded is of no use
        reason = side_open(self) if answer(self) == "open" else remedy(self)
        return f"{reason}; the printed {_signed(f'{self.paper:.3g}')} is excluded"

    @property
    def briefly(self) -> str:
        """What stands beside a verdict in a few words, for a headline: the likely reason, or what
        leaves it open.
        """
        verdict = self.verdict
        if verdict in NOT_SEEN:
            return self.likely
        return left_open_by(self) if verdict == "cannot tell" else ""

    @property
    def chance(self) -> float:
        """How often an interval would decide so by luck alone, together with all parts of its
        claim; NaN of what decides nothing.
        """
        return chance_of(self)


def wider_at(m: Measurement, tail: float) -> float:
    """How many times wider its interval is if either end is passed by luck with this probability.

    Far out in the tails the spread of three seeds has two degrees of freedom, whatever the items
    add: the error between seeds and that over items are widened each by its own quantile.
    """
    spread = 0.0 if isnan(m.seed_sd) else m.seed_sd
    error, freedom = error_of_mean(spread, m.seeds, m.item_error)
    if error == 0:
        return float(ndtri(tail)) / -reach(inf, m.cells)
    between = float(stdtrit(m.seeds - 1, tail)) * spread / sqrt(m.seeds) if spread else 0.0
    of_items = float(ndtri(tail)) * m.item_error
    return hypot(between, of_items) / (reach(freedom, m.cells) * error)


def tail_of(cells: int) -> float:
    """The probability beyond either end of a 95 % interval that holds for so many together."""
    return (1 - 0.95 ** (1 / cells)) / 2


def answer_among_all(m: Measurement) -> Answer:
    """What the interval says of the claim's direction among all chances that the claim has.

    A claim is contradicted by any of its parts on any network, so a contradiction has to pass the
    interval that holds for all of these. It holds where all parts hold, but on any network.
    """
    alone = answer(m)
    if alone == "open":
        return "open"
    together_with = m.parts if alone == "no" else m.networks
    return alone if answer(jointly(m, together_with)) == alone else "open"


def jointly(m: Measurement, chances: int) -> Measurement:
    """With the interval that holds together with those of so many like it."""
    if chances == 1:
        return m
    wider = max(1.0, wider_at(m, tail_of(m.cells * chances)))
    centres = m.centres or (m.value, m.value)
    numbers = [*centres, m.low, m.high]
    if m.test == "ratio":
        numbers = [log2(number) for number in numbers]
    lower, upper, low, high = numbers
    # An end at the value itself is that of a count, which jumps: the other end says how far
    down, up = widened([lower - low, high - upper])
    low, high = lower - wider * down, upper + wider * up
    return (
        replace(m, low=2**low, high=2**high)
        if m.test == "ratio"
        else replace(m, low=low, high=high)
    )


def widened(reaches: list[float]) -> list[float]:
    """Both reaches of an interval, a missing one as far as the other."""
    return [reach or max(reaches) for reach in reaches]


def chance_of(m: Measurement) -> float:
    """The level at which the interval of a decided measurement would decide no more, among all
    chances that its claim has to be decided so.
    """
    if answer(m) == "open":
        return nan
    lower, upper = m.centres or (m.value, m.value)
    low, high, null = m.low, m.high, m.null
    if m.test == "ratio":
        lower, upper, low, high, null = map(log2, (lower, upper, low, high, null))
    if low == high:
        return 0.0
    if m.test == "sameness":
        null = m.margin if m.value > 0 else -m.margin
    down, up = widened([lower - low, high - upper])
    # By the end that lies towards the null: one that is it just decides
    needed = ((lower - null) / down if lower > null else (null - upper) / up) or 1.0
    fine, coarse = -300.0, log10(0.5)  # Bounds of the tail's logarithm
    for _ in range(50):
        middle = (fine + coarse) / 2
        passes = wider_at(m, 10**middle) <= needed
        fine, coarse = (fine, middle) if passes else (middle, coarse)
    others = m.parts if answer(m) == "no" else m.networks
    return 1 - (1 - min(1.0, 2 * 10**coarse)) ** (m.cells * others)


def answer(m: Measurement) -> Answer:
    """What the interval says of the claim's direction; the printed size is not asked."""
    if isnan(m.low) or isnan(m.high):
        return "open"
    if m.test == "sameness":
        return within_margin(m.low, m.high, margin=m.margin)
    if m.test == "ratio" and min(m.value, m.low, m.high, m.null) <= 0:
        raise InputError(
            f"{m.claim_id}: a ratio of {m.value}, {m.low} to {m.high}: expected numbers above 0"
        )
    # A printed size says which side of the null is claimed
    towards = 0.0 if m.paper is None else m.paper - m.null
    if (towards or m.direction) > 0:
        low, null, high = m.low, m.null, m.high
    else:
        low, null, high = -m.high, -m.null, -m.low
    if high <= null:  # An end that is the null is a tie without noise: no effect
        return "no"
    return "yes" if low > null else "open"


def within_margin(low: float, high: float, *, margin: float) -> Answer:
    """No change of note: does the interval lie within ±margin?"""
    if -margin - _SLACK <= low and high <= margin + _SLACK:
        return "yes"
    return "open" if low <= margin and high >= -margin else "no"


def size_agrees(m: Measurement) -> bool:
    """Is the printed size found, if one is printed?

    On a network in the paper's place, the interval has to hold it. On the paper's own, the value
    has to lie within half of the printed size of it, or half a point; for ratios within a factor
    of two.
    """
    if m.sized:
        return False
    if m.paper is None or m.test == "sameness":
        return True
    if m.scope == "substitute":
        return m.low - _SLACK <= m.paper <= m.high + _SLACK
    if m.test == "ratio":
        return abs(log2(m.value / m.paper)) <= 1.0 + _SLACK
    return abs(m.value - m.paper) <= max(0.5, 0.5 * abs(m.paper)) + _SLACK


def moved(m: Measurement) -> Outcome:
    """Which side of the null the value lies on, by its interval; of one seed by the items alone:
    nobody is judged.
    """
    low, high = m.low, m.high
    if isnan(low) and m.item_error > 0 and m.test != "ratio":
        low, high = (m.value + sign * reach(inf) * m.item_error for sign in (-1, 1))
    return "up" if low > m.null else "down" if high < m.null else "unclear"


def left_open_by(m: Measurement) -> str:
    """What keeps a measurement from deciding, in a few words."""
    if m.unknown:
        return "a run is missing"
    alone = answer(m)
    if alone == "no":
        return f"not sure among {m.parts} parts"
    if alone == "yes":
        return f"not sure among {m.networks} networks"
    if isnan(m.low) or isnan(m.high):
        return "too few seeds"
    if m.test == "sameness":
        return f"interval leaves ±{m.margin:g}"
    return f"interval holds {_signed(f'{m.null:.3g}')}"


def side_open(m: Measurement) -> str:
    """That an interval tells no side, with the interval."""
    side = "sign" if m.null == 0 else f"side of {m.null:.3g}"
    return _signed(f"the {side} is open: {m.value:.2f} ({m.low:.2f} to {m.high:.2f})")


def _signed(number: str) -> str:
    """Numbers with the sign that stands before them in print."""
    return number.replace("-", "−")


def remedy(m: Measurement) -> str:
    """What it would take to tell, at 80 % power for the printed size, or for one that is worth
    seeing.
    """
    alone = answer(m)
    if alone == "no":
        return f"contradicted by this part alone, but not surely enough for one of {m.parts} parts"
    if alone == "yes":
        return f"holds on this network alone, but not surely enough for one of {m.networks}"
    if m.deciding:
        m = replace(m, seed_sd=m.deciding[0], item_error=m.deciding[1])
    if isnan(m.seed_sd) and isnan(m.low):
        return f"has {m.seeds} of the {FEWEST_SEEDS} seeds that an interval needs"
    if isnan(m.seed_sd):  # Timings know no more than their interval
        width = log2(m.high / m.low) if m.test == "ratio" else m.high - m.low
        m = replace(m, seed_sd=0.0, item_error=width / 2 / reach(inf, m.cells))
    if m.test == "sameness":
        size = m.margin
    elif m.paper is None or m.paper == m.null:
        size = SEEN[m.test]
    else:
        size = abs(log2(m.paper / m.null)) if m.test == "ratio" else abs(m.paper - m.null)
    # Sameness is bounded on both sides: each may fail in half of the cases that fail
    power = 0.9 if m.test == "sameness" else POWER
    needed = seeds_needed(m.seed_sd, m.item_error, size, m.cells, power)
    difference = f"a factor of {2**size:.3g}" if m.test == "ratio" else f"an effect of {size:.3g}"
    seen = f"to see {difference}"
    if needed is None:
        times = ceil(10 * items_needed(m.item_error, size, m.cells, power)) / 10
        many = f"{times:.1f}" if times < 10 else f"{times:,.0f}"
        return f"takes {many} times the judged texts {seen}"
    if m.seed_sd == 0 or needed <= m.seeds:
        enough = "judged texts" if m.seed_sd == 0 else "seeds"
        return f"the value lies near the bound, though there are enough {enough} {seen}"
    most = MOST_SEEDS
    how_many = needed if needed <= most else f"more than {most}"
    return f"takes {how_many} seeds {seen} in 80 of 100 cases"
