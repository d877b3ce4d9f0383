import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, spearmanr, ttest_rel

from repro.evaluation.resample import draw_counts, spearman_of_counts, subset_members, tie_runs
from repro.evaluation.stats import (
    Interval,
    bootstrap_accuracy,
    bootstrap_mean,
    bootstrap_spearman,
    holm,
    mcnemar,
    paired_accuracy_difference,
    paired_spearman_difference,
    paired_t,
    wilson,
)
from repro.seeding import make_rng
from repro.types import InputError


def graded(n, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 26, n) / 5
    return np.round(gold + rng.normal(size=n) * noise, 1), gold


def test_bootstrap_equals_a_loop_of_scipy():
    predicted, gold = graded(60)
    subsets = np.repeat(["a", "b", "c"], 20)
    counts = draw_counts(subset_members(subsets, 60, 40), 40, make_rng(3, "bootstrap"))
    loop = []
    for row in counts:
        items = np.repeat(np.arange(60), row)
        loop.append(spearmanr(predicted[items], gold[items]).statistic)
    fast = spearman_of_counts(counts, [tie_runs(predicted)], tie_runs(gold))[:, 0]
    np.testing.assert_allclose(fast, loop, atol=1e-12)
    interval = bootstrap_spearman(predicted, gold, subsets=subsets, resamples=40, seed=3)
    np.testing.assert_allclose([interval.low, interval.high], np.percentile(loop, (2.5, 97.5)), atol=1e-12)
    assert interval.value == pytest.approx(spearmanr(predicted, gold).statistic, abs=1e-12)


def test_resamples_keep_the_size_of_every_subset():
    subsets = np.array(["x"] * 3 + ["y"] * 9)
    counts = draw_counts(subset_members(subsets, 12, 50), 50, make_rng(0, "bootstrap"))
    assert (counts[:, :3].sum(axis=1) == 3).all() and (counts[:, 3:].sum(axis=1) == 9).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30))
