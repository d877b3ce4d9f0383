"""How sure a mean over seeds is whose items all seeds share, alone and within a family of cells
(method-seeds in the book).

Rows hold a value and an interval over items for every seed and cell, no resamples. The variance of
a mean over seeds is that between the seeds, which are independent, plus that over items, which they
share; its degrees of freedom are Satterthwaite's. Of a family of C cells each has the level
0.95^(1/C) (Šidák): a correlation that is estimated from three to five seeds, as max-t would need,
makes joint bounds too narrow (they hold in 84 to 90 of 100 cases).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, isnan, log2, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from repro.evaluation.power import FEWEST_SEEDS, error_of_mean, reach
from repro.evaluation.stats import Floats, Interval
from repro.seeding import make_rng

ROUNDING = 1e-3  # Points by which one number may differ between two runs or processors
POINT = ("value", "ci_low", "ci_high")  # Columns of rows that hold a number and its interval
DRAWS = 5_000  # Draws of noise, for statistics that have no formula


def kendall(sizes: Floats, values: Floats) -> Floats:
    """Kendall's τ_b of values (…, C) with sizes (C,), from −1 (falls throughout) to 1; NaN where
    one does not vary.
    """
    first, second = np.triu_indices(len(sizes), 1)
    x = np.sign(sizes[second] - sizes[first])
    y = np.sign(values[..., second] - values[..., first])
    untied = (x != 0).sum() * (y != 0).sum(-1)
    with np.errstate(invalid="ignore"):
        return (x * y).sum(-1) / np.sqrt(untied)


@dataclass(frozen=True)
class Estimate:
    """A number in points, seed by seed, with its 95 % interval over seeds and items."""

    by_seed: Mapping[Any, float]  # One entry where nothing behind the number was drawn at random
    item_error: float = 0.0  # Standard error over items, which all seeds share
    random: bool = True
    cells: int = 1  # How many are judged together: the interval is then a joint one
    ends: tuple[float, float] | None = None
    """Of an interval that the formula below does not give: the smallest or largest of several."""
    extreme: bool = False  # Whether it is that: its ends are bounds from different cells
    centres: tuple[float, float] | None = None  # The values of these cells
    errors: tuple[float, float] | None = None
    """Between seeds and over items, of the cell whose end decides, where it is another one."""

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
        if isnan(self.low):
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    def __sub__(self, other: "Estimate") -> "Estimate":
        """Difference within each seed; how the items move both is not recorded: as if they were
        unrelated.
        """
        by_seed, random = within_seeds([self, other], lambda pair: pair[0] - pair[1])
        return Estimate(by_seed, hypot(self.item_error, other.item_error), random)


def within_seeds(
    parts: Sequence[Estimate],
    combine: Callable[[list[float]], Any],
) -> tuple[dict[Any, Any], bool]:
    """Something computed of several numbers within each seed that all random ones have; and whether
    it is random.
    """
    random_parts = [e for e in parts if e.random]
    shared: Iterable[Any] = random_parts[0].by_seed if random_parts else [None]
    combined = {}
    for seed in shared:
        if all(seed in e.by_seed for e in random_parts):
            combined[seed] = combine([e.by_seed[seed] if e.random else e.value for e in parts])
    return combined, bool(random_parts)


def estimate(rows: pd.DataFrame, *, deterministic: bool = False) -> Estimate:
    """Mean over seeds, in points, of the rows of one cell.

    Rows of one seed are one number, and so are rows of an untrained method that say the same under
    several seeds. A cell that is called `deterministic` is one number even of a single seed; where
    its seeds differ, something was drawn all the same, such as the split that chose a classifier's
    penalty, and they count as seeds.
    """
    untrained = "n_train" in rows and rows["n_train"].isna().all()
    return _estimate(
        _seeds_of(rows),
        *_numbers_of(rows).T,
        untrained=bool(untrained),
        deterministic=deterministic,
    )


def estimate_cells(
    rows: pd.DataFrame,
    by: Sequence[str],
    deterministic: pd.Series | None = None,
) -> dict[tuple[Any, ...], Estimate]:
    """`estimate` of every cell of rows that `by` tells apart, in order of first appearance.

    A cell is deterministic where all its rows are called so. Columns are taken out of the frame
    once: there are thousands of cells of a row or three each.
    """
    groups = rows.groupby(list(by), sort=False).ngroup().fillna(-1).to_numpy(int)
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))  # After rows without a key
    first_rows = rows[list(by)].iloc[order[starts]]
    keys = zip(*(first_rows[column].tolist() for column in by), strict=True)
    numbers = _numbers_of(rows)
    seeds = _seeds_of(rows)
    untrained = rows["n_train"].isna().to_numpy() if "n_train" in rows else np.zeros(len(rows))
    fixed = np.zeros(len(rows)) if deterministic is None else deterministic.to_numpy(bool)
    estimate_by_key = {}
    for key, cell in zip(keys, np.split(order, starts)[1:], strict=True):
        estimate_by_key[key] = _estimate(
            [seeds[row] for row in cell],
            *numbers[cell].T,
            untrained=bool(untrained[cell].all()),
            deterministic=bool(fixed[cell].all()),
        )
    return estimate_by_key


def _numbers_of(rows: pd.DataFrame) -> Floats:
    """Value and interval of rows (n, 3)."""
    return np.stack([rows[name].to_numpy(float) for name in POINT], axis=1)


def _seeds_of(rows: pd.DataFrame) -> list[Any]:
    """The seeds of rows; None where nothing was drawn."""
    return [None if pd.isna(seed) else seed for seed in rows["seed"].tolist()]


def _estimate(
    seeds: Sequence[Any],
    value: Floats,
    low: Floats,
    high: Floats,
    *,
    untrained: bool = False,
    deterministic: bool = False,
) -> Estimate:
    """The same of the columns (n,) of a cell: cells are many and small, which pandas is not for."""
    values: dict[Any, list[float]] = {}
    for seed, number in zip(seeds, value, strict=True):
        values.setdefault(seed, []).extend([] if isnan(number) else [number])
    by_seed = {seed: 100 * float(np.mean(v)) if v else nan for seed, v in values.items()}
    item = 50 * float(_mean_of_known(high - low)) / reach(inf)
    item = 0.0 if isnan(item) else item
    alike = np.ptp(list(by_seed.values())) <= ROUNDING if by_seed else True
    if alike and (deterministic or (untrained and len(by_seed) > 1)):
        return Estimate({None: float(np.mean(list(by_seed.values())))}, item, random=False)
    return Estimate(by_seed, item)


def _mean_of_known(numbers: Floats) -> Floats:
    """Mean of numbers (n, …) over the first axis, of those that are not NaN; of none NaN."""
    with np.errstate(invalid="ignore"):
        mean: Floats = np.nansum(numbers, axis=0) / (~np.isnan(numbers)).sum(axis=0)
    return mean


def over_runs(rows: pd.DataFrame, *, ratio: bool = False) -> Interval:
    """One number of several runs with its 95 % interval, which means the same in every table and
    figure: over runs and items where runs differ, and it takes three of them; over items alone
    where there is one run, or all say the same.

    Runs are told apart by `seed`; without that column every row is one. The value of a `ratio` is
    the geometric mean, and its logarithm is what runs differ in.
    """
    seed_of_row = rows["seed"].fillna(-1).tolist() if "seed" in rows else range(len(rows))
    return interval_over_runs(rows[list(POINT)].to_numpy(float), seed_of_row, ratio=ratio)


def interval_over_runs(
    numbers: Floats,
    seed_of_row: Iterable[Any],
    *,
    ratio: bool = False,
) -> Interval:
    """`over_runs` of values with their intervals (n, 3), and the seed of each."""
    numbers = np.log2(numbers) if ratio else numbers
    of_run: dict[Any, list[Floats]] = {}
    for seed, number in zip(seed_of_row, numbers, strict=True):
        if not isnan(number[0]):
            of_run.setdefault(seed, []).append(number)
    seeds = sorted(of_run)
    by_run = np.array([_mean_of_known(np.array(of_run[seed])) for seed in seeds]).reshape(-1, 3)
    if len(set(by_run[:, 0])) > 1:
        e = scaled(_estimate(seeds, *by_run.T), 0.01)
        ends = np.array([e.value, e.low, e.high])
    else:
        ends = _mean_of_known(by_run)
    value, low, high = np.exp2(ends) if ratio else ends
    return Interval(float(value), float(low), float(high))


def doublings(ratios: Mapping[Any, float]) -> Estimate:
    """Times as logarithms to the base 2, run by run: the interval holds the spread between runs,
    of which an average of the runs' own intervals knows nothing.
    """
    return Estimate({run: log2(ratio) for run, ratio in ratios.items()})


def estimates(
    rows: pd.DataFrame,
    by: str = "dim",
    *,
    deterministic: bool = False,
) -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    fixed = pd.Series(deterministic, index=rows.index)
    cells = estimate_cells(rows, [by], fixed).items()
    return {int(key): cell for (key,), cell in sorted(cells, key=lambda item: item[0])}


def mean(parts: Sequence[Estimate], *, same_items: bool = True) -> Estimate:
    """Mean over dims, or over tasks that share no items, of one experiment; within each seed first.

    What the same items add does not shrink with the number of dims that they stand behind.
    """
    by_seed, random = within_seeds(parts, lambda values: float(np.mean(values)))
    errors = [e.item_error for e in parts]
    error = np.mean(errors) if same_items else np.hypot.reduce(errors) / len(errors)
    return Estimate(by_seed, float(error), random)


def of_parts(
    parts: Sequence[Estimate],
    statistic: Callable[[Floats], Floats],
    *,
    same_items: bool = True,
) -> Estimate:
    """A statistic (…, C) → (…) of the numbers of each seed, such as a share of them or their rank
    correlation.

    Its interval holds what it becomes where all seeds' numbers move by as much as their means may
    be off, over seeds (if anything was drawn at random) and items: a share that is 0 or 100 in
    three seeds is not known to be so in all. How they move together is not recorded: they are moved
    each by itself and all together, and the wider of the two counts. Numbers of tasks that share no
    items move from item to item each by itself.
    """
    by_seed, random = within_seeds(parts, lambda values: values)
    if not by_seed:
        return Estimate({})
    table = np.array(list(by_seed.values()))  # (S, C)
    item_errors = np.array([e.item_error for e in parts])  # (C,)
    rng = make_rng(0, "cells move")

    def chances(columns: int) -> Floats:
        """Every column holds the same evenly spread chances (DRAWS, 1, columns), in an order of its
        own: what is drawn plainly has ends that another stream would put elsewhere.
        """
        spread_evenly = (np.arange(DRAWS) + 0.5) / DRAWS
        return rng.permuted(np.tile(spread_evenly[:, None, None], (1, 1, columns)), axis=0)

    seed_sd = table.std(axis=0, ddof=1) if random and len(table) > 1 else np.zeros(table.shape[1])
    spread = [
        error_of_mean(float(sd), len(table), float(item))
        for sd, item in zip(seed_sd, item_errors, strict=True)
    ]
    errors, freedom = np.array(spread).T
    items, ends = [], []
    for cells in (table.shape[1], 1):
        chance = chances(cells)
        items_move = ndtri(chance if same_items else chances(table.shape[1])) * item_errors
        if same_items:
            both_move = stdtrit(freedom, chance) * errors
        else:
            seeds_move = stdtrit(max(len(table) - 1, 1), chance) * seed_sd / sqrt(len(table))
            both_move = items_move + seeds_move
        items.append(statistic(table + items_move).mean(axis=1).std(ddof=1))
        ends.append(np.percentile(statistic(table + both_move).mean(axis=1), (2.5, 97.5)))
    low, high = np.transpose(ends)
    values = dict(zip(by_seed, map(float, statistic(table)), strict=True))
    e = Estimate(values, float(max(items)), random)
    if isnan(e.half):
        return e
    lowest = min(float(low.min()), e.value)
    highest = max(float(high.max()), e.value)
    return replace(e, ends=(lowest, highest))


def scaled(e: Estimate, factor: float) -> Estimate:
    """The same in another unit."""
    by_seed = {seed: factor * value for seed, value in e.by_seed.items()}
    return replace(e, by_seed=by_seed, item_error=abs(factor) * e.item_error)
