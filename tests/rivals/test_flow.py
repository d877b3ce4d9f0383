import math

import numpy as np
import pytest
import torch

from repro.types import InputError
from rivals.flow import ActNorm, Flow, FlowConfig, fit_flow, fit_whitening, negative_log_likelihood


def shaken(dim, **sizes):
    """A flow whose every parameter has moved away from its start."""
    flow = Flow(dim, depth=3, hidden_dim=16, **sizes)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return flow


@pytest.fixture
def x():
    return torch.randn(50, 6, generator=torch.Generator().manual_seed(0)) * 2 + 1


@pytest.mark.parametrize("dim", [2, 6, 7])
def test_the_inverse_brings_every_x_back(dim):
    x = torch.randn(40, dim, generator=torch.Generator().manual_seed(2))
    flow = shaken(dim)
    z, _ = flow(x)
    assert (z - x).abs().max() > 0.1
    torch.testing.assert_close(flow.inverse(z), x, rtol=0, atol=1e-4)


def test_the_log_determinant_is_that_of_the_jacobian(x):
    flow = shaken(6)
    _, log_det = flow(x[:4])
    for row, value in zip(x[:4], log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None])[0][0], row)
        torch.testing.assert_close(value, torch.linalg.slogdet(jacobian).logabsdet, rtol=0, atol=1e-4)


def test_an_untrained_flow_is_a_rotation_and_its_likelihood_that_of_a_normal(x):
    flow = Flow(6, depth=8)
    z, log_det = flow(x)
    torch.testing.assert_close(z.norm(dim=-1), x.norm(dim=-1), rtol=0, atol=1e-4)
    assert log_det.abs().max() < 1e-4
    expected = 3 * math.log(2 * math.pi) + x.square().sum(-1).mean() / 2
    torch.testing.assert_close(negative_log_likelihood(flow, x), expected, rtol=0, atol=1e-4)


def test_actnorm_starts_by_standardising_and_leaves_constants_finite(x):
    step = ActNorm(7)
    batch = torch.cat([x, torch.full((len(x), 1), 4.0)], dim=1)
    step.start_from(batch)
    y, _ = step(batch)
    torch.testing.assert_close(y.mean(0), torch.zeros(7), rtol=0, atol=1e-5)
    torch.testing.assert_close(y[:, :6].std(0, correction=0), torch.ones(6), rtol=0, atol=1e-4)
    assert (y[:, 6] == 0).all()


@pytest.fixture(scope="module")
def bent():
    """A curved cloud, which no linear map makes normal."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1024, 2))
    return np.column_stack([a, a**2 + 0.1 * rng.normal(size=(1024, 2))]).astype(np.float32)


def test_fitting_beats_the_best_gaussian(bent):
    flow, history = fit_flow(bent, FlowConfig(depth=4, hidden_dim=32, epochs=25), progress=False)
    with torch.no_grad():
        found = float(negative_log_likelihood(flow, torch.from_numpy(bent)))
    _, logdet = np.linalg.slogdet(2 * np.pi * np.e * np.cov(bent.T))
    assert found < logdet / 2 - 0.5  # a Gaussian's entropy is the best likelihood a linear map can reach
    assert len(history.losses) == 25 * 8
    Z = flow.transform(bent)
    assert Z.shape == bent.shape and np.abs(np.cov(Z.T) - np.eye(4)).max() < 0.3


def test_the_same_seed_gives_the_same_bytes(bent):
    small = FlowConfig(depth=2, hidden_dim=8, epochs=1)
    first, second = (fit_flow(bent, small, progress=False)[0].transform(bent) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_what_cannot_be_a_flow_is_refused(bent):
    with pytest.raises(InputError, match="at least 2"):
        Flow(1)
    with pytest.raises(InputError, match="do not fill one batch of 128"):
        fit_flow(bent[:100], FlowConfig(), progress=False)
    with pytest.raises(InputError, match=r"expected \(n, 4\)"):
        Flow(4, depth=1).transform(bent[:, :3])
    with pytest.raises(InputError, match="depth is 0"):
        FlowConfig(depth=0)
    with pytest.raises(InputError, match="learning_rate is 0"):
        FlowConfig(learning_rate=0)


# whitening


@pytest.fixture
def cloud():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + 3).astype(np.float32)


def test_whitened_covariance_is_the_identity(cloud):
    Z = fit_whitening(cloud)(cloud)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(6), atol=1e-5)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    assert Z.dtype == np.float32
    spread = 1 / np.linalg.norm(fit_whitening(cloud).matrix, axis=0)  # √λ of each direction
    assert (np.diff(spread) < 0).all()


def test_distances_are_mahalanobis_and_survive_any_linear_map(cloud):
    turned = cloud @ np.random.default_rng(1).normal(size=(6, 6))
    A, B = fit_whitening(cloud)(cloud), fit_whitening(turned)(turned)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-3)


def test_directions_that_do_not_vary_are_left_out(cloud):
    constant = np.column_stack([cloud, np.full(len(cloud), 2.0), cloud[:, 0] - cloud[:, 1]])
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


def test_other_widths_are_refused(cloud):
    with pytest.raises(InputError, match=r"expected \(n, 6\)"):
        fit_whitening(cloud)(cloud[:, :5])
