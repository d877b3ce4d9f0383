import logging
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from repro.evaluation import sts_spearman
from repro.evaluation.stats import bootstrap_spearman
from repro.evaluation.sts import prefix_cosines, score_sts
from repro.sets import ScoredPairs

rng = np.random.default_rng(0)
X1 = rng.standard_normal((200, 12)).astype(np.float32)
X2 = (X1 + rng.standard_normal((200, 12))).astype(np.float32)
SCORES = np.round((X1 * X2).sum(1) + 2 * rng.standard_normal(200))  # With ties
SUBSETS = np.repeat(["headlines", "forum"], [150, 50])


def cosines(X1, X2):
    X1, X2 = X1.astype(np.float64), X2.astype(np.float64)
    return (X1 * X2).sum(1) / (np.linalg.norm(X1, axis=1) * np.linalg.norm(X2, axis=1))


def test_equals_one_scipy_spearmanr():
    expected = spearmanr(cosines(X1, X2), SCORES).statistic
    assert sts_spearman(X1, X2, SCORES) == pytest.approx(expected, abs=1e-12)
    dims = [12, 1, 5]
    each = [sts_spearman(X1[:, :d], X2[:, :d], SCORES) for d in dims]
    np.testing.assert_allclose(sts_spearman(X1, X2, SCORES, dims=dims), each, atol=1e-12)
    # Ranks know neither the scale of the vectors nor a rising change of the gold scores
    scaled = sts_spearman(5 * X1, X2 * np.arange(1, 201)[:, None], np.exp(SCORES / 5))
    assert scaled == pytest.approx(expected, abs=1e-9)
    assert sts_spearman(X1, X2, -SCORES) == pytest.approx(-expected)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([1, 7, 40, 1500]),
    st.integers(1, 30),
    st.sampled_from([1e-60, 1e-8, 1e12]),
)
def test_prefix_cosines_equal_slicing_and_renormalising(seed, n, dim, scale):
    rng = np.random.default_rng(seed)
    X1, X2 = scale * rng.standard_normal((2, n, dim))
    dims = sorted({1, dim, (dim + 1) // 2})
    for row, d in zip(prefix_cosines(X1, X2, dims), dims, strict=True):
        np.testing.assert_allclose(row, cosines(X1[:, :d], X2[:, :d]), atol=1e-12)


def test_a_zero_prefix_has_cosine_zero_and_is_counted(caplog):
    X1 = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 0.0]])
    X2 = np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 0.0]])
    with caplog.at_level(logging.INFO):
        found = prefix_cosines(X1, X2, [2, 3])
    assert found[0].tolist() == [0.0, 1.0]
    assert found[1, 0] == pytest.approx(1 / math.sqrt(5))
    assert "1 cosines of zero vectors were set to 0" in caplog.text


# Ties


@pytest.mark.parametrize("scale", [1e-140, 1e-60, 1e-3, 1.0, 1e14])
@pytest.mark.parametrize("dim", [1, 2, 7, 384])
def test_pairs_of_equal_rows_are_tied_at_one_whatever_their_size(dim, scale):
    X = scale * np.random.default_rng(dim).standard_normal((300, dim))
    dims = sorted({1, dim, (dim + 1) // 2})
    assert (prefix_cosines(X, X, dims) == 1).all()
    assert (prefix_cosines(X, -X, dims) == -1).all()
    if scale > 1e-30:
        single = X.astype(np.float32)
        assert (prefix_cosines(single, single, dims) == 1).all()


def test_rows_that_point_the_same_way_are_tied_and_others_are_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 384))
    assert (prefix_cosines(X, 3.7 * X, [1, 8, 384]) == 1).all()
    assert (np.abs(prefix_cosines(X, rng.standard_normal((50, 384)), [1])) == 1).all()  # One column
    turned = X.copy()
    turned[:, 0] += 1e-4 * np.linalg.norm(X, axis=1)
    assert (prefix_cosines(X, turned, [384]) < 1 - 1e-9).all()


