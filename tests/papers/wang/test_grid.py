"""Figures 3 and 4 against what one would compute by hand: every pair encoded anew, and losses by subtraction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from repro import data
from repro.config import profile
from repro.models import SentenceEncoder
from repro.papers.wang.claims import figure4
from repro.papers.wang.decomposition import Network, decomposition_rows, parse_network, plan_networks, train_networks
from repro.papers.wang.grid import encode_counts, grid_rows, selection_rows
from repro.runs.sweep import cosines_of, pair_scores, spearman_of, train_sweep
from repro.store import Store
from repro.training.two_step import select, splice
from repro.types import InputError

DIMS = (32, 8, 4)


@pytest.fixture(scope="module")
def grid(sweep, sets):
    rows = grid_rows(sweep, sets["test"], experiment="e", profile="embedded")
    return rows.set_index(["metric", "readout", "method", "dim"]).sort_index()


@pytest.fixture(scope="module")
def losses(sweep, sets):
    rows = decomposition_rows(sweep, sets["test"], experiment="e", profile="embedded")
    return rows.set_index(["metric", "readout", "dim"]).sort_index()


def cosine(a, b):
    return (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


# Figure 4


def test_every_pair_is_what_a_spliced_model_scores_when_it_encodes_anew(sweep, grid, sets):
    pairs = sets["test"]
    for i in DIMS:
        for j in DIMS:
            model = splice(SentenceEncoder.load(str(sweep.cells[i].folder)), sweep.cells[j].pooler)
            sides = (model.encode(texts).astype(np.float64) for texts in (pairs.texts1, pairs.texts2))
            expected = spearmanr(cosine(*sides), pairs.scores).statistic
            found = grid["value"]["spearman", "pooler", f"encoder_{i}", j]
            assert found == pytest.approx(expected, abs=1e-4)  # rounding may exchange two ranks
            assert found == pytest.approx(pair_scores(sweep, pairs)[i, j], abs=1e-12)


def test_the_diagonal_is_end_to_end_with_its_interval(grid, losses):
    for d in DIMS:
        for readout in ("pooler", "encoder"):
            ours, other = grid.loc["spearman", readout, f"encoder_{d}", d], losses.loc["spearman", readout, d]
            for column in ("value", "ci_low", "ci_high"):
                assert ours[column] == pytest.approx(other[column], abs=1e-12)


def test_gains_are_differences_to_the_poolers_own_encoder(grid):
    score = grid["value"]["spearman", "pooler"]
    gains = grid.loc["spearman_gain", "pooler"]
    assert len(gains) == len(DIMS) * (len(DIMS) - 1)
    for (method, j), row in gains.iterrows():
        assert row["value"] == pytest.approx(score[method, j] - score[f"encoder_{j}", j])
        assert row["ci_low"] <= row["value"] <= row["ci_high"]
    alone = grid["value"]["spearman", "encoder"]
    for (method, i), row in grid.loc["spearman_gain", "encoder"].iterrows():
        assert row["value"] == pytest.approx(alone[method, i] - alone["encoder_32", 32])


def test_n_encoders_encode_every_text_once(config, store, sets):
    other = data.load("stsb", split="test", source="microworld", limit=50, seed=5)
    fresh = train_sweep(config, DIMS, [other], store, progress=False)
    grid_rows(fresh, other, experiment="e", profile="embedded")
    pair_scores(fresh, other)
    texts = len({*other.texts1, *other.texts2})
    assert encode_counts(fresh) == {"encoders": 3, "texts": texts, "encoded now": 3 * texts, "pairs": 9}
    again = train_sweep(config, DIMS, [other], store, progress=False)
    assert encode_counts(again)["encoded now"] == 0


def test_a_grid_of_one_dim_has_one_cell_and_judges_nothing(config, store, sets):
    one = train_sweep(config, DIMS[:1], [sets["test"]], store, progress=False)
    rows = grid_rows(one, sets["test"], experiment="e", profile="embedded")
    assert len(rows[rows["readout"] == "pooler"]) == 1 and figure4(rows) == []


def test_rows_of_the_rules(sweep, sets):
    dev, test = sets["dev"], sets["test"]
    rows = selection_rows(sweep, dev, test, experiment="e", profile="embedded")
    value = rows.set_index(["method", "metric", "dim"])["value"]
    on_dev, on_test = pair_scores(sweep, dev), pair_scores(sweep, test)
    alone = {i: spearman_of(sweep.embeddings(i), dev) for i in DIMS}
    for rule, judge in (("encoder", on_dev), ("pooler_max", on_dev), ("pair", on_dev), ("oracle", on_test)):
        for j in DIMS:
            i = value[f"select_by={rule}", "optimal_dim", j]
            assert i == select(alone, judge, j, select_by=rule)
            assert value[f"select_by={rule}", "spearman", j] == on_test[i, j]
            assert value[f"select_by={rule}", "spearman", j] <= value["select_by=oracle", "spearman", j]


# Figure 3


def test_the_parts_are_subtractions_and_sum_to_the_total(losses):
    value = losses["value"]
    for d in DIMS:
        h, z, full = value["spearman", "encoder", d], value["spearman", "pooler", d], value["spearman", "encoder", 32]
        assert value["encoder_loss", "encoder", d] == pytest.approx(full - h, abs=1e-12)
        assert value["pooler_loss", "pooler", d] == pytest.approx(h - z, abs=1e-12)
        parts = value["encoder_loss", "encoder", d] + value["pooler_loss", "pooler", d]
        assert value["total_loss", "pooler", d] == pytest.approx(parts, abs=1e-12)
    assert losses.loc["encoder_loss", "encoder", 32][["value", "ci_low", "ci_high"]].tolist() == [0, 0, 0]


def test_scores_by_hand(sweep, losses, sets):
    pairs = sets["test"]
    for d in DIMS:
        for readout, table in (("encoder", sweep.embeddings(d)), ("pooler", sweep.embeddings(d, d))):
            expected = spearmanr(cosines_of(table, pairs), pairs.scores).statistic
            assert losses["value"]["spearman", readout, d] == pytest.approx(expected, abs=1e-12)


def test_the_reference_may_be_the_best_or_any_trained_dim(sweep, sets):
    def rows(reference):
        return decomposition_rows(sweep, sets["test"], reference=reference, experiment="e", profile="embedded")

    best = rows("best")
    assert (best[best["metric"] == "encoder_loss"]["value"] >= 0).all()
    assert best["setting"].str.endswith("(best)").all()
    assert set(rows(4)["setting"]) == {"test, reference=4"}
    for wrong in (16, "widest"):
        with pytest.raises(InputError, match="expected 'best' or a trained dim"):
            rows(wrong)


@pytest.mark.parametrize(
    ("name", "expected"), [("repro-tiny", ("repro-tiny", None)), ("all-MiniLM-L6-v2:3", ("all-MiniLM-L6-v2", 3))]
)
def test_networks_are_a_name_with_or_without_blocks(name, expected):
    assert parse_network(name) == expected


@pytest.mark.parametrize("name", ["", ":2", "repro-tiny:", "repro-tiny:0", "repro-tiny:-1", "repro-tiny:two"])
def test_a_name_that_is_neither_is_refused(name):
    with pytest.raises(InputError, match="name:blocks"):
        parse_network(name)


def test_networks_are_planned_with_their_recipes():
    chosen = profile("embedded", source="microworld")
    cut, whole = plan_networks(chosen, ["repro-tiny:1", "repro-tiny:2"])
    assert (cut.name, cut.blocks, cut.config.layers) == ("repro-tiny:1", 1, 1)
    assert (whole.name, whole.blocks) == ("repro-tiny", 2)
    assert whole.config == chosen.train  # so that the cells of the other pages are found
    assert whole.dims == tuple(sorted(chosen.candidates))
    (longer,) = plan_networks(chosen, ["repro-tiny"], [128, 4], sentences=64, seed=3)
    assert (longer.dims, longer.config.sentences, longer.config.seed) == ((4, 128), 64, 3)


def test_a_trained_encoder_keeps_its_pooling_and_is_trained_briefly_in_the_book():
    (short,) = plan_networks(profile("embedded", source="microworld"), ["all-MiniLM-L6-v2:3"])
    (long,) = plan_networks(profile("gpu", source="microworld"), ["all-MiniLM-L6-v2:3"])
    assert short.config.pooling == long.config.pooling == "mean"
    assert short.config.sentences < 1_000 < long.config.sentences
    assert short.hidden_dim in short.dims and long.hidden_dim in long.dims


def test_plans_that_cannot_be_are_refused_before_training():
    chosen = profile("embedded", source="microworld")
    with pytest.raises(InputError, match="number of blocks of repro-tiny is 3: expected 1 to 2"):
        plan_networks(chosen, ["repro-tiny:3"])
    with pytest.raises(InputError, match="different"):
        plan_networks(chosen, ["repro-tiny", "repro-tiny:2"])


@pytest.mark.parametrize(
    ("dims", "reference", "trained"),
    [([8], None, (8, 128)), ([128], None, (128,)), ([64, 8], 32, (8, 32, 64)), ([64, 8], "best", (8, 64))],
)
def test_the_dim_that_losses_are_measured_from_joins_those_asked_for(dims, reference, trained):
    chosen = profile("embedded", source="microworld")
    (planned,) = plan_networks(chosen, ["repro-tiny"], dims, reference=reference)
    assert planned.dims == trained


def test_networks_are_trained_in_one_pool_and_hits_are_counted_per_network(config, tiny, sets, tmp_path):
    def network(name, layers, dims):
        return Network(name, layers or 2, 32, replace(config, layers=layers), dims)

    fresh = Store(tmp_path / "store")
    first = train_networks([network("cut", 1, (4,))], [sets["test"]], fresh, progress=False)
    both = train_networks(
        [network("cut", 1, (4, 8)), network("whole", None, (4,))], [sets["test"]], fresh, progress=False
    )
    assert first["cut"].hits == 0
    assert {name: sweep.hits for name, sweep in both.items()} == {"cut": 1, "whole": 0}
    assert both["cut"].cells[4].encoder.n_layers == 1 and both["whole"].cells[4].encoder.n_layers == 2
