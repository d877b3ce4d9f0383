"""How sure a score is: bootstrap intervals over items, and paired tests (§5.9)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest, t

from repro.evaluation.resample import (
    CHUNK,
    Counts,
    Floats,
    check_pairs,
    draw_counts,
    finite_vector,
    spearman_of_counts,
    subset_members,
    tie_runs,
)
from repro.seeding import make_rng
from repro.types import InputError, check_same_length

FEWEST_PAIRS = 10
"""Pairs below which the interval of a rank correlation says little."""


@dataclass(frozen=True)
class Interval:
    """A number and its 95 % interval, in whatever unit it was computed."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, half_width: float) -> "Interval":
        """The symmetric interval value ± half_width."""
        return cls(float(value), float(value - half_width), float(value + half_width))

    @property
    def columns(self) -> dict[str, float]:
        """The columns of a row that hold it."""
        return {"value": self.value, "ci_low": self.low, "ci_high": self.high}

    @property
    def half_width(self) -> float:
        """Half the distance from low to high."""
        return (self.high - self.low) / 2

    def times(self, factor: float) -> "Interval":
        """The same interval in another unit: `times(100)` turns a fraction into points."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Interval(self.value * factor, low, high)


def bootstrap_spearman(predicted: Any, gold: Any, *, subsets: Any = None, resamples: int = 2000, seed: int) -> Interval:
    """Spearman over all items with a percentile 95 % interval, items drawn within their subset (§5.9).

    A constant side has no rank correlation: all three numbers are NaN, with a warning; fewer than ten items warn too.

    Raises:
        InputError: for fewer than three items, or unusable numbers.
    """
    (value,), draws = _bootstrap_spearmans([predicted], gold, subsets, resamples, seed)
    return percentiles(value, draws[:, 0])


def paired_spearman_difference(
    predicted_a: Any, predicted_b: Any, gold: Any, *, subsets: Any = None, resamples: int = 2000, seed: int
) -> Interval:
    """Spearman of a minus Spearman of b, both read on the same resampled items."""
    check_same_length(predicted_a=predicted_a, predicted_b=predicted_b)
    value, draws = _bootstrap_spearmans([predicted_a, predicted_b], gold, subsets, resamples, seed)
    return percentiles(value[0] - value[1], draws[:, 0] - draws[:, 1])


def spearman_draws(
    predictions: Sequence[Any], gold: Any, *, subsets: Any = None, resamples: int = 2000, seed: int
) -> tuple[Floats, Floats]:
    """Spearman of several predictions (P,), and of each on the same resampled items (resamples, P).

    Whatever is computed from them, a difference or a mean over datasets, is a resample of that quantity.
    """
    return _bootstrap_spearmans(list(predictions), gold, subsets, resamples, seed)


def accuracy_draws(corrects: Sequence[Any], *, resamples: int = 2000, seed: int) -> tuple[Floats, Floats]:
    """Accuracy of several predictions (P,), and of each on the same resampled items (resamples, P)."""
    return mean_draws([_zero_one(correct, "correct") for correct in corrects], resamples=resamples, seed=seed)


def mean_draws(columns: Sequence[Any], *, resamples: int = 2000, seed: int) -> tuple[Floats, Floats]:
    """Means of several columns of outcomes (P,), and of each on the same resampled items (resamples, P)."""
    table = np.column_stack(columns)  # (n, P)
    n, rng = len(table), make_rng(seed, "bootstrap")
    step = max(1, CHUNK // n)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    members = subset_members(None, n, resamples)
    return table.mean(0), np.concatenate([draw_counts(members, size, rng) @ table / n for size in sizes])


def bootstrap_accuracy(correct: Any, *, subsets: Any = None, resamples: int = 2000, seed: int) -> Interval:
    """Share of correct items with a percentile 95 % interval, items drawn within their subset."""
    return bootstrap_mean(_zero_one(correct, "correct"), subsets=subsets, resamples=resamples, seed=seed)


def paired_accuracy_difference(
    correct_a: Any, correct_b: Any, *, subsets: Any = None, resamples: int = 2000, seed: int
) -> Interval:
    """Accuracy of a minus accuracy of b on the same resampled items."""
    check_same_length(correct_a=correct_a, correct_b=correct_b)
    difference = _zero_one(correct_a, "correct_a") - _zero_one(correct_b, "correct_b")
    return bootstrap_mean(difference, subsets=subsets, resamples=resamples, seed=seed)


def wilson(successes: float, n: int) -> Interval:
    """A share of n independent trials with Wilson's 95 % interval; NaN for none.

    Successes may be a mean over seeds, which scipy's `proportion_ci` does not take.

    Raises:
        InputError: for successes below 0 or above n.
    """
    if not 0 <= successes <= n:
        raise InputError(f"{successes:g} successes of {n} trials: expected 0 to {n}")
    if not n:
        return Interval(np.nan, np.nan, np.nan)
    z, p = 1.959964, successes / n
    centre, reach = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(p, float((centre - reach) / (1 + z * z / n)), float((centre + reach) / (1 + z * z / n)))


def mcnemar(correct_a: Any, correct_b: Any) -> float:
    """Exact two-sided McNemar p-value: among items that only one gets right, is it a coin toss which?"""
    check_same_length(correct_a=correct_a, correct_b=correct_b)
    a, b = _zero_one(correct_a, "correct_a"), _zero_one(correct_b, "correct_b")
    only_a, only_b = int((a > b).sum()), int((b > a).sum())
    return 1.0 if only_a + only_b == 0 else float(binomtest(only_a, only_a + only_b).pvalue)


def paired_t(values_a: Any, values_b: Any) -> tuple[Interval, float]:
    """Mean difference a - b over shared seeds with its 95 % t interval, and the two-sided p-value.

    Raises:
        InputError: for fewer than three seeds, which §5.9 does not test.
    """
    check_same_length(values_a=values_a, values_b=values_b)
    difference = finite_vector(values_a, "values_a", 3) - finite_vector(values_b, "values_b", 3)
    mean, half = float(difference.mean()), seed_half_width(difference)
    if half == 0.0:  # identical differences: t is 0/0 or infinite
        return Interval.around(mean, 0.0), 1.0 if mean == 0.0 else 0.0
    freedom = len(difference) - 1
    return Interval.around(mean, half), float(2 * t.sf(abs(mean) * t.ppf(0.975, freedom) / half, freedom))


def holm(pvalues: Any) -> Floats:
    """Holm-adjusted p-values, in the order given: reject where they are at most the wanted level."""
    p = finite_vector(pvalues, "pvalues")
    if p.min() < 0 or p.max() > 1:
        raise InputError(f"pvalues run from {p.min()} to {p.max()}: expected numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def seed_half_width(values: Any) -> float:
    """H_seed = t(.975, S-1) s / sqrt(S) over S ≥ 2 seeds, in the unit of the values."""
    seeds = finite_vector(values, "values", 2)
    return float(t.ppf(0.975, len(seeds) - 1) * seeds.std(ddof=1) / np.sqrt(len(seeds)))


def _bootstrap_spearmans(
    predictions: list[Any], gold: Any, subsets: Any, resamples: int, seed: int
) -> tuple[Floats, Floats]:
    check_same_length(predicted=predictions[0], gold=gold)
    gold_ties = tie_runs(finite_vector(gold, "gold", 2))
    ties = [tie_runs(finite_vector(predicted, "predicted", 2)) for predicted in predictions]
    n = len(gold_ties.run)
    members, rng, step = subset_members(subsets, n, resamples), make_rng(seed, "bootstrap"), max(1, CHUNK // n)
    check_pairs(n)

    def each(counts: Counts) -> Floats:
        return spearman_of_counts(counts, ties, gold_ties)

    value = each(np.ones((1, n), dtype=np.int64))[0]
    if np.isnan(value).any():
        warnings.warn("predicted or gold is constant: its Spearman correlation is NaN", stacklevel=3)
    if n < FEWEST_PAIRS:
        said = (
            f"{n} pairs are too few for an interval of their correlation: expected at least {FEWEST_PAIRS}, better 100"
        )
        warnings.warn(said, stacklevel=3)
    sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
    return value, np.concatenate([each(draw_counts(members, size, rng)) for size in sizes])


def _zero_one(values: Any, name: str) -> Floats:
    vector = finite_vector(values, name)
    if not np.isin(vector, (0.0, 1.0)).all():
        raise InputError(f"{name} holds {vector[~np.isin(vector, (0.0, 1.0))][0]}: expected 0 or 1 (wrong or right)")
    return vector


def bootstrap_mean(values: Any, *, subsets: Any = None, resamples: int = 2000, seed: int) -> Interval:
    """Mean over items of any numbers, such as paired differences, with a percentile 95 % interval."""
    values = finite_vector(values, "values")
    rng, total = make_rng(seed, "bootstrap"), np.zeros(resamples if resamples > 0 else 0)
    for members in subset_members(subsets, len(values), resamples):
        # Items that hold the same value are exchangeable: their counts in a resample are one multinomial draw.
        levels, counts = np.unique(values[members], return_counts=True)
        total = total + rng.multinomial(len(members), counts / len(members), size=resamples) @ levels
    return percentiles(float(values.mean()), total / len(values))


def percentiles(value: float, draws: Floats) -> Interval:
    """A quantity with the 95 % percentile interval of its resamples; NaN ends where it has none."""
    # A resample can be constant by chance on tiny sets: it carries no correlation and is left out.
    if np.isnan(value) or np.isnan(draws).all():
        return Interval(float(value), np.nan, np.nan)
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return Interval(float(value), float(low), float(high))
