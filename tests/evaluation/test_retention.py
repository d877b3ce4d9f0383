"""What fewer dimensions keep: bounds of shares, and structure by closed forms and definitions."""

import numpy as np
import pytest

from dimadvise.bounds import retention, smallest_sufficient
from repro.evaluation.retention import prefix_cka
from repro.evaluation.stats import mean_draws, spearman_draws
from repro.types import InputError

rng = np.random.default_rng(0)


def test_shares_and_bounds_of_paired_draws():
    gold = rng.normal(size=400)
    full = gold + rng.normal(size=400)
    less = full + 0.3 * rng.normal(size=400)
    values, draws = spearman_draws([full, less, full], gold, seed=0)
    found = retention(values, draws, reference=0)
    assert found.share[0] == found.share[2] == found.low[0] == found.low[2] == 1.0
    assert found.low[1] < found.share[1] < 1
    assert found.share[1] == pytest.approx(values[1] / values[0])
    assert retention(values, draws, reference=0, confidence=0.99).low[1] < found.low[1]


def test_a_bound_leaves_all_its_error_on_one_side():
    draws = np.column_stack([np.full(101, 2.0), np.linspace(1, 2, 101)])  # shares of 0.5, 0.505 … 1
    assert retention(np.array([2.0, 1.5]), draws, reference=0).low[1] == pytest.approx(0.525)
    assert retention(np.array([2.0, 1.5]), draws, reference=0, confidence=0.9).low[1] == pytest.approx(0.55)


def test_the_walk_stops_at_the_first_failure():
    assert smallest_sufficient([8, 64, 16, 32], [0.99, 1.0, 0.97, 0.99], 0.98) == 32
    assert smallest_sufficient([8, 16, 32], [0.99, 0.99, 0.97], 0.98) is None
    assert smallest_sufficient([8, 16], [0.98, 0.99], 0.98) == 8
    assert smallest_sufficient([8, 16], [np.nan, 0.99], 0.98) == 16


def test_a_size_that_falls_short_is_rarely_accepted():
    # two sizes truly keep 0.95 of the reference; the target is what they keep, so each acceptance is an error
    draw, accepted = np.random.default_rng(1), 0
    for trial in range(200):
        right = draw.random(300) < 0.8
        worse = [right & (draw.random(300) < 0.95) for _ in range(2)]
        values, draws = mean_draws([right, *worse], resamples=400, seed=trial)
        low = retention(values, draws, reference=0).low
        accepted += smallest_sufficient([32, 16], list(low[1:]), 0.95) is not None
    assert accepted / 200 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_a_reference_that_may_be_zero_is_refused():
    values, draws = spearman_draws([rng.normal(size=50), rng.normal(size=50)], rng.normal(size=50), seed=0)
    with pytest.raises(InputError, match="may be zero"):
        retention(values, draws, reference=0)


X = rng.normal(size=(60, 12)) * np.geomspace(1, 0.1, 12) + 0.5


def by_definition(X, Y):
    """Kornblith et al. (2019), from the kernels."""
    centre = np.eye(len(X)) - 1 / len(X)
    K, L = (centre @ Z @ Z.T @ centre for Z in (X, Y))
    return (K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum())


def test_linear_cka_from_its_definition_counts_weights_as_repetitions():
    dims, counts = [1, 5, 12], rng.integers(0, 4, 60)
    assert prefix_cka(X, dims) == pytest.approx([by_definition(X, X[:, :d]) for d in dims])
    again = np.repeat(X, counts, 0)
    assert prefix_cka(X, dims, weights=counts) == pytest.approx([by_definition(again, again[:, :d]) for d in dims])
    assert prefix_cka(X, [12])[0] == pytest.approx(1) and np.isnan(prefix_cka(np.ones((4, 3)), [2])).all()
