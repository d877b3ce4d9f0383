"""What a contrastive loss can reach: known values, Monte Carlo, and bounds that every loss keeps."""

import numpy as np
import pytest
import torch
from scipy.special import gammaln

from repro.losses import uniformity
from repro.theory import expected_info_nce, jensen_bound, log_moment, simplex_bound, uniformity_limit


def sphere(rng, n, dim):
    X = rng.normal(size=(n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_log_moment_has_known_values():
    for dim, value in ((8, 12.243149), (16, 8.753322), (64, 2.992611), (256, 0.778903), (768, 0.260329)):
        assert log_moment(dim, 20.0) == pytest.approx(value, abs=1e-6)
    assert log_moment(1, 3.0) == pytest.approx(np.log(np.cosh(3.0)))
    assert log_moment(3, 2.0) == pytest.approx(np.log(np.sinh(2.0) / 2.0))  # uniform on −1 … 1
    assert log_moment(5, 0.0) == 0.0
    # where the series overflows
    assert log_moment(3, 1000.0) == pytest.approx(1000 - np.log(2000), abs=1e-9)  # ln(sinh t / t)


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("t", [708.0, 713.0, 1500.0, 1e4])
def test_log_moment_of_few_dimensions_is_finite_however_large_t(dim, t):
    # Laplace: the density of the cosine near 1 gives Γ(m/2)/(2√π)·(2/t)^((m−1)/2)·e^t to a relative 1/t
    laplace = t + gammaln(dim / 2) - np.log(2 * np.sqrt(np.pi)) + (dim - 1) / 2 * np.log(2 / t)
    assert log_moment(dim, t) == pytest.approx(laplace, abs=1 / t)


def test_series_and_bessel_form_meet_where_the_series_overflows():
    # the logarithm is nearly linear in t, so its steps agree across the change of method
    steps = np.diff([log_moment(16, value) for value in (690.0, 700.0, 710.0, 720.0, 730.0)])
    assert np.all(np.abs(np.diff(steps)) < 0.01) and np.isfinite(log_moment(64, 5000.0))


def test_finite_batch_has_known_values():
    for dim, value in ((8, 2.5496e-2), (16, 8.1778e-4), (64, 2.5890e-6), (768, 1.6847e-7)):
        assert expected_info_nce(dim, 0.05, 64) == pytest.approx(value, rel=2e-4)
    assert expected_info_nce(16, 0.05, 64, positive_cosine=0.8) == pytest.approx(3.8272e-2, rel=2e-4)


def test_the_limit():
    assert expected_info_nce(3, 0.5) == pytest.approx(-1.40478, abs=1e-5)
    gaps = [expected_info_nce(3, 0.5, b) - np.log(b - 1) - expected_info_nce(3, 0.5) for b in (10, 100, 1000, 100_000)]
    assert gaps == sorted(gaps, reverse=True) and gaps[-1] < 1e-4
    m, t = 200, 0.5  # many dimensions
    expansion = -1 / t + 1 / (2 * m * t**2) - 1 / (4 * m**2 * (m + 2) * t**4)
    assert expected_info_nce(m, t) == pytest.approx(expansion, abs=1e-9)
    near, far = (expected_info_nce(16, 0.1, positive_cosine=cosine) for cosine in (1.0, 0.3))
    assert far - near == pytest.approx(0.7 / 0.1)  # what positives lack
    assert expected_info_nce(128, 0.05) < -np.log(1e8)  # practical batches are far from it


def test_bounds_enclose_the_expectation():
    assert simplex_bound(0.05, 64) == pytest.approx(9.4532e-8, rel=1e-4)
    for dim in (4, 32, 256):
        assert simplex_bound(0.1, 64) <= expected_info_nce(dim, 0.1, 64) <= jensen_bound(dim, 0.1, 64)
    assert expected_info_nce(256, 0.05, 64) == pytest.approx(jensen_bound(256, 0.05, 64), rel=0.01)


@pytest.mark.parametrize(("dim", "value"), [(2, -1.57503), (3, -2.07978), (16, -3.51304), (128, -3.93753)])
def test_best_uniformity(dim, value):
    assert uniformity_limit(dim) == pytest.approx(value, abs=1e-5)
    z = torch.from_numpy(sphere(np.random.default_rng(0), 3000, dim))
    assert float(uniformity(z)) == pytest.approx(value, abs=0.01)
