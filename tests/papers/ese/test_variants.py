"""Variants of ESE: one thing changed at a time, none trained twice, and what is compared with what."""

from dataclasses import replace
from math import exp

import pytest
import torch

from repro.methods import AVERAGE, ESE_DEFAULT, ESE_VARIANTS, MRL, RAW, SHALLOW_AVERAGE
from repro.objectives import ESPRESSO_FORMS, EspressoConfig
from repro.papers.ese.claims_use import COMPRESSION, WEIGHTS
from repro.papers.ese.depth import SETS, load_sets, score_lines
from repro.papers.ese.variants import (
    VARIANTS,
    ablation_rows,
    changes_of,
    comparisons,
    same_training,
    sizes_of,
    variant_lines,
    variants_of,
    what_is_read,
)
from repro.store import Store
from repro.types import InputError

FEW = ("default", "uniform weights", "learned weights", "no compression", "as released")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("variants"))


@pytest.fixture(scope="module")
def base(cell_config):
    return replace(cell_config, corpus="nli", pooling="mean", sentences=64, check_every=4)


@pytest.fixture(scope="module")
def lines(base, store):
    torch.set_num_threads(1)
    return variant_lines(base, store, variants=FEW, sizes=[2, 4, 8], progress=False)


@pytest.fixture(scope="module")
def rows(lines, store):
    sets = load_sets(SETS, "microworld", rows=30)
    scored = score_lines(lines, sets, store, dims=[4], resamples=40, progress=False)
    return ablation_rows(scored, experiment="e", seed=0)


def value_of(rows, **where):
    own = rows[rows["metric"] == where.pop("metric", "spearman")]
    for column, wanted in where.items():
        own = own[own[column] == wanted]
    assert len(own) == 1, own
    return float(own["value"].iloc[0])


def test_every_variant_differs_from_its_reference_in_one_thing():
    for variant in VARIANTS.values():
        if variant.name in (ESE_DEFAULT, "as released"):
            continue
        own, other = (vars(EspressoConfig(**VARIANTS[n].changes)) for n in (variant.name, variant.reference))
        changed = {switch for switch in own if own[switch] != other[switch]}
        assert changed in ({*changed} if len(changed) == 1 else set(), {"first_layer", "last_shallow"}), variant.name
    assert EspressoConfig(**VARIANTS["as released"].changes) == ESPRESSO_FORMS["code"]
    assert set(ESE_VARIANTS.values()) == {*COMPRESSION, *WEIGHTS["last layer"]}, "all of Table 2"


def test_what_a_variant_sets_is_said_without_what_it_keeps():
    assert changes_of(ESE_DEFAULT) == {}
    assert changes_of("E3 loss at full size") == {"full_size_loss": True}
    assert changes_of("as released") == {
        "first_layer": 0,
        "last_shallow": -2,
        "reduction": "mean",
        "full_size_loss": True,
        "dependency": "per_batch",
        "decomposition": "randomized",
    }


def test_a_network_of_two_blocks_has_one_weight_and_a_deeper_one_several():
    everything = list(VARIANTS)
    assert same_training(everything, 2) == {"uniform weights": "default", "E2 mean over layers": "default"}
    assert same_training(everything, 6) == {}
    with pytest.raises(InputError, match="unknown variant 'E99'"):
        same_training(["E99"], 2)


def test_what_is_read_keeps_what_counts():
    code = ESPRESSO_FORMS["code"]
    assert what_is_read(code, 12) == code
    plain = EspressoConfig(decomposition="randomized")
    assert what_is_read(plain, 12) == EspressoConfig(), "one matrix per sentence is always decomposed exactly"
    none = EspressoConfig(strategy="none", dependency="per_batch", decomposition="randomized", center=True)
    assert what_is_read(none, 12) == EspressoConfig(strategy="none")


def test_menus_of_the_profiles():
    assert "E5 embeddings, centred" not in variants_of("embedded") and variants_of("gpu") == list(VARIANTS)
    assert sizes_of("embedded", 128) == [64]
    assert sizes_of("gpu", 768) == [16, 32, 64, 256, 512, 768]
    assert sizes_of("gpu", 128, [3]) == [3]


def test_equal_trainings_are_one(lines):
    names = [own.method for own in lines]
    assert names == [RAW, MRL, *FEW, "k = 2", "k = 8"], "the default's own size, 4 of 32, is not a variant"
    at = {own.method: own for own in lines}
    assert at["uniform weights"].identity == at["default"].identity
    assert len({own.identity for own in lines}) == len(lines) - 1
    assert (at["k = 8"].config.dim, at["default"].config.dim) == (8, 4)
    assert at["as released"].config.espresso == ESPRESSO_FORMS["code"], "as Table 1 trains it"


def test_repeated_sizes_and_unknown_variants_are_refused(base, store):
    with pytest.raises(InputError, match="different sizes"):
        variant_lines(base, store, variants=["default"], sizes=[2, 2])
    with pytest.raises(InputError, match="unknown variant"):
        variant_lines(base, store, variants=["defualt"])


def test_comparisons_are_those_of_the_table_the_figure_and_the_audit():
    found = set(comparisons([RAW, MRL, *VARIANTS, "k = 2"]))
    assert {("default", "embeddings"), ("embeddings", "max-k"), ("max-k", "no compression")} <= found
    assert {("learned weights", "default"), ("default", "uniform weights")} <= found
    assert ("E6 randomised", "E4 one matrix per batch") in found
    assert {("default", "k = 2"), ("k = 2", RAW), ("k = 2", MRL), ("default", MRL)} <= found
    gap = ["default", "no compression", "uniform weights"]
    assert {("default", "no compression"), ("default", "uniform weights")} <= set(comparisons(gap))
    assert all(set(pair) <= {RAW, "default"} for pair in comparisons([RAW, "default"]))


def test_rows_compare_variants_at_both_places_and_sizes(rows):
    for dim in (4, 32):
        last = [value_of(rows, method=m, dataset=AVERAGE, dim=dim) for m in ("no compression", "default")]
        low = [value_of(rows, method=m, dataset=SHALLOW_AVERAGE, dim=dim) for m in ("no compression", "default")]
        pair = {"method": "no compression − default", "dim": dim}
        lead = value_of(rows, metric="spearman_lead", dataset=AVERAGE, **pair)
        shallow = value_of(rows, metric="spearman_lead", dataset=SHALLOW_AVERAGE, **pair)
        assert (lead, shallow) == pytest.approx((last[0] - last[1], low[0] - low[1]))
        assert value_of(rows, metric="shallow_excess", **pair) == pytest.approx(shallow - lead)
    same = rows[(rows["method"] == "default − uniform weights") & (rows["metric"] == "spearman_lead")]
    assert len(same) and (same[["value", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_rows_say_sizes_and_weights(rows, lines):
    sizes = rows[rows["metric"] == "compressed_size"].set_index("method")["value"].to_dict()
    assert sizes["default"] == 4 and sizes["k = 8"] == 8 and MRL not in sizes and RAW not in sizes
    weights = rows[rows["metric"] == "layer_weight"].set_index("method")
    assert set(weights.index) == {"default", "learned weights"}, "fixed ones are the default's"
    assert weights.loc["default", ["layer", "value"]].tolist() == [1, 1.0]
    learned = next(own.cell.log_weights for own in lines if own.method == "learned weights")
    assert weights.loc["learned weights", "value"] == pytest.approx(exp(-learned[0]))
