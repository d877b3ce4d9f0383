"""How often intervals hold and null effects are contradicted, by simulation; and the power that is
told.
"""

from dataclasses import replace
from math import inf, isnan, nan

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from repro.evaluation.of_rows import estimate, estimate_cells, over_runs
from repro.evaluation.power import (
    FEWEST_SEEDS,
    error_of_mean,
    items_needed,
    reach,
    seeds_needed,
)
from repro.evaluation.seeds import Estimate, kendall, mean, of_parts, scaled
from repro.report.cells import farthest, lowest


def worlds(rng, seeds, cells, seed_sd, item_sd, together=0.8, truth=0.0, same_items=True):
    """Cells of every seed as estimates: cells of a seed move together, and so do cells from item to
    item of a task.
    """

    def noise(rows, together=together):
        shared = np.sqrt(together) * rng.standard_normal((rows, 1))
        return shared + np.sqrt(1 - together) * rng.standard_normal((rows, cells))

    values = truth + item_sd * noise(1, together * same_items) + seed_sd * noise(seeds)
    return [Estimate(dict(enumerate(map(float, column))), item_sd) for column in values.T]


SETTINGS = [(3, 1.0, 1.0), (3, 1.0, 0.0), (3, 0.3, 1.0), (5, 1.0, 0.3), (10, 1.0, 1.0)]
"""Seeds, spread between seeds, standard error over items."""
KINDS = {
    "of one cell": lambda parts: parts[0],
    "of a difference within the seed": lambda parts: parts[0] - parts[1],
    "of a mean over cells": mean,
    "of the smallest of a family": lambda parts: lowest(dict(enumerate(parts)))[1],
    "of a rank correlation": lambda parts: of_parts(
        parts, lambda scores: kendall(np.arange(6.0), scores)
    ),
    "of a share of cells": lambda parts: of_parts(parts, lambda x: 100 * (x > 0).mean(-1)),
    (SETS := "of a share of sets"): lambda parts: of_parts(
        parts, lambda x: 100 * (x > 0).mean(-1), same_items=False
    ),
}
NULL = {"of a share of cells": 50.0, SETS: 50.0}


def simulated(judge, **world):
    """Ends of the intervals of 500 families, over all settings together; the standard error of a
    share is 1 point.
    """
    rng = np.random.default_rng(0)
    found = [judge(worlds(rng, n, 6, *sds, **world)) for n, *sds in SETTINGS for _ in range(100)]
    return np.array([(e.low, e.high) for e in found]).T


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_in_93_of_100_cases_and_contradict_nulls_in_5_at_most(kind):
    (low, high), null = simulated(KINDS[kind], same_items=kind != SETS), NULL.get(kind, 0.0)
    assert ((low <= null) & (null <= high)).mean() >= 0.93
    assert max((low > null).mean(), (high < null).mean()) <= 0.05


def test_sameness_of_a_family_at_its_margin_is_contradicted_in_5_of_100_cases_at_most():
    low, high = simulated(lambda parts: farthest(dict(enumerate(parts)))[1], truth=1.0)
    assert ((low > 1.0) | (high < -1.0)).mean() <= 0.05


@pytest.mark.parametrize(
    ("seed_sd", "item_error", "size", "cells"),
    [(1.0, 0.0, 1.5, 1), (1.0, 0.3, 2.0, 6)],
)
def test_the_seeds_that_are_told_see_the_effect_in_80_of_100_cases(
    seed_sd,
    item_error,
    size,
    cells,
):
    seeds = seeds_needed(seed_sd, item_error, size, cells)
    rng = np.random.default_rng(0)
    found = [worlds(rng, seeds, 1, seed_sd, item_error, truth=size)[0] for _ in range(1000)]
    seen = np.mean([replace(e, cells=cells).low > 0 for e in found])
    assert 0.77 <= seen <= 0.93  # Whole seeds, and few of them: somewhat more than 80


