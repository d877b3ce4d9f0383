"""Bootstrap intervals and paired tests against scipy, slow loops and tables."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from repro.evaluation import stats
from repro.seeding import make_rng


def graded(n):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 26, n) / 5
    return np.round(gold + rng.normal(size=n), 1), gold


def width(interval):
    return interval.high - interval.low


def test_bootstrap_equals_a_loop_of_scipy():
    predicted, gold = graded(60)
    subsets = np.repeat(["a", "b", "c"], 20)
    counts = stats.draw_counts(stats.subset_members(subsets, 60), 40, make_rng(3, "bootstrap"))
    assert (counts.reshape(40, 3, 20).sum(axis=2) == 20).all(), (
        "resamples keep the size of every subset"
    )
    resamples = [np.repeat(np.arange(60), row) for row in counts]
    loop = [spearmanr(predicted[items], gold[items]).statistic for items in resamples]
    drawn = stats.spearman_draws([predicted], gold, subsets=subsets, resamples=40, seed=3)
    (value,), draws = drawn.value, drawn.draws
    np.testing.assert_allclose(draws[:, 0], loop, atol=1e-12)
    assert value == pytest.approx(spearmanr(predicted, gold).statistic, abs=1e-12)
    found = stats.percentiles(value, draws[:, 0])
    np.testing.assert_allclose(
        [found.low, found.high],
        np.percentile(loop, (2.5, 97.5)),
        atol=1e-12,
    )


def test_a_resample_of_means_is_the_mean_of_as_many_items_shared_by_all_columns():
    right = np.random.default_rng(0).random((2, 30)) < 0.5
    counts = stats.draw_counts(stats.subset_members(None, 30), 40, make_rng(3, "bootstrap"))
    items = [np.repeat(np.arange(30), row) for row in counts]
    drawn = stats.mean_draws(right, resamples=40, seed=3)
    np.testing.assert_allclose(drawn.draws, [right[:, own].mean(1) for own in items])
    np.testing.assert_allclose(drawn.value, right.mean(1))
    assert (stats.mean_draws([np.ones(7)], seed=0).draws == 1).all()
    constant = stats.bootstrap_mean(np.full(7, 0.25), seed=0)
    assert (constant.low, constant.value, constant.high, constant.n) == (0.25, 0.25, 0.25, 7)


def test_every_interval_rests_on_two_thousand_resamples(monkeypatch):
    (predicted, gold), read, seen = graded(60), stats.percentiles, []

    def counted(value, draws, n=None):
        seen.append(len(draws))
        return read(value, draws, n)

    monkeypatch.setattr(stats, "percentiles", counted)
    drawn = stats.spearman_draws([predicted], gold, seed=0), stats.mean_draws([gold], seed=0)
    for one in (stats.bootstrap_mean, lambda values, seed: drawn[1][0].interval):
        assert one(gold, seed=0).n == 60
    stats.bootstrap_spearman(predicted, gold, seed=0)
    assert {*seen, *(len(each.draws) for each in drawn)} == {2000}


def test_an_interval_turns_with_its_seed_and_is_about_two_points_wide_on_sts_b():
    predicted, gold = graded(1379)
    interval = stats.bootstrap_spearman(predicted, gold, seed=1)
    assert interval.low < interval.value < interval.high and 0.01 < width(interval) < 0.06
    again, other = (stats.bootstrap_spearman(predicted, gold, seed=seed) for seed in (1, 2))
    assert interval == again != other


def test_scores_and_their_resamples_are_changed_alike():
    value, draws = np.arange(6.0).reshape(2, 3), np.random.default_rng(0).normal(size=(40, 2, 3))
    scores, other = stats.Resampled(value, draws, 9), stats.Resampled(value**2, draws**2, 9)
    for found, change in (
        (scores[1, 2], lambda part: part[..., 1, 2]),
        (scores - other, lambda part: part - part**2),
        (scores.mean(), lambda part: part.mean(-1)),
        (scores.mean(-2), lambda part: part.mean(-2)),
    ):
        np.testing.assert_allclose(found.value, change(value))
        np.testing.assert_allclose(found.draws, change(draws))
        assert found.n == 9
    both = stats.Resampled.averaged([scores, replace(other, n=3)])
    np.testing.assert_allclose(both.value, (value + value**2) / 2)
    np.testing.assert_allclose(both.draws, (draws + draws**2) / 2)
    assert both.n == 12 and stats.Interval.around(5.0, 0.5) == stats.Interval(5.0, 4.5, 5.5)


def test_a_resample_without_a_correlation_is_left_out():
    draws = np.random.default_rng(0).normal(size=50)
    assert stats.percentiles(0.0, np.r_[draws, np.nan]) == stats.percentiles(0.0, draws)


def test_constant_scores_are_nan_and_few_pairs_have_no_interval_worth_the_name():
    with pytest.warns(UserWarning, match="constant"):
        interval = stats.bootstrap_spearman(np.ones(10), np.arange(10), seed=0)
    assert np.isnan([interval.value, interval.low, interval.high]).all()
    with pytest.warns(UserWarning, match="9 pairs are too few for an interval"):
        stats.bootstrap_spearman(*graded(9), seed=0)
    with warnings.catch_warnings(action="error"):
        assert not np.isnan(stats.bootstrap_spearman(*graded(10), seed=0).low)


def test_the_intervals_of_means_and_shares_are_the_binomial_ones():
    interval = stats.bootstrap_mean(np.arange(2000) < 1400, seed=0)
    assert interval.value == 0.7
    assert width(interval) == pytest.approx(2 * 1.96 * np.sqrt(0.7 * 0.3 / 2000), rel=0.08)
    values = np.random.default_rng(0).normal(size=50)
    first, again, other = (stats.bootstrap_mean(values, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    half, none = stats.wilson(5, 10), stats.wilson(0, 10)
    # Wilson (1927), by any table
    assert (half.low, half.high) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert (none.low, none.high) == pytest.approx((0.0, 0.2775), abs=1e-4)
