import math

import numpy as np
import pytest
import torch

from repro.types import InputError
from rivals.flow import (
    ActNorm,
    Flow,
    FlowConfig,
    fit_flow,
    fit_whitening,
    negative_log_likelihood,
    whitened,
)

X = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)) * 2 + 1


@pytest.mark.parametrize("dim", [2, 6, 7])
def test_the_log_determinant_is_that_of_the_jacobian(dim):
    flow, generator = (
        Flow(dim, FlowConfig(depth=3, hidden_dim=16)),
        torch.Generator().manual_seed(1),
    )
    with torch.no_grad():  # Every parameter moves away from its start
        for parameter in flow.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    x = torch.randn(4, dim, generator=generator)
    z, log_det = flow(x)
    assert (z - x).abs().max() > 0.1
    for row, value in zip(x, log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None])[0][0], row)
        torch.testing.assert_close(
            value,
            torch.linalg.slogdet(jacobian).logabsdet,
            rtol=0,
            atol=1e-4,
        )


def test_an_untrained_flow_is_a_rotation_and_its_likelihood_that_of_a_normal():
    flow = Flow(6, FlowConfig(depth=8))
    z, log_det = flow(X)
    torch.testing.assert_close(z.norm(dim=-1), X.norm(dim=-1), rtol=0, atol=1e-4)
    assert log_det.abs().max() < 1e-4
    expected = 3 * math.log(2 * math.pi) + X.square().sum(-1).mean() / 2
    torch.testing.assert_close(negative_log_likelihood(flow, X), expected, rtol=0, atol=1e-4)


def test_actnorm_starts_by_standardising_and_leaves_constants_finite():
    step = ActNorm(7)
    batch = torch.cat([X, torch.full((len(X), 1), 4.0)], dim=1)
    step.start_from(batch)
    y, _ = step(batch)
    torch.testing.assert_close(y.mean(0), torch.zeros(7), rtol=0, atol=1e-5)
    torch.testing.assert_close(y[:, :6].std(0, correction=0), torch.ones(6), rtol=0, atol=1e-4)
    assert (y[:, 6] == 0).all()


def test_fitting_beats_the_best_gaussian_with_the_same_bytes_each_time():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1024, 2))  # A curved cloud, which no linear map makes normal
    bent = np.column_stack([a, a**2 + 0.1 * rng.normal(size=(1024, 2))]).astype(np.float32)
    flow, history = fit_flow(bent, FlowConfig(depth=4, hidden_dim=32, epochs=15))
    with torch.no_grad():
        found = float(negative_log_likelihood(flow, torch.from_numpy(bent)))
    _, logdet = np.linalg.slogdet(2 * np.pi * np.e * np.cov(bent.T))
    # A Gaussian's entropy is the best likelihood a linear map can reach
    assert found < logdet / 2 - 0.5
    assert len(history.losses) == 15 * 8
    first, second = (
        fit_flow(bent, FlowConfig(depth=2, hidden_dim=8, epochs=1))[0].transform(bent)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    with pytest.raises(InputError, match="do not fill one batch of 128"):
        fit_flow(bent[:100], FlowConfig())


def test_whitened_covariance_is_the_identity():
    rng = np.random.default_rng(0)
    cloud = (rng.normal(size=(400, 6)) @ rng.normal(size=(6, 6)) + 3).astype(np.float32)
    fit = fit_whitening(cloud)
    Z = whitened(cloud, **fit)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(6), atol=1e-5)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    assert Z.dtype == np.float32
    assert (np.diff(1 / np.linalg.norm(fit["matrix"], axis=0)) < 0).all()  # √λ of each direction
    constant = np.column_stack([cloud, np.full(len(cloud), 2.0), cloud[:, 0] - cloud[:, 1]])
    assert fit_whitening(constant)["matrix"].shape == (8, 6), (
        "directions that do not vary are left out"
    )
    with pytest.raises(InputError, match="all 5 rows of X are equal"):
        fit_whitening(np.ones((5, 3)))
