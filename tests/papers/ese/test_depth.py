"""ESE's comparison on a small scale: which training is behind a line, every cell its own, contrasts
as arithmetic.
"""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
import torch

from repro.data import take
from repro.evaluation.shared import shared_weights, spearman_with
from repro.evaluation.sts import prefix_cosines, sts_spearman
from repro.methods import (
    AVERAGE,
    CONTROL,
    ESE,
    ESE_CODE,
    ESE_DEFAULT,
    ESE_VARIANTS,
    MRL,
    RAW,
    SHALLOW_AVERAGE,
)
from repro.models import SentenceEncoder
from repro.papers.ese import depth
from repro.papers.ese import lines as ese
from repro.papers.ese.ablation import COMPRESSION, WEIGHTS
from repro.papers.ese.differences import (
    AUDITED,
    REFERENCES,
    VARIANTS,
    form_of,
    same_training,
    what_is_read,
)
from repro.papers.ese.reading import only
from repro.runs.lines import SEVEN_SETS, load_tasks
from repro.settings import ESPRESSO_FORMS, EspressoConfig
from repro.types import InputError
from shown_code import on_page

DIMS = (2, 5)
FEW = ("default", "uniform weights", "learned weights", "no compression")


class Stub:
    """Stands in for an encoder of three blocks: states drawn by text, layer 0 one constant
    vector.
    """

    def __init__(self, seed: int, dim: int = 8) -> None:
        self.seed, self.dim, self.passes = seed, dim, 0

    def encode_layers(self, texts, layers=None, *, progress=False):
        self.passes += 1
        X = np.stack([self.states(text) for text in texts], axis=1)
        return X if layers is None else X[list(layers)]

    def states(self, text):
        rng = np.random.default_rng([self.seed, *text.encode()])
        shared = np.random.default_rng([*text.encode()]).normal(size=self.dim)
        h = np.stack([shared + 0.3 * self.seed * rng.normal(size=self.dim) for _ in range(4)])
        h[0] = 1.0
        return h.astype(np.float32)


def line(method, seed, **shape):
    stub = Stub(seed, **shape)
    told = f"{method} {seed} {shape}", "stub", None if method == RAW else 9
    return ese.LayeredEncoder(method, lambda: stub, *told), stub


def few_pairs(rows):
    return {
        name: take(task.pairs, rows) for name, task in load_tasks(SEVEN_SETS, "microworld").items()
    }


@pytest.fixture(scope="module")
def sets():
    return few_pairs(15)


@pytest.fixture(scope="module")
def scored(sets, store):
    lines = [line(method, seed)[0] for seed, method in enumerate((RAW, MRL, ESE))]
    return depth.score_lines(lines, sets, store, dims=DIMS, resamples=60)


@pytest.fixture(scope="module")
def rows(scored):
    return depth.depth_rows(scored, reference=5, experiment="e", seed=0)


def value_of(rows, metric="spearman", **where):
    (value,) = only(rows, metric=metric, **where)["value"]
    return value


# Lines


def test_a_line_is_trained_as_its_method_says(cell_config):
    assert [ese.compression_size(d) for d in (768, 1024, 384, 128, 32)] == [128, 128, 64, 16, 4]
    base = replace(
        cell_config,
        corpus="nli",
        prefixes=(4, 8),
        espresso=EspressoConfig(alpha=2.0),
        seed=3,
    )
    configs = {method: ese.line_config(base, method) for method in (CONTROL, MRL, ESE, ESE_CODE)}
    assert [c.objective for c in configs.values()] == ["angle", "matryoshka", "ese", "ese"]
    assert {(c.seed, c.sentences, c.batch_size, c.corpus) for c in configs.values()} == {
        (3, 96, 16, "nli")
    }
    assert configs[MRL].prefixes == (4, 8)
    assert configs[ESE].dim == 4 and ese.line_config(base, ESE, size=8).dim == 8
    assert (
        configs[ESE].espresso.alpha == 2.0 and configs[ESE_CODE].espresso == ESPRESSO_FORMS["code"]
    )
    with pytest.raises(InputError, match="unknown trained method 'SBERT'"):
        ese.line_config(base, "SBERT")