def test_rank_correlation_of_counts_is_scipys_with_ties(pairs):
    a, b = np.array(pairs, dtype=float).T
    ours = spearman_of_counts(np.ones((1, len(a)), dtype=np.int64), [tie_runs(a)], tie_runs(b))[0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = spearmanr(a, b).statistic
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_sts_b_sized_bootstrap_is_quick_and_about_two_points_wide():
    predicted, gold = graded(1379)
    start = time.perf_counter()
    interval = bootstrap_spearman(predicted, gold, seed=0)
    assert time.perf_counter() - start < 1.5
    assert interval.low < interval.value < interval.high
    assert 0.5 < interval.times(100).half_width < 3.0


def test_same_seed_same_interval_and_another_seed_another():
    predicted, gold = graded(50)
    assert bootstrap_spearman(predicted, gold, seed=1) == bootstrap_spearman(predicted, gold, seed=1)
    assert bootstrap_spearman(predicted, gold, seed=1) != bootstrap_spearman(predicted, gold, seed=2)


def test_constant_scores_are_nan_with_a_warning():
    with pytest.warns(UserWarning, match="constant"):
        interval = bootstrap_spearman(np.ones(9), np.arange(9), seed=0)
    assert np.isnan([interval.value, interval.low, interval.high]).all()


def test_few_pairs_have_no_interval_worth_the_name():
    with pytest.warns(UserWarning, match="9 pairs are too few for an interval"):
        bootstrap_spearman(*graded(9), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bootstrap_spearman(*graded(10), seed=0)


def test_pairing_narrows_the_difference():
    predicted, gold = graded(400)
    other = predicted + np.random.default_rng(5).normal(size=400) * 0.2
    paired = paired_spearman_difference(predicted, other, gold, seed=0)
    alone = bootstrap_spearman(predicted, gold, seed=0)
    assert paired.half_width < alone.half_width / 2
    assert paired_spearman_difference(predicted, predicted, gold, seed=0) == Interval(0.0, 0.0, 0.0)
    flipped = paired_spearman_difference(other, predicted, gold, seed=0)
    assert flipped.low == pytest.approx(-paired.high)


def test_accuracy_interval_is_the_binomial_one():
    correct = np.arange(2000) < 1400
    interval = bootstrap_accuracy(correct, seed=0)
    assert interval.value == 0.7
    assert interval.half_width == pytest.approx(1.96 * np.sqrt(0.7 * 0.3 / 2000), rel=0.08)
    assert bootstrap_accuracy(correct, subsets=correct, seed=0) == Interval(0.7, 0.7, 0.7)


def test_items_that_differ_between_subsets_alone_have_no_interval():
    kinds = np.repeat([1, 0], [30, 70])
    interval = bootstrap_accuracy(kinds, subsets=kinds, seed=0)
    assert (interval.low, interval.value, interval.high) == pytest.approx((0.3, 0.3, 0.3))
    assert bootstrap_accuracy(kinds, seed=0).half_width > 0.05


def test_a_bootstrap_of_means_turns_with_its_seed():
    values = np.random.default_rng(0).normal(size=50)
    first, again, other = (bootstrap_mean(values, resamples=100, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_paired_accuracy_counts_only_the_items_that_differ():
    a, b = np.ones(500), np.ones(500)
    b[:50] = 0
    interval = paired_accuracy_difference(a, b, seed=0)
    assert interval.value == pytest.approx(0.1) and interval.low > 0.07


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (1, 0), (7, 3), (12, 12), (0, 15)])
def test_mcnemar_is_the_exact_binomial_test(only_a, only_b):
    a = np.r_[np.ones(only_a), np.zeros(only_b), np.ones(4), np.zeros(4)]
    b = np.r_[np.zeros(only_a), np.ones(only_b), np.ones(4), np.zeros(4)]
    expected = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert mcnemar(a, b) == pytest.approx(expected) and mcnemar(b, a) == pytest.approx(expected)


def test_paired_t_is_scipys():
    a, b = [80.1, 79.5, 81.0, 80.2], [79.0, 79.1, 79.3, 79.9]
    interval, p = paired_t(a, b)
    theirs = ttest_rel(a, b)
    limits = theirs.confidence_interval()
    assert p == pytest.approx(theirs.pvalue)
    np.testing.assert_allclose([interval.low, interval.high], [limits.low, limits.high])
    assert paired_t([1, 2, 3], [1, 2, 3]) == (Interval(0, 0, 0), 1.0)
    assert paired_t([2, 3, 4], [1, 2, 3])[1] == 0.0


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).max() == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_spearman([1.0, np.nan], [1, 2], seed=0), "first at 1"),
        (lambda: bootstrap_spearman([1.0, 2.0, 3.0], [1, 2], seed=0), "predicted has 3, gold has 2"),
        (lambda: bootstrap_spearman([1.0], [1], seed=0), "at least 2"),
        (lambda: bootstrap_spearman([1.0, 2], [1, 2], subsets=["a"], seed=0), "subsets has 1"),
        (lambda: bootstrap_spearman([1.0, 2], [1, 2], resamples=0, seed=0), "resamples is 0"),
        (lambda: bootstrap_spearman([1.0, 2], [1, 2], seed=0), "2 pairs are too few .* expected at least 3"),
        (lambda: bootstrap_spearman([1j, 2, 3], [1, 2, 3], seed=0), "predicted holds complex numbers"),
        (lambda: wilson(5, 3), "5 successes of 3 trials: expected 0 to 3"),
        (lambda: wilson(-1, 3), "-1 successes of 3"),
        (lambda: bootstrap_accuracy([], seed=0), "at least 1"),
        (lambda: bootstrap_accuracy([0, 0.5], seed=0), "holds 0.5"),
        (lambda: mcnemar([1], [1, 0]), "lengths differ"),
        (lambda: paired_t([1, 2], [1, 2]), "at least 3"),
        (lambda: holm([0.5, 1.5]), "from 0 to 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_wilsons_interval_of_a_share():
    half, none = wilson(5, 10), wilson(0, 10)
    assert (half.low, half.high) == pytest.approx((0.2366, 0.7634), abs=1e-4)  # Wilson (1927), by any table
    assert (none.low, none.high) == pytest.approx((0.0, 0.2775), abs=1e-4)
