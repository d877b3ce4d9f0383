import numpy as np
import pytest

from repro.types import InputError
from rivals.flow import fit_whitening


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + 3).astype(np.float32)


def test_whitened_covariance_is_the_identity(X):
    Z = fit_whitening(X)(X)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(6), atol=1e-5)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    assert Z.dtype == np.float32
    spread = 1 / np.linalg.norm(fit_whitening(X).matrix, axis=0)  # √λ of each direction
    assert (np.diff(spread) < 0).all()


def test_distances_are_mahalanobis_and_survive_any_linear_map(X):
    turned = X @ np.random.default_rng(1).normal(size=(6, 6))
    A, B = fit_whitening(X)(X), fit_whitening(turned)(turned)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-3)


def test_directions_that_do_not_vary_are_left_out(X):
    constant = np.column_stack([X, np.full(len(X), 2.0), X[:, 0] - X[:, 1]])
    assert fit_whitening(constant).dim == 6


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((1, 3)), "one row"),
        (np.ones((5, 3)), "all 5 rows of X are equal"),
        (np.array([[1.0, np.nan], [1, 2]]), "first in row 0"),
    ],
)
def test_what_cannot_be_whitened_is_refused(bad, message):
    with pytest.raises(InputError, match=message):
        fit_whitening(bad)


def test_other_widths_are_refused(X):
    with pytest.raises(InputError, match=r"expected \(n, 6\)"):
        fit_whitening(X)(X[:, :5])