def test_lines_are_trained_once_and_raw_not_at_all(cell_config, store):
    base = replace(cell_config, corpus="nli", pooling="mean", check_every=6)
    raw, control, espresso = ese.ese_lines(base, store, methods=(RAW, CONTROL, ESE))
    assert raw.columns["n_train"] is None and control.columns["n_train"] == 96
    assert len({raw.identity, control.identity, espresso.identity}) == 3
    (again,) = ese.ese_lines(base, store, methods=(ESE,))
    assert again.cell.hit and again.identity == espresso.identity
    texts = ["one text", "another text"]
    untouched = SentenceEncoder.load(base.backbone, pooling="mean").encode_layers(texts)
    np.testing.assert_array_equal(raw.states(texts, store).X, untouched)
    assert not np.allclose(
        espresso.states(texts, store).at(1)[texts],
        raw.states(texts, store).at(1)[texts],
    )


def test_raw_is_cut_where_the_others_are(cell_config, store):
    mean = ese.raw_line(replace(cell_config, pooling="mean"))
    whole, cut = ese.raw_line(cell_config), ese.raw_line(replace(cell_config, layers=1))
    assert len({whole.identity, cut.identity, mean.identity}) == 3
    assert cut.states(["a text"], store).layers == (0, 1)
    np.testing.assert_allclose(
        cut.states(["a text"], store).at(1).X,
        whole.states(["a text"], store).at(1).X,
    )


# Variants


def test_every_variant_differs_from_its_reference_in_one_thing():
    for name, reference in REFERENCES.items():
        own, other = (vars(form_of(variant)) for variant in (name, reference))
        changed = {switch for switch in own if own[switch] != other[switch]}
        assert (
            name == "as released" or len(changed) == 1 or changed == {"first_layer", "last_shallow"}
        ), name
    assert form_of("as released") == ESPRESSO_FORMS["code"] and VARIANTS[ESE_DEFAULT] == {}
    of_table = {*COMPRESSION, *WEIGHTS["last layer"]}
    assert of_table == set(ESE_VARIANTS.values()) and of_table | set(AUDITED) == set(VARIANTS)


def test_a_network_of_two_blocks_has_one_weight_and_a_deeper_one_several():
    everything, code = list(VARIANTS), ESPRESSO_FORMS["code"]
    assert same_training(everything, 2) == {
        "uniform weights": "default",
        "E2 mean over layers": "default",
    }
    assert same_training(everything, 6) == {} and what_is_read(code, 12) == code
    with pytest.raises(InputError, match="unknown variant 'E99'"):
        same_training(["E99"], 2)
    plain = EspressoConfig(decomposition="randomized")
    assert what_is_read(plain, 12) == EspressoConfig(), (
        "one matrix per sentence is always decomposed exactly"
    )
    none = EspressoConfig(
        strategy="none",
        dependency="per_batch",
        decomposition="randomized",
        center=True,
    )
    assert what_is_read(none, 12) == EspressoConfig(strategy="none")


@pytest.fixture(scope="module")
def trained(cell_config, store):
    torch.set_num_threads(1)
    base = replace(cell_config, corpus="nli", pooling="mean", sentences=32, check_every=2)
    plain, merged = ese.line_config(base, ESE), same_training(FEW, 2)
    configs = {MRL: ese.line_config(base, MRL)}
    configs |= {name: replace(plain, espresso=form_of(merged.get(name, name))) for name in FEW}
    return [ese.raw_line(base), *ese.trained_lines(configs, store)]


