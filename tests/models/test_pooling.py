"""From states to one embedding: what is masked does not count, and the pooler is Wang's layer."""

import numpy as np
import pytest
import torch

from repro.models import Pooler, pooling
from repro.types import InputError

HIDDEN = 16

STATES = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))


def mask_of(*lengths, width):
    return torch.tensor([[1] * n + [0] * (width - n) for n in lengths])


@pytest.mark.parametrize("name", list(pooling.POOLINGS))
def test_padding_that_is_masked_changes_nothing(name):
    mask = mask_of(5, 3, 1, width=5)
    wider = torch.cat([STATES, torch.full((3, 4, 4), 1e3)], dim=1)
    wide_mask = torch.cat([mask, torch.zeros(3, 4, dtype=mask.dtype)], dim=1)
    expected = pooling.pool(STATES, mask, name)
    torch.testing.assert_close(pooling.pool(wider, wide_mask, name), expected, rtol=0, atol=1e-5)
    # Nothing to choose
    one = pooling.pool(STATES[:, :1], torch.ones(3, 1, dtype=torch.int64), name)
    torch.testing.assert_close(one, STATES[:, 0])
    with pytest.raises(InputError, match="text 1 of the batch has no unmasked token"):
        pooling.pool(STATES, mask_of(5, 0, 1, width=5), name)


def test_each_reads_what_it_says():
    mask = mask_of(5, 3, 1, width=5)
    torch.testing.assert_close(pooling.pool(STATES, mask, "cls"), STATES[:, 0])
    expected = torch.stack([STATES[0].mean(0), STATES[1, :3].mean(0), STATES[2, 0]])
    torch.testing.assert_close(pooling.pool(STATES, mask, "mean"), expected)
    torch.testing.assert_close(pooling.pool(STATES, mask, "last"), STATES[[0, 1, 2], [4, 2, 0]])
    weighted = (STATES[1, 0] + 2 * STATES[1, 1] + 3 * STATES[1, 2]) / 6
    torch.testing.assert_close(pooling.pool(STATES, mask, "weightedmean")[1], weighted)
    torch.testing.assert_close(pooling.pool(STATES, mask, "max")[1], STATES[1, :3].amax(0))
    rooted = pooling.pool(STATES, mask, "mean_sqrt_len_tokens")
    torch.testing.assert_close(rooted, expected * torch.tensor([[5.0], [3.0], [1.0]]).sqrt())
    both = torch.cat([expected, STATES[:, 0]], dim=1)
    torch.testing.assert_close(pooling.pool(STATES, mask, "mean+cls"), both)
    # Padded on the left
    torch.testing.assert_close(pooling.pool(STATES, mask.flip(1), "last"), STATES[:, 4])


# The pooler


def test_the_formula():
    h = np.random.default_rng(0).standard_normal((40, HIDDEN)).astype(np.float32)
    pooler = Pooler(HIDDEN, 6).initialise(3)
    with torch.no_grad():
        pooler.linear.bias.normal_()
    weight, bias = (p.detach().numpy() for p in (pooler.linear.weight, pooler.linear.bias))
    np.testing.assert_allclose(pooler.project(h), np.tanh(h @ weight.T + bias), atol=1e-6)
    unit = Pooler(HIDDEN, 6, activation="identity", normalize=True, bias=False).initialise(0)
    np.testing.assert_allclose(np.linalg.norm(unit.project(h), axis=1), 1, atol=1e-6)
    assert not unit.project(np.zeros((1, HIDDEN), np.float32)).any()


def test_initial_weights_are_wangs_belong_to_seed_and_dim_and_leave_the_global_stream_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    sweep = {dim: Pooler(256, dim) for dim in (512, 16, 8)}
    torch.manual_seed(5)
    weights = {dim: pooler.initialise(0).linear.weight for dim, pooler in sweep.items()}
    assert torch.equal(torch.rand(3), expected)
    assert weights[512].mean().item() == pytest.approx(0, abs=2e-4)
    assert (
        weights[512].std().item() == pytest.approx(0.02, rel=0.01)
        and not sweep[512].linear.bias.any()
    )
    assert torch.equal(weights[8], Pooler(256, 8).initialise(0).linear.weight)
    assert not torch.equal(Pooler(256, 8).initialise(1).linear.weight, weights[8])
    assert not torch.equal(weights[16][:8], weights[8])
