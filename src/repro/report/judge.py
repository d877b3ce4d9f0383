"""From rows to verdicts: means with their intervals, and one mechanism for every claim.

A claim of the form "at every dim", "for every encoder", "at half the dims" is a selection of rows and a choice among
cells; it is judged where it is weakest. Seeds of one cell are averaged, as PROTOCOLS §5.9 has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, nan
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from repro.evaluation.stats import half_width, kendall_trend
from repro.report.verdict import Measurement, Test

MARGIN_POINTS = 1.0
"""what counts as no change, in points"""


@dataclass(frozen=True)
class Estimate:
    """A number in points with the half-width of its 95 % interval over items and seeds."""

    value: float
    half: float
    seeds: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value + self.half

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Difference; the intervals are treated as unrelated, which is careful for scores on shared items."""
        return Estimate(self.value - other.value, hypot(self.half, other.half), min(self.seeds, other.seeds))


def estimate(rows: pd.DataFrame, *, deterministic: bool = False) -> Estimate:
    """Mean over seeds, in points, of the rows of one cell.

    Rows of one seed are one number, and so are rows of an untrained method that say the same under several seeds.
    One seed carries the assumed seed noise of §5.9, unless nothing behind it was drawn at random.
    """
    values = 100 * rows["value"].groupby(rows["seed"], dropna=False).mean().to_numpy(float)
    width = (rows["ci_high"] - rows["ci_low"]).to_numpy(float)
    item = 0.0 if np.isnan(width).all() else float(50 * np.nanmean(width))
    repeated = "n_train" in rows and rows["n_train"].isna().all() and np.ptp(values) == 0
    return Estimate(float(values.mean()), half_width(item, values, deterministic), 1 if repeated else len(values))


def estimates(rows: pd.DataFrame, by: str = "dim", *, deterministic: bool = False) -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    return {int(key): estimate(group, deterministic=deterministic) for key, group in rows.groupby(by)}


def mean(parts: Sequence[Estimate]) -> Estimate:
    """Mean over dims or tasks of one experiment."""
    # the same items and seed stand behind every dim, so the half-widths do not shrink with their number
    value, half = float(np.mean([e.value for e in parts])), float(np.mean([e.half for e in parts]))
    return Estimate(value, half, min(e.seeds for e in parts))


def effect(
    claim: str, e: Estimate, what: str, *, paper: float | None = None, null: float = 0.0, direction: int = 1
) -> Measurement:
    """A difference or an order, judged against `null`."""
    return Measurement(
        claim, "effect", e.value, e.low, e.high, paper=paper, null=null, direction=direction, seeds=e.seeds, what=what
    )


def sameness(claim: str, e: Estimate, what: str, *, margin: float = MARGIN_POINTS) -> Measurement:
    """No change of note: within ±margin points."""
    return Measurement(claim, "sameness", e.value, e.low, e.high, margin=margin, seeds=e.seeds, what=what)


def trend(
    claim: str, rows: pd.DataFrame, at: Mapping[int, Estimate], direction: int, what: str, paper: float | None = None
) -> Measurement:
    """Kendall's τ_b of the rows' values over the dims of `at`, one ranking per seed."""
    table = rows.pivot_table(index="seed", columns="dim", values="value")[list(at)].dropna()
    found = kendall_trend(list(at), table.to_numpy())
    return Measurement(
        claim,
        "trend",
        found.value,
        found.low,
        found.high,
        paper=paper,
        direction=direction,
        seeds=len(table),
        what=f"Kendall tau of {what}",
    )


K = TypeVar("K")
Facts = Mapping[str, Any]
"""what is known of a group of rows: its encoder, full size, last layer, and whatever else queries and sentences name"""
Cells = Mapping[tuple[Any, ...], Estimate]
Split = Callable[[pd.DataFrame], Iterable[tuple[Facts, pd.DataFrame]]]


def lowest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "more at every …" is hardest to hold."""
    return min(at.items(), key=lambda item: item[1].value)


def highest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "less at every …" is hardest to hold; or the best of several."""
    return max(at.items(), key=lambda item: item[1].value)


def farthest(at: Mapping[K, Estimate]) -> tuple[K, Estimate]:
    """Where "unchanged at every …" is hardest to hold."""
    return max(at.items(), key=lambda item: abs(item[1].value))


def average(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """All cells together; their intervals share items, so they do not shrink."""
    return (), mean(list(at.values()))


def average_size(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """How far all cells are from nought, whichever way."""
    return average({name: Estimate(abs(e.value), e.half, e.seeds) for name, e in at.items()})


def whole(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """All rows as one group."""
    yield {}, rows


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
    each: Split = whole
    """groups that are judged one by one"""
    near: float | None = None
    """only the dim nearest to this share of the full size"""
    scale: Callable[[Facts], float] = lambda facts: 1.0
    """turns a difference round, or into per cent of something"""
    test: Test = "effect"
    null: float = 0.0
    direction: int = 1
    margin: float = 1.0
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
                yield Measurement(
                    self.claim,
                    self.test,
                    e.value,
                    e.low,
                    e.high,
                    null=self.null,
                    direction=self.direction,
                    margin=self.margin,
                    paper=self.paper and self.paper(),
                    seeds=e.seeds,
                    what=self.what.format(**words),
                )
        if silent and self.needs:
            why = f"needs {self.needs}: published weights, no stand-in at hand (profile `paper` fetches them)"
            yield Measurement(self.claim, "effect", nan, nan, nan, seeds=0, what=why)


def scaled(e: Estimate, factor: float) -> Estimate:
    """The same in another unit."""
    return Estimate(factor * e.value, abs(factor) * e.half, e.seeds)


Rule = Judge | Callable[[pd.DataFrame], Iterable[Measurement]]
"""a declared judgement, or a function where a claim has a form of its own"""


def judge(rules: Sequence[Rule], rows: pd.DataFrame, **options: Any) -> list[Measurement]:
    """What the rows say of every rule, in their order."""
    return [m for rule in rules for m in (rule.measure(rows, **options) if isinstance(rule, Judge) else rule(rows))]
