"""What fewer dimensions keep: the walk over bounds, and structure by closed forms and
definitions.
"""

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr

from dimadvise.bounds import smallest_sufficient
from repro.evaluation.retention import prefix_cka, procrustes_statistic, residual_variance

rng = np.random.default_rng(0)


def test_the_walk_stops_at_the_first_failure():
    assert smallest_sufficient([8, 64, 16, 32], [0.99, 1.0, 0.97, 0.99], 0.98) == 32
    assert smallest_sufficient([8, 16, 32], [0.99, 0.99, 0.97], 0.98) is None
    assert smallest_sufficient([8, 16], [0.98, 0.99], 0.98) == 8
    assert smallest_sufficient([8, 16], [np.nan, 0.99], 0.98) == 16


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
    assert prefix_cka(X, dims, weights=counts) == pytest.approx(
        [by_definition(again, again[:, :d]) for d in dims]
    )
    assert (
        prefix_cka(X, [12])[0] == pytest.approx(1)
        and np.isnan(prefix_cka(np.ones((4, 3)), [2])).all()
    )


# What locally linear mappings are compared by


TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]


def test_residual_variance_is_one_less_the_square_of_the_correlation_of_distances():
    cut, turned = X[:, :3], 2 * X @ TURN + 7
    rho = pearsonr(pdist(X), pdist(cut)).statistic
    assert 0.1 < rho < 0.99 and residual_variance(X, cut) == pytest.approx(1 - rho**2)
    assert residual_variance(X, turned) == pytest.approx(0, abs=1e-12)
    # What is near in one and far in the other: of two clusters the tight one is the wide one
    first, second = (np.r_[a * X[:30], b * X[30:]] for a, b in ((1, 9), (9, 1)))
    rho = pearsonr(pdist(first), pdist(second)).statistic
    assert rho < -0.1 and residual_variance(first, second) == pytest.approx(1 - rho**2)


def test_the_procrustes_statistic_is_the_mean_of_scipys_over_neighbourhoods_of_the_first():
    Y, k = X[:, :4] ** 3, 5
    nearest = np.argsort(((X[:, None] - X) ** 2).sum(2), axis=1)[:, : k + 1]
    expected = [procrustes(X[near], np.pad(Y[near], ((0, 0), (0, 8))))[2] for near in nearest]
    assert 0.1 < np.mean(expected) < 0.9
    assert procrustes_statistic(X, Y, k) == pytest.approx(np.mean(expected))
    moved = -3 * X @ TURN + 1
    assert procrustes_statistic(X, moved, k) == pytest.approx(0, abs=1e-9)
    assert procrustes_statistic(X, np.ones((60, 2)), k) == 0  # Nothing is left that could be lost


def test_of_many_rows_evenly_spaced_ones_are_compared():
    many = np.random.default_rng(1).normal(size=(1000, 3)) * np.linspace(1, 4, 1000)[:, None]
    Y = np.abs(many[:, :2])
    some, places = (np.linspace(0, 999, n).astype(int) for n in (500, 100))
    assert residual_variance(many, Y) == pytest.approx(residual_variance(many[some], Y[some]))
    near = np.argsort(((many[places, None] - many) ** 2).sum(2), axis=1)[:, :7]
    expected = [procrustes(many[own], np.pad(Y[own], ((0, 0), (0, 1))))[2] for own in near]
    assert procrustes_statistic(many, Y, 6) == pytest.approx(np.mean(expected))
