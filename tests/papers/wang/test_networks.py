"""The networks of Figure 3: what is planned for each, with which recipe and dims, before anything is trained."""

import pytest

from repro.config import profile
from repro.papers.wang.sweeps import plan_networks
from repro.types import InputError


@pytest.fixture(scope="module")
def embedded():
    return profile("embedded", source="microworld")


def test_networks_are_planned_with_their_recipes(embedded):
    planned = plan_networks(embedded, ["repro-tiny:1", "repro-tiny:2"])
    assert {name: config.layers for name, (config, _) in planned.items()} == {"repro-tiny:1": 1, "repro-tiny": None}
    # so that the cells of the other pages are found
    assert planned["repro-tiny"] == (embedded.train, tuple(sorted(embedded.candidates)))
    ((longer, _),) = plan_networks(embedded, ["repro-tiny"], sentences=64, seed=3).values()
    assert (longer.sentences, longer.seed) == (64, 3)
    ((config, dims),) = plan_networks(profile("gpu", source="microworld"), ["all-MiniLM-L6-v2:3"]).values()
    assert (config.pooling, config.layers, max(dims)) == ("mean", 3, 384), "a trained encoder keeps its pooling"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([""], "name:blocks"),
        (["repro-tiny:two"], "name:blocks"),
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
    ((_, planned),) = plan_networks(embedded, ["repro-tiny"], dims, reference=reference).values()
    assert planned == trained
