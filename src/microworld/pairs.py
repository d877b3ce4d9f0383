"""Pairs of sentences: graded by how alike their frames are, paraphrase or not, entailment."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microworld.vocabulary import (
    ABSENT,
    ACTION,
    AGENT,
    FACTORS,
    LISTS,
    OBJECT,
    PLACE,
    POLARITY,
    Frames,
    render,
)
from microworld.world import World, draw_split, in_split
from repro.types import InputError

# How often a changed frame that fell into another split is changed anew before its pair is given up
ATTEMPTS = 12
BINS = 20  # Graded pairs are spread evenly over so many equal steps of the score
PARAPHRASES = 0.6  # Share of true paraphrases
ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
_VERBS = [synonyms[0] for synonyms in FACTORS[ACTION].synonyms]
_OPPOSITES = [[_VERBS.index(verb) for verb in pair.split("|")] for pair in LISTS["antonyms"]]
ANTONYM: dict[int, int] = {a: b for a, b in _OPPOSITES} | {b: a for a, b in _OPPOSITES}
"""An action → the one that excludes it: contradictions that need no negation."""

PairLists = tuple[list[str], list[str], list[str]]


class Flavour(NamedTuple):
    """What one set of graded pairs is like."""

    # How often a value that both sentences share is surely said by different words
    differ: float = 0.4
    # How often an optional factor is left unsaid: the more, the shorter the sentences
    unsaid: float = 0.6


class GradedPairs(NamedTuple):
    """Sentences, their frames, and how alike these are."""

    texts1: list[str]
    texts2: list[str]
    frames1: Frames
    frames2: Frames
    similarity: NDArray[np.float64]  # In [0, 1]; the gold score is five times it


def graded_pairs(
    world: World,
    n: int,
    rng: np.random.Generator,
    *,
    split: str = "all",
    flavour: Flavour | None = None,
) -> GradedPairs:
    """Draw n pairs of sentences, their frame similarity spread evenly over 0 … 1."""
    flavour = flavour or Flavour()
    first, second = _candidates(world, 12 * n, rng, split, flavour.unsaid)
    if len(first) < n:
        raise InputError(
            f"{n} graded pairs asked for, but only {len(first)} could be drawn: raise factors or "
            "values"
        )
    similarity = world.similarity(first, second)
    # The bins take turns, so a short bin is made up for by the others.
    bins = np.minimum((similarity * BINS).astype(np.int64), BINS - 1)
    by_bin = np.argsort(bins, kind="stable")
    turn = np.empty_like(bins)
    turn[by_bin] = np.arange(len(bins)) - np.searchsorted(bins[by_bin], bins[by_bin])
    rows = rng.permutation(np.lexsort((bins, turn))[:n])
    first, second = first[rows], second[rows]
    wording = render(first, rng)
    other = render(second, rng, other=(first, wording), differ=flavour.differ)
    return GradedPairs(wording.texts, other.texts, first, second, similarity[rows])


def paraphrases(world: World, n: int, rng: np.random.Generator, *, split: str = "all") -> PairLists:
    """Make n pairs of sentences in different words, label 1 if they mean the same.

    The others are hard: half say the same with roles swapped, half change one factor to another
    group.
    """
    first = draw_split(world, n, rng, split)
    first[:, OBJECT] %= len(FACTORS[AGENT])  # Only beings can change roles
    second = first.copy()
    labels = (rng.random(n) < PARAPHRASES).astype(int)
    unlike = labels == 0
    swapped = unlike & (rng.random(n) < 0.5) & (first[:, AGENT] != first[:, OBJECT])
    second[swapped] = swap_roles(first[swapped])
    changed = unlike & ~swapped
    second[changed] = _change_one(first[changed], rng, world)
    wording = render(first, rng)
    return (
        wording.texts,
        render(second, rng, other=(first, wording)).texts,
        [str(label) for label in labels],
    )


def entailments(
    world: World,
    n: int,
    rng: np.random.Generator,
    *,
    split: str = "all",
    shares: Sequence[float] = (0.34, 0.33, 0.33),
) -> PairLists:
    """Make n pairs of premise and hypothesis with their label, `shares` of entailment, neutral and
    contradiction.

    From a specific frame comes a general one, by leaving a factor unsaid or naming a group for its
    member. What is said of the specific holds of the general; what is denied of the general is
    denied of the specific; the other two directions are neutral. Denying one side, or its antonym,
    contradicts. So negation alone gives nothing away.
    """
    specific = draw_split(world, n, rng, split)
    if world.has_polarity:
        specific[:, POLARITY] = 0
    general = _generalise(specific, rng)
    labels = rng.choice(np.array([ENTAILMENT, NEUTRAL, CONTRADICTION]), size=n, p=shares)
    denied = (rng.random(n) < 0.35) & world.has_polarity
    # Premise specific where the specific is what is known: said and entailed, denied and open, said
    # and contradicted.
    from_specific = (labels == NEUTRAL) == denied
    premise = np.where(from_specific[:, None], specific, general)
    hypothesis = np.where(from_specific[:, None], general, specific)
    contradicts = labels == CONTRADICTION
    by_antonym = contradicts & ~denied & np.isin(specific[:, ACTION], list(ANTONYM))
    hypothesis[by_antonym, ACTION] = [
        ANTONYM[action] for action in specific[by_antonym, ACTION].tolist()
    ]
    if world.has_polarity:
        premise[:, POLARITY] = denied
        hypothesis[:, POLARITY] = np.where(
            contradicts & ~by_antonym,
            1 - premise[:, POLARITY],
            premise[:, POLARITY],
        )
    wording = render(premise, rng, plain=True)
    return (
        wording.texts,
        render(hypothesis, rng, other=(premise, wording), plain=True).texts,
        labels.tolist(),
    )


def _candidates(
    world: World,
    n: int,
    rng: np.random.Generator,
    split: str,
    unsaid: float,
) -> tuple[Frames, Frames]:
    """Up to n distinct pairs of frames of one split, from copies to strangers."""
    first = draw_split(world, n, rng, split, unsaid)
    closeness = rng.random(n)
    # A twentieth are copies: the top of the scale, which independent changes seldom reach.
    closeness[rng.random(n) < 0.05] = 1.0
    second = _mutate(first, closeness, rng, world)
    swapped = (rng.random(n) < 0.03) & (first[:, OBJECT] < len(FACTORS[AGENT]))
    second[swapped] = swap_roles(first[swapped])
    for _ in range(ATTEMPTS):
        rows = np.flatnonzero(~in_split(second.T, split))
        second[rows] = _mutate(first[rows], closeness[rows], rng, world)
    both = np.concatenate([first, second], axis=1)
    _, first_places = np.unique(both, axis=0, return_index=True)
    no_repeat = np.zeros(n, dtype=bool)
    no_repeat[first_places] = True
    usable = no_repeat & in_split(second.T, split)
    return first[usable], second[usable]


def _mutate(
    frames: Frames,
    closeness: NDArray[np.float64],
    rng: np.random.Generator,
    world: World,
) -> Frames:
    """Another frame for each: a factor stays with probability `closeness`, else moves to a near or
    far value.
    """
    drawn = world.draw(len(frames), rng)
    changed = frames.copy()
    for column, factor in enumerate(FACTORS[: world.factors]):
        values = frames[:, column]
        near = _sibling(values, factor.group_of, world.choices[column], rng)
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


def _sibling(
    values: NDArray[np.int64],
    groups: NDArray[np.int64],
    allowed: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """A random other value of the same group; the value itself where it has no sibling or is
    unsaid.
    """
    members = np.bincount(groups[allowed], minlength=groups.max() + 1)
    firsts = np.searchsorted(groups[allowed], np.arange(len(members)))
    rows = np.flatnonzero((values != ABSENT) & (members[groups[values]] > 1))
    rows = rows[np.argsort(groups[values[rows]], kind="stable")]  # Draws go from group to group
    group = groups[values[rows]]
    place = np.searchsorted(allowed, values[rows]) - firsts[group] + rng.integers(1, members[group])
    result = values.copy()
    result[rows] = allowed[firsts[group] + place % members[group]]
    return result


def swap_roles(frames: Frames) -> Frames:
    """Who acts and who is acted upon change places; only beings act, so the objects must be
    beings.
    """
    swapped = frames.copy()
    swapped[:, [AGENT, OBJECT]] = frames[:, [OBJECT, AGENT]]
    return swapped


def _change_one(frames: Frames, rng: np.random.Generator, world: World) -> Frames:
    """Move agent, action or object of each frame to a value of another group, if the world has
    another.
    """
    changed = frames.copy()
    columns = rng.integers(3, size=len(frames))
    for column in (AGENT, ACTION, OBJECT):
        groups = FACTORS[column].group_of
        rows = np.flatnonzero(columns == column)
        while len(rows):
            changed[rows, column] = rng.choice(world.choices[column], size=len(rows))
            rows = rows[groups[changed[rows, column]] == groups[frames[rows, column]]]
            if len(np.unique(groups[world.choices[column]])) == 1:
                break
    return changed


def _generalise(frames: Frames, rng: np.random.Generator) -> Frames:
    """Leave one factor unsaid that is said, or name the group of agent or object instead of its
    member.
    """
    general = frames.copy()
    optional = frames[:, PLACE:POLARITY] != ABSENT
    # One said optional factor of each frame at random; the column is meaningless where none is
    # said.
    column = (
        PLACE + np.argmax(np.where(optional, rng.random(optional.shape), -1.0), axis=1)
        if optional.size
        else None
    )
    by_noun = ~optional.any(axis=1) | (rng.random(len(frames)) < 0.4)
    if column is not None:
        rows = np.flatnonzero(~by_noun)
        general[rows, column[rows]] = ABSENT
    by_both = by_noun & (rng.random(len(frames)) < 0.5)
    for noun, named in ((AGENT, by_noun), (OBJECT, by_both)):
        general[named, noun] = len(FACTORS[noun]) + FACTORS[noun].group_of[frames[named, noun]]
    return general
