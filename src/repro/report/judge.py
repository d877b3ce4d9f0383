"""From rows to verdicts: measurements of a claim, the cell that it is judged by, and whether the
claim is borne out.

The rules are those of method-verdicts in the book. A claim is judged by an interval, never by a
point: `value` with `low` … `high` (95 %), in points (×100) for scores; the first rule that matches
wins. A claim of the form "at every dim", "for every encoder", "at half the dims" is a selection of
rows and a choice among cells; it is judged where it is weakest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isnan, log2, nan
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from repro.evaluation import seeds
from repro.evaluation.seeds import Estimate, estimate, mean, reach, scaled
from repro.types import InputError

Outcome: TypeAlias = str
MEANING: dict[Outcome, str] = {
    "reproduced": "on the paper's own network and data, our interval lies on the claim's "
    "side, near the printed size",
    "direction only": "on the paper's own network and data, the effect has the claimed sign, "
    "but not the printed size",
    "holds here": "on a network in the paper's place, our interval lies on the claim's side",
    "cannot tell": "our interval is too wide to tell; beside it stands what it would take",
    "does not hold here": "on a network in the paper's place, our interval contradicts the claim",
    "not reproduced": "on the paper's own network and data, our interval contradicts the claim",
    "does not apply": "this network cannot bear on the claim; beside it stands the condition "
    "that it fails",
    "not attempted": "no runs speak of it",
    "up": "on generated text, which judges no paper: above the null",
    "unclear": "on generated text, which judges no paper: not told from the null",
    "down": "on generated text, which judges no paper: below the null",
}
OUTCOMES: tuple[Outcome, ...] = tuple(MEANING)  # in the order of the legend
ON_GENERATED: tuple[Outcome, ...] = ("up", "unclear", "down")
SILENT: tuple[Outcome, ...] = ("does not apply", "not attempted")
"""Verdicts of a network that leave the word to another one."""
_WEAKEST_FIRST: tuple[Outcome, ...] = (
    "not reproduced",
    "does not hold here",
    "not attempted",
    "does not apply",
    "cannot tell",
    "direction only",
    "holds here",
    "reproduced",
    *ON_GENERATED,
)
MARGIN_POINTS = 1.0  # what counts as no change, in points
_SLACK = 1e-9  # 80.62 − 79.62 is a hair above 1 in binary
Test = Literal["effect", "sameness", "ratio", "trend"]
Answer = Literal["yes", "no", "open"]
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
    # The printed size, if one is printed; it is judged under scope `same` only
    paper: float | None = None
    null: float = 0.0  # what the value would be if the claim were empty
    direction: int = 1  # the claimed side of the null where no size is printed: +1 above, −1 below
    margin: float = MARGIN_POINTS  # of sameness, in points
    scope: Literal["same", "substitute"] = "substitute"
    """`same` only if backbone, data, text and readout are the paper's."""
    seeds: int = 1
    what: str = ""  # what was measured, in words
    network: str = ""
    generated: bool = False  # read on generated text, which judges nobody
    unmet: str = ""  # the condition of the claim that the network fails
    seed_sd: float = nan  # between seeds; of a ratio in doublings, as the next
    item_error: float = 0.0  # standard error over items
    cells: int = 1  # how many were judged together
    # Of its claim, on all networks: one of many has many chances to be contradicted wrongly
    parts: int = 1

    @property
    def verdict(self) -> Outcome:
        """The rule of `test`, applied."""
        if self.seeds < 1 or isnan(self.value):
            return "not attempted"
        if self.generated:
            return moved(self)
        if self.unmet:
            return "does not apply"
        said = answer(self)
        if said == "open" or (said == "no" and answer(jointly(self)) != "no"):
            return "cannot tell"
        if self.scope == "substitute":
            return "holds here" if said == "yes" else "does not hold here"
        return (
            "not reproduced"
            if said == "no"
            else "reproduced"
            if size_agrees(self)
            else "direction only"
        )

    @property
    def why(self) -> str:
        """What stands beside a verdict that does not decide: the condition that fails, or what it
        would take.
        """
        beyond = self.paper is not None and (self.paper < self.low or self.paper > self.high)
        smaller = f"; surely not the printed {self.paper:.3g}" if beyond else ""
        return {"does not apply": self.unmet, "cannot tell": remedy(self) + smaller}.get(
            self.verdict,
            "",
        )


def jointly(m: Measurement) -> Measurement:
    """With the interval that holds together with those of all parts of the claim: what a
    contradiction has to pass.

    That a claim holds needs no such width: all of its parts must.
    """
    error = seeds.error_of_mean(0.0 if isnan(m.seed_sd) else m.seed_sd, m.seeds, m.item_error)
    wider = seeds.reach(error[1], m.cells * m.parts) / seeds.reach(error[1], m.cells)
    v, ratio = m.value, m.test == "ratio"
    low, high = (
        v * (end / v) ** wider if ratio else v + (end - v) * wider for end in (m.low, m.high)
    )
    return replace(m, low=low, high=high)


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
    low, null, high = (
        (m.low, m.null, m.high) if (towards or m.direction) > 0 else (-m.high, -m.null, -m.low)
    )
    if high <= null:  # an end that is the null is a tie without noise: no effect
        return "no"
    return "yes" if low > null else "open"


