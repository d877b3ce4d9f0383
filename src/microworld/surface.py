"""The surface: one frame, many sentences. Synonyms and templates are drawn; the meaning stays.

A template is said in two ways, affirmed and denied, with slots: A the agent and O the object with their articles,
V past, N participle, G gerund and B base form of the verb, M a one-word manner. What a template has no slot for
(place, time, a longer manner) follows it or is fronted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microworld.frames import Frames
from microworld.grammar import inflect, sentence, with_article
from microworld.taxonomy import ABSENT, ACTION, ATTRIBUTE, FACTORS, MANNER, OBJECT, PLACE, POLARITY, TIME

# (affirmed, denied, end mark)
TEMPLATES: tuple[tuple[str, str, str], ...] = (
    ("{A} {V} {O}", "{A} did not {B} {O}", "."),
    ("{O} was {N} by {A}", "{O} was not {N} by {A}", "."),
    ("it was {A} that {V} {O}", "it was {A} that did not {B} {O}", "."),
    ("it was {O} that {A} {V}", "it was {O} that {A} did not {B}", "."),
    ("what {A} {V} was {O}", "what {A} never {V} was {O}", "."),
    ("there was {A} that {V} {O}", "there was {A} that never {V} {O}", "."),
    ("{A} was {G} {O}", "{A} was not {G} {O}", "."),
    ("{A} had {N} {O}", "{A} had never {N} {O}", "."),
    ("this is {O} that {A} {V}", "this is {O} that {A} did not {B}", "."),
    ("{A} is the one that {V} {O}", "{A} is the one that did not {B} {O}", "."),
    ("{O} got {N} by {A}", "{O} never got {N} by {A}", "."),
    ("did {A} {B} {O}", "did {A} not {B} {O}", "?"),
    ("someone saw {A} {G} {O}", "nobody saw {A} {G} {O}", "."),
    ("they say that {A} {V} {O}", "they say that {A} did not {B} {O}", "."),
    ("{A} began {G} {O}", "{A} would not {B} {O}", "."),
    ("the {G} of {O} by {A} took place", "the {G} of {O} by {A} never took place", "."),
)
_PLAIN = 11  # the first so many say that it happened or did not, and nothing else
_UNFRONTED = frozenset({4, 8, 9, 13})  # "yesterday, this is the car that …" would date the pointing, not the deed
_NOMINAL = len(TEMPLATES) - 1
_ORDERS = ((MANNER, PLACE, TIME), (MANNER, TIME, PLACE), (PLACE, MANNER, TIME), (PLACE, TIME, MANNER))

# Ids beyond the values name groups: "some pet", the general term that entailment needs.
_SYNONYMS = [factor.synonyms + tuple((group,) for group in factor.groups) for factor in FACTORS]
_VERBS = [[inflect(phrase) for phrase in synonyms] for synonyms in FACTORS[ACTION].synonyms]
_COUNTS = [np.array([len(synonyms) for synonyms in values]) for values in _SYNONYMS]


class Wording(NamedTuple):
    """Sentences and the choices that made them."""

    texts: list[str]
    picks: NDArray[np.int64]
    """Which synonym says each factor, (n, factors without polarity)."""
    templates: NDArray[np.int64]
    """Which template each sentence uses, (n,)."""


def render(
    frames: Frames,
    rng: np.random.Generator,
    *,
    other: tuple[Frames, Wording] | None = None,
    differ: float = 1.0,
    plain: bool = False,
) -> Wording:
    """Say each frame once.

    Args:
        frames: (n, factors), -1 where a factor is left unsaid.
        rng: Draws synonyms, template, articles and the order of place, time and manner.
        other: Frames and wording to differ from: another template, and another synonym wherever the two frames
            share a value that has one.
        differ: The probability that a shared value is said by another synonym; the rest are drawn freely.
        plain: Keep to templates that state the frame, no more and no less: no question, no hearsay.
    """
    n, kinds = len(frames), _PLAIN if plain else len(TEMPLATES)
    picks, templates = _pick_synonyms(frames, rng, other, differ), rng.integers(kinds, size=n)
    if other is not None:
        templates = (other[1].templates + rng.integers(1, kinds, size=n)) % kinds
    templates = _avoid_clumsy(frames, picks, templates)
    articles = rng.random((n, 2)) < 0.7
    orders = rng.integers(len(_ORDERS), size=n)
    fronts = rng.integers(3 * len(_ORDERS[0]), size=n)  # a third of the sentences front one of place, time, manner
    columns = (column.tolist() for column in (frames, picks, templates, articles, orders, fronts))
    return Wording([say(*row) for row in zip(*columns, strict=True)], picks, templates)


def noun_phrase(factor: int, value: int, pick: int, *, definite: bool, adjective: str = "") -> str:
    """A noun with its article, and an adjective where there is one."""
    noun = _SYNONYMS[factor][value][pick]
    phrase = f"{adjective} {noun}" if adjective else noun
    return f"the {phrase}" if definite else with_article(phrase)


def say(
    frame: list[int],
    pick: list[int],
    template: int = 0,
    articles: Sequence[bool] = (True, True),
    order: int = 0,
    front: int = 99,
) -> str:
    """One sentence, every choice given: what `render` draws.

    Args:
        frame: Value ids.
        pick: Synonym of each.
        template: Index into `TEMPLATES`.
        articles: Whether agent and object take `the` rather than `a`.
        order: Which order of place, time and manner.
        front: Which of these, in that order, opens the sentence; none if there are fewer.
    """
    width = len(pick)
    adjective = _word(frame, pick, ATTRIBUTE) if width > ATTRIBUTE else ""
    agent = noun_phrase(0, frame[0], pick[0], definite=articles[0])
    thing = noun_phrase(OBJECT, frame[OBJECT], pick[OBJECT], definite=articles[1], adjective=adjective)
    verb = _VERBS[frame[ACTION]][pick[ACTION]]
    affirmed, denied, end = TEMPLATES[template]
    pattern = denied if len(frame) > POLARITY and frame[POLARITY] else affirmed
    body = pattern.format(A=agent, O=thing, B=verb[0], V=verb[1], N=verb[2], G=verb[3])
    said = [_word(frame, pick, column) for column in _ORDERS[order] if column < width]
    said = [phrase for phrase in said if phrase]
    if front < len(said) and end == "." and template not in _UNFRONTED:
        body = f"{said.pop(front)}, {body}"
    return sentence(" ".join([body, *said]), end)


def _word(frame: list[int], pick: list[int], column: int) -> str:
    value = frame[column]
    return "" if value == ABSENT else _SYNONYMS[column][value][pick[column]]


def _pick_synonyms(
    frames: Frames, rng: np.random.Generator, other: tuple[Frames, Wording] | None, differ: float
) -> NDArray[np.int64]:
    width = min(frames.shape[1], len(FACTORS))
    picks = np.zeros((len(frames), width), dtype=np.int64)
    for column in range(width):
        values = frames[:, column]
        counts = np.where(values == ABSENT, 1, _COUNTS[column][values])
        draws = rng.random(len(frames))
        picks[:, column] = (draws * counts).astype(np.int64)
        if other is not None:
            shared = (other[0][:, column] == values) & (counts > 1) & (rng.random(len(frames)) < differ)
            moved = (other[1].picks[:, column] + 1 + (draws * (counts - 1)).astype(np.int64)) % counts
            picks[:, column] = np.where(shared, moved, picks[:, column])
    return picks


def _avoid_clumsy(frames: Frames, picks: NDArray[np.int64], templates: NDArray[np.int64]) -> NDArray[np.int64]:
    """A verb of several words makes no noun ("the looking at of the car"): say it plainly instead."""
    compound = np.array([[" " in verb.base for verb in verbs] + [False] * (4 - len(verbs)) for verbs in _VERBS])
    clumsy = compound[frames[:, ACTION], picks[:, ACTION]] & (templates == _NOMINAL)
    return np.where(clumsy, 0, templates)
