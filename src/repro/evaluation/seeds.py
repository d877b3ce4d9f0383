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
from functools import lru_cache
from math import hypot, isnan, log2, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from repro.evaluation.power import FEWEST_SEEDS, error_of_mean, reach
from repro.evaluation.stats import Floats
from repro.seeding import make_rng

DRAWS = 5_000  # Draws of noise, for statistics that have no formula
CHANCES = (np.arange(DRAWS) + 0.5) / DRAWS
"""Evenly spread: what is drawn plainly has ends that another stream would put elsewhere."""


def kendall(sizes: Floats, values: Floats) -> Floats:
    """Kendall's τ_b of values (…, C) with sizes (C,), from −1 (falls throughout) to 1; NaN where
    one does not vary.
    """
    first, second = np.triu_indices(len(sizes), 1)
    x = np.sign(sizes[second] - sizes[first])
    by_cell = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    agreeing, untied = np.zeros((2, *values.shape[:-1]))
    # Pair by pair: all pairs of thousands of draws at once are larger than a cache
    for one, other, rises in zip(first, second, x, strict=True):
        y = np.sign(by_cell[other] - by_cell[one])
        agreeing += rises * y
        untied += y != 0
    with np.errstate(invalid="ignore"):
        tau: Floats = agreeing / np.sqrt((x != 0).sum() * untied)
    return tau


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


def doublings(ratios: Mapping[Any, float]) -> Estimate:
    """Times as logarithms to the base 2, run by run: the interval holds the spread between runs,
    of which an average of the runs' own intervals knows nothing.
    """
    return Estimate({run: log2(ratio) for run, ratio in ratios.items()})


def mean(parts: Sequence[Estimate], *, same_items: bool = True) -> Estimate:
    """Mean over dims, or over tasks that share no items, of one experiment; within each seed first.

    What the same items add does not shrink with the number of dims that they stand behind.
    """
    by_seed, random = within_seeds(parts, lambda values: float(np.mean(values)))
    errors = [e.item_error for e in parts]
    error = np.mean(errors) if same_items else np.hypot.reduce(errors) / len(errors)
    return Estimate(by_seed, float(error), random)


@lru_cache(maxsize=512)
def quantiles_of_t(freedom: float) -> Floats:
    """Quantiles of Student's t at all `CHANCES` (DRAWS,). They take longer than all else, and
    several statistics of the same cells need the same ones.
    """
    lower_half = stdtrit(freedom, CHANCES[: DRAWS // 2])
    return np.concatenate([lower_half, -lower_half[::-1]])


def orders(rng: np.random.Generator, columns: int) -> NDArray[np.intp]:
    """Numbers of all `CHANCES` (DRAWS, 1, columns), every column in an order of its own."""
    return rng.permuted(np.tile(np.arange(DRAWS)[:, None, None], (1, 1, columns)), axis=0)


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

    seed_sd = table.std(axis=0, ddof=1) if random and len(table) > 1 else np.zeros(table.shape[1])
    spread = [
        error_of_mean(float(sd), len(table), float(item))
        for sd, item in zip(seed_sd, item_errors, strict=True)
    ]
    errors, freedom = np.array(spread).T
    of_items = ndtri(CHANCES)
    freedoms = freedom if same_items else [max(len(table) - 1, 1)]
    of_seeds = np.column_stack([quantiles_of_t(float(number)) for number in freedoms])
    items, ends = [], []
    for cells in (table.shape[1], 1):
        order = orders(rng, cells)
        seeds_move = of_seeds[order, np.arange(len(freedoms))]
        items_move = of_items[order if same_items else orders(rng, table.shape[1])] * item_errors
        if same_items:
            both_move = seeds_move * errors
        else:
            both_move = items_move + seeds_move * seed_sd / sqrt(len(table))
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
