"""The networks of Figure 3: what is planned for each, with which recipe and dims, before anything is trained."""

import pytest

from repro.config import profile
from repro.papers.wang.sweeps import parse_network, plan_networks
from repro.types import InputError


@pytest.fixture(scope="module")
def embedded():
    return profile("embedded", source="microworld")


@pytest.mark.parametrize("name", ["", ":2", "repro-tiny:", "repro-tiny:0", "repro-tiny:-1", "repro-tiny:two"])
def test_networks_are_a_name_with_or_without_blocks(name):
    assert parse_network("repro-tiny") == ("repro-tiny", None)
    assert parse_network("all-MiniLM-L6-v2:3") == ("all-MiniLM-L6-v2", 3)
    with pytest.raises(InputError, match="name:blocks"):
        parse_network(name)


def test_networks_are_planned_with_their_recipes(embedded):
    cut, whole = plan_networks(embedded, ["repro-tiny:1", "repro-tiny:2"])
    assert (cut.name, cut.blocks, cut.config.layers) == ("repro-tiny:1", 1, 1)
    assert (whole.name, whole.blocks) == ("repro-tiny", 2)
    assert whole.config == embedded.train  # so that the cells of the other pages are found
    assert whole.dims == tuple(sorted(embedded.candidates))
    (longer,) = plan_networks(embedded, ["repro-tiny"], [128, 4], sentences=64, seed=3)
    assert (longer.dims, longer.config.sentences, longer.config.seed) == ((4, 128), 64, 3)


def test_a_trained_encoder_keeps_its_pooling_and_is_trained_briefly_in_the_book(embedded):
    (short,) = plan_networks(embedded, ["all-MiniLM-L6-v2:3"])
    (long,) = plan_networks(profile("gpu", source="microworld"), ["all-MiniLM-L6-v2:3"])
    assert short.config.pooling == long.config.pooling == "mean"
    assert short.config.sentences < 1_000 < long.config.sentences


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["repro-tiny:3"], "number of blocks of repro-tiny is 3: expected 1 to 2"),
        (["repro-tiny", "repro-tiny:2"], "different"),
    ],
)
def test_plans_that_cannot_be_are_refused_before_training(embedded, names, message):
    with pytest.raises(InputError, match=message):
        plan_networks(embedded, names)


@pytest.mark.parametrize(
    ("dims", "reference", "trained"), [([8], None, (8, 128)), ([64, 8], 32, (8, 32, 64)), ([64, 8], "best", (8, 64))]
)
def test_the_dim_that_losses_are_measured_from_joins_those_asked_for(embedded, dims, reference, trained):
    (planned,) = plan_networks(embedded, ["repro-tiny"], dims, reference=reference)
    assert planned.dims == trained