def test_equal_cosines_of_whole_numbers_are_tied_and_no_others():
    rng = np.random.default_rng(0)
    first, second = rng.integers(-3, 4, (2, 400, 4))
    exact = []
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        lengths = sum(x * x for x in a) * sum(y * y for y in b)
        exact.append(Fraction(dot * abs(dot), lengths) if lengths else Fraction(0))
    order = {square: place for place, square in enumerate(sorted(set(exact)))}
    expected = [order[square] for square in exact]
    for scale in (1, 2.0**-300, 1000):
        (found,) = prefix_cosines(scale * first, 7 * second, [4])
        assert np.unique(found, return_inverse=True)[1].tolist() == expected


def test_identical_pairs_move_the_rank_correlation_as_ties_do():
    """Of 200 pairs 40 are identical: with exact arithmetic all of them share one average rank."""
    first = np.round(8 * X1)
    second = np.where(np.arange(200)[:, None] % 5 == 0, first, np.round(8 * X2))
    exact = []
    for a, b in zip(first.astype(int), second.astype(int), strict=True):
        dot = int(a @ b)
        exact.append(Fraction(dot * abs(dot), int(a @ a) * int(b @ b)))  # Rises with the cosine
    level = {cosine: i for i, cosine in enumerate(sorted(set(exact)))}
    expected = spearmanr([level[cosine] for cosine in exact], SCORES).statistic
    assert sts_spearman(first, second, SCORES) == pytest.approx(expected, abs=1e-14)
    # Lengths that are no whole numbers, as those of embeddings
    assert sts_spearman(first / 7, second / 7, SCORES) == pytest.approx(expected, abs=1e-14)


# Subsets


def test_subsets_are_pooled_or_averaged_plainly_or_by_their_sizes():
    first, second = (
        sts_spearman(X1[part], X2[part], SCORES[part]) for part in (slice(0, 150), slice(150, 200))
    )
    whole = sts_spearman(X1, X2, SCORES)
    for how, expected in (
        ("all", whole),
        ("mean", (first + second) / 2),
        ("wmean", (3 * first + second) / 4),
    ):
        found = sts_spearman(X1, X2, SCORES, subsets=SUBSETS, aggregate=how)
        assert found == pytest.approx(expected, abs=1e-12), how


@pytest.mark.parametrize("aggregate", ["all", "mean", "wmean"])
def test_a_tasks_score_has_an_interval_that_keeps_its_subsets(aggregate):
    texts1, texts2 = (tuple(f"{side}{i}" for i in range(200)) for side in "ab")
    task = ScoredPairs("made", "local", "test", texts1, texts2, SCORES, SUBSETS)
    score = score_sts(lambda texts: X1 if texts == texts1 else X2, task, aggregate=aggregate)
    assert score.value == pytest.approx(
        sts_spearman(X1, X2, SCORES, subsets=SUBSETS, aggregate=aggregate)
    )
    assert score.metric == ("spearman" if aggregate == "all" else f"spearman_{aggregate}")
    if aggregate == "all":
        within = bootstrap_spearman(score.items, SCORES, subsets=SUBSETS, seed=0)
        assert (score.ci_low, score.ci_high) == (within.low, within.high)
        assert score.ci_low < score.value < score.ci_high
        other = score_sts(lambda texts: X1 if texts == texts1 else X2, task, seed=1)
        assert other.value == score.value and other.ci_low != score.ci_low


def test_constants_have_no_rank_correlation(caplog):
    same = np.tile([[1.0, 0.0]], (200, 1))
    assert math.isnan(sts_spearman(same, same, SCORES))
    assert "Spearman is undefined: all 200 cosines are equal" in caplog.text
    assert math.isnan(sts_spearman(X1, X2, np.full(200, 3.0)))
    assert "Spearman is undefined: all 200 gold scores are equal" in caplog.text
