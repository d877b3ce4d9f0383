import numpy as np
import pytest
from sklearn.datasets import make_swiss_roll

from repro.theory import effective_rank, mle_dimension, participation_ratio, two_nn
from repro.types import InputError


def sheet(dim, n=4000, seed=0):
    """Gaussian points of `dim` dimensions, turned into 50."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0][:, :dim]
    return rng.normal(size=(n, dim)) @ basis.T


@pytest.mark.parametrize("dim", [2, 5])
def test_flat_sheets_have_their_dimension(dim):
    X = sheet(dim)
    assert two_nn(X) == pytest.approx(dim, rel=0.04)
    assert mle_dimension(X) == pytest.approx(dim, rel=0.04)
    assert participation_ratio(X) == pytest.approx(dim, rel=0.01)
    assert effective_rank(X) == pytest.approx(dim, rel=0.01)


def test_neighbours_underestimate_twenty_dimensions():
    X = sheet(20)
    assert 15.5 < two_nn(X) < 18 and 15.5 < mle_dimension(X) < 18
    assert participation_ratio(X) == pytest.approx(20, rel=0.01)


def test_cubes_spheres_and_swiss_rolls():
    rng = np.random.default_rng(0)
    cube = rng.uniform(size=(3000, 3))
    assert two_nn(cube) == pytest.approx(3, rel=0.06)
    ball = rng.normal(size=(3000, 3))
    surface = ball / np.linalg.norm(ball, axis=1, keepdims=True)
    assert two_nn(surface) == pytest.approx(2, rel=0.06)
    assert mle_dimension(surface) == pytest.approx(2, rel=0.06)
    assert participation_ratio(surface) == pytest.approx(3, rel=0.02)  # the space that holds it
    roll = make_swiss_roll(3000, random_state=0)[0]
    assert two_nn(roll) == pytest.approx(2, rel=0.06)
    assert participation_ratio(roll) > 2.5


def test_scale_rotation_and_repetition_change_nothing():
    X = sheet(3, n=600)
    turned = 7.0 * np.concatenate([X, X[:50]]) @ np.linalg.qr(np.random.default_rng(5).normal(size=(50, 50)))[0]
    assert two_nn(turned) == pytest.approx(two_nn(X), rel=1e-6)
    assert mle_dimension(turned) == pytest.approx(mle_dimension(X), rel=1e-6)
    assert effective_rank(7.0 * X) == pytest.approx(effective_rank(X))


def test_few_points_by_hand():
    """The unbiased estimate has one ratio less above the line, and the censored ones count as the last one kept."""
    X = np.array([[0.0], [1.0], [3.0], [10.0]])  # ratios 3, 2, 3/2 and 9/7
    assert two_nn(X, discard=0.25) == pytest.approx(2 / (np.log(9 / 7) + np.log(1.5) + 2 * np.log(2)))
    assert two_nn(X, discard=0.0) == pytest.approx(3 / (np.log(9 / 7) + np.log(1.5) + np.log(2) + np.log(3)))


def test_effective_rank_of_known_singular_values():
    columns = np.linalg.qr(np.c_[np.ones(20), np.random.default_rng(0).normal(size=(20, 2))])[0][:, 1:]
    share = np.array([0.75, 0.25])
    assert effective_rank(columns * share + 5) == pytest.approx(np.exp(-(share * np.log(share)).sum()))
    assert participation_ratio(columns * share + 5) == pytest.approx(1 / (0.9**2 + 0.1**2))


def test_spectra_of_wide_and_of_tall_matrices_agree():
    X = np.random.default_rng(1).normal(size=(40, 90))
    padded = np.concatenate([X, np.repeat(X.mean(0, keepdims=True), 60, axis=0)])  # adds no variance, makes it tall
    assert participation_ratio(padded) == pytest.approx(participation_ratio(X))
    assert effective_rank(padded) == pytest.approx(effective_rank(X))
    assert participation_ratio(X) == pytest.approx(
        np.sum(np.linalg.eigvalsh(np.cov(X.T))) ** 2 / np.sum(np.linalg.eigvalsh(np.cov(X.T)) ** 2)
    )


def test_unusable_input_is_named():
    X = sheet(2, n=20)
    for call, words in (
        (lambda: two_nn(X[:2]), "2 distinct rows"),
        (lambda: two_nn(np.repeat(X[:2], 10, axis=0)), "2 distinct rows"),
        (lambda: mle_dimension(X, k=20), "20 distinct rows: 20 neighbours need at least 21"),
        (lambda: mle_dimension(X, k=1), "k is 1"),
        (lambda: two_nn(X, discard=1.0), "discard is 1.0"),
        (lambda: participation_ratio(np.ones((5, 3))), "all rows of X are equal"),
        (lambda: effective_rank(np.full((5, 3), np.nan)), "NaN or infinite"),
        (lambda: two_nn(np.stack(np.meshgrid(*[np.arange(4.0)] * 2), -1).reshape(-1, 2)), "a lattice"),
    ):
        with pytest.raises(InputError, match=words):
            call()
