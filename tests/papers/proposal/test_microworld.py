"""Worlds of known dimension: what is known agrees with many ideal vectors; knees come from the retention curve."""

import numpy as np
import pandas as pd
import pytest

from microworld import World
from repro import data, theory
from repro.papers.proposal import microworld
from repro.rows import make_rows
from repro.runs.encoders import TextTable
from repro.types import InputError
from shown_code import on_page


@pytest.fixture(scope="module")
def probes():
    return [microworld.Probe.draw(f, 60, values=4, seed=1) for f in (3, 5)]


def table_of(probe, make):
    """A table of the probe's sentences under `make(ideal vectors)`."""
    texts = data.texts_of(probe.pairs)
    X = make(np.concatenate(probe.ideal))
    return TextTable({text: i for i, text in enumerate(texts)}, X[: len(texts)])


@pytest.mark.parametrize("factors", [3, 6])
def test_known_values_are_those_of_many_frames(factors):
    world = World(factors, values=4)
    drawn = world.draw(20_000, np.random.default_rng(0))
    X = world.ideal_embeddings(drawn)
    known = on_page("beyond_microworld", "effective_rank")["effective_rank"](world)
    assert theory.effective_rank(X) == pytest.approx(known, rel=0.02)
    assert theory.participation_ratio(X) == pytest.approx(world.participation_ratio, rel=0.02)


def test_ideal_vectors_have_the_graded_similarity(probes):
    for probe in probes:
        cosines = (probe.ideal[0] * probe.ideal[1]).sum(axis=1)
        assert 5 * cosines == pytest.approx(probe.pairs.scores, abs=1e-9)
    again = microworld.Probe.draw(3, 60, values=4, seed=1)
    assert again.pairs.texts1 == probes[0].pairs.texts1


def test_ideal_embeddings_score_fully_and_knees_follow_the_curve(probes):
    probe = probes[0]
    rng = np.random.default_rng(0)
    noise = table_of(probe, lambda X: rng.normal(size=(len(X), 16)))
    rows = microworld.world_rows([probe], {"noise": noise}, [2, 4, 8, 32], target=0.9, experiment="x")
    ideal = rows[rows["method"] == "ideal"]
    score = ideal[ideal["metric"] == "spearman"]["value"].item()
    assert score > 0.99
    shares = ideal[ideal["metric"] == "share_kept"].set_index("dim")
    assert (shares["ci_low"] <= shares["value"] + 1e-9).all() and 32 not in shares.index, "D is below 32"
    knee = ideal[ideal["metric"] == "knee"]["value"].item()
    assert shares.loc[knee, "value"] >= 0.9
    assert set(rows[rows["method"] == "noise"]["metric"]) >= {"spearman", "two_nn"}
    assert "share_kept" not in set(rows[rows["method"] == "noise"]["metric"]), "a score that may be zero has no share"


def test_unusable_knobs_are_named():
    with pytest.raises(InputError, match="factors is 2"):
        microworld.Probe.draw(2, 10)
    with pytest.raises(InputError, match="graded pairs asked for"):
        microworld.Probe.draw(3, 5_000, values=2)


WORLDS = (3, 4, 5, 6, 8)


def worlds(estimate=lambda f: 2.0 * f, knee=lambda f: 8.0, factors=WORLDS):
    rows = []
    for f in factors:
        known = {"participation_ratio": 4.0 * f, "effective_rank": 10.0 * f}
        found = {"effective_rank": 20.0 * f, "participation_ratio": estimate(f), "knee": knee(f)}
        for method, values in (("known", known), ("m", found)):
            at = {"setting": f"{f} factors", "method": method}
            rows += [{**at, "metric": metric, "value": value} for metric, value in values.items()]
    return pd.concat([make_rows(rows, experiment="x", seed=seed) for seed in range(3)])


def test_growth_is_judged_and_a_constant_knee_is_not():
    growth = on_page("beyond_microworld", "draw_intrinsic", "growth")["growth"]
    table = growth(worlds())
    assert list(table["estimate"]) == ["effective rank", "participation ratio"]
    assert list(table["verdict"]) == ["up"] * 2
    assert list(table["estimate / known"]) == pytest.approx([2.0, 0.5]), "each against its own truth"
    falling = growth(worlds(lambda f: -f)).set_index("estimate")["verdict"]
    assert falling["participation ratio"] == "down"
    both = growth(worlds(knee=lambda f: 8.0 + (f == 5))).set_index("estimate")["verdict"]
    assert both["knee"] == "unclear"
    assert growth(worlds(factors=(3, 4))).empty, "two worlds make no trend"
    assert set(growth(worlds().query("seed < 2"))["verdict"]) == {"unclear"}, "two seeds have no interval"
