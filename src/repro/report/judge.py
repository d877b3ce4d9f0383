"""From rows to measurements: means over seeds with their intervals, choices among cells, and one mechanism for claims.

Differences and means are taken within each seed; several that are judged together have joint intervals (§5.9). A claim
of the form "at every dim", "for every encoder", "at half the dims" is a selection of rows and a choice among cells; it
is judged where it is weakest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import hypot, inf, isnan, nan
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from repro.evaluation.seeds import FEWEST_SEEDS, error_of_mean, kendall, of_cells, reach
from repro.evaluation.stats import Floats
from repro.report.verdict import Measurement, Test

MARGIN_POINTS = 1.0
"""what counts as no change, in points"""


@dataclass(frozen=True)
class Estimate:
    """A number in points, seed by seed, with its 95 % interval over seeds and items."""

    by_seed: Mapping[Any, float]
    """one entry where nothing behind the number was drawn at random"""
    item_error: float = 0.0
    """standard error over items, which all seeds share"""
    random: bool = True
    cells: int = 1
    """how many are judged together: the interval is then a joint one"""
    ends: tuple[float, float] | None = None
    """of an interval that the formula below does not give: the smallest or largest of several"""

    @property
    def value(self) -> float:
        """Mean over seeds."""
        return float(np.mean(list(self.by_seed.values()))) if self.by_seed else nan

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.by_seed)

    @property
    def seed_sd(self) -> float:
        """Between seeds; NaN for one seed of something random."""
        if not self.random:
            return 0.0
        return float(np.std(list(self.by_seed.values()), ddof=1)) if self.seeds > 1 else nan

    @property
    def half(self) -> float:
        """Half-width of the interval; NaN where there are too few seeds for one."""
        if self.random and self.seeds < FEWEST_SEEDS:
            return nan
        error, freedom = error_of_mean(self.seed_sd, self.seeds, self.item_error)
        return reach(freedom, self.cells) * error

    @property
    def low(self) -> float:
        """Lower end."""
        return self.ends[0] if self.ends else self.value - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.ends[1] if self.ends else self.value + self.half

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if isnan(self.low) else f" [{self.low:.2f}, {self.high:.2f}]")

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Difference within each seed; how the items move both is not recorded: as if they were unrelated."""
        by_seed, random = within_seeds([self, other], lambda pair: pair[0] - pair[1])
        return Estimate(by_seed, hypot(self.item_error, other.item_error), random)


def within_seeds(parts: Sequence[Estimate], combine: Callable[[list[float]], Any]) -> tuple[dict[Any, Any], bool]:
    """Something computed of several numbers within each seed that all random ones have; and whether it is random."""
    seeds = [set(e.by_seed) for e in parts if e.random]
    shared = [seed for part in parts if part.random for seed in part.by_seed] if seeds else [None]
    shared = [seed for seed in dict.fromkeys(shared) if all(seed in own for own in seeds)]
    return {seed: combine([e.by_seed[seed] if e.random else e.value for e in parts]) for seed in shared}, bool(seeds)


def estimate(rows: pd.DataFrame, *, deterministic: bool = False) -> Estimate:
    """Mean over seeds, in points, of the rows of one cell.

    Rows of one seed are one number, and so are rows of an untrained method that say the same under several seeds.
    """
    by_seed = (100 * rows["value"].groupby(rows["seed"], dropna=False).mean()).to_dict()
    width = (rows["ci_high"] - rows["ci_low"]).to_numpy(float)
    item = 0.0 if np.isnan(width).all() else float(50 * np.nanmean(width)) / reach(inf)
    untrained = "n_train" in rows and rows["n_train"].isna().all()
    if deterministic or (untrained and len(by_seed) > 1 and np.ptp(list(by_seed.values())) == 0):
        return Estimate({None: float(np.mean(list(by_seed.values())))}, item, random=False)
    return Estimate(by_seed, item)


