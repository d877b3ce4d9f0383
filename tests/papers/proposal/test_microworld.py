"""Worlds of known dimension: what is known agrees with many ideal vectors, and grades with their cosines."""

import numpy as np
import pytest

from microworld import World
from repro import theory
from shown_code import on_page


@pytest.mark.parametrize("factors", [3, 6])
def test_known_values_are_those_of_many_frames(factors):
    world = World(factors, values=4)
    drawn = world.draw(20_000, np.random.default_rng(0))
    X = world.ideal_embeddings(drawn)
    known = on_page("beyond_microworld", "effective_rank")["effective_rank"](world)
    assert theory.effective_rank(X) == pytest.approx(known, rel=0.02)
    assert theory.participation_ratio(X) == pytest.approx(world.participation_ratio, rel=0.02)


def test_ideal_vectors_have_the_graded_similarity():
    _, graded, ideal = on_page("beyond_microworld", values=4, seed=1)["draw_pairs"](5, 60)
    assert 5 * (ideal[0] * ideal[1]).sum(axis=1) == pytest.approx(graded.scores, abs=1e-9)
