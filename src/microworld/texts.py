"""Short texts with labels: opinions, phrases, feelings beside facts, and questions.

In a template of an opinion E is what the label says, F its opposite, X the subject, Y another and R
a degree. In one of a question A and O are agent and object with `the`, aA and aO with `a`, a and o
bare, os in the plural and go the object's group; V, N and B are verb forms, P and T place and time,
often empty; S is an abbreviation.
"""

import zlib
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from microworld import vocabulary as english
from microworld.vocabulary import (
    ABSENT,
    ACTION,
    AGENT,
    FACTORS,
    LISTS,
    OBJECT,
    PLACE,
    TIME,
    with_article,
)
from microworld.world import World, draw_split, in_split

FILM, GOODS = LISTS["of a film"], LISTS["of goods"]
GOOD, BAD = LISTS["good"], LISTS["bad"]  # Paired: each quality has its opposite in the same place
# Share of opinions whose words are turned round, so that the words alone do not give the label away
TURNED = 1 / 3
TYPES = {"ENTY": 0.22, "DESC": 0.21, "HUM": 0.21, "NUM": 0.17, "LOC": 0.13, "ABBR": 0.06}
"""Shares of the types of questions, close to TREC's; no first word belongs to one type alone."""
_DEGREES = tuple(f"{degree} " if degree else "" for degree in LISTS["degree"])
Labelled: TypeAlias = tuple[list[str], list[str]]  # Texts and their labels


def sentiments(
    n: int,
    rng: np.random.Generator,
    *,
    about: tuple[str, ...] = FILM,
    split: str = "all",
) -> Labelled:
    """Make n distinct opinions, labelled positive or negative; splits differ in what is said of
    what.
    """
    labels = _shuffled(n, rng, 0.31, "positive", "negative")
    return distinct(labels, lambda label: _opinion(rng, about, label == "positive", split))


def phrases(n: int, rng: np.random.Generator) -> Labelled:
    """Make n distinct short opinion phrases, labelled positive or negative."""
    return distinct(
        _shuffled(n, rng, 0.31, "positive", "negative"), lambda label: _phrase(rng, label)
    )


def subjectivity(world: World, n: int, rng: np.random.Generator, *, split: str = "all") -> Labelled:
    """Make n distinct sentences: opinions and feelings about events (subjective), or the bare
    events (objective).
    """
    events = (
        english.say(*row)
        for row in english.render(draw_split(world, 8 * n, rng, split), rng, plain=True).drawn
    )
    labels = _shuffled(n, rng, 0.5, "subjective", "objective")
    return distinct(labels, lambda label: _felt(rng, next(events), label == "subjective", split))


def questions(world: World, n: int, rng: np.random.Generator, *, split: str) -> Labelled:
    """Make n distinct questions with their type, no question in two splits.

    Every fourth template is kept out of training, so that a type must be understood and not its
    forms remembered.
    """
    labels = rng.choice(np.array(list(TYPES)), size=n, p=list(TYPES.values())).tolist()
    frames = (frame.tolist() for frame in draw_split(world, 40 * n, rng, split))
    forms = {label: LISTS[f"{label} question"] for label in TYPES}
    if split == "train":
        forms = {
            label: tuple(form for i, form in enumerate(all_) if i % 4 != 3)
            for label, all_ in forms.items()
        }

    def make(label: str) -> str:
        while True:
            text = _ask(next(frames), forms[label], rng)
            # A question may say so little ("What is a pony?") that frames of two splits give it:
            # its own hash decides.
            if in_split([zlib.crc32(text.encode())], split):
                return text

    return distinct(labels, make)


def distinct(labels: list[str], make: Callable[[str], str]) -> Labelled:
    """A text for each label, made anew while it repeats an earlier one."""
    texts: dict[str, str] = {}
    for label in labels:
        text = make(label)
        while text in texts:
            text = make(label)
        texts[text] = label
    return list(texts), labels


@cache
def _synonyms(value: str) -> list[str]:
    return value.split("|")


def pick(rng: np.random.Generator, values: tuple[str, ...]) -> str:
    """A random value, said by a random synonym."""
    synonyms = _synonyms(values[int(rng.random() * len(values))])
    return synonyms[int(rng.random() * len(synonyms))]


