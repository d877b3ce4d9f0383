"""Lines of Tables 3 and 4 on a small scale: which there are, what they are fitted on, which are compared."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from repro.methods import FULL, TRAINED_NARROW, TWO_STEP
from repro.papers.wang.sweeps import fit_sets_of, is_compared, suite_lines
from repro.reducers import reduced
from repro.runs.sweep import train_sweep, train_two_step

DIMS = (8, 4)


@pytest.fixture(scope="module")
def world(config, step_two_config, store, sets):
    torch.set_num_threads(1)
    sweep = train_sweep(config, [32, *DIMS], list(sets.values()), store, progress=False)
    trained = train_two_step(sweep, sets["dev"], step_two_config, store)
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
    pairs = [(a.method, b.method) for a in lines for b in lines if a is not b and is_compared(a, b) and a.dim == 8]
    rivals = [FULL, FULL, "PCA", "PCA", "Isomap", "LLE", TRAINED_NARROW]
    assert sorted(pairs) == sorted([(TWO_STEP, rival) for rival in rivals] + [("PCA", "Isomap"), ("PCA", "LLE")])


def test_pca_is_fitted_on_the_fit_set_alone(world):
    sweep, fits, lines = world
    line = next(line for line in lines if line.method == "PCA" and line.dim == 4 and "60" in line.setting)
    expected = PCA(4).fit(fits[60]).transform(sweep.embeddings(32).X)
    np.testing.assert_allclose(np.abs(line.table.X), np.abs(expected), atol=1e-4)
    np.testing.assert_array_equal(fits[60], fits[90][:60])  # a smaller fit set lies within a larger one


def test_a_dim_that_a_reducer_cannot_give_is_left_out_with_a_word(capsys, store):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 30))
    found = dict(reduced("isomap", X, X, [18, 2], store, n_neighbors=5))
    assert {dim: Y.shape for dim, Y in found.items()} == {2: (20, 2)}
    assert "left out: isomap at 18 dims" in capsys.readouterr().err
