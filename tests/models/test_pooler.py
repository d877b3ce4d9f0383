import numpy as np
import pytest
import torch

from repro.models import Pooler, SentenceEncoder
from repro.types import InputError

HIDDEN = 16


@pytest.fixture
def h():
    return np.random.default_rng(0).standard_normal((40, HIDDEN)).astype(np.float32)


def cosines(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X @ X.T


def test_an_orthonormal_identity_keeps_every_cosine(h):
    pooler = Pooler(HIDDEN, HIDDEN, activation="identity").initialise(0)
    with torch.no_grad():
        pooler.linear.weight.copy_(torch.linalg.qr(torch.randn(HIDDEN, HIDDEN))[0])
    np.testing.assert_allclose(cosines(pooler.project(h)), cosines(h), atol=1e-5)


@pytest.mark.parametrize("dim", [1, 5, HIDDEN, 3 * HIDDEN])
def test_the_linear_rank_is_bounded_by_both_sizes(dim, h):
    z = Pooler(HIDDEN, dim, activation="identity").initialise(0).project(h).astype(np.float64)
    assert np.linalg.matrix_rank(z - z.mean(0), tol=1e-4) == min(dim, HIDDEN)


@pytest.mark.parametrize("dim", [1, 8, 2048])
def test_it_has_d_times_one_more_than_hidden_parameters(dim):
    assert sum(p.numel() for p in Pooler(HIDDEN, dim).parameters()) == dim * (HIDDEN + 1)
    assert sum(p.numel() for p in Pooler(HIDDEN, dim, bias=False).parameters()) == dim * HIDDEN


def test_the_formula(h):
    pooler = Pooler(HIDDEN, 6).initialise(3)
    with torch.no_grad():
        pooler.linear.bias.normal_()
    weight, bias = (p.detach().numpy() for p in (pooler.linear.weight, pooler.linear.bias))
    np.testing.assert_allclose(pooler.project(h), np.tanh(h @ weight.T + bias), atol=1e-6)


def test_normalised_rows_have_length_one_and_zero_stays_zero(h):
    pooler = Pooler(HIDDEN, 6, activation="identity", normalize=True, bias=False).initialise(0)
    np.testing.assert_allclose(np.linalg.norm(pooler.project(h), axis=1), 1, atol=1e-6)
    assert not pooler.project(np.zeros((1, HIDDEN), np.float32)).any()


def test_initial_weights_are_wangs():
    pooler = Pooler(256, 512).initialise(0)
    assert pooler.linear.weight.mean().item() == pytest.approx(0, abs=2e-4)
    assert pooler.linear.weight.std().item() == pytest.approx(0.02, rel=0.01)
    assert not pooler.linear.bias.any()


def test_weights_belong_to_seed_and_dim_and_to_nothing_else():
    alone = Pooler(HIDDEN, 8).initialise(0).linear.weight
    torch.manual_seed(99)
    sweep = {dim: Pooler(HIDDEN, dim).initialise(0).linear.weight for dim in (32, 16, 8)}
    assert torch.equal(sweep[8], alone)
    assert not torch.equal(Pooler(HIDDEN, 8).initialise(1).linear.weight, alone)
    assert not torch.equal(sweep[16][:8], alone)


def test_initialising_leaves_the_global_stream_alone():
    pooler = Pooler(HIDDEN, 4)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    pooler.initialise(0)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("dim", [0, -3, 2.0, True, "8"])
def test_dim_must_be_a_whole_number_above_zero(dim, tiny):
    with pytest.raises(InputError, match="dim is"):
        Pooler(HIDDEN, dim)
    with pytest.raises(InputError, match="dim is"):
        SentenceEncoder.load(tiny, dim=dim)


def test_an_unknown_activation_lists_the_known():
    with pytest.raises(InputError, match="unknown activation 'relu': choose one of tanh, identity"):
        Pooler(HIDDEN, 4, activation="relu")
