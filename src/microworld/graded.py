"""Graded pairs: two sentences and how alike their frames are, spread evenly over the scale."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microworld.frames import Frames, split_of, swap_roles
from microworld.surface import render
from microworld.taxonomy import ABSENT, AGENT, FACTORS, OBJECT, POLARITY
from microworld.world import World, draw_split
from repro.types import InputError

ATTEMPTS = 12
"""How often a changed frame that fell into another split is changed anew before its pair is given up."""
BINS = 20
"""Graded pairs are spread evenly over so many equal steps of the score."""


class Flavour(NamedTuple):
    """What one set of graded pairs is like."""

    differ: float = 0.4
    """How often a value that both sentences share is surely said by different words."""
    unsaid: float = 0.6
    """How often an optional factor is left unsaid: the more, the shorter the sentences."""


PLAIN = Flavour()


class GradedPairs(NamedTuple):
    """Sentences, their frames, and how alike these are."""

    texts1: list[str]
    texts2: list[str]
    frames1: Frames
    frames2: Frames
    similarity: NDArray[np.float64]
    """In [0, 1]; the gold score is five times it."""


def graded_pairs(
    world: World, n: int, rng: np.random.Generator, *, split: str = "all", flavour: Flavour = PLAIN
) -> GradedPairs:
    """Draw n pairs of sentences, their frame similarity spread evenly over 0 … 1.

    Args:
        world: Where frames come from.
        n: How many pairs.
        rng: Draws everything.
        split: Keep to frames of this split; `all` keeps any.
        flavour: Wording and length.

    Raises:
        InputError: if the world is too small for n distinct pairs.
    """
    first, second = _candidates(world, 12 * n, rng, split, flavour.unsaid)
    if len(first) < n:
        raise InputError(f"{n} graded pairs asked for, but only {len(first)} could be drawn: raise factors or values")
    similarity = world.similarity(first, second)
    rows = rng.permutation(_even_rows(similarity, n))
    first, second = first[rows], second[rows]
    wording = render(first, rng)
    other = render(second, rng, other=(first, wording), differ=flavour.differ)
    return GradedPairs(wording.texts, other.texts, first, second, similarity[rows])


def mutate(frames: Frames, closeness: NDArray[np.float64], rng: np.random.Generator, world: World) -> Frames:
    """Another frame for each: a factor stays with probability `closeness`, else moves to a near or far value."""
    drawn = world.draw(len(frames), rng)
    changed = frames.copy()
    for column, factor in enumerate(FACTORS[: world.factors]):
        groups = np.array(factor.group_of)
        values = frames[:, column]
        near = _sibling(values, groups, world.choices[column], rng)
        moves = rng.random(len(frames)) > closeness
        target = np.where(rng.random(len(frames)) < 0.4, near, drawn[:, column])
        if factor.optional:
            target = np.where(rng.random(len(frames)) < 0.3, ABSENT, target)
            target = np.where((values == ABSENT) & (target == ABSENT), drawn[:, column], target)
        changed[:, column] = np.where(moves, target, values)
    if world.has_polarity:
        flips = rng.random(len(frames)) < 0.08
        changed[:, POLARITY] = np.where(flips, 1 - frames[:, POLARITY], frames[:, POLARITY])
    return changed


def _candidates(world: World, n: int, rng: np.random.Generator, split: str, unsaid: float) -> tuple[Frames, Frames]:
    """Up to n distinct pairs of frames of one split, from copies to strangers."""
    first = draw_split(world, n, rng, split, unsaid)
    closeness = rng.random(n)
    # A twentieth are copies: the top of the scale, which independent changes seldom reach.
    closeness[rng.random(n) < 0.05] = 1.0
    second = mutate(first, closeness, rng, world)
    swapped = (rng.random(n) < 0.03) & (first[:, OBJECT] < len(FACTORS[AGENT]))
    second[swapped] = swap_roles(first[swapped])
    if split != "all":
        for _ in range(ATTEMPTS):
            rows = np.flatnonzero(split_of(second) != split)
            second[rows] = mutate(first[rows], closeness[rows], rng, world)
    kept = np.sort(np.unique(np.concatenate([first, second], axis=1), axis=0, return_index=True)[1])
    if split != "all":
        kept = kept[split_of(second[kept]) == split]
    return first[kept], second[kept]


def _even_rows(similarity: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Pick n rows with similarities spread evenly: the bins take turns, so a short bin is made up for by the others."""
    bins = np.minimum((similarity * BINS).astype(np.int64), BINS - 1)
    turn = np.zeros(len(bins), dtype=np.int64)
    for step in range(BINS):
        members = np.flatnonzero(bins == step)
        turn[members] = np.arange(len(members))
    return np.lexsort((bins, turn))[:n]


def _sibling(
    values: NDArray[np.int64], groups: NDArray[np.int64], allowed: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """A random other value of the same group; the value itself where it has no sibling or is unsaid."""
    result = values.copy()
    for group in np.unique(groups):
        members = allowed[groups[allowed] == group]
        rows = np.flatnonzero((values != ABSENT) & (groups[values] == group))
        if len(members) > 1 and len(rows):
            place = np.searchsorted(members, values[rows])
            step = rng.integers(1, len(members), size=len(rows))
            result[rows] = members[(place + step) % len(members)]
    return result
