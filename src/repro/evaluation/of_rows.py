"""Estimates of recorded and live rows: a mean over seeds, in points, of the rows of a cell
(method-seeds in the book).
"""

from collections.abc import Iterable, Sequence
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.power import reach
from repro.evaluation.seeds import Estimate, scaled
from repro.evaluation.stats import Floats, Interval

ROUNDING = 1e-3  # Points by which one number may differ between two runs or processors
POINT = ("value", "ci_low", "ci_high")  # Columns of rows that hold a number and its interval


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
    cells: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*(rows[column].tolist() for column in by), strict=True)):
        cells.setdefault(key, []).append(row)
    numbers = _numbers_of(rows)
    seeds = _seeds_of(rows)
    untrained = rows["n_train"].isna().to_numpy() if "n_train" in rows else np.zeros(len(rows))
    fixed = np.zeros(len(rows)) if deterministic is None else deterministic.to_numpy(bool)
    estimate_by_key = {}
    for key, cell in cells.items():
        if any(map(pd.isna, key)):
            continue
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


def estimates(
    rows: pd.DataFrame,
    by: str = "dim",
    *,
    deterministic: bool = False,
) -> dict[int, Estimate]:
    """`estimate` of every value of `by`, ascending."""
    fixed = pd.Series(deterministic, index=rows.index)
    cells = estimate_cells(rows, [by], fixed)
    return {int(key): cell for (key,), cell in sorted(cells.items())}
