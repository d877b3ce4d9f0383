"""The side claims' measurements against direct computations, on encoders of a second."""

from copy import deepcopy
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.papers.wang import ablations
from repro.papers.wang.two_step import two_step_rows
from repro.runs.sweep import cosines_of, spearman_of, step_two, train_sweep, train_two_step

DIMS = (32, 8, 4)
ABOUT = {"experiment": "e", "profile": "embedded"}


@pytest.fixture(scope="module")
def sweeps(sweep, config, store, sets):
    plain = train_sweep(replace(config, activation="identity"), (8, 4), list(sets.values()), store, progress=False)
    return {"tanh": sweep, "identity": plain}


def values(rows, metric, **where):
    kept = rows[rows["metric"] == metric]
    for column, wanted in where.items():
        kept = kept[kept[column] == wanted]
    return kept.set_index("dim")["value"]


def test_both_starts_are_scored_and_subtracted(sweeps, sets, store, trained, step_two_config):
    sweep = sweeps["tanh"]
    rows = ablations.start_rows(sweep, sets["dev"], sets["test"], step_two_config, store, **ABOUT)
    current, fresh = (values(rows, "spearman", setting=f"start={start}") for start in ("current", "random"))
    np.testing.assert_allclose(values(rows, "start_gain"), current - fresh, atol=1e-9)
    for d in DIMS:
        table = sweep.states[trained.opt[d]].map(trained.new_poolers[d].project)
        assert current[d] == spearman_of(table, sets["test"])
    assert not np.allclose(current, fresh)


def test_the_joint_run_moves_both_parts_and_is_stored(sweeps, sets, store, trained):
    sweep = sweeps["tanh"]
    before = {d: deepcopy(cell.encoder.state_dict()) for d, cell in sweep.cells.items()}
    poolers = {d: deepcopy(cell.pooler.state_dict()) for d, cell in sweep.cells.items()}
    rows = ablations.joint_rows(sweep, trained, [4], sets["test"], store, **ABOUT)
    for d, cell in sweep.cells.items():  # the sweep's own encoders and poolers stay as they were trained
        assert all(torch.equal(value, before[d][name]) for name, value in cell.encoder.state_dict().items())
        assert all(torch.equal(value, poolers[d][name]) for name, value in cell.pooler.state_dict().items())
    frozen, joint = (values(rows, "spearman", setting=f"encoder={kind}")[4] for kind in ("frozen", "joint"))
    assert values(rows, "frozen_gain")[4] == pytest.approx(frozen - joint, abs=1e-6)
    again = ablations.joint_rows(sweep, trained, [4], sets["test"], store, **ABOUT)
    assert again["value"].equals(rows["value"]), "the seconds too: they are those of the one training there was"


def test_tanh_less_identity(sweeps, sets):
    rows = ablations.activation_rows(sweeps, sets["test"], **ABOUT)
    assert set(rows["dim"]) == {8, 4}, "only dims that both sweeps hold"
    gain = values(rows, "activation_gain")
    for d in (8, 4):
        tanh, identity = (spearman_of(sweeps[name].embeddings(d, d), sets["test"]) for name in sweeps)
        assert gain[d] == pytest.approx(tanh - identity, abs=1e-9)


def test_candidate_means_are_those_of_every_set_trained_by_itself(sweeps, sets, store, step_two_config):
    sweep = sweeps["tanh"]
    rows = ablations.candidate_rows(sweep, sets["dev"], sets["test"], step_two_config, store, **ABOUT)
    alone = {d: spearman_of(sweep.embeddings(d), sets["dev"]) for d in DIMS}
    for size in range(len(DIMS) + 1):
        found = values(rows, "spearman", method=STEP_1, setting=f"candidates={size}")
        count = values(rows, "trainings", setting=f"candidates={size}")
        for d in DIMS:
            trained = [{*chosen, d} for chosen in combinations(DIMS, size)]
            opts = [max(those, key=lambda i: (alone[i], i)) for those in trained]
            expected = [spearman_of(sweep.embeddings(opt, d), sets["test"]) for opt in opts]
            assert found[d] == pytest.approx(np.mean(expected), abs=1e-12)
            assert count[d] == pytest.approx(np.mean([len(those) for those in trained]))
    # no candidate but the target itself: nothing is exchanged, and step 2 runs on its own encoder
    own = values(rows, "spearman", method=STEP_1, setting="candidates=0")
    for d in DIMS:
        assert own[d] == spearman_of(sweep.embeddings(d, d), sets["test"])
        new = step_two(sweep, d, sorted(DIMS), sets["dev"], step_two_config, store).new_poolers[d]
        expected = spearman_of(sweep.states[d].map(new.project), sets["test"])
        assert values(rows, "spearman", method=STEP_2, setting="candidates=0")[d] == expected


def test_costs_are_those_of_the_runs(sweeps, sets, store, trained):
    sweep = sweeps["tanh"]
    rows = ablations.cost_rows(sweep, trained, sets["dev"], **ABOUT).set_index("method")["value"]
    assert rows["lines 2–4: one training per dim"] == pytest.approx(sum(c.seconds for c in sweep.cells.values()))
    assert rows["line 8: step 2, all dims"] == trained.seconds
    encode = ablations.encode_cost_rows(sweep, sets["dev"].texts1, [8, 4], repeats=2, **ABOUT)
    assert list(encode["dim"]) == [8, 4]
    assert (encode["value"] > 0).all()
    assert (encode["ci_low"] <= encode["value"]).all()


def test_two_step_training_under_the_softmax_objective(sweep_config, sets, store, step_two_config):
    config = replace(sweep_config, objective="nli", corpus="nli", pooling="mean", sentences=96)
    sweep = train_sweep(config, [8, 4], list(sets.values()), store, progress=False)
    trained = train_two_step(sweep, sets["dev"], step_two_config, store)
    rows = two_step_rows(sweep, trained, sets["test"], paper_table="table2", **ABOUT)
    scores = rows[(rows["metric"] == "spearman") & (rows["readout"] == "pooler")]
    at = scores.set_index(["method", "dim"])["value"]
    for d in (8, 4):
        assert at[END_TO_END, d] == pytest.approx(spearman_of(sweep.embeddings(d, d), sets["test"]), abs=1e-9)
        run = trained.runs[d]
        assert run["dev_after"] >= run["dev_before"]
        table = sweep.states[trained.opt[d]].map(trained.new_poolers[d].project)
        assert np.isfinite(cosines_of(table, sets["test"])).all()
    assert train_two_step(sweep, sets["dev"], step_two_config, store).hit
    assert all(cell.head.weight.shape == (3, 3 * d) for d, cell in sweep.cells.items())