def within_margin(low: float, high: float, *, margin: float) -> Answer:
    """No change of note: does the interval lie within ±margin?"""
    if -margin - _SLACK <= low and high <= margin + _SLACK:
        return "yes"
    return "open" if low <= margin and high >= -margin else "no"


def size_agrees(m: Measurement) -> bool:
    """Is the value within half of the printed size of it, or half a point; for ratios within a
    factor of two?
    """
    if m.paper is None or m.test == "sameness":
        return True
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


def remedy(m: Measurement) -> str:
    """What it would take to tell, at 80 % power for the printed size, or for one that is worth
    seeing.
    """
    if answer(m) == "no":
        return f"contradicted alone, not among {m.parts} parts"
    if isnan(m.seed_sd) and isnan(m.low):
        return f"{m.seeds} of at least {seeds.FEWEST_SEEDS} seeds"
    if isnan(m.seed_sd):  # timings know no more than their interval
        width = log2(m.high / m.low) if m.test == "ratio" else m.high - m.low
        m = replace(m, seed_sd=0.0, item_error=width / 2 / seeds.reach(inf, m.cells))
    if m.test == "sameness":
        size = m.margin
    elif m.paper is None or m.paper == m.null:
        size = SEEN[m.test]
    else:
        size = abs(log2(m.paper / m.null)) if m.test == "ratio" else abs(m.paper - m.null)
    # sameness is bounded on both sides: each may fail in half of the cases that fail
    needed = seeds.seeds_needed(
        m.seed_sd,
        m.item_error,
        size,
        m.cells,
        0.9 if m.test == "sameness" else seeds.POWER,
    )
    difference = f"a factor of {2**size:.3g}" if m.test == "ratio" else f"an effect of {size:.3g}"
    seen = f"to see {difference}"
    if needed is None:
        return f"items too few {seen}"
    if m.seed_sd == 0 or needed <= m.seeds:
        return (
            f"enough {'items' if m.seed_sd == 0 else 'seeds'} {seen}: the value lies near the bound"
        )
    most = seeds.MOST_SEEDS
    return f"{needed if needed <= most else f'more than {most}'} seeds {seen}, at 80 % power"


def worst(outcomes: list[Outcome]) -> Outcome:
    """The verdict of a claim of several parts that must all hold: its weakest, a contradiction
    weighing most.
    """
    return min(outcomes, key=_WEAKEST_FIRST.index) if outcomes else "not attempted"


K = TypeVar("K")
Cells = Mapping[tuple[Any, ...], Estimate]


