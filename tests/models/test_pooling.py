import pytest
import torch

from repro.models import pooling
from repro.types import InputError


@pytest.fixture
def states():
    return torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))


def mask_of(*lengths, width, left=False):
    rows = [[1] * n + [0] * (width - n) for n in lengths]
    return torch.tensor([row[::-1] if left else row for row in rows])


@pytest.mark.parametrize("name", list(pooling.POOLINGS))
def test_padding_that_is_masked_changes_nothing(name, states):
    mask = mask_of(5, 3, 1, width=5)
    wider = torch.cat([states, torch.full((3, 4, 4), 1e3)], dim=1)
    wide_mask = torch.cat([mask, torch.zeros(3, 4, dtype=mask.dtype)], dim=1)
    torch.testing.assert_close(
        pooling.pool(wider, wide_mask, name), pooling.pool(states, mask, name), rtol=0, atol=1e-5
    )


def test_one_token_leaves_nothing_to_choose(states):
    one, mask = states[:, :1], torch.ones(3, 1, dtype=torch.int64)
    for name in pooling.POOLINGS:
        torch.testing.assert_close(pooling.pool(one, mask, name), one[:, 0])


def test_each_reads_what_it_says(states):
    mask = mask_of(5, 3, 1, width=5)
    torch.testing.assert_close(pooling.pool(states, mask, "cls"), states[:, 0])
    expected = torch.stack([states[0].mean(0), states[1, :3].mean(0), states[2, 0]])
    torch.testing.assert_close(pooling.pool(states, mask, "mean"), expected)
    torch.testing.assert_close(pooling.pool(states, mask, "last"), states[[0, 1, 2], [4, 2, 0]])


def test_last_finds_the_last_token_under_left_padding(states):
    mask = mask_of(5, 3, 1, width=5, left=True)
    assert mask[2].tolist() == [0, 0, 0, 0, 1]
    torch.testing.assert_close(pooling.pool(states, mask, "last"), states[:, 4])


@pytest.mark.parametrize("name", list(pooling.POOLINGS))
def test_a_text_without_tokens_is_refused_by_its_number(name, states):
    with pytest.raises(InputError, match="text 1 of the batch has no unmasked token"):
        pooling.pool(states, mask_of(5, 0, 1, width=5), name)


def test_an_unknown_pooling_lists_the_known(states):
    with pytest.raises(InputError, match="unknown pooling 'max': choose one of cls, mean, last"):
        pooling.pool(states, mask_of(5, 5, 5, width=5), "max")
