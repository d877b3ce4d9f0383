"""How sure a mean over seeds is whose items all seeds share, alone and within a family of cells (§5.9).

Rows hold a value and an interval over items for every seed and cell, no resamples. The variance of a mean over seeds is
that between the seeds, which are independent, plus that over items, which they share; its degrees of freedom are
Satterthwaite's. Of a family of C cells each has the level 0.95^(1/C) (Šidák): a correlation that is estimated from
three to five seeds, as max-t would need, makes joint bounds too narrow (they hold in 84 to 90 of 100 cases).
"""

from collections.abc import Callable
from math import ceil, inf, isnan, nan, sqrt

import numpy as np
from scipy.special import ndtri, stdtrit

from repro.evaluation.stats import Floats
from repro.seeding import make_rng

FEWEST_SEEDS = 3
"""below which nothing that was drawn at random is judged"""
MOST_SEEDS = 200
"""beyond which nobody would go to settle a claim"""
POWER = 0.8
DRAWS = 200
"""of noise, for statistics that have no formula"""


def error_of_mean(seed_sd: float, seeds: int, item_error: float) -> tuple[float, float]:
    """Standard error of a mean over seeds on shared items, and its degrees of freedom; without a spread, NaN."""
    if isnan(seed_sd):
        return nan, nan
    between = seed_sd**2 / seeds
    variance = between + item_error**2
    return sqrt(variance), (variance / between) ** 2 * (seeds - 1) if between > 0 else inf


def reach(freedom: float, cells: int = 1) -> float:
    """How many standard errors a 95 % interval reaches, of one cell or of each of several that are judged together."""
    return float(-stdtrit(freedom, (1 - 0.95 ** (1 / cells)) / 2))


def seeds_needed(seed_sd: float, item_error: float, size: float, cells: int = 1, power: float = POWER) -> int | None:
    """The fewest seeds with which an effect, `size` away from the null, is seen in a share `power` of cases.

    None if the items are too few: more seeds do not lower the error over items.
    """
    beyond = float(ndtri(power))
    room = (size / (reach(inf, cells) + beyond)) ** 2 - item_error**2  # for what is between the seeds
    if room <= 0:
        return None
    least = max(FEWEST_SEEDS, ceil(seed_sd**2 / room))
    for seeds in range(least, MOST_SEEDS + 1):  # few seeds have few degrees of freedom
        error, freedom = error_of_mean(seed_sd, seeds, item_error)
        if (reach(freedom, cells) + beyond) * error <= size:
            return seeds
    return max(least, MOST_SEEDS + 1)


def of_cells(
    statistic: Callable[[Floats], Floats], table: Floats, item_errors: Floats, *, random: bool = True
) -> tuple[Floats, float, tuple[float, float]]:
    """A statistic of every seed's cells, such as a share or a rank correlation, its error over items, and its interval.

    The statistic goes from (…, C) to (…), for a table (S, C) of one row per seed and the standard errors (C,) of its
    cells over items. The interval holds what it becomes where all seeds' cells move by as much as their means may be
    off, over seeds (if anything was drawn at `random`) and items: a share that is 0 or 100 in three seeds is not known
    to be so in all. How cells move together is not recorded: they are moved each by itself and all together, and the
    wider of the two counts.
    """
    rng = make_rng(0, "cells move")
    seed_sd = table.std(axis=0, ddof=1) if random and len(table) > 1 else np.zeros(table.shape[1])
    spread = [error_of_mean(float(sd), len(table), float(item)) for sd, item in zip(seed_sd, item_errors, strict=True)]
    errors, freedom = np.array(spread).T
    items, ends = [], []
    for cells in (table.shape[1], 1):
        chance = rng.random((DRAWS, 1, cells))
        items.append(statistic(table + ndtri(chance) * item_errors).mean(axis=1).std(ddof=1))
        ends.append(np.percentile(statistic(table + stdtrit(freedom, chance) * errors).mean(axis=1), (2.5, 97.5)))
    low, high = np.transpose(ends)
    return statistic(table), float(max(items)), (float(low.min()), float(high.max()))


def kendall(sizes: Floats, values: Floats) -> Floats:
    """Kendall's τ_b of values (…, C) with sizes (C,), from −1 (falls throughout) to 1; NaN where one does not vary."""
    first, second = np.triu_indices(len(sizes), 1)
    x = np.sign(sizes[second] - sizes[first])
    y = np.sign(values[..., second] - values[..., first])
    with np.errstate(invalid="ignore"):
        return (x * y).sum(-1) / np.sqrt((x != 0).sum() * (y != 0).sum(-1))