def test_three_seeds_are_the_fewest_that_judge():
    assert isnan(Estimate({0: 1.0, 1: 2.0}, item_error=0.1).half)
    assert not isnan(Estimate({0: 1.0, 1: 2.0, 2: 3.0}, item_error=0.1).half)
    assert seeds_needed(1e-6, 0.0, 1.0) == FEWEST_SEEDS == 3


def test_more_seeds_do_not_make_up_for_few_items():
    assert seeds_needed(1.0, 1.0, 1.0) is None
    assert seeds_needed(1.0, 0.2, 1.0) > seeds_needed(1.0, 0.0, 1.0) >= FEWEST_SEEDS
    assert seeds_needed(0.0, 0.1, 1.0) == FEWEST_SEEDS
    assert seeds_needed(10.0, 0.0, 1.0) > 200
    assert 100 < seeds_needed(4.0, 0.0, 1.0) <= 200


@pytest.mark.parametrize(("item_error", "size", "cells"), [(1.0, 1.0, 1), (2.0, 0.5, 6)])
def test_so_many_times_the_items_are_just_enough(item_error, size, cells):
    times = items_needed(item_error, size, cells)
    assert seeds_needed(0.1, item_error / np.sqrt(0.9 * times), size, cells) is None
    assert seeds_needed(0.1, item_error / np.sqrt(1.1 * times), size, cells) is not None


def test_variances_over_seeds_and_items_add_with_the_freedom_of_the_seeds():
    assert error_of_mean(3.0, 9, 0.0) == (1.0, 8.0)
    error, freedom = error_of_mean(3.0, 9, 1.0)
    assert error == pytest.approx(2**0.5) and freedom == pytest.approx(4 * 8)
    assert error_of_mean(0.0, 1, 2.0) == (2.0, inf)
    assert all(map(isnan, error_of_mean(nan, 1, 2.0)))
    parts = [Estimate({0: 1.0}, item_error) for item_error in (3.0, 4.0)]
    assert (mean(parts).item_error, mean(parts, same_items=False).item_error) == (3.5, 2.5)
    one = Estimate({0: 1.0, 1: 2.0, 2: 6.0}, item_error=0.5)
    assert one.seed_sd == pytest.approx(np.std([1, 2, 6], ddof=1))
    turned = scaled(one, -2.0)
    assert (turned.value, turned.item_error) == (-6, 1)
    assert turned.seed_sd == pytest.approx(2 * one.seed_sd)
    assert reach(inf) == pytest.approx(1.96, abs=1e-3)
    assert reach(2.0) == pytest.approx(4.3027, abs=1e-4)
    assert reach(inf, 6) == pytest.approx(2.631, abs=1e-3)  # Šidák


def runs(values, low=-0.1, high=0.1):
    rows = [(seed, value, value + low, value + high) for seed, value in enumerate(values)]
    return pd.DataFrame(rows, columns=["seed", "value", "ci_low", "ci_high"])


def test_the_interval_of_several_runs_is_no_mean_of_their_own_intervals():
    """Runs that lie far apart are unsure, however narrow the interval of each."""
    e = over_runs(runs([0.2, 0.5, 0.8], low=-0.001, high=0.001))
    assert e.value == pytest.approx(0.5)
    assert e.high - e.low == pytest.approx(2 * 4.3027 * 0.3 / 3**0.5, rel=1e-3)
    assert np.isnan(over_runs(runs([0.2, 0.5])).low), "two runs tell no spread"
    for same in (runs([0.5]), runs([0.5, 0.5])):
        e = over_runs(same)
        assert (e.value, e.low, e.high) == pytest.approx((0.5, 0.4, 0.6))
    twice = pd.concat([runs([0.2]), runs([0.8])])
    assert over_runs(twice).value == pytest.approx(0.5), "two rows of one run are one number"
    assert over_runs(twice.drop(columns="seed")).value == pytest.approx(0.5)
    assert np.isnan(over_runs(runs([np.nan])).value)


