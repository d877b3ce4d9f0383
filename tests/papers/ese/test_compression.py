"""Figure 7's experiment: what enters a map, what its distances are, and measures that need none."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from repro import data
from repro.data.sampling import take
from repro.evaluation.retention import prefix_cka
from repro.evaluation.sts import prefix_cosines
from repro.methods import ESE, MRL
from repro.papers.ese import compression
from repro.store import Store
from repro.types import InputError

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def pairs():
    return take(data.load("stsb", source="microworld"), 40)


@pytest.fixture(scope="module")
def joint_map(page_functions):
    return page_functions("ese_figure7_compression", perplexity=30.0)["joint_map"]


def test_a_map_holds_both_sets_and_follows_its_seed(joint_map):
    X = rng.normal(size=(30, 8))
    first = joint_map(X, 4, 0, False)
    assert first.shape == (60, 2) and np.isfinite(first).all()
    np.testing.assert_array_equal(first, joint_map(X, 4, 0, False))
    assert not np.allclose(first, joint_map(X, 4, 1, False))
    with pytest.raises(InputError, match="dim is 9: expected 1 to 8"):
        joint_map(X, 9, 0, False)


def test_a_prefix_that_is_all_there_is_lies_on_its_sentence(joint_map, monkeypatch):
    class Planar:
        def __init__(self, *_, **__): ...

        def fit_transform(self, X):
            return X[:, :2]

    monkeypatch.setitem(joint_map.__globals__, "TSNE", Planar)
    X = np.hstack([rng.normal(size=(20, 3)), np.zeros((20, 5))])
    for centre in (False, True):
        Y = joint_map(X, 3, 0, centre)
        np.testing.assert_allclose(Y[:20], Y[20:])
    shared = X + np.array([0, 0, 0, 9, 0, 0, 0, 0])  # a common direction, outside the prefix
    apart, close = (joint_map(shared, 3, 0, c) for c in (False, True))
    assert np.abs(apart[:20]).mean() < np.abs(apart[20:]).mean()  # unit rows point along it, prefixes cannot
    np.testing.assert_allclose(close.reshape(2, 20, 2).mean(1), 0, atol=1e-12)


def test_distances(untrained_lines):
    full, cut = np.array([[0.0, 0], [4, 0]]), np.array([[0.0, 3], [4, 1]])
    joint = compression.Joint(untrained_lines[0], compression.AS_THEY_ARE, 0, full, cut)
    assert joint.distance == 2.0 and joint.share == 0.5


def test_rows_of_maps(untrained_lines):
    def joint(line, form, seed, distance):
        full = np.array([[0.0, 0], [2, 0]])
        return compression.Joint(line, form, seed, full, full + np.array([0, distance]))

    maps = [
        joint(line, form, seed, i + 1 + 0.1 * seed * (i - 1))
        for i, line in enumerate(untrained_lines)
        for form in compression.FORMS
        for seed in (0, 1, 2)
    ]
    rows = compression.map_rows(maps, dim=4, experiment="e", seed=0)
    each = rows[(rows["metric"] == "map_distance") & (rows["method"] == ESE)]
    assert len(each) == 6 and set(each["setting"]) == {
        f"{form}, t-SNE seed {seed}" for form in compression.FORMS for seed in (0, 1, 2)
    }
    lead = rows[(rows["metric"] == "map_distance_lead") & (rows["method"] == f"{ESE} − {MRL}")]
    assert set(lead["setting"]) == {f"{form}, 3 t-SNE seeds" for form in compression.FORMS}
    row = lead.iloc[0]  # 1, 1.1, 1.2: mean 1.1, t(.975, 2) · 0.1 / √3
    assert row["value"] == pytest.approx(1.1) and row["ci_high"] - row["value"] == pytest.approx(4.30265 * 0.1 / 3**0.5)
    assert (rows["dim"] == 4).all()
    alone = compression.map_rows([m for m in maps if m.seed == 0], dim=4)
    assert alone.loc[alone["metric"] == "map_distance_lead", "ci_low"].isna().all()


def test_agreement_rows_are_the_measures(untrained_lines, pairs):
    rows = compression.agreement_rows(untrained_lines, pairs, Store(), dims=[4, 32], seed=0, experiment="e")
    texts = list(dict.fromkeys(pairs.texts1 + pairs.texts2))
    X = untrained_lines[2].encoder().encode(texts)
    sides = [X[[texts.index(text) for text in side]] for side in (pairs.texts1, pairs.texts2)]
    cosines = prefix_cosines(*sides, [4, 32])
    at = rows[rows["method"] == ESE].set_index(["metric", "dim"])
    assert at.loc[("cosine_agreement", 4), "value"] == pytest.approx(spearmanr(*cosines).statistic, abs=1e-6)
    assert at.loc[("linear_cka", 4), "value"] == pytest.approx(prefix_cka(X, [4])[0], abs=1e-6)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert at.loc[("kept_length", 4), "value"] == pytest.approx(np.linalg.norm(unit[:, :4], axis=1).mean(), abs=1e-6)
    for metric in ("cosine_agreement", "linear_cka", "kept_length"):
        assert at.loc[(metric, 32), "value"] == pytest.approx(1, abs=1e-6)
    own = rows[rows["metric"].isin(["cosine_agreement", "linear_cka"]) & (rows["dim"] == 4)]
    assert ((own["ci_low"] < own["ci_high"]) & (own["ci_high"] <= 1)).all()
    with pytest.raises(InputError, match="dim is 33: expected 1 to 32"):
        compression.agreement_rows(untrained_lines, pairs, Store(), dims=[33])


def test_leads_are_paired(untrained_lines, pairs):
    twins = [untrained_lines[1], replace(untrained_lines[1], method=ESE)]
    rows = compression.agreement_rows(twins, pairs, Store(), dims=[8], seed=0)
    leads = rows[rows["metric"].str.endswith("_lead")]
    assert len(leads) == 2 and (leads[["value", "ci_low", "ci_high"]] == 0).all(axis=None)
