"""One sweep of tiny encoders for all tests of Wang et al.'s experiments."""

from dataclasses import replace

import pytest

from repro import data
from repro.runs.lines import Task
from repro.runs.sweep import train_sweep, train_two_step
from repro.settings import StepTwoConfig


@pytest.fixture(scope="session")
def sets():
    return {
        split: data.load("stsb", split=split, source="microworld", limit=60)
        for split in ("dev", "test")
    }


@pytest.fixture(scope="session")
def tasks(sets):
    return {"stsb": Task("stsb", {"test": sets["test"]})}


@pytest.fixture(scope="session")
def config(sweep_config):
    """Mean pooling: a random network's first token says the same of every text, and ranks would
    hang on rounding.
    """
    return replace(sweep_config, pooling="mean")


@pytest.fixture(scope="session")
def step_two_config():
    return StepTwoConfig(learning_rates=(1e-3, 3e-2), batch_size=16, check_every=2)


@pytest.fixture(scope="session")
def sweep(config, store, sets):
    return train_sweep(config, (32, 8, 4), list(sets.values()), store)


@pytest.fixture(scope="session")
def trained(sweep, sets, step_two_config, store):
    return train_two_step(sweep, sets["dev"], step_two_config, store)
