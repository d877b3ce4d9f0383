"""Worlds of known dimension: what is known agrees with many ideal vectors; knees come from the retention curve."""

import numpy as np
import pandas as pd
import pytest

from microworld import World
from repro import theory
from shown_code import on_page


@pytest.fixture(scope="module")
def probes():
    draw = on_page("beyond_microworld", "draw_pairs", values=4, seed=1)["draw_pairs"]
    return [draw(f, 60) for f in (3, 5)]


@pytest.mark.parametrize("factors", [3, 6])
def test_known_values_are_those_of_many_frames(factors):
    world = World(factors, values=4)
    drawn = world.draw(20_000, np.random.default_rng(0))
    X = world.ideal_embeddings(drawn)
    known = on_page("beyond_microworld", "effective_rank")["effective_rank"](world)
    assert theory.effective_rank(X) == pytest.approx(known, rel=0.02)
    assert theory.participation_ratio(X) == pytest.approx(world.participation_ratio, rel=0.02)


def test_ideal_vectors_have_the_graded_similarity(probes):
    for _, graded, ideal in probes:
        assert 5 * (ideal[0] * ideal[1]).sum(axis=1) == pytest.approx(graded.scores, abs=1e-9)


def test_ideal_embeddings_score_fully_and_knees_follow_the_curve(probes):
    page = on_page("beyond_microworld", "kept", dims=[2, 4, 8, 32], target=0.9, seed=0)
    _, pairs, ideal = probes[0]
    rows = pd.DataFrame(page["kept"](*ideal, pairs)).set_index("metric")
    assert rows.loc["spearman", "value"] > 0.99
    shares = rows.loc["share_kept"].set_index("dim")
    assert (shares["ci_low"] <= shares["value"] + 1e-9).all() and 32 not in shares.index, "D is below 32"
    assert shares.loc[rows.loc["knee", "value"], "value"] >= 0.9
    noise = np.random.default_rng(0).normal(size=(2, len(pairs), 16))
    assert [row["metric"] for row in page["kept"](*noise, pairs)] == ["spearman"], "what may be zero has no share"
