"""From rows to what a claim is judged by: means over seeds with their intervals, turned into measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
import pandas as pd

from repro.evaluation.stats import half_width, kendall_trend
from repro.report.verdict import Measurement

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

    One seed carries the assumed seed noise of §5.9, unless nothing behind it was drawn at random.
    """
    values = 100 * rows["value"].to_numpy(float)
    width = (rows["ci_high"] - rows["ci_low"]).to_numpy(float)
    item = 0.0 if np.isnan(width).all() else float(50 * np.nanmean(width))
    return Estimate(float(values.mean()), half_width(item, values, deterministic), len(values))


def estimates(rows: pd.DataFrame, by: str = "dim", *, deterministic: bool = False) -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    return {int(key): estimate(group, deterministic=deterministic) for key, group in rows.groupby(by)}


def mean(parts: Sequence[Estimate]) -> Estimate:
    """Mean over dims or tasks of one experiment."""
    # the same items and seed stand behind every dim, so the half-widths do not shrink with their number
    value, half = float(np.mean([e.value for e in parts])), float(np.mean([e.half for e in parts]))
    return Estimate(value, half, min(e.seeds for e in parts))


def weakest(at: Mapping[int, Estimate]) -> tuple[int, Estimate]:
    """The dim with the smallest value: where "at every dim" is hardest to hold."""
    return min(at.items(), key=lambda item: item[1].value)


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