def estimates(rows: pd.DataFrame, by: str = "dim", *, deterministic: bool = False) -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    return {int(key): estimate(group, deterministic=deterministic) for key, group in rows.groupby(by)}


def mean(parts: Sequence[Estimate]) -> Estimate:
    """Mean over dims or tasks of one experiment, within each seed first."""
    by_seed, random = within_seeds(parts, lambda values: float(np.mean(values)))
    # the same items stand behind every dim, so what they add does not shrink with the number of dims
    return Estimate(by_seed, float(np.mean([e.item_error for e in parts])), random)


def of_parts(parts: Sequence[Estimate], statistic: Callable[[Floats], Floats]) -> Estimate:
    """A statistic (…, C) → (…) of the numbers of each seed, such as a share of them or their rank correlation."""
    by_seed, random = within_seeds(parts, lambda values: values)
    if not by_seed:
        return Estimate({})
    table, errors = np.array(list(by_seed.values())), np.array([e.item_error for e in parts])
    values, item_error, ends = of_cells(statistic, table, errors, random=random)
    e = Estimate(dict(zip(by_seed, map(float, values), strict=True)), item_error, random)
    return e if isnan(e.half) else replace(e, ends=(min(ends[0], e.value), max(ends[1], e.value)))


def scaled(e: Estimate, factor: float) -> Estimate:
    """The same in another unit."""
    by_seed = {seed: factor * value for seed, value in e.by_seed.items()}
    return replace(e, by_seed=by_seed, item_error=abs(factor) * e.item_error)


# Choices among cells

K = TypeVar("K")
Cells = Mapping[tuple[Any, ...], Estimate]


