"""Worlds of known dimension: what is known agrees with many ideal vectors; knees come from the retention curve."""

import numpy as np
import pytest

from microworld import World
from repro import data, theory
from repro.papers.proposal import microworld
from repro.runs.embeddings import TextTable
from repro.types import InputError


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
    assert theory.effective_rank(X) == pytest.approx(microworld.effective_rank_of(world), rel=0.02)
    assert theory.participation_ratio(X) == pytest.approx(world.participation_ratio, rel=0.02)


def test_ideal_vectors_have_the_graded_similarity(probes):
    for probe in probes:
        cosines = (probe.ideal[0] * probe.ideal[1]).sum(axis=1)
        assert 5 * cosines == pytest.approx(probe.pairs.scores, abs=1e-9)
    again = microworld.Probe.draw(3, 60, values=4, seed=1)
    assert again.pairs.texts1 == probes[0].pairs.texts1


def test_known_dimension_grows_with_factors(probes):
    rows = microworld.known_rows(probes, experiment="x").pivot_table(index="setting", columns="metric", values="value")
    assert (rows.loc["5 factors"] > rows.loc["3 factors"]).all()


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