def _shuffled(n: int, rng: np.random.Generator, share: float, yes: str, no: str) -> list[str]:
    """`yes` for exactly `share` of n, in random order."""
    return [
        yes if wanted else no
        for wanted in rng.permutation(np.arange(n) < round(share * n)).tolist()
    ]


def _opinion(rng: np.random.Generator, about: tuple[str, ...], good: bool, split: str) -> str:
    """One opinion; its frame is what it is about, along which of the paired qualities, and for or
    against.
    """
    says, opposite = (GOOD, BAD) if good else (BAD, GOOD)
    while True:
        subject, quality = int(rng.integers(len(about))), int(rng.integers(len(GOOD)))
        if in_split([subject, quality, good], split):
            break
    other = (subject + int(rng.integers(1, len(about)))) % len(about)
    E = pick(rng, (says[quality],))
    F = pick(rng, (opposite[quality],))
    words = {
        "X": pick(rng, (about[subject],)),
        "Y": pick(rng, (about[other],)),
        "E": E,
        "F": F,
    }
    articles = {
        "aE": with_article(E),
        "aE2": with_article(pick(rng, says)),
        "aF": with_article(F),
    }
    template = pick(rng, LISTS["turned opinion" if rng.random() < TURNED else "plain opinion"])
    opinion = template.format(**words, **articles, R=pick(rng, _DEGREES))
    return english.sentence(opinion, "!" if rng.random() < 0.1 else ".")


def _phrase(rng: np.random.Generator, label: str) -> str:
    """A phrase that takes the side its label names."""
    other = "negative" if label == "positive" else "positive"
    lists = {
        "X": "matter",
        "M": f"{label} mood",
        "N": f"{other} mood",
        "V": f"{label} verb",
        "W": f"{other} verb",
    }
    template = pick(rng, LISTS["phrase"])
    words = {slot: pick(rng, LISTS[name]) for slot, name in (lists | {"D": "strength"}).items()}
    R, quality = pick(rng, _DEGREES), pick(rng, GOOD if label == "positive" else BAD)
    return template.format(**words, R=R, aE=with_article(quality))


def _felt(rng: np.random.Generator, event: str, felt: bool, split: str) -> str:
    """An event as a feeling, or told as a fact: only the first person makes an opinion of a feeling
    in a story.
    """
    if felt and rng.random() < 0.5:
        return _opinion(rng, FILM, bool(rng.random() < 0.5), split)
    words = {
        "E": pick(rng, GOOD + BAD),
        "R": pick(rng, _DEGREES),
        "X": pick(rng, FILM[:2]),
    }
    opening = pick(rng, LISTS["feeling" if felt else "fact"]).format(**words)
    return english.sentence(f"{opening} {event[0].lower()}{event[1:-1]}".strip())


def _ask(frame: list[int], templates: tuple[str, ...], rng: np.random.Generator) -> str:
    """A question that one of the templates makes of a frame."""

    def said(column: int) -> str:
        synonyms = FACTORS[column].synonyms[frame[column]]
        return synonyms[int(rng.random() * len(synonyms))]

    def tail(column: int) -> str:
        return "" if len(frame) <= column or frame[column] == ABSENT else f" {said(column)}"

    agent, thing, verb = said(AGENT), said(OBJECT), english.inflect(said(ACTION))
    group = FACTORS[OBJECT].groups[FACTORS[OBJECT].group_of[frame[OBJECT]]]
    words = {
        "A": f"the {agent}",
        "O": f"the {thing}",
        "aA": with_article(agent),
        "aO": with_article(thing),
    }
    words |= {"a": agent, "o": thing, "os": english.plural(thing), "go": group}
    words |= {
        "B": verb.base,
        "V": verb.past,
        "N": verb.participle,
        "P": tail(PLACE),
        "T": tail(TIME),
    }
    initials = "".join(word[0] for word in " ".join((thing, agent, group)).split())
    template = templates[int(rng.random() * len(templates))]
    return template.format(**words, S=initials.upper()[:4])