def together(at: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """Numbers with joint intervals; those of too few seeds for one say nothing, as long as others
    do.
    """
    known = {key: e for key, e in at.items() if not isnan(e.low)} or at
    n = len(known)
    return {key: e if e.ends or e.cells >= n else replace(e, cells=n) for key, e in known.items()}


def lowest(at: Mapping[K, Estimate], pick: Callable[..., Any] = min) -> tuple[K, Estimate]:
    """Where "more at every …" is hardest to hold, with the interval of the smallest (what `pick`
    picks) of all ends.
    """
    at = together(at)
    key = pick(at, key=lambda k: at[k].value)
    return key, replace(
        at[key],
        ends=(pick(e.low for e in at.values()), pick(e.high for e in at.values())),
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
    most = max(max(-other.low, other.high) for other in at.values())
    return key, replace(e, ends=(least, most) if e.value >= 0 else (-most, -least))


def average(at: Cells, *, same_items: bool = True) -> tuple[tuple[Any, ...], Estimate]:
    """All cells together; sets of texts share no items."""
    return (), mean(list(at.values()), same_items=same_items)


def effect(
    claim: str,
    e: Estimate,
    what: str,
    *,
    test: Test = "effect",
    **fields: Any,
) -> Measurement:
    """An estimate as what a claim is judged by: unless another test is named, a difference or an
    order.
    """
    spread = {"seed_sd": e.seed_sd, "item_error": e.item_error, "cells": e.cells}
    return Measurement(
        claim,
        test,
        e.value,
        e.low,
        e.high,
        seeds=e.seeds,
        what=what,
        **{**spread, **fields},
    )


def ratio(claim: str, doublings: Estimate, what: str, **fields: Any) -> Measurement:
    """How many times, from an estimate on log₂."""
    m = effect(claim, doublings, what, test="ratio", **fields)
    return replace(m, value=2**m.value, low=2**m.low, high=2**m.high)


def absent(claim: str, why: str) -> Measurement:
    """A part of a claim of which no row speaks, and why."""
    return Measurement(claim, "effect", nan, nan, nan, seeds=0, what=why)


def trend(
    claim: str,
    rows: pd.DataFrame,
    direction: int,
    what: str,
    paper: float | None = None,
) -> Measurement:
    """Kendall's τ_b of the rows' values over their dims, one ranking per seed."""
    at = seeds.estimates(rows)
    e = seeds.of_parts(list(at.values()), partial(seeds.kendall, np.array(list(at), float)))
    return effect(
        claim,
        e,
        f"Kendall tau of {what}",
        test="trend",
        paper=paper,
        direction=direction,
    )


Facts = Mapping[str, Any]
"""What is known of a group of rows: its encoder, full size, last layer, and whatever else queries
and sentences name.
"""
Split = Callable[[pd.DataFrame], Iterable[tuple[Facts, pd.DataFrame]]]


@dataclass(frozen=True)
class Judge:
    """One claim, or one part of a claim that has several."""

    claim: str
    # The measured thing in words, with {columns} of the cell that decides and {facts} of its group
    what: str
    rows: str  # a pandas query; @names are facts of the group
    pick: Callable[[Cells], tuple[tuple[Any, ...], Estimate]] = lowest
    over: tuple[str, ...] = ("dim",)  # columns that tell cells apart
    # Groups that are judged one by one; by default all rows are one
    each: Split = lambda rows: [({}, rows)]
    # Only the dim nearest to this share of the full size, within a factor of the root of 2
    near: float | None = None
    # Turns a difference round, or into per cent of something
    scale: Callable[[Facts], float] = lambda facts: 1.0
    test: Test = "effect"
    null: float = 0.0
    direction: int = 1
    paper: float | None = None
    needs: str = ""  # weights that are not at hand, where no row speaks

    def measure(
        self, rows: pd.DataFrame, fixed: Callable[[pd.DataFrame], bool] = lambda cell: False
    ) -> Iterator[Measurement]:
        """The measurement of every group that has such rows; `fixed` says which cells have nothing
        random in them.
        """
        silent = True
        for facts, group in self.each(rows):
            facts = facts if isinstance(facts, dict) else {"group": facts}
            # Of sixty columns a few
            named = group[[column for column in group if column in self.rows]]
            own = (
                group[named.eval(self.rows, local_dict=dict(facts), engine="python")]
                if len(group)
                else group
            )
            if self.near is not None and len(own):
                own = own[
                    own["dim"] == min(own["dim"], key=lambda d: abs(d - self.near * facts["full"]))
                ]
                own = own[
                    (own["dim"] / facts["full"]).between(self.near / 2**0.5, self.near * 2**0.5)
                ]
            factor, cells = self.scale(facts), own.groupby(list(self.over), sort=False)
            at = {
                name: scaled(estimate(cell, deterministic=fixed(cell)), factor)
                for name, cell in cells
            }
            if not at:
                continue
            silent = False
            name, e = self.pick(at)
            what = self.what.format(
                **{**facts, **dict(zip(self.over, name, strict=False)), "n": len(at)}
            )
            network = ", ".join(map(str, own["backbone"].dropna().unique()))
            fields = {"null": self.null, "direction": self.direction, "paper": self.paper}
            yield effect(self.claim, e, what, test=self.test, network=network, **fields)
        if silent and self.needs:
            yield absent(
                self.claim,
                f"needs {self.needs}, which profile `paper` fetches: no stand-in is at hand",
            )


Rule = Judge | tuple[Judge, ...] | Callable[[pd.DataFrame], Iterable[Measurement]]
"""A declared judgement, several that are one, or a function where a claim has a form of its own."""


def whole(
    read: Callable[..., list[Measurement]],
    claims: Sequence[str],
    rows: pd.DataFrame,
    *size: int | None,
) -> list[Measurement]:
    """What rows say; of some claims a network's folds of the whole set alone, if any, since a test
    split is in it.
    """
    folds = rows["experiment"].fillna("").str.endswith("_folds")
    of_all = [m for m in read(rows[folds], *size) if m.claim_id in claims] if folds.any() else []
    told = {(m.claim_id, m.network) for m in of_all}
    return of_all + [m for m in read(rows[~folds], *size) if (m.claim_id, m.network) not in told]


def judge(rules: Sequence[Rule], rows: pd.DataFrame, **options: Any) -> list[Measurement]:
    """What the rows say of every rule, in their order; of several as one, the smallest value."""
    found: list[Measurement] = []
    for rule in rules:
        if isinstance(rule, Judge):
            found += rule.measure(rows, **options)
        elif isinstance(rule, tuple):
            found += sorted(judge(rule, rows, **options), key=lambda m: m.value)[:1]
        else:
            found += rule(rows)
    return found


def network_by_network(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of each network say, by itself."""
    found = []
    for name, own in rows.groupby("backbone", sort=False):
        for m in judge(rules, own):
            found.append(replace(m, network=str(name)))
    return found
