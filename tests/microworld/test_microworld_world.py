import numpy as np
import pytest

from microworld import World, graded_pairs
from microworld.vocabulary import ABSENT, FACTORS, NAMES, POLARITY
from microworld.world import drop, in_split
from repro.types import InputError

WORLDS = [World(), World(factors=4), World(factors=3, values=5), World(values=6, seed=3)]


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_frame_similarity_is_the_inner_product_of_ideal_embeddings(world):
    rng = np.random.default_rng(0)
    f, g = drop(world.draw(300, rng), rng), drop(world.draw(300, rng), rng)
    X, Y = world.ideal_embeddings(f), world.ideal_embeddings(g)
    np.testing.assert_allclose((X * Y).sum(axis=1), world.similarity(f, g), atol=1e-12)
    np.testing.assert_allclose((X * X).sum(axis=1), 1)
    np.testing.assert_allclose(world.similarity(f, f), 1)


def test_similarity_of_full_frames_is_the_weighted_sum_and_denial_costs_three_fifths():
    world = World()
    f = world.draw(50, np.random.default_rng(0))
    g = f.copy()
    g[:, NAMES.index("place")] = (g[:, NAMES.index("place")] + 14) % 28
    place = FACTORS[NAMES.index("place")]
    expected = 1 - world.weights[3] * (1 - place.kernel[f[:, 3], g[:, 3]])
    np.testing.assert_allclose(world.similarity(f, g), expected)
    g[:, POLARITY] = 1 - g[:, POLARITY]
    np.testing.assert_allclose(world.similarity(f, g), 0.4 * expected)
    assert (
        np.isclose(world.weights.sum(), 1) and (world.weights[:3] > world.weights[3:].max()).all()
    )


def test_every_frame_of_a_small_world_gives_the_spectrum_exactly():
    world = World(factors=3, values=6)
    X = world.ideal_embeddings(np.stack(np.meshgrid(*world.choices), axis=-1).reshape(-1, 3))
    found = np.clip(np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1], 0, None)
    np.testing.assert_allclose(found, world.spectrum, atol=1e-12)
    for share in (0.5, 0.9, 0.99):
        assert world.dimension(share) == np.searchsorted(np.cumsum(found) / found.sum(), share) + 1


def test_no_frame_is_in_two_splits():
    world, rng = World(factors=5, values=4), np.random.default_rng(0)
    frames = drop(world.draw(5000, rng), rng)
    splits = {split: in_split(frames.T, split) for split in ("train", "dev", "test")}
    assert (sum(inside.astype(int) for inside in splits.values()) == 1).all() and in_split(
        frames.T,
        "all",
    ).all()
    assert [in_split(frame, "dev") for frame in frames.tolist()] == splits["dev"].tolist(), (
        "of one or of many the same"
    )
    shares = [in_split(World().draw(20000, rng).T, split).mean() for split in splits]
    np.testing.assert_allclose(shares, [0.6, 0.1, 0.3], atol=0.015)


def test_pairs_keep_to_their_split_and_spread_over_the_scale():
    pairs = graded_pairs(World(), 1000, np.random.default_rng(0), split="test")
    assert in_split(pairs.frames1.T, "test").all() and in_split(pairs.frames2.T, "test").all()
    counts, _ = np.histogram(pairs.similarity, bins=10, range=(0, 1))
    assert counts.min() >= 50 and counts.max() <= 130
    np.testing.assert_allclose(World().similarity(pairs.frames1, pairs.frames2), pairs.similarity)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: World(factors=2), "factors is 2: expected 3 to 8"),
        (lambda: World(values=1), "values is 1: expected at least 2"),
        (lambda: World().dimension(1.5), "share is 1.5"),
        (
            lambda: World(factors=4).similarity(np.zeros((3, 5), int), np.zeros((3, 5), int)),
            r"shape \(3, 5\)",
        ),
        (
            lambda: World(factors=4).similarity(np.zeros((3, 4), int), np.zeros((2, 4), int)),
            "lengths differ",
        ),
        (lambda: World(factors=4).ideal_embeddings(np.full((1, 4), ABSENT)), "lacks its agent"),
    ],
)
def test_knobs_out_of_reach(make, message):
    with pytest.raises(InputError, match=message):
        make()
