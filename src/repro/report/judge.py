"""From rows to verdicts: one mechanism for every claim.

A claim of the form "at every dim", "for every encoder", "at half the dims" is a selection of rows and a choice among
cells; it is judged where it is weakest, by joint intervals.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import kendall
from repro.report.estimates import Cells, Estimate, estimate, estimates, lowest, of_parts, scaled
from repro.report.verdict import Measurement, Test

MARGIN_POINTS = 1.0
"""what counts as no change, in points"""


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
