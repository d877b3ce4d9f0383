import numpy as np
import pytest

from repro.models.packing import pack_by_tokens


@pytest.mark.parametrize("budget", [1, 16, 40, 200, 10_000])
def test_every_row_once_and_no_batch_over_budget(budget):
    lengths = np.random.default_rng(0).integers(1, 30, 100)
    batches = list(pack_by_tokens(lengths, budget))
    assert sorted(np.concatenate(batches).tolist()) == list(range(100))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget
        assert lengths[batch].max() == lengths[batch[0]]


def test_a_batch_half_full_ends_where_the_length_changes():
    lengths = [4] * 6 + [3] * 6
    assert [len(batch) for batch in pack_by_tokens(lengths, 40)] == [6, 6]
    assert [len(batch) for batch in pack_by_tokens(lengths, 100)] == [12]  # six of 25: too few to travel alone


def test_nothing_to_pack():
    assert list(pack_by_tokens([], 10)) == []
