"""From rows to measurements of a claim: which rows speak, cut into which cells, and which decides.

A claim of the form "at every dim", "for every encoder", "at half the dims" is a selection of rows
and a choice among cells; it is judged where it is weakest. What an interval says of a claim is in
`repro.report.verdict`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeAlias

import pandas as pd
from pandas.errors import UndefinedVariableError

from repro.evaluation.of_rows import estimate_cells
from repro.evaluation.seeds import Estimate, scaled
from repro.report.cells import Cells, lowest
from repro.report.measurements import absent, effect
from repro.report.verdict import MARGIN_POINTS, Measurement, Test
from repro.results import recorded_rows
from repro.types import InputError, choices, one_of

Facts = Mapping[str, Any]
"""What is known of a group of rows: its encoder, full size, last layer, and whatever else queries
and sentences name.
"""
Group: TypeAlias = tuple[Facts, pd.DataFrame]
Split = Callable[[pd.DataFrame], Iterable[Group]]


def each_network(rows: pd.DataFrame) -> Iterator[Group]:
    """The rows of each network by themselves."""
    for name, on_network in rows.groupby("backbone", sort=False):
        yield {"backbone": str(name)}, on_network


CELLS = ["experiment", "backbone", "method", "dim", "seed", "n_train", "value", "ci_low", "ci_high"]
"""Columns that numbers of a cell are read from, a few of sixty."""


@dataclass(frozen=True)
class Judge:
    """One claim, or one part of a claim that has several."""

    claim: str
    # The measured thing in words, with {columns} of the cell that decides and {facts} of its group
    what: str
    rows: str  # A pandas query; @names are facts of the group
    pick: Callable[[Cells], tuple[tuple[Any, ...], Estimate]] = lowest
    over: tuple[str, ...] = ("dim",)  # Columns that tell cells apart
    # Groups that are judged one by one; by default all rows are one
    each: Split = lambda rows: [({}, rows)]
    at: int | None = None  # Only this dim, the printed one, where the rows have it
    # Else only the dim nearest to this share of the full size, within a factor of the root of 2
    near: float | None = None
    # Turns a difference round, or into per cent of something
    scale: Callable[[Facts], float] = lambda facts: 1.0
    test: Test = "effect"
    null: float = 0.0
    direction: int = 1
    paper: float | None = None
    unit: str = "points"
    sized: bool = False
    margin: float = MARGIN_POINTS
    needs: str = ""  # What is not at hand, where no row speaks

    def measure(
        self,
        rows: pd.DataFrame,
        fixed: Callable[[pd.DataFrame], pd.Series] | None = None,
    ) -> Iterator[Measurement]:
        """The measurement of every group that has such rows; `fixed` says which rows have nothing
        random in them.
        """
        silent = True
        for facts, group in self.each(rows):
            columns = {column: group[column] for column in group if column in self.rows}
            chosen = group[[column for column in group if column in (*CELLS, *self.over)]]
            if len(chosen):
                try:
                    speaks = pd.eval(
                        self.rows,
                        engine="python",
                        local_dict=dict(facts),
                        resolvers=[columns],
                        level=1,  # At level 0 no @name is allowed
                    )
                except UndefinedVariableError as error:
                    raise InputError(f"the rows of {self.claim}: {error}") from None
                chosen = chosen[speaks]
            for column in self.over if len(chosen) else ():
                one_of(column, list(group), f"column of {self.claim}")
            chosen = self.at_its_size(chosen, facts)
            cells = estimate_cells(chosen, self.over, fixed(chosen) if fixed else None)
            if not cells:
                continue
            silent = False
            factor = self.scale(facts)
            estimates = {name: scaled(cell, factor) for name, cell in cells.items()}
            name, e = self.pick(estimates)
            told = {**facts, **dict(zip(self.over, name, strict=False)), "n": len(estimates)}
            try:
                measured_words = self.what.format(**told)
            except KeyError as error:
                valid = choices(error.args[0], list(told))
                raise InputError(f"{self.claim} measures {error}: {valid}") from None
            network = ", ".join(map(str, chosen["backbone"].dropna().unique()))
            fields = {
                "null": self.null,
                "direction": self.direction,
                "paper": self.paper,
                "unit": self.unit,
                "sized": self.sized,
                "margin": self.margin,
            }
            yield effect(self.claim, e, measured_words, test=self.test, network=network, **fields)
        if silent and self.needs:
            yield absent(
                self.claim,
                f"needs {self.needs}, as under profile `paper`",
            )

    def at_its_size(self, chosen: pd.DataFrame, facts: Facts) -> pd.DataFrame:
        """The rows of the printed dim, or where the network has not got it, of its share."""
        if self.at is not None and (chosen["dim"] == self.at).any():
            return chosen[chosen["dim"] == self.at]
        if self.near is None or chosen.empty:
            return chosen
        size = self.near * facts["full"]
        nearest = min(chosen["dim"], key=lambda dim: abs(dim - size))
        if not size / 2**0.5 <= nearest <= size * 2**0.5:
            return chosen.iloc[:0]
        return chosen[chosen["dim"] == nearest]


@dataclass(frozen=True)
class Premised:
    """A rule that a network may be asked only where training costs it nothing without the method.

    It does where the control is surely worse than the untouched network at the readout that is
    judged: below it, or above it if the control's direction is −1.
    """

    rule: Any
    control: Judge  # The control less the untouched network, at that readout
    of: str = ""  # The experiment that has such rows, where those that are judged have none

    def measure(self, rows: pd.DataFrame, **options: Any) -> Iterator[Measurement]:
        """What the rows say of the rule, with the premise."""
        yield from self.with_premise(judge([self.rule], rows, **options), rows)

    def __call__(self, rows: pd.DataFrame, **options: Any) -> Iterator[Measurement]:
        """The same of a rule that is a function with options of its own."""
        yield from self.with_premise(self.rule(rows, **options), rows)

    def with_premise(
        self, measurements: Iterable[Measurement], rows: pd.DataFrame
    ) -> Iterator[Measurement]:
        """Measurements, each with what training costs its network, or that nobody knows."""
        elsewhere = self.of and self.of not in set(rows["experiment"])
        control_rows = recorded_rows(self.of) if elsewhere else rows
        costs = {m.network: m for m in self.control.measure(control_rows)}
        networks = [str(name) for name in rows["backbone"].dropna().unique()]
        for m in measurements:
            cost = costs.get(m.network or (networks[0] if len(networks) == 1 else ""))
            if cost is None or isnan(cost.high):
                needed = "needs the same training without the method beside the untouched network"
                yield replace(m, unknown=needed)
                continue
            surely_worse = cost.high < 0 if cost.direction > 0 else cost.low > 0
            if surely_worse:
                lost = f"{abs(cost.value):.1f} {cost.unit}"
                reason = f"the same training without the method costs this network {lost}"
                yield replace(m, unmet=reason)
            else:
                yield m


Rule = Judge | Premised | tuple[Any, ...] | Callable[[pd.DataFrame], Iterable[Measurement]]
"""A declared judgement, with its premise if it has one, several that are one, or a function where a
claim has a form of its own.
"""


def whole(
    read: Callable[..., list[Measurement]],
    claims: Sequence[str],
    rows: pd.DataFrame,
    *size: int | None,
) -> list[Measurement]:
    """What rows say; of some claims a network's folds of the whole set alone, if they have an
    interval, since a test split is in it.
    """
    folds = rows["experiment"].fillna("").str.endswith("_folds")
    of_all = [m for m in read(rows[folds], *size) if m.claim_id in claims] if folds.any() else []
    of_test = read(rows[~folds], *size)

    def spoken(found: Iterable[Measurement]) -> set[tuple[str, str]]:
        return {(m.claim_id, m.network) for m in found}

    decided = spoken(m for m in of_all if not isnan(m.low))
    undecided = spoken(of_all) - decided - spoken(of_test)
    of_all = [m for m in of_all if (m.claim_id, m.network) in decided | undecided]
    return of_all + [m for m in of_test if (m.claim_id, m.network) not in decided]


def judge(rules: Sequence[Rule], rows: pd.DataFrame, **options: Any) -> list[Measurement]:
    """What the rows say of every rule, in their order; of several as one, the smallest value."""
    measurements: list[Measurement] = []
    for rule in rules:
        if isinstance(rule, Judge | Premised):
            measurements += rule.measure(rows, **options)
        elif isinstance(rule, tuple):
            measurements += sorted(judge(rule, rows, **options), key=lambda m: m.value)[:1]
        else:
            measurements += rule(rows)
    return measurements


def network_by_network(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of each network say, by itself."""
    measurements = []
    for name, on_network in rows.groupby("backbone", sort=False):
        for m in judge(rules, on_network):
            measurements.append(replace(m, network=str(name)))
    return measurements