def test_what_is_called_deterministic_is_one_number_only_where_its_seeds_agree():
    single = estimate(runs([0.2]), deterministic=True)
    assert (single.seeds, single.random) == (1, False) and single.half > 0
    alike = estimate(runs([0.2, 0.200001, 0.2]), deterministic=True)
    assert (alike.seeds, alike.random) == (1, False)
    differing = estimate(runs([0.2, 0.21, 0.2]), deterministic=True)
    assert (differing.seeds, differing.random) == (3, True) and differing.half > alike.half


def test_cells_taken_together_are_what_each_is_alone():
    rng = np.random.default_rng(0)
    n = 60
    value = rng.random(n)
    rows = pd.DataFrame(
        {
            "method": rng.choice(["PCA", "SVD", None], n),
            "dim": rng.choice([8, 16], n),
            "seed": rng.integers(0, 4, n),
            "n_train": rng.choice([nan, 100], n),
            "value": value,
            "ci_low": value - rng.random(n),
            "ci_high": value + rng.random(n),
        }
    )
    rows.loc[rows["dim"] == 8, "value"] = 0.5
    fixed = (rows["dim"] == 8) & ((rows["method"] == "PCA") | (rows.index % 2 == 0))

    together = estimate_cells(rows, ["method", "dim"], fixed)

    alone = {}
    for key, cell in rows.groupby(["method", "dim"], sort=False):
        alone[key] = estimate(cell, deterministic=bool(fixed[cell.index].all()))
    assert list(together) == list(alone)
    assert together == alone
    assert {e.random for e in together.values()} == {True, False}
    assert estimate_cells(rows.iloc[:0], ["dim"]) == {}


def test_ratios_of_runs_are_judged_by_their_logarithms():
    e = over_runs(runs([0.5, 1.0, 2.0], low=0.0, high=0.0), ratio=True)
    assert e.value == pytest.approx(1.0)
    assert e.low * e.high == pytest.approx(1.0)
    assert np.log2(e.high) == pytest.approx(4.3027 / 3**0.5, rel=1e-3)


def test_kendall_is_scipys():
    rng = np.random.default_rng(1)
    sizes = np.array([8.0, 16, 32, 64, 128])
    table = rng.integers(0, 4, (20, 5)).astype(float)
    for ranked in (sizes, -sizes, np.array([8.0, 8, 64, 64, 64])):
        expected = [kendalltau(ranked, row).statistic for row in table]
        np.testing.assert_allclose(kendall(ranked, table), expected, atol=1e-12)
    assert np.isnan(kendall(sizes, np.ones(5)))


def test_items_move_a_share_most_where_all_cells_move_together():
    leads = [Estimate(dict.fromkeys(range(3), 0.5), item_error=1.0)] * 35
    won = of_parts(leads, lambda x: (x > 0).mean(-1))
    assert won.by_seed == dict.fromkeys(range(3), 1.0)
    assert won.item_error > 0.3  # Each by itself: 0.08
    assert won.ends == (0.0, 1.0)
    assert of_parts(leads, lambda x: (x > 0).mean(-1), same_items=False).item_error < 0.1


def test_the_stream_of_random_numbers_decides_no_end(monkeypatch):
    """Of shares that jump, ends of plain draws lie elsewhere with every stream."""
    rng = np.random.default_rng(2)
    leads = [Estimate(dict(enumerate(rng.normal(-0.9, 0.4, 5))), item_error=0.8) for _ in range(15)]
    ends = set()
    for stream in range(5):
        monkeypatch.setattr(
            "repro.evaluation.seeds.make_rng",
            lambda *_, stream=stream: np.random.default_rng(stream),
        )
        ends.add(of_parts(leads, lambda x: (x > 0).mean(-1)).ends)
    assert len(ends) == 1
