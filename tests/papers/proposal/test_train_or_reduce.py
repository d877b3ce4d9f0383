"""Two ways to a short embedding: the proposal's projection, comparisons on shared items, a choice
by dev alone.
"""

from itertools import product

import numpy as np
import pytest

from repro import data
from repro.config import StepTwoConfig
from repro.data.samples import training_sentences
from repro.methods import BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.reducers import make_reducer
from repro.runs.scorers import spearman_of
from shown_code import on_page

FULL, DIMS = 32, [4, 8]
PAGE = on_page("proposal_train_or_reduce", "train_projections", "lines_of")
METHODS = ["pca", "grp", "truncate"]


@pytest.fixture(scope="module")
def pairs():
    splits = data.load_splits("stsb", source="microworld")
    return {split: data.take(splits[split], 60) for split in ("dev", "test")}


@pytest.fixture(scope="module")
def world(sweep_config, pairs, store):
    """Sweep, sentences to fit on, and lines of one seed."""
    sweep = PAGE["train_projections"](sweep_config, DIMS, pairs["dev"], [pairs["test"]], store)
    fit = training_sentences(sweep.config, store)
    step_two = StepTwoConfig(learning_rates=(1e-3,), batch_size=16, check_every=2)
    lines = list(PAGE["lines_of"](sweep, pairs["dev"], fit, store, METHODS, step_two))
    return sweep, fit, lines


def at(lines, method, dim):
    (found,) = [line for line in lines if (line.method, line.dim) == (method, dim)]
    return found


def test_the_projection_is_linear_without_bias_and_of_unit_length(
    world,
    pairs,
    sweep_config,
    store,
):
    sweep, fit, _ = world
    again = PAGE["train_projections"](sweep_config, DIMS, pairs["dev"], [pairs["test"]], store)
    assert again.hits == 3 and sweep.hits == 0
    assert list(sweep.cells) == [FULL, 8, 4], "the full size first"
    for dim, cell in sweep.cells.items():
        encoder = cell.encoder
        assert encoder.pooling == "mean" and encoder.pooler.linear.bias is None
        h, z = (encoder.encode(fit[:5], readout=readout) for readout in ("encoder", "pooler"))
        assert z.shape == (5, dim) and np.linalg.norm(z, axis=1) == pytest.approx(
            np.ones(5),
            abs=1e-5,
        )
        W = encoder.pooler.linear.weight.detach().numpy()
        linear = h @ W.T
        assert z == pytest.approx(linear / np.linalg.norm(linear, axis=1, keepdims=True), abs=1e-5)


def test_reductions_are_those_of_the_encoder_at_full_size(world, pairs):
    sweep, fit, lines = world
    encoder, texts = sweep.cells[FULL].encoder, pairs["test"].texts1[:6]
    distinct = list(dict.fromkeys(fit))
    reducer = make_reducer("pca", 8).fit(encoder.encode(distinct, readout="pooler"))
    expected = reducer.transform(encoder.encode(texts, readout="pooler"))
    found = at(lines, "PCA", 4).table[texts]
    assert np.abs(found) == pytest.approx(np.abs(expected[:, :4]), abs=1e-4)
    assert {line.setting for line in lines if line.method == "PCA"} == {
        f"fitted on {len(distinct)} sentences"
    }


def test_dev_alone_chooses_the_reduction(world, pairs):
    *_, lines = world
    for dim in DIMS:
        scores = {
            name: spearman_of(at(lines, name, dim).table, pairs["dev"])
            for name in ("PCA", "GRP", "Truncate")
        }
        best = at(lines, BEST_REDUCED, dim)
        assert best.setting == f"{max(scores, key=scores.get)}, chosen on stsb dev"
        assert spearman_of(best.table, pairs["dev"]) == max(scores.values())
    ways = {TRAINED_PROJECTION, TWO_STEP_PROJECTION, BEST_REDUCED, "PCA", "GRP", "Truncate"}
    assert {(line.method, line.dim) for line in lines} == {(FULL_SIZE, FULL), *product(ways, DIMS)}
