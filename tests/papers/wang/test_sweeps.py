"""What is planned for Figure 3, and the lines of Tables 3 and 4: what they are fitted on, which are
compared.
"""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from repro.config import profile
from repro.data.samples import training_sentences
from repro.methods import FULL, TRAINED_NARROW, TWO_STEP
from repro.papers.wang.sweeps import fit_sets_of, is_compared, suite_lines
from repro.runs.sweep import states_of
from repro.types import InputError
from shown_code import on_page

DIMS = (8, 4)


@pytest.fixture(scope="module")
def world(sweep, trained, store):
    fits = fit_sets_of(sweep, 32, (60, 90), store)
    return sweep, fits, list(suite_lines(sweep, trained, fits, DIMS, store, n_neighbors=8))


def test_the_lines_are_those_of_the_tables_and_two_step_training_is_compared_with_all(world):
    lines = world[2]
    found = [(line.method, line.dim, line.readout, line.setting) for line in lines]
    assert found[:2] == [(FULL, 32, "encoder", ""), (FULL, 32, "pooler", "")]
    for d in DIMS:
        for method in ("PCA", "Isomap", "LLE"):
            assert (method, d, "encoder", "fitted on 60 sentences") in found
        assert ("PCA", d, "encoder", "fitted on 90 sentences") in found
        assert {(TRAINED_NARROW, d, "pooler", ""), (TWO_STEP, d, "pooler", "")} <= set(found)
    assert len(found) == 2 + len(DIMS) * 6
    assert all(line.table.X.shape[1] == line.dim for line in lines)
    pairs = [
        (a.method, b.method)
        for a in lines
        for b in lines
        if a is not b and is_compared(a, b) and a.dim == 8
    ]
    rivals = [FULL, FULL, "PCA", "PCA", "Isomap", "LLE", TRAINED_NARROW]
    assert sorted(pairs) == sorted(
        [(TWO_STEP, rival) for rival in rivals] + [("PCA", "Isomap"), ("PCA", "LLE")]
    )


def test_pca_is_fitted_on_the_fit_set_alone(world):
    sweep, fits, lines = world
    line = next(
        line for line in lines if line.method == "PCA" and line.dim == 4 and "60" in line.setting
    )
    expected = PCA(4).fit(fits[60]).transform(sweep.embeddings(32).X)
    np.testing.assert_allclose(np.abs(line.table.X), np.abs(expected), atol=1e-4)
    # A smaller fit set lies within a larger one
    np.testing.assert_array_equal(fits[60], fits[90][:60])


def test_reducers_learn_from_the_first_training_sentences_where_the_paper_is_followed(sweep, store):
    fits = fit_sets_of(sweep, 32, (20, 60), store, first=True)
    texts = training_sentences(sweep.config, store)[:60]
    table = states_of(sweep.cells[32], texts, store)
    np.testing.assert_array_equal(fits[60], table[texts])
    np.testing.assert_array_equal(fits[20], table[texts[:20]])


# Figure 3


EMBEDDED = profile("embedded", source="microworld")
plan_networks = on_page("wang_figure3_loss_decomposition", "plan_networks")["plan_networks"]


def test_networks_are_planned_with_their_recipes():
    planned = plan_networks(EMBEDDED, ["repro-tiny:1", "repro-tiny:2"])
    assert {name: config.layers for name, (config, _) in planned.items()} == {
        "repro-tiny:1": 1,
        "repro-tiny": None,
    }
    # So that the cells of the other pages are found
    assert planned["repro-tiny"] == (EMBEDDED.train, tuple(sorted(EMBEDDED.candidates)))
    ((longer, _),) = plan_networks(EMBEDDED, ["repro-tiny"], sentences=64, seed=3).values()
    assert (longer.sentences, longer.seed) == (64, 3)
    ((config, dims),) = plan_networks(
        profile("gpu", source="microworld"),
        ["all-MiniLM-L6-v2:3"],
    ).values()
    assert (config.pooling, config.layers, max(dims)) == ("cls", 3, 384), "as in the tables"


def test_plans_that_cannot_be_are_refused_before_training():
    unlike = {
        "": "name:blocks",
        "repro-tiny:two": "name:blocks",
        "repro-tiny:3": "is 3: expected 1 to 2",
    }
    for names, message in (
        *(([name], said) for name, said in unlike.items()),
        (["repro-tiny"] * 2, "different"),
    ):
        with pytest.raises(InputError, match=message):
            plan_networks(EMBEDDED, names)


@pytest.mark.parametrize(
    ("dims", "reference", "trained"),
    [([8], None, (8, 128)), ([64, 8], 32, (8, 32, 64)), ([64, 8], "best", (8, 64))],
)
def test_the_dim_that_losses_are_measured_from_joins_those_asked_for(dims, reference, trained):
    ((_, planned),) = plan_networks(EMBEDDED, ["repro-tiny"], dims, reference=reference).values()
    assert planned == trained