@pytest.fixture(scope="module")
def ablation(trained, store):
    scored = depth.score_lines(trained, few_pairs(12), store, dims=[4], resamples=20)
    return on_page("ese_table2_ablation", shared={"experiment": "e", "seed": 0})["ablation_rows"](
        scored
    )


def test_rows_compare_variants_at_both_places_and_sizes(ablation):
    for dim in (4, 32):
        last = [
            value_of(ablation, method=m, dataset=AVERAGE, dim=dim)
            for m in ("no compression", "default")
        ]
        low = [
            value_of(ablation, method=m, dataset=SHALLOW_AVERAGE, dim=dim)
            for m in ("no compression", "default")
        ]
        pair = {"method": "no compression − default", "dim": dim}
        lead = value_of(ablation, metric="spearman_lead", dataset=AVERAGE, **pair)
        shallow = value_of(ablation, metric="spearman_lead", dataset=SHALLOW_AVERAGE, **pair)
        assert (lead, shallow) == pytest.approx((last[0] - last[1], low[0] - low[1]))
        assert value_of(ablation, metric="shallow_excess", **pair) == pytest.approx(shallow - lead)
    # Equal trainings are one
    same = ablation[
        (ablation["method"] == "default − uniform weights")
        & (ablation["metric"] == "spearman_lead")
    ]
    assert len(same) and (same[["value", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_rows_say_sizes_and_weights(ablation, trained):
    sizes = ablation[ablation["metric"] == "compressed_size"].set_index("method")["value"]
    assert sizes.to_dict() == dict.fromkeys(FEW, 4)
    weights = ablation[ablation["metric"] == "layer_weight"].set_index("method")
    assert set(weights.index) == {"default", "learned weights"}, "fixed ones are the default's"
    assert weights.loc["default", ["layer", "value"]].tolist() == [1, 1.0]
    learned = next(own.cell.log_weights for own in trained if own.name == "learned weights")
    assert weights.loc["learned weights", "value"] == pytest.approx(exp(-learned[0]))


# Every cell


def test_every_cell_is_the_spearman_of_the_sliced_states(scored, sets):
    for i, own in enumerate(scored.lines):
        stub = own.make()
        for name, pairs in list(sets.items())[-2:]:
            for layer in (1, 3):
                X1, X2 = (
                    np.stack([stub.states(t)[layer] for t in side])
                    for side in (pairs.texts1, pairs.texts2)
                )
                for dim in (*DIMS, 8):
                    expected = sts_spearman(X1[:, :dim], X2[:, :dim], pairs.scores)
                    found = scored.scores[name].value[i, layer, scored.dims.index(dim)]
                    assert found == pytest.approx(expected, abs=1e-12)


def test_all_lines_are_resampled_on_the_same_pairs(scored, sets):
    pairs, s, size = sets["stsb"], scored.scores["stsb"], scored.dims.index(5)
    both = []
    for own in scored.lines[:0:-1]:  # ESE, MRL
        X1, X2 = (
            np.stack([own.make().states(t)[2] for t in side])
            for side in (pairs.texts1, pairs.texts2)
        )
        both += [prefix_cosines(X1, X2, [5])[0]]
    weights = shared_weights(sets, resamples=60, seed=0)["stsb"]
    expected = spearman_with(weights, both, pairs.scores)
    assert (s[2, 2, size] - s[1, 2, size]).columns == pytest.approx(
        (expected[0] - expected[1]).columns
    )


def test_rows_of_a_trained_line_say_how_it_was_trained(trained):
    own = next(line for line in trained if line.cell)
    config = own.cell.config
    for name in ("pooling", "learning_rate", "batch_size", "max_length"):
        assert own.columns[name] == getattr(config, name)
    assert own.columns["config"] and own.columns["method"] == own.name


def test_the_average_is_of_all_seven_or_of_none_and_a_text_passes_once(scored, sets, store):
    each = [scored.scores[name].value for name in depth.SEVEN_SETS]
    np.testing.assert_allclose(scored.scores[AVERAGE].value, np.mean(each, axis=0))
    few, (own, stub) = {name: sets[name] for name in ("stsb", "sickr")}, line("ESE", 9)
    for dims in ((), (3, 4)):
        some = depth.score_lines([own], few, store, dims=dims, resamples=5)
        assert set(some.scores) == {"stsb", "sickr"} and some.dims == (*dims, 8)
    assert stub.passes == 1


def test_shallow_layers_are_those_below_the_last_of_the_last_twelve(scored):
    of_depth = {n: replace(scored, layers=tuple(range(n + 1))) for n in (1, 2, 3, 12, 24)}
    assert [deep.half for deep in of_depth.values()] == [1, 1, 1, 6, 12]
    assert (of_depth[1].shallow, of_depth[3].shallow, of_depth[24].shallow) == (
        [],
        [1, 2],
        list(range(13, 24)),
    )


def test_networks_of_two_shapes_and_sizes_beyond_are_refused(scored, sets, store):
    few = {"stsb": sets["stsb"]}
    with pytest.raises(InputError, match="one shape"):
        depth.score_lines([scored.lines[0], line(ESE, 1, dim=6)[0]], few, store)
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        depth.score_lines([scored.lines[0]], few, store, dims=[9])
    with pytest.raises(InputError, match="'trec' is not a set of scored pairs"):
        load_tasks(["trec"], "microworld")["trec"].pairs  # noqa: B018


# Rows


def test_leads_steps_changes_and_drops_are_differences_of_cells(rows):
    def cell(method, layer, dim):
        return value_of(rows, method=method, dataset=AVERAGE, layer=layer, dim=dim)

    drops = {method: cell(method, 3, 2) - cell(method, 1, 2) for method in (RAW, ESE)}
    gaps = {k: np.mean([cell(ESE, k, d) - cell(RAW, k, d) for d in (*DIMS, 8)]) for k in (1, 3)}
    for metric, where, expected in (
        (
            "spearman_lead",
            {"method": "ESE − MRL", "layer": 2, "dim": 5},
            cell(ESE, 2, 5) - cell(MRL, 2, 5),
        ),
        ("spearman_step", {"method": ESE, "layer": 3, "dim": 8}, cell(ESE, 3, 8) - cell(ESE, 2, 8)),
        ("spearman_change", {"method": ESE, "dim": 8}, cell(ESE, 3, 8) - cell(ESE, 3, 5)),
        ("spearman_drop", {"method": RAW, "dim": 2}, drops[RAW]),
        ("drop_lead", {"method": "ESE − RAW", "dim": 2}, drops[ESE] - drops[RAW]),
        ("depth_lead", {"method": "ESE − RAW"}, gaps[1] - gaps[3]),
    ):
        assert value_of(rows, metric=metric, dataset=AVERAGE, **where) == pytest.approx(expected), (
            metric
        )


def test_rows_hold_every_cell_and_say_what_they_come_from(rows):
    cells = rows[(rows["metric"] == "spearman") & rows["layer"].notna()]
    assert len(cells) == 3 * 4 * 3 * 8  # Lines, layers, sizes, sets and their average
    assert (cells["value"].isna() == (cells["layer"] == 0)).all(), (
        "one vector for all texts has no score"
    )
    assert (rows["n_train"].isna() == (rows["method"] == RAW)).all()
    leads = rows[rows["metric"] == "spearman_lead"]
    of_one_set = leads[leads["dataset"] == "sts13"]
    assert (
        len(of_one_set) == 3 and set(of_one_set["layer"]) == {3} and set(of_one_set["dim"]) == {8}
    )
    at = [value_of(rows, method=ESE, dataset=AVERAGE, layer=layer, dim=8) for layer in (1, 2)]
    assert value_of(rows, method=ESE, dataset=SHALLOW_AVERAGE, dim=8) == pytest.approx(np.mean(at))
