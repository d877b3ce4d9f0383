"""How sure a score is: bootstrap intervals over items, of paired differences too (method-intervals
in the book).

A resample is a vector of counts, one per item. Mean ranks follow from the counts by one cumulative
sum over values sorted once, so no resample is ever sorted: 2,000 resamples of STS-B take a tenth of
a second and equal a loop of `scipy.stats.spearmanr` to rounding.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.labels import check_labels
from repro.seeding import make_rng
from repro.types import Array, InputError, check_same_length, finite_vector, plain_array

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
RESAMPLES = 2000
FEWEST_PAIRS = 10  # The interval of a rank correlation of fewer pairs says little
# Counts held at once: resamples go through in chunks, whose quarters stay in cache
CHUNK = 400_000


@dataclass(frozen=True)
class Interval:
    """A number and its 95 % interval, in whatever unit it was computed."""

    value: float
    low: float
    high: float
    n: int | None = None  # Items that it is computed from

    @classmethod
    def around(cls, value: float, half_width: float) -> "Interval":
        """The symmetric interval value ± half_width."""
        return cls(float(value), float(value - half_width), float(value + half_width))

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row that hold it."""
        return {"value": self.value, "ci_low": self.low, "ci_high": self.high, "n_judged": self.n}


@dataclass(frozen=True)
class Score:
    """One task's score, a fraction or correlation, with its 95 % bootstrap interval over items."""

    metric: str
    value: float
    ci_low: float
    ci_high: float
    n: int
    items: Any = None  # Per-item outcome for paired comparisons: cosines (n,) or correct (n,)
    floor: float | None = None  # Accuracy of the majority class

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row that hold it."""
        return {
            "metric": self.metric,
            **Interval(self.value, self.ci_low, self.ci_high, self.n).columns,
        }


@dataclass(frozen=True)
class Resampled:
    """Scores (…) and the same scores on shared resamples of the items (R, …); a difference is a
    difference of both.
    """

    value: Array
    draws: Array
    n: int | None = None  # Items that were scored

    @classmethod
    def averaged(cls, parts: Sequence["Resampled"]) -> "Resampled":
        """The mean of scores on different items, resample by resample."""
        value = np.mean([scores.value for scores in parts], axis=0)
        draws = np.mean([scores.draws for scores in parts], axis=0)
        n = [scores.n for scores in parts if scores.n is not None]
        return cls(value, draws, sum(n) if len(n) == len(parts) else None)

    def __getitem__(self, index: Any) -> "Resampled":
        index = index if isinstance(index, tuple) else (index,)
        return replace(self, value=self.value[index], draws=self.draws[(slice(None), *index)])

    def __sub__(self, other: "Resampled") -> "Resampled":
        return replace(self, value=self.value - other.value, draws=self.draws - other.draws)

    def map(self, change: Callable[..., Array], *args: Any, **options: Any) -> "Resampled":
        """What is computed from the scores along their last axes, of each resample too."""
        value = change(self.value, *args, **options)
        return replace(self, value=value, draws=change(self.draws, *args, **options))

    def mean(self, axis: int = -1) -> "Resampled":
        """Over one axis, counted from the end: −1 is the last."""
        return self.map(np.mean, axis)

    @property
    def interval(self) -> Interval:
        """The score with its percentile 95 % interval."""
        return percentiles(float(self.value), np.asarray(self.draws, np.float64), self.n)

    @property
    def columns(self) -> dict[str, Any]:
        """The columns value, ci_low, ci_high and n_judged of a row."""
        return self.interval.columns


def percentiles(value: float, draws: Floats, n: int | None = None) -> Interval:
    """A quantity of n items with the 95 % percentile interval of its resamples; NaN ends where it
    has none.
    """
    # A resample can be constant by chance on tiny sets: it carries no correlation and is left out.
    if np.isnan(value) or np.isnan(draws).all():
        return Interval(float(value), np.nan, np.nan, n)
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return Interval(float(value), float(low), float(high), n)


def spearman_draws(
    predictions: Sequence[Any],
    gold: Any,
    *,
    subsets: Any = None,
    resamples: int = RESAMPLES,
    seed: int,
) -> Resampled:
    """Spearman of several predictions (P,), and of each on the same resampled items (resamples, P).

    Whatever is computed from them, a difference or a mean over datasets, is a resample of that
    quantity. Items are drawn within their subset. A constant side has no rank correlation: NaN,
    with a warning; fewer than ten items warn too, fewer than three are refused.
    """
    for predicted in predictions:
        check_same_length(predicted=predicted, gold=gold)
    gold_ties = tie_runs(finite_vector(gold, "gold", 2))
    ties = [tie_runs(finite_vector(predicted, "predicted", 2)) for predicted in predictions]
    n = len(gold_ties.run)
    counted = _resamples(subsets, n, resamples, seed)
    check_pairs(n)
    value = spearman_of_counts(np.ones((1, n), dtype=np.int64), ties, gold_ties)[0]
    if np.isnan(value).any():
        warnings.warn(
            "predicted or gold is constant: its Spearman correlation is NaN",
            stacklevel=3,
        )
    if n < FEWEST_PAIRS:
        few = f"{n} pairs are too few for an interval of their correlation"
        warnings.warn(f"{few}: expected at least {FEWEST_PAIRS}, better 100", stacklevel=3)
    draws = []
    for counts in counted:
        for quarter in np.array_split(counts, min(4, len(counts))):
            draws.append(spearman_of_counts(quarter, ties, gold_ties))
    return Resampled(value, np.concatenate(draws), n)


def mean_draws(columns: Sequence[Any], *, resamples: int = RESAMPLES, seed: int) -> Resampled:
    """Means of several columns of outcomes (P,), and of each on the same resampled items
    (resamples, P).
    """
    table = np.column_stack(columns).astype(np.float64)  # (n, P)
    counted = _resamples(None, len(table), resamples, seed)
    n = len(table)
    means = np.concatenate([counts @ table / n for counts in counted])
    return Resampled(table.mean(0), means, n)


def bootstrap_spearman(predicted: Any, gold: Any, *, subsets: Any = None, seed: int) -> Interval:
    """Spearman over all items with its interval; see `spearman_draws`."""
    return spearman_draws([predicted], gold, subsets=subsets, seed=seed)[0].interval


def bootstrap_mean(values: Any, *, seed: int) -> Interval:
    """Mean over items of any numbers, such as right or wrong or paired differences, with its
    interval.
    """
    values = finite_vector(values, "values")
    # Items that hold the same value are exchangeable: their counts in a resample are one
    # multinomial draw.
    levels, counts = np.unique(values, return_counts=True)
    n = len(values)
    resampled = make_rng(seed, "bootstrap").multinomial(n, counts / n, size=RESAMPLES)
    return percentiles(float(values.mean()), resampled @ levels / n, n)


def wilson(successes: float, n: int) -> Interval:
    """A share of n independent trials with Wilson's 95 % interval; NaN for none.

    Successes may be a mean over seeds, which scipy's `proportion_ci` does not take.
    """
    if not 0 <= successes <= n:
        raise InputError(f"{successes:g} successes of {n} trials: expected 0 to {n}")
    if not n:
        return Interval(np.nan, np.nan, np.nan, 0)
    z = 1.959964
    p = successes / n
    centre = p + z * z / (2 * n)
    reach = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    shrunk = 1 + z * z / n
    return Interval(p, float((centre - reach) / shrunk), float((centre + reach) / shrunk), n)


class Ties(NamedTuple):
    """Values sorted once: their order, where each run of equal values starts, and the run of each
    item.
    """

    order: Counts
    starts: Counts
    run: Counts


def tie_runs(values: Floats) -> Ties:
    """Sort once, and note where equal values sit together."""
    order = np.argsort(values, kind="stable")
    fresh = np.r_[True, np.diff(values[order]) != 0]
    run = np.empty(len(values), dtype=np.int64)
    run[order] = np.cumsum(fresh) - 1
    return Ties(order, np.flatnonzero(fresh), run)


def subset_members(subsets: Any, n: int) -> list[Counts]:
    """The item numbers of each subset; one subset of all items where none are named."""
    if subsets is None:
        return [np.arange(n)]
    check_same_length(items=range(n), subsets=subsets)
    names = plain_array(subsets, "subsets")
    check_labels(names, "subsets")
    return [np.flatnonzero(names == name) for name in np.unique(names)]


def draw_counts(members: list[Counts], rows: int, rng: np.random.Generator) -> Counts:
    """How often each item is drawn in each of `rows` resamples, with replacement within its
    subset.
    """
    n = sum(len(m) for m in members)
    picked = [m[rng.integers(len(m), size=(rows, len(m)))] for m in members]
    picks = np.concatenate(picked, axis=1)  # (rows, n)
    numbered = picks + n * np.arange(rows)[:, None]  # Each resample has numbers of its own
    counts = np.bincount(numbered.ravel(), minlength=rows * n)
    return counts.reshape(rows, n)


def _resamples(subsets: Any, n: int, resamples: int, seed: int) -> Iterator[Counts]:
    members = subset_members(subsets, n)
    rng = make_rng(seed, "bootstrap")
    step = max(1, CHUNK // n)
    for start in range(0, resamples, step):
        yield draw_counts(members, min(step, resamples - start), rng)


def spearman_of_counts(counts: Counts, many: Sequence[Ties], gold: Ties) -> Floats:
    """Spearman correlation with average ties of each resample and prediction (R, P); NaN where a
    side is constant.
    """
    n = counts[0].sum()
    # Ranks average (n + 1) / 2 whatever the ties, so moments stay exact in float64
    middle = n * ((n + 1) / 2) ** 2
    # (n, R): what is picked by item is then contiguous
    columns = np.ascontiguousarray(counts.T, dtype=np.float64)
    gold_ranks, gold_square = _mean_ranks(columns, gold)
    weighted = columns * gold_ranks[gold.run]
    out = np.full((len(counts), len(many)), np.nan)
    for p, ties in enumerate(many):
        ranks, square = _mean_ranks(columns, ties)
        covariance = np.einsum("nr,nr->r", weighted, ranks[ties.run]) - middle
        spread = np.sqrt((square - middle) * (gold_square - middle))
        np.divide(covariance, spread, out=out[:, p], where=spread > 0)
    return out


def _mean_ranks(columns: Floats, ties: Ties) -> tuple[Floats, Floats]:
    picked, tied = columns[ties.order], len(ties.starts) < len(columns)
    per_run = np.add.reduceat(picked, ties.starts, axis=0) if tied else picked  # (U, R)
    ranks = np.cumsum(per_run, axis=0) - (per_run - 1) / 2
    return ranks, np.einsum("ur,ur,ur->r", per_run, ranks, ranks)  # (U, R), (R,)


def check_pairs(count: int) -> None:
    """Refuse fewer than three scored pairs, which have no rank correlation."""
    if count < 3:
        raise InputError(
            f"{count} pairs are too few for a rank correlation: of two it is 1 or -1; expected at "
            "least 3, better 100"
        )
