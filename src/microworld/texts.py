"""Texts with labels, and documents: opinions, questions, posts on twenty topics, and paragraphs to
search.

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
    Frames,
    with_article,
)
from microworld.world import World, draw_split, in_split
from repro.sets import Retrieval
from repro.types import InputError

FILM, GOODS = LISTS["of a film"], LISTS["of goods"]
GOOD, BAD = LISTS["good"], LISTS["bad"]  # Paired: each quality has its opposite in the same place
# Share of opinions whose words are turned round, so that the words alone do not give the label away
TURNED = 1 / 3
TYPES = {"ENTY": 0.22, "DESC": 0.21, "HUM": 0.21, "NUM": 0.17, "LOC": 0.13, "ABBR": 0.06}
"""Shares of the types of questions, close to TREC's; no first word belongs to one type alone."""
_DEGREES = tuple(f"{degree} " if degree else "" for degree in LISTS["degree"])
ON_TOPIC = 0.8  # How often a post speaks of its own topic; the rest of the time it strays
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


def posts(world: World, n: int, rng: np.random.Generator, *, split: str) -> Labelled:
    """Make n posts of three to five sentences on twenty topics: what most of their sentences are
    done to.
    """
    topics = FACTORS[OBJECT].groups
    labels = rng.permutation(np.arange(n) % len(topics))
    lengths = rng.integers(3, 6, size=n)
    owner = np.repeat(np.arange(n), lengths)
    frames = draw_split(world, len(owner), rng, split)
    for topic in range(len(topics)):
        rows = np.flatnonzero((labels[owner] == topic) & (rng.random(len(owner)) < ON_TOPIC))
        frames[rows, OBJECT] = rng.choice(
            np.flatnonzero(FACTORS[OBJECT].group_of == topic),
            size=len(rows),
        )
        if world.factors > PLACE:  # A topic has its haunts: three places that it is often met at
            haunts = (topic * 3 + rng.integers(3, size=len(rows))) % len(FACTORS[PLACE])
            frames[rows, PLACE] = np.where(rng.random(len(rows)) < 0.5, haunts, frames[rows, PLACE])
    return _join(english.render(frames, rng).texts, lengths), [
        topics[label] for label in labels.tolist()
    ]


def retrieval(
    world: World,
    n: int,
    rng: np.random.Generator,
    *,
    name: str,
    documents: int = 500,
) -> Retrieval:
    """N questions over paragraphs of three to five sentences, one paragraph relevant to each.

    A paragraph is a scene: one agent, one place, mostly things of one kind. A question asks, in
    other words, who did what one of its sentences says; the answer is the agent, as that sentence
    names it. Many paragraphs share the place or the things, but no other sentence of the corpus
    answers the question.
    """
    lengths = rng.integers(3, 6, size=documents)
    owner = np.repeat(np.arange(documents), lengths)
    frames = _scenes(world, owner, rng)
    wording = english.render(frames, rng, plain=True)
    deed = [column for column in (ACTION, OBJECT, PLACE, TIME) if column < frames.shape[1]]
    _, which, counts = np.unique(frames[:, deed], axis=0, return_inverse=True, return_counts=True)
    # What is told once in the whole corpus
    rows = rng.permutation(np.flatnonzero(counts[which.ravel()] == 1))
    relevant, first = np.unique(owner[rows], return_index=True)
    if len(relevant) < n:
        raise InputError(
            f"{n} questions asked for, but only {len(relevant)} have one answer: "
            "raise factors or values"
        )
    chosen = np.sort(rng.choice(len(relevant), size=n, replace=False))
    relevant, rows = relevant[chosen], rows[first[chosen]]
    asked = wording._replace(picks=wording.picks[rows], templates=wording.templates[rows])
    other = english.render(frames[rows], rng, other=(frames[rows], asked))
    answers = tuple(words[AGENT] for words in english.spoken(frames[rows], asked.picks))
    queries = tuple(map(_who, english.spoken(frames[rows], other.picks)))
    query_ids = tuple(f"q{row:04d}" for row in range(n))
    ids = tuple(f"d{row:05d}" for row in range(documents))
    qrels = {
        query: {ids[document]: 1}
        for query, document in zip(query_ids, relevant.tolist(), strict=True)
    }
    texts = tuple(_join(wording.texts, lengths))
    return Retrieval(name, "microworld", query_ids, queries, ids, texts, qrels, answers)


def _scenes(world: World, owner: np.ndarray, rng: np.random.Generator) -> Frames:
    """Affirmed frames of the test split's world, those of one document sharing agent, place and
    kind of thing.
    """
    frames = draw_split(world, len(owner), rng, "test", unsaid=0.4)
    documents = int(owner[-1]) + 1
    if world.has_polarity:
        frames[:, english.POLARITY] = 0
    frames[:, AGENT] = rng.choice(world.choices[AGENT], size=documents)[owner]
    if world.factors > PLACE:
        frames[:, PLACE] = rng.choice(world.choices[PLACE], size=documents)[owner]
    groups = FACTORS[OBJECT].group_of[world.choices[OBJECT]]
    kind = rng.choice(np.unique(groups), size=documents)[owner]
    on_topic = rng.random(len(owner)) < ON_TOPIC
    for group in np.unique(kind):
        rows = np.flatnonzero(on_topic & (kind == group))
        frames[rows, OBJECT] = rng.choice(world.choices[OBJECT][groups == group], size=len(rows))
    return frames


def _who(words: tuple[str, ...]) -> str:
    """The question for the agent of a frame, of which these are the words."""
    asked = [
        "Who",
        english.inflect(words[ACTION]).past,
        f"the {words[OBJECT]}",
        words[PLACE],
        words[TIME],
    ]
    return " ".join(word for word in asked if word) + "?"


def _join(sentences: list[str], lengths: np.ndarray) -> list[str]:
    """Documents of so many sentences each."""
    return [" ".join(document) for document in np.split(sentences, np.cumsum(lengths)[:-1])]
