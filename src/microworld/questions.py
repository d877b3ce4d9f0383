"""Questions in TREC's six classes: abbreviation, description, entity, human, location, number."""

import zlib
from collections.abc import Mapping

import numpy as np

from microworld.frames import Frames, split_of
from microworld.grammar import inflect, plural, with_article
from microworld.opinions import Labelled
from microworld.taxonomy import ABSENT, ACTION, AGENT, FACTORS, OBJECT, PLACE, TIME
from microworld.world import World, draw_split

SHARES = {"ENTY": 0.22, "DESC": 0.21, "HUM": 0.21, "NUM": 0.17, "LOC": 0.13, "ABBR": 0.06}
"""Class shares, close to TREC's."""

# A, O: agent and object with `the`; aA, aO with `a`; a, o bare; os in the plural; go the object's group;
# V N B verb forms; P, T place and time, often empty; S an abbreviation. Words like what, which, name and how open
# questions of several classes, so the first word does not settle it.
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "ABBR": (
        "What does {S} stand for?",
        "What is the abbreviation for {o} {a}?",
        "What is the full form of {S}?",
        "What does the abbreviation {S} mean?",
        "What is the short form of {o} {a}?",
        "How is {o} {a} abbreviated?",
        "What do the letters {S} stand for{P}?",
        "Which words does {S} stand for?",
    ),
    "DESC": (
        "Why did {A} {B} {O}{P}{T}?",
        "How did {A} {B} {O}{P}?",
        "What is {aO}?",
        "What does it mean to {B} {aO}?",
        "What is the purpose of {aO}{P}?",
        "What happened after {A} {V} {O}{T}?",
        "Which reason had {A} to {B} {O}?",
        "What is the difference between {aO} and {aA}?",
        "Describe how {A} {V} {O}{P}.",
        "What are {os} used for?",
        "What is the story of {O} and {A}?",
        "Name the reason why {A} {V} {O}.",
    ),
    "ENTY": (
        "What did {A} {B}{P}{T}?",
        "What {go} did {A} {B}{P}?",
        "What kind of {go} was {N} by {A}?",
        "Which {go} did {A} {B}{T}?",
        "What is the name of the {go} that {A} {V}?",
        "Name the {go} that {A} {V}{P}.",
        "What color is {O}{P}?",
        "What was {N} by {A}{P}{T}?",
        "What disease did {A} have{T}?",
        "What language does {A} speak?",
        "How is {aO} called in another language?",
    ),
    "HUM": (
        "Who {V} {O}{P}{T}?",
        "Name the person who {V} {O}{P}.",
        "By whom was {O} {N}{T}?",
        "Who was {A} that {V} {O}?",
        "What person {V} {O}{P}?",
        "Which company makes the best {os}?",
        "Whose {o} did {A} {B}{P}?",
        "What is the name of the person who {V} {O}?",
        "Which team {V} {O}{T}?",
        "Who invented the {o}?",
    ),
    "LOC": (
        "Where did {A} {B} {O}{T}?",
        "In what place was {O} {N}{T}?",
        "What city is known for its {os}?",
        "What country has the most {os}?",
        "Where can I find {os}{T}?",
        "Which town did {A} {B} {O} in?",
        "Name the city where {A} {V} {O}.",
        "Where was {O} {N} by {A}?",
        "What is the place where {A} {V} {O}?",
    ),
    "NUM": (
        "How many {os} did {A} {B}{T}?",
        "When did {A} {B} {O}{P}?",
        "What year was {O} {N}{P}?",
        "How much does {aO} cost{P}?",
        "How old is {A}?",
        "How long did it take {A} to {B} {O}?",
        "What is the number of {os}{P}?",
        "What is the price of {aO}{P}?",
        "Which day did {A} {B} {O}?",
        "How far did {A} go to {B} {O}?",
        "Name the date when {A} {V} {O}.",
    ),
}


def questions(world: World, n: int, rng: np.random.Generator, *, split: str) -> Labelled:
    """Make n distinct questions with their class, no question in two splits.

    Every fourth template is kept out of training, so that a class must be understood and not its forms remembered.
    """
    classes = rng.choice(np.array(list(SHARES)), size=n, p=list(SHARES.values())).tolist()
    frames = iter(draw_split(world, 40 * n, rng, split))
    usable = {
        label: tuple(form for place, form in enumerate(forms) if split != "train" or place % 4 != 3)
        for label, forms in TEMPLATES.items()
    }
    asked: dict[str, str] = {}
    for label in classes:
        text = _ask(next(frames), usable[label], rng)
        while text in asked or not _belongs(text, split):
            text = _ask(next(frames), usable[label], rng)
        asked[text] = label
    return Labelled(list(asked), list(asked.values()))


def _belongs(text: str, split: str) -> bool:
    """A question may say so little ("What is a pony?") that frames of two splits give it: its own hash decides."""
    return split in ("all", split_of(np.array([[zlib.crc32(text.encode())]]))[0])


def _ask(frame: Frames, templates: tuple[str, ...], rng: np.random.Generator) -> str:
    agent, thing = _say(frame, AGENT, rng), _say(frame, OBJECT, rng)
    verb = inflect(_say(frame, ACTION, rng))
    group = FACTORS[OBJECT].groups[FACTORS[OBJECT].group_of[frame[OBJECT]]]
    words = {
        "A": f"the {agent}",
        "O": f"the {thing}",
        "aA": with_article(agent),
        "aO": with_article(thing),
        "a": agent,
        "o": thing,
        "os": plural(thing),
        "go": group,
        "B": verb.base,
        "V": verb.past,
        "N": verb.participle,
        "P": _tail(frame, PLACE, rng),
        "T": _tail(frame, TIME, rng),
        "S": "".join(word[0] for phrase in (thing, agent, group) for word in phrase.split()).upper()[:4],
    }
    return templates[int(rng.random() * len(templates))].format(**words)


def _say(frame: Frames, column: int, rng: np.random.Generator) -> str:
    synonyms = FACTORS[column].synonyms[frame[column]]
    return synonyms[int(rng.random() * len(synonyms))]


def _tail(frame: Frames, column: int, rng: np.random.Generator) -> str:
    return "" if len(frame) <= column or frame[column] == ABSENT else f" {_say(frame, column, rng)}"
