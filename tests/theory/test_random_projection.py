import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from repro.theory import cosine_error, distortion_quantiles, jl_dim, pair_distortion
from repro.types import InputError


@pytest.mark.parametrize(("n", "eps"), [(2551, 0.1), (2551, 0.5), (100, 0.3), (10**6, 0.05)])
def test_jl_dim_is_scikit_learns_rounded_up(n, eps):
    theirs = int(johnson_lindenstrauss_min_dim(n, eps=eps))  # which cuts off the fraction
    assert jl_dim(n, eps) - theirs in (0, 1)


def test_jl_dim_has_known_values():
    assert (jl_dim(2551, 0.1), jl_dim(2551, 0.5)) == (6724, 377)
    assert jl_dim(2551, 0.5, failure=0.01) > jl_dim(2551, 0.5)


def test_lengths_under_a_random_projection_follow_chi_square():
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=300), 16
    squared = [((rng.normal(size=(d, 300)) / np.sqrt(d) @ x) ** 2).sum() / (x @ x) for _ in range(2000)]
    low, middle, high = distortion_quantiles(d, [0.05, 0.5, 0.95])
    assert np.mean(np.array(squared) < low) == pytest.approx(0.05, abs=0.02)
    assert np.mean(np.array(squared) < high) == pytest.approx(0.95, abs=0.02)
    assert low < middle < high
    assert kstest(np.array(squared) * d, "chi2", args=(d,)).pvalue > 0.01


def test_cosine_error_is_what_a_projection_does():
    rng = np.random.default_rng(1)
    u = np.eye(200)[0]
    for rho in (0.0, 0.6):
        v = rho * u + np.sqrt(1 - rho**2) * np.eye(200)[1]
        R = rng.normal(size=(3000, 64, 2))  # only the two coordinates that u and v have
        a, b = R @ u[:2], R @ v[:2]
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        assert cosines.std() == pytest.approx(cosine_error(64, rho), rel=0.06)


def test_pair_distortion_is_direct():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 12))
    X[7] = X[3]  # no distance to keep
    Y = X[:, :5] * 2
    direct = [
        ((Y[i] - Y[j]) ** 2).sum() / ((X[i] - X[j]) ** 2).sum()
        for i in range(30)
        for j in range(i + 1, 30)
        if (i, j) != (3, 7)
    ]
    np.testing.assert_allclose(pair_distortion(X, Y), direct)
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    np.testing.assert_allclose(pair_distortion(X, X @ rotation), 1.0)


def test_drawn_pairs_are_pairs_and_depend_on_the_seed():
    X = np.random.default_rng(3).normal(size=(400, 6))
    a, b = (pair_distortion(X, X[:, :3], pairs=500, seed=seed) for seed in (0, 0))
    np.testing.assert_array_equal(a, b)
    assert len(a) == 500 and not np.array_equal(a, pair_distortion(X, X[:, :3], pairs=500, seed=1))
    assert a.mean() == pytest.approx(pair_distortion(X, X[:, :3]).mean(), abs=0.05)


def test_unusable_input_is_named():
    X = np.eye(3)
    for call, words in (
        (lambda: jl_dim(1, 0.1), "n is 1"),
        (lambda: jl_dim(10, 1.0), "eps is 1.0"),
        (lambda: jl_dim(10, 0.1, failure=0.0), "failure is 0.0"),
        (lambda: pair_distortion(X, X[:2]), "3 rows, Y has 2"),
        (lambda: pair_distortion(np.ones((4, 2)), np.ones((4, 2))), "all rows of X are equal"),
        (lambda: distortion_quantiles(4, [1.5]), "probabilities"),
        (lambda: cosine_error(4, 2.0), "cosine is 2.0"),
    ):
        with pytest.raises(InputError, match=words):
            call()
