"""Tables 3 and 4 on a small scale: the lines there are, what they are fitted on, and every number the task's own."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from repro import data
from repro.evaluation.protocol import score_classification, score_sts
from repro.methods import FULL, MAJORITY, TRAINED_NARROW, TWO_STEP
from repro.papers.wang.sweeps import fit_sets_of, is_compared, suite_lines
from repro.runs import lines
from repro.runs.encoders import reduced
from repro.runs.lines import Task, by_kind, load_tasks, score_rows, sets_of
from repro.runs.sweep import train_sweep, train_two_step
from repro.types import InputError

DIMS = (8, 4)


@pytest.fixture(scope="module")
def tasks():
    sts = {name: {"test": data.load(name, split="test", source="microworld", limit=60)} for name in ("stsb", "sickr")}
    labelled = load_tasks(["cr", "sst2", "mrpc"], "microworld", probe_rows=120)
    return {"sts": sts, "labelled": labelled}


@pytest.fixture(scope="module")
def world(config, step_two_config, store, tasks):
    torch.set_num_threads(1)
    dev = data.load("stsb", split="dev", source="microworld", limit=60)
    sets = [*sets_of(tasks["sts"]), *sets_of(tasks["labelled"]), dev]
    sweep = train_sweep(config, [32, *DIMS], sets, store, progress=False)
    trained = train_two_step(sweep, dev, step_two_config, store)
    fits = fit_sets_of(sweep, 32, (60, 90), store)
    return sweep, trained, fits, list(suite_lines(sweep, trained, fits, DIMS, store, n_neighbors=8))


def rows_of(world, tasks, store, *, protocol="logreg", **options):
    """As the pages make them."""
    judged = {name: Task(name, splits) for name, splits in tasks.items()}
    shared = {"experiment": "e", "profile": "embedded", **world[0].shared()}
    scorer = by_kind(store, protocol=protocol)
    return score_rows(world[3], judged, scorer, contrasts=[is_compared], progress=False, **options, **shared)


def test_the_lines_are_those_of_the_tables(world):
    lines = world[3]
    found = [(line.method, line.dim, line.readout, line.setting) for line in lines]
    assert found[:2] == [(FULL, 32, "encoder", ""), (FULL, 32, "pooler", "")]
    for d in DIMS:
        for method in ("PCA", "Isomap", "LLE"):
            assert (method, d, "encoder", "fitted on 60 sentences") in found
        assert ("PCA", d, "encoder", "fitted on 90 sentences") in found
        assert {(TRAINED_NARROW, d, "pooler", ""), (TWO_STEP, d, "pooler", "")} <= set(found)
    assert len(found) == 2 + len(DIMS) * 6
    assert all(line.table.X.shape[1] == line.dim for line in lines)


def test_pca_is_fitted_on_the_fit_set_alone(world):
    sweep, _, fits, lines = world
    line = next(line for line in lines if line.method == "PCA" and line.dim == 4 and "60" in line.setting)
    expected = PCA(4).fit(fits[60]).transform(sweep.embeddings(32).X)
    np.testing.assert_allclose(np.abs(line.table.X), np.abs(expected), atol=1e-4)
    np.testing.assert_array_equal(fits[60], fits[90][:60])  # a smaller fit set lies within a larger one


def test_sts_rows_are_the_tasks_own_scores(world, tasks, store):
    rows = rows_of(world, tasks["sts"], store)
    for line in world[3]:
        own = rows[(rows["method"] == line.method) & (rows["dim"] == line.dim) & (rows["readout"] == line.readout)]
        own = own[(own["setting"] == line.setting) & (own["metric"] == "spearman")].set_index("dataset")
        for name, splits in tasks["sts"].items():
            expected = score_sts(line.table.__getitem__, splits["test"])
            assert own.loc[name, "value"] == pytest.approx(expected.value, abs=1e-12)
            assert own.loc[name, "ci_low"] == pytest.approx(expected.ci_low, abs=1e-9)


def test_classification_rows_are_the_tasks_own_scores_and_come_from_the_store(world, tasks, store, monkeypatch):
    rows = rows_of(world, tasks["labelled"], store)
    line = world[3][-1]
    own = rows[(rows["method"] == line.method) & (rows["dim"] == line.dim) & (rows["metric"] == "accuracy")]
    for name, splits in tasks["labelled"].items():
        expected = score_classification(line.table.__getitem__, splits)
        assert own.set_index("dataset").loc[name, "value"] == expected.value
        floor = rows[(rows["method"] == MAJORITY) & (rows["dataset"] == name)]["value"].item()
        assert floor == expected.floor
    monkeypatch.setattr(lines, "score_classification", lambda *a, **k: pytest.fail("fitted again"))
    again = rows_of(world, tasks["labelled"], store)
    assert again["value"].equals(rows["value"])
    with pytest.raises(pytest.fail.Exception):  # another protocol is another key
        rows_of(world, tasks["labelled"], store, protocol="senteval")


def test_leads_are_differences_on_shared_items_and_averages_are_means(world, tasks, store):
    rows = rows_of(world, tasks["sts"], store, average=True)
    at = {
        (r.method, r.dim, r.setting, r.readout, r.dataset): r.value
        for r in rows[rows["metric"] == "spearman"].itertuples()
    }
    leads = rows[rows["metric"] == "spearman_lead"]
    for r in leads[leads["dataset"] == "Avg."].itertuples():
        winner, rival = r.method.split(" − ")
        setting = "" if winner == TWO_STEP else r.setting
        readout = "pooler" if winner == TWO_STEP else "encoder"
        dim = 32 if rival == FULL else r.dim
        expected = at[winner, r.dim, setting, readout, "Avg."] - at[rival, dim, r.setting, r.readout, "Avg."]
        assert r.value == pytest.approx(expected, abs=1e-12)
        assert r.ci_low <= r.value <= r.ci_high
        assert at[winner, r.dim, setting, readout, "Avg."] == pytest.approx(
            np.mean([at[winner, r.dim, setting, readout, name] for name in ("stsb", "sickr")]), abs=1e-12
        )
    # items are shared: the interval of a difference of near-equal lines is far narrower than that of a line
    mean = rows[rows["dataset"] == "Avg."]
    line = mean[mean["metric"] == "spearman"].eval("ci_high - ci_low").median()
    assert leads[leads["dataset"] == "Avg."].eval("ci_high - ci_low").min() < line


def test_a_dim_that_was_not_trained_is_named(world, store):
    sweep, trained, fits, _ = world
    with pytest.raises(InputError, match="dim 16 was not trained: the sweep holds 4, 8, 32"):
        list(suite_lines(sweep, trained, fits, [16], store))


def test_a_dim_that_a_reducer_cannot_give_is_left_out_with_a_word(capsys, store):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 30))
    found = dict(reduced("isomap", X, X, [18, 2], store, n_neighbors=5))
    assert {dim: Y.shape for dim, Y in found.items()} == {2: (20, 2)}
    assert "left out: isomap at 18 dims" in capsys.readouterr().err
