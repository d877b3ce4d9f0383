"""Labelled pairs: paraphrase or not, entailment and its opposites, and roles swapped word for word."""

import numpy as np

from microworld.frames import Frames, swap_roles
from microworld.surface import render, say
from microworld.taxonomy import ABSENT, ACTION, AGENT, ANTONYM, ATTRIBUTE, FACTORS, OBJECT, PLACE, POLARITY
from microworld.world import World, draw_split
from repro.seeding import make_rng

PARAPHRASES = 0.6
"""Share of true paraphrases."""
ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"

LabelledLists = tuple[list[str], list[str], list[str]]


def paraphrases(world: World, n: int, rng: np.random.Generator, *, split: str = "all") -> LabelledLists:
    """Make n pairs of sentences in different words, label 1 if they mean the same.

    The others are hard: half say the same with roles swapped, half change one factor to another group.
    """
    first = _being_to_being(draw_split(world, n, rng, split))
    second, labels = first.copy(), (rng.random(n) < PARAPHRASES).astype(int)
    swapped = (labels == 0) & (rng.random(n) < 0.5) & (first[:, AGENT] != first[:, OBJECT])
    second[swapped] = swap_roles(first[swapped])
    changed = (labels == 0) & ~swapped
    second[changed] = _change_one(first[changed], rng, world)
    wording = render(first, rng)
    return wording.texts, render(second, rng, other=(first, wording)).texts, [str(label) for label in labels]


def entailments(
    world: World,
    n: int,
    rng: np.random.Generator,
    *,
    split: str = "all",
    shares: tuple[float, float, float] = (0.34, 0.33, 0.33),
) -> LabelledLists:
    """Make n pairs of premise and hypothesis with their label.

    From a specific frame comes a general one, by leaving a factor unsaid or naming a group for its member. What is
    said of the specific holds of the general; what is denied of the general is denied of the specific; the other two
    directions are neutral. Denying one side, or its antonym, contradicts. So negation alone gives nothing away.

    Args:
        world: Where frames come from.
        n: How many pairs.
        rng: Draws everything.
        split: Keep to specific frames of this split; `all` keeps any.
        shares: Of entailment, neutral and contradiction.
    """
    specific = draw_split(world, n, rng, split)
    if world.has_polarity:
        specific[:, POLARITY] = 0
    general = _generalise(specific, rng)
    labels = rng.choice(np.array([ENTAILMENT, NEUTRAL, CONTRADICTION]), size=n, p=shares)
    denied = (rng.random(n) < 0.35) & world.has_polarity
    # Premise specific where the specific is what is known: said and entailed, denied and open, said and contradicted.
    from_specific = (labels == NEUTRAL) == denied
    premise = np.where(from_specific[:, None], specific, general)
    hypothesis = np.where(from_specific[:, None], general, specific)
    contradicts = labels == CONTRADICTION
    by_antonym = contradicts & ~denied & np.isin(specific[:, ACTION], list(ANTONYM))
    hypothesis[by_antonym, ACTION] = [ANTONYM[action] for action in specific[by_antonym, ACTION].tolist()]
    if world.has_polarity:
        premise[:, POLARITY] = denied
        hypothesis[:, POLARITY] = np.where(contradicts & ~by_antonym, 1 - premise[:, POLARITY], premise[:, POLARITY])
    wording = render(premise, rng, plain=True)
    return wording.texts, render(hypothesis, rng, other=(premise, wording), plain=True).texts, labels.tolist()


def role_swaps(world: World, n: int, seed: int = 0) -> LabelledLists:
    """2n pairs: each sentence with itself, place or time moved to the front, and with that again but roles swapped.

    Both partners of a sentence hold exactly its words, so whatever counts words is at chance between them.

    Returns:
        Sentences, partners, and labels `same` or `swapped`, the two partners of a sentence one after the other.
    """
    rng = make_rng(seed, "microworld role swaps")
    frames = _being_to_being(world.draw(4 * n, rng))
    frames = frames[frames[:, AGENT] != frames[:, OBJECT]][:n]
    frames[:, ATTRIBUTE : ATTRIBUTE + 1] = ABSENT  # an adjective would change hands with its noun
    if world.has_polarity:
        frames[:, POLARITY] = 0
    texts1, texts2, labels = [], [], []
    picks = [0] * len(world.weights)
    for frame, swapped in zip(frames.tolist(), swap_roles(frames).tolist(), strict=True):
        texts1 += [say(frame, picks)] * 2
        texts2 += [say(frame, picks, front=0), say(swapped, picks, front=0)]
        labels += ["same", "swapped"]
    return texts1, texts2, labels


def _being_to_being(frames: Frames) -> Frames:
    """Make every object a being, by taking things round to beings, so that roles can be swapped."""
    frames = frames.copy()
    frames[:, OBJECT] %= len(FACTORS[AGENT])
    return frames


def _change_one(frames: Frames, rng: np.random.Generator, world: World) -> Frames:
    """Move agent, action or object of each frame to a value of another group."""
    changed = frames.copy()
    columns = rng.integers(3, size=len(frames))
    for column in (AGENT, ACTION, OBJECT):
        groups = np.array(FACTORS[column].group_of)
        rows = np.flatnonzero(columns == column)
        while len(rows):
            changed[rows, column] = rng.choice(world.choices[column], size=len(rows))
            rows = rows[groups[changed[rows, column]] == groups[frames[rows, column]]]
            if len(np.unique(groups[world.choices[column]])) == 1:
                break  # a world of one group has no other to move to
    return changed


def _generalise(frames: Frames, rng: np.random.Generator) -> Frames:
    """Leave one factor unsaid that is said, or name the group of agent or object instead of its member."""
    general = frames.copy()
    optional = frames[:, PLACE:POLARITY] != ABSENT
    # One said optional factor of each frame at random; the column is meaningless where none is said.
    column = PLACE + np.argmax(np.where(optional, rng.random(optional.shape), -1.0), axis=1) if optional.size else None
    by_noun = ~optional.any(axis=1) | (rng.random(len(frames)) < 0.4)
    if column is not None:
        rows = np.flatnonzero(~by_noun)
        general[rows, column[rows]] = ABSENT
    for noun, rows in (
        (AGENT, np.flatnonzero(by_noun)),
        (OBJECT, np.flatnonzero(by_noun & (rng.random(len(frames)) < 0.5))),
    ):
        groups = np.array(FACTORS[noun].group_of)
        general[rows, noun] = len(FACTORS[noun]) + groups[frames[rows, noun]]
    return general
