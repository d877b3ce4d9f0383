"""ESE's comparison on a small scale: which training is behind a line, every cell its own, contrasts as arithmetic."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from repro import data
from repro.config import TrainConfig
from repro.evaluation.stats import paired_spearman_difference
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.methods import AVERAGE, CONTROL, ESE, ESE_CODE, MRL, RAW, SHALLOW_AVERAGE
from repro.models import SentenceEncoder
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.papers.ese.depth import SETS, Grid, depth_rows, half_depth, load_sets, score_lines
from repro.papers.ese.lines import Line, compression_size, ese_lines, line_config, raw_line
from repro.runs.texts import as_many
from repro.store import Store
from repro.types import InputError

DIMS = (2, 5)


class Stub:
    """Stands in for an encoder of three blocks: states drawn by text, layer 0 one constant vector."""

    def __init__(self, seed: int, layers: int = 3, dim: int = 8) -> None:
        self.seed, self.layers, self.dim, self.passes = seed, layers, dim, 0

    def encode_layers(self, texts, layers=None, *, progress=False):
        self.passes += 1
        X = np.stack([self.states(text) for text in texts], axis=1)
        return X if layers is None else X[list(layers)]

    def states(self, text):
        rng = np.random.default_rng([self.seed, *text.encode()])
        shared = np.random.default_rng([*text.encode()]).normal(size=self.dim)
        h = np.stack([shared + 0.3 * self.seed * rng.normal(size=self.dim) for _ in range(self.layers + 1)])
        h[0] = 1.0
        return h.astype(np.float32)


def line(method, seed, **shape):
    stub = Stub(seed, **shape)
    return Line(
        method, "stub", None if method == RAW else TrainConfig(), lambda: stub, f"{method} {seed} {shape}"
    ), stub


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("ese"))


@pytest.fixture(scope="module")
def sets():
    return load_sets(SETS, "microworld", rows=40)


@pytest.fixture(scope="module")
def scored(sets, store) -> Grid:
    lines = [line(method, seed)[0] for seed, method in enumerate((RAW, MRL, ESE))]
    return score_lines(lines, sets, store, dims=DIMS, resamples=60, progress=False)


@pytest.fixture(scope="module")
def rows(scored):
    return depth_rows(scored, reference=5, experiment="e", seed=0)


def value_of(rows, **where):
    own = rows[rows["metric"] == where.pop("metric", "spearman")]
    for column, wanted in where.items():
        own = own[own[column].isna() if wanted is None else own[column] == wanted]
    assert len(own) == 1, own
    return float(own["value"].iloc[0])


# lines


def test_the_paper_compresses_768_to_128_and_ours_to_the_same_share():
    assert [compression_size(d) for d in (768, 1024, 384, 128, 32)] == [128, 128, 64, 16, 4]


def test_a_line_is_trained_as_its_method_says(cell_config):
    base = replace(cell_config, corpus="nli", prefixes=(4, 8), espresso=EspressoConfig(alpha=2.0), seed=3)
    configs = {method: line_config(base, method) for method in (CONTROL, MRL, ESE, ESE_CODE)}
    assert [c.objective for c in configs.values()] == ["angle", "matryoshka", "ese", "ese"]
    assert {(c.seed, c.sentences, c.batch_size, c.corpus) for c in configs.values()} == {(3, 96, 16, "nli")}
    assert configs[MRL].prefixes == (4, 8)
    assert configs[ESE].dim == 4 and line_config(base, ESE, size=8).dim == 8
    assert configs[ESE].espresso.alpha == 2.0
    assert configs[ESE_CODE].espresso == ESPRESSO_FORMS["code"]
    # what the control does not read must not train another one
    other = replace(base, dim=5, prefixes=(2,), espresso=EspressoConfig(beta=0.0))
    assert line_config(other, CONTROL) == configs[CONTROL]
    with pytest.raises(InputError, match="trained method"):
        line_config(base, RAW)


def test_lines_are_trained_once_and_raw_not_at_all(cell_config, store):
    torch.set_num_threads(1)
    base = replace(cell_config, corpus="nli", pooling="mean", check_every=6)
    lines = ese_lines(base, store, methods=(RAW, CONTROL, ESE), progress=False)
    assert [own.method for own in lines] == [RAW, CONTROL, ESE]
    assert lines[0].config is None and lines[0].columns["n_train"] is None and lines[1].columns["n_train"] == 96
    assert len({own.identity for own in lines}) == 3
    again = ese_lines(base, store, methods=(ESE,), progress=False)
    assert again[0].cell.hit and again[0].identity == lines[2].identity
    texts = ["one text", "another text"]
    untouched = SentenceEncoder.load(base.backbone, pooling="mean").encode_layers(texts)
    np.testing.assert_array_equal(lines[0].states(texts, store).X, untouched)
    assert not np.allclose(lines[2].states(texts, store).at(1)[texts], lines[0].states(texts, store).at(1)[texts])
    with pytest.raises(InputError, match="unknown method 'SBERT'"):
        ese_lines(base, store, methods=("SBERT",))


def test_raw_is_cut_where_the_others_are(cell_config, store):
    whole, cut = raw_line(cell_config), raw_line(replace(cell_config, layers=1))
    assert whole.identity != cut.identity
    assert whole.identity != raw_line(replace(cell_config, pooling="mean")).identity
    assert cut.states(["a text"], store).layers == (0, 1)
    np.testing.assert_allclose(cut.states(["a text"], store).at(1).X, whole.states(["a text"], store).at(1).X)


# every cell


def test_every_cell_is_the_spearman_of_the_sliced_states(scored, sets):
    for i, own in enumerate(scored.lines):
        stub = own.encoder()
        for name, pairs in sets.items():
            for layer in (1, 3):
                X1, X2 = (np.stack([stub.states(t)[layer] for t in side]) for side in (pairs.texts1, pairs.texts2))
                for dim in (*DIMS, 8):
                    expected = sts_spearman(X1[:, :dim], X2[:, :dim], pairs.scores)
                    found = scored.scores[name].value[i, layer, scored.dims.index(dim)]
                    assert found == pytest.approx(expected, abs=1e-12)


def test_the_embedding_output_of_one_vector_has_no_score(scored):
    assert scored.layers == (0, 1, 2, 3)
    for s in scored.scores.values():
        assert np.isnan(s.value[:, 0]).all() and np.isfinite(s.value[:, 1:]).all()


def test_all_lines_are_resampled_on_the_same_pairs(scored, sets):
    pairs, stubs = sets["stsb"], [own.encoder() for own in scored.lines]

    def cosines(stub):
        X1, X2 = (np.stack([stub.states(t)[2] for t in side]) for side in (pairs.texts1, pairs.texts2))
        return prefix_cosines(X1, X2, [5])[0]

    s, size = scored.scores["stsb"], scored.dims.index(5)
    found = (s[2, 2, size] - s[1, 2, size]).columns
    expected = paired_spearman_difference(
        cosines(stubs[2]), cosines(stubs[1]), pairs.scores, subsets=pairs.subsets, resamples=60, seed=0
    )
    assert found == pytest.approx(expected.columns)


def test_the_average_is_of_all_seven_or_of_none(scored, sets, store):
    each = [scored.scores[name].value for name in SETS]
    np.testing.assert_allclose(scored.scores[AVERAGE].value, np.mean(each, axis=0))
    few = {name: sets[name] for name in ("stsb", "sickr")}
    some = score_lines(list(scored.lines), few, store, resamples=10, progress=False)
    assert set(some.scores) == {"stsb", "sickr"}
    assert some.dims == (8,), "the full size alone"


def test_one_pass_per_line(sets, store):
    own, stub = line("ESE", 9)
    for dims in ((2,), (3, 4)):
        score_lines([own], {"stsb": sets["stsb"]}, store, dims=dims, resamples=5, progress=False)
    assert stub.passes == 1


def test_shallow_layers_are_those_below_the_last_of_the_last_twelve(scored):
    assert scored.shallow == [1, 2]
    deep = replace(scored, layers=tuple(range(25)))
    assert deep.shallow == list(range(13, 24))
    assert replace(scored, layers=(0, 1)).shallow == []


def test_networks_of_two_shapes_and_sizes_beyond_are_refused(scored, sets, store):
    few = {"stsb": sets["stsb"]}
    with pytest.raises(InputError, match="one shape"):
        score_lines([scored.lines[0], line(ESE, 1, dim=6)[0]], few, store, progress=False)
    with pytest.raises(InputError, match="expected sizes from 1 to 8"):
        score_lines([scored.lines[0]], few, store, dims=[9], progress=False)
    with pytest.raises(InputError, match="'trec' is not a set of scored pairs"):
        load_sets(["trec"], "microworld")


def test_a_profile_limits_the_pairs():
    assert (as_many(None, 300), as_many(0, 300), as_many(None, None), as_many(7, 300)) == (300, None, None, 7)
    assert len(load_sets(["stsb"], "microworld", rows=None)["stsb"]) == len(data.load("stsb", source="microworld"))


# rows


def test_rows_hold_every_cell_and_the_mean_over_shallow_layers(rows, scored):
    cells = rows[(rows["metric"] == "spearman") & rows["layer"].notna()]
    assert len(cells) == 3 * 4 * 3 * 8  # lines, layers, sizes, sets and their average
    for own in scored.lines:
        at = {layer: value_of(rows, method=own.method, dataset=AVERAGE, layer=layer, dim=8) for layer in (1, 2)}
        found = value_of(rows, method=own.method, dataset=SHALLOW_AVERAGE, dim=8)
        assert found == pytest.approx(np.mean(list(at.values())))


def test_leads_steps_changes_and_drops_are_differences_of_cells(rows):
    def cell(method, layer, dim):
        return value_of(rows, method=method, dataset=AVERAGE, layer=layer, dim=dim)

    lead = value_of(rows, metric="spearman_lead", method="ESE − MRL", dataset=AVERAGE, layer=2, dim=5)
    assert lead == pytest.approx(cell(ESE, 2, 5) - cell(MRL, 2, 5))
    step = value_of(rows, metric="spearman_step", method=ESE, layer=3, dim=8)
    assert step == pytest.approx(cell(ESE, 3, 8) - cell(ESE, 2, 8))
    change = value_of(rows, metric="spearman_change", method=ESE, dim=8)
    assert change == pytest.approx(cell(ESE, 3, 8) - cell(ESE, 3, 5))
    drop = value_of(rows, metric="spearman_drop", method=RAW, dim=2)
    assert drop == pytest.approx(cell(RAW, 3, 2) - cell(RAW, 1, 2))
    less = value_of(rows, metric="drop_lead", method="ESE − RAW", dim=2)
    assert less == pytest.approx(value_of(rows, metric="spearman_drop", method=ESE, dim=2) - drop)
    gaps = {k: np.mean([cell(ESE, k, d) - cell(RAW, k, d) for d in (*DIMS, 8)]) for k in (1, 3)}
    assert value_of(rows, metric="depth_lead", method="ESE − RAW") == pytest.approx(gaps[1] - gaps[3])


def test_leads_are_given_on_every_set_at_the_last_layer(rows):
    own = rows[(rows["metric"] == "spearman_lead") & (rows["dataset"] == "sts13")]
    assert set(own["method"]) == {"ESE − MRL", "ESE − RAW", "MRL − RAW"}
    assert set(own["layer"]) == {3} and set(own["dim"]) == {8}


def test_rows_say_what_they_come_from(rows):
    assert set(rows["backbone"]) == {"stub"} and set(rows["readout"]) == {"encoder"}
    assert rows.loc[rows["method"] == RAW, "n_train"].isna().all()
    assert (rows.loc[rows["method"] == ESE, "n_train"] == TrainConfig().sentences).all()
    constant = rows[(rows["layer"] == 0) & (rows["metric"] == "spearman")]
    assert constant["value"].isna().all()
    assert not (rows.loc[rows["metric"] == "spearman_lead", "layer"] == 0).any()


def test_a_cut_network_has_its_half_at_least_at_layer_one(scored):
    assert [half_depth(replace(scored, layers=tuple(range(n + 1)))) for n in (1, 2, 3, 12)] == [1, 1, 1, 6]
