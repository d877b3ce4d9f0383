"""The side claims' measurements against direct computations, on encoders of a second."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.linalg import subspace_angles

from repro import data
from repro.config import StepTwoConfig
from repro.models import Pooler
from repro.papers import wang
from repro.papers.wang.subspace import overlap, principal_components, row_space
from repro.runs.sweep import cosines_of
from repro.store import Store

DIMS = (16, 8, 4)
STEP_TWO = StepTwoConfig(learning_rates=(3e-3,), batch_size=16, check_every=2)
ABOUT = {"experiment": "e", "profile": "embedded"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("ablations"))


@pytest.fixture(scope="module")
def sets():
    return {split: data.load("stsb", split=split, source="microworld", limit=60) for split in ("dev", "test")}


@pytest.fixture(scope="module")
def sweeps(sweep_config, store, sets):
    torch.set_num_threads(1)
    config = replace(sweep_config, pooling="mean")
    return {
        name: wang.train_sweep(replace(config, activation=name), dims, list(sets.values()), store, progress=False)
        for name, dims in (("tanh", DIMS), ("identity", (8, 4)))
    }


def values(rows, metric, **where):
    kept = rows[rows["metric"] == metric]
    for column, wanted in where.items():
        kept = kept[kept[column] == wanted]
    return kept.set_index("dim")["value"]


def test_both_starts_are_scored_and_subtracted(sweeps, sets, store):
    sweep = sweeps["tanh"]
    rows = wang.start_rows(sweep, sets["dev"], sets["test"], STEP_TWO, store, **ABOUT)
    current, fresh = (values(rows, "spearman", setting=f"start={start}") for start in ("current", "random"))
    np.testing.assert_allclose(values(rows, "start_gain"), current - fresh, atol=1e-9)
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    for d in DIMS:
        table = sweep.states[trained.opt[d]].map(trained.new_poolers[d].project)
        assert current[d] == wang.spearman_of(table, sets["test"])
    assert not np.allclose(current, fresh)


def test_the_joint_run_moves_both_parts_and_is_stored(sweeps, sets, store):
    sweep = sweeps["tanh"]
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    rows = wang.joint_rows(sweep, trained, [4], sets["test"], store, **ABOUT)
    frozen, joint = (values(rows, "spearman", setting=f"encoder={kind}")[4] for kind in ("frozen", "joint"))
    assert values(rows, "frozen_gain")[4] == pytest.approx(frozen - joint, abs=1e-6)
    again = wang.joint_rows(sweep, trained, [4], sets["test"], store, **ABOUT)
    assert again["value"].equals(rows["value"]), "the seconds too: they are those of the one training there was"


def test_tanh_less_identity(sweeps, sets):
    rows = wang.activation_rows(sweeps, sets["test"], **ABOUT)
    assert set(rows["dim"]) == {8, 4}, "only dims that both sweeps hold"
    gain = values(rows, "activation_gain")
    for d in (8, 4):
        tanh, identity = (wang.spearman_of(sweeps[name].embeddings(d, d), sets["test"]) for name in sweeps)
        assert gain[d] == pytest.approx(tanh - identity, abs=1e-9)


def test_candidate_means_are_those_of_every_set_trained_by_itself(sweeps, sets, store):
    sweep = sweeps["tanh"]
    rows = wang.candidate_rows(sweep, sets["dev"], sets["test"], STEP_TWO, store, **ABOUT)
    alone = {d: wang.spearman_of(sweep.embeddings(d), sets["dev"]) for d in DIMS}
    for size in range(len(DIMS) + 1):
        found = values(rows, "spearman", method=wang.STEP_1, setting=f"candidates={size}")
        count = values(rows, "trainings", setting=f"candidates={size}")
        for d in DIMS:
            trained = [{*chosen, d} for chosen in combinations(DIMS, size)]
            opts = [max(those, key=lambda i: (alone[i], i)) for those in trained]
            expected = [wang.spearman_of(sweep.embeddings(opt, d), sets["test"]) for opt in opts]
            assert found[d] == pytest.approx(np.mean(expected), abs=1e-12)
            assert count[d] == pytest.approx(np.mean([len(those) for those in trained]))
    # no candidate but the target itself: nothing is exchanged, and step 2 runs on its own encoder
    own = values(rows, "spearman", method=wang.STEP_1, setting="candidates=0")
    for d in DIMS:
        assert own[d] == wang.spearman_of(sweep.embeddings(d, d), sets["test"])
        new = wang.step_two(sweep, d, sorted(DIMS), sets["dev"], STEP_TWO, store).new_poolers[d]
        expected = wang.spearman_of(sweep.states[d].map(new.project), sets["test"])
        assert values(rows, "spearman", method=wang.STEP_2, setting="candidates=0")[d] == expected


def test_overlap_is_the_mean_squared_cosine_of_principal_angles():
    rng = np.random.default_rng(0)
    A, B = (np.linalg.qr(rng.standard_normal((12, 4)))[0] for _ in range(2))
    assert overlap(A, B) == pytest.approx(np.mean(np.cos(subspace_angles(A, B)) ** 2))
    assert overlap(A, A @ np.linalg.qr(rng.standard_normal((4, 4)))[0]) == pytest.approx(1.0)
    assert overlap(A, np.linalg.svd(A)[0][:, 4:8]) == pytest.approx(0.0, abs=1e-12)
    many = [overlap(np.linalg.qr(rng.standard_normal((24, 6)))[0], np.eye(24)[:, :6]) for _ in range(400)]
    assert np.mean(many) == pytest.approx(6 / 24, abs=0.01)


def test_a_pooler_made_of_principal_components_is_pca():
    X = np.random.default_rng(1).standard_normal((200, 12)).astype(np.float32) * np.arange(12, 0, -1)
    components, variances = principal_components(X)
    np.testing.assert_allclose(variances, np.linalg.svd(X - X.mean(0))[1] ** 2 / 200, rtol=1e-5)
    pooler = Pooler(12, 3)
    with torch.no_grad():
        pooler.linear.weight.copy_(torch.from_numpy((2.0 * components[:, :3]).T.copy()))
    assert overlap(row_space(pooler), components[:, :3]) == pytest.approx(1.0, abs=1e-6)


def test_subspace_rows_know_chance_and_pca(sweeps, store):
    rows = wang.subspace_rows(sweeps, store, sentences=64, **ABOUT)
    for setting in ("activation=tanh", "activation=identity"):
        part = rows[rows["setting"] == setting]
        kept = values(part, "variance_kept", method="trained pooler")
        best = values(part, "variance_kept", method="PCA")
        assert (kept <= best + 1e-9).all(), "no space of its size holds more variance than PCA's"
        np.testing.assert_allclose(values(part, "subspace_overlap", method="chance"), kept.index.astype(float) / 32)
        assert values(part, "subspace_overlap", method="trained pooler").between(0, 1).all()


def test_costs_are_those_of_the_runs(sweeps, sets, store):
    sweep = sweeps["tanh"]
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    rows = wang.cost_rows(sweep, trained, sets["dev"], **ABOUT).set_index("method")["value"]
    assert rows["lines 2–4: one training per dim"] == pytest.approx(sum(c.seconds for c in sweep.cells.values()))
    assert rows["line 8: step 2, all dims"] == trained.seconds
    encode = wang.encode_cost_rows(sweep, sets["dev"].texts1, [8, 4], repeats=2, **ABOUT)
    assert list(encode["dim"]) == [8, 4]
    assert (encode["value"] > 0).all()
    assert (encode["ci_low"] <= encode["value"]).all()


def test_two_step_training_under_the_softmax_objective(sweep_config, sets, store):
    config = replace(sweep_config, objective="nli", corpus="nli", pooling="mean", sentences=96)
    sweep = wang.train_sweep(config, [8, 4], list(sets.values()), store, progress=False)
    trained = wang.train_two_step(sweep, sets["dev"], STEP_TWO, store)
    rows = wang.two_step_rows(sweep, trained, sets["test"], paper_table="table2", **ABOUT)
    scores = rows[(rows["metric"] == "spearman") & (rows["readout"] == "pooler")]
    at = scores.set_index(["method", "dim"])["value"]
    for d in (8, 4):
        assert at[wang.END_TO_END, d] == pytest.approx(wang.spearman_of(sweep.embeddings(d, d), sets["test"]), abs=1e-9)
        run = trained.runs[d]
        assert run["dev_after"] >= run["dev_before"]
        table = sweep.states[trained.opt[d]].map(trained.new_poolers[d].project)
        assert np.isfinite(cosines_of(table, sets["test"])).all()
    assert wang.train_two_step(sweep, sets["dev"], STEP_TWO, store).hit
    assert all(cell.head.weight.shape == (3, 3 * d) for d, cell in sweep.cells.items())