def together(at: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """Numbers with joint intervals; those of too few seeds for one say nothing, as long as others do."""
    known = {key: e for key, e in at.items() if not isnan(e.low)} or at
    n = len(known)
    return {key: e if e.ends or e.cells >= n else replace(e, cells=n) for key, e in known.items()}


def lowest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "more at every …" is hardest to hold, with the interval of the smallest: every joint end counts."""
    at = together(at)
    key = min(at, key=lambda k: at[k].value)
    return key, replace(at[key], ends=(min(e.low for e in at.values()), min(e.high for e in at.values())))


def highest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "less at every …" is hardest to hold; or the best of several."""
    at = together(at)
    key = max(at, key=lambda k: at[k].value)
    return key, replace(at[key], ends=(max(e.low for e in at.values()), max(e.high for e in at.values())))


def farthest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "unchanged at every …" is hardest to hold; of several, the interval of how far it is, to its side."""
    at = together(at)
    key = max(at, key=lambda k: abs(at[k].value))
    e = at[key]
    if len(at) == 1 or isnan(e.low):
        return key, e
    least = max(max(0.0, other.low, -other.high) for other in at.values())
    most = max(max(-other.low, other.high) for other in at.values())
    return key, replace(e, ends=(least, most) if e.value >= 0 else (-most, -least))


def average(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """All cells together."""
    return (), mean(list(at.values()))


def average_size(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """How far all cells are from nought, whichever way."""
    return (), mean([replace(e, by_seed={seed: abs(v) for seed, v in e.by_seed.items()}) for e in at.values()])


# Measurements


def measurement(claim: str, test: Test, e: Estimate, what: str, **fields: Any) -> Measurement:
    """An estimate as what a claim is judged by, with all that the power needs."""
    spread = {"seed_sd": e.seed_sd, "item_error": e.item_error, "cells": e.cells}
    return Measurement(claim, test, e.value, e.low, e.high, seeds=e.seeds, what=what, **{**spread, **fields})


def effect(
    claim: str, e: Estimate, what: str, *, paper: float | None = None, null: float = 0.0, direction: int = 1
) -> Measurement:
    """A difference or an order, judged against `null`."""
    return measurement(claim, "effect", e, what, paper=paper, null=null, direction=direction)


def sameness(claim: str, e: Estimate, what: str, *, margin: float = MARGIN_POINTS) -> Measurement:
    """No change of note: within ±margin points."""
    return measurement(claim, "sameness", e, what, margin=margin)


def ratio(claim: str, doublings: Estimate, what: str, **fields: Any) -> Measurement:
    """How many times, from an estimate on log₂."""
    m = measurement(claim, "ratio", doublings, what, **fields)
    return replace(m, value=2**m.value, low=2**m.low, high=2**m.high)


def trend(
    claim: str, rows: pd.DataFrame, at: Mapping[int, Estimate], direction: int, what: str, paper: float | None = None
) -> Measurement:
    """Kendall's τ_b of the rows' values over the dims of `at`, one ranking per seed."""
    sizes = np.array(list(at), float)
    e = of_parts(list(estimates(rows[rows["dim"].isin(list(at))]).values()), partial(kendall, np.sort(sizes)))
    return measurement(claim, "trend", e, f"Kendall tau of {what}", paper=paper, direction=direction)


Facts = Mapping[str, Any]
"""what is known of a group of rows: its encoder, full size, last layer, and whatever else queries and sentences name"""
Split = Callable[[pd.DataFrame], Iterable[tuple[Facts, pd.DataFrame]]]


@dataclass(frozen=True)
class Judge:
    """One claim, or one part of a claim that has several."""

    claim: str
    what: str
    """the measured thing in words, with {columns} of the cell that decides and {facts} of its group"""
    rows: str
    """a pandas query; @names are facts of the group"""
    pick: Callable[[Cells], tuple[tuple[Any, ...], Estimate]] = lowest
    over: tuple[str, ...] = ("dim",)
    """columns that tell cells apart"""
    each: Split = lambda rows: [({}, rows)]
    """groups that are judged one by one; by default all rows are one"""
    near: float | None = None
    """only the dim nearest to this share of the full size"""
    scale: Callable[[Facts], float] = lambda facts: 1.0
    """turns a difference round, or into per cent of something"""
    test: Test = "effect"
    null: float = 0.0
    direction: int = 1
    margin: float = MARGIN_POINTS
    paper: Callable[[], float] | None = None
    needs: str = ""
    """weights that are not at hand, where no row speaks"""

    def measure(
        self, rows: pd.DataFrame, fixed: Callable[[pd.DataFrame], bool] = lambda cell: False
    ) -> Iterator[Measurement]:
        """The measurement of every group that has such rows; `fixed` says which cells have nothing random in them."""
        silent = True
        for facts, group in self.each(rows):
            facts = facts if isinstance(facts, dict) else {"group": facts}
            own = group.query(self.rows, local_dict=dict(facts), engine="python")
            if self.near is not None and len(own):
                own = own[own["dim"] == min(own["dim"], key=lambda d: abs(d - self.near * facts["full"]))]
            factor = self.scale(facts)
            at = {
                name: scaled(estimate(cell, deterministic=fixed(cell)), factor)
                for name, cell in own.groupby(list(self.over), sort=False)
            }
            if at:
                silent = False
                name, e = self.pick(at)
                words = {**facts, **dict(zip(self.over, name, strict=False)), "n": len(at)}
                yield measurement(
                    self.claim,
                    self.test,
                    e,
                    self.what.format(**words),
                    null=self.null,
                    direction=self.direction,
                    margin=self.margin,
                    paper=self.paper and self.paper(),
                    network=", ".join(map(str, own["backbone"].dropna().unique())),
                )
        if silent and self.needs:
            why = f"needs {self.needs}: published weights, no stand-in at hand (profile `paper` fetches them)"
            yield Measurement(self.claim, "effect", nan, nan, nan, seeds=0, what=why)


Rule = Judge | Callable[[pd.DataFrame], Iterable[Measurement]]
"""a declared judgement, or a function where a claim has a form of its own"""


def judge(rules: Sequence[Rule], rows: pd.DataFrame, **options: Any) -> list[Measurement]:
    """What the rows say of every rule, in their order."""
    return [m for rule in rules for m in (rule.measure(rows, **options) if isinstance(rule, Judge) else rule(rows))]
