"""The surface: one frame, many sentences. Synonyms and templates are drawn; the meaning stays.

A template is said in two ways, affirmed and denied, with slots: A the agent and O the object with their articles,
V past, N participle, G gerund and B base form of the verb. What a template has no slot for (place, time, manner)
follows it or is fronted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microworld.vocabulary import (
    ABSENT,
    ACTION,
    AGENT,
    ATTRIBUTE,
    FACTORS,
    MANNER,
    OBJECT,
    PLACE,
    POLARITY,
    TIME,
    Frames,
    inflect,
    sentence,
    table,
    with_article,
)

TEMPLATES = table("templates")
"""(affirmed, denied, end mark)"""
_PLAIN = 11  # the first so many say that it happened or did not, and nothing else
_UNFRONTED = frozenset({4, 8, 9, 13})  # "yesterday, this is the car that …" would date the pointing, not the deed
_NOMINAL = len(TEMPLATES) - 1
_ORDERS = ((MANNER, PLACE, TIME), (MANNER, TIME, PLACE), (PLACE, MANNER, TIME), (PLACE, TIME, MANNER))

# Ids beyond the values name groups: "some pet", the general term that entailment needs.
_SYNONYMS = [factor.synonyms + tuple((group,) for group in factor.groups) for factor in FACTORS]
_VERBS = [[inflect(phrase) for phrase in synonyms] for synonyms in FACTORS[ACTION].synonyms]
_COUNTS = [np.array([len(synonyms) for synonyms in values]) for values in _SYNONYMS]
# A verb of several words makes no noun ("the looking at of the car"): what says so is said plainly instead.
_COMPOUND = np.array([[" " in verb.base for verb in verbs] + [False] * (4 - len(verbs)) for verbs in _VERBS])


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
    """Say each frame once, in a drawn template with drawn synonyms, articles and order of place, time and manner.

    With `other` frames and their wording, in another template and, with the probability `differ`, by another synonym
    wherever the two frames share a value that has one. `plain` keeps to templates that state the frame, no more and no
    less: no question, no hearsay.
    """
    n, kinds = len(frames), _PLAIN if plain else len(TEMPLATES)
    picks, templates = _pick_synonyms(frames, rng, other, differ), rng.integers(kinds, size=n)
    if other is not None:
        templates = (other[1].templates + rng.integers(1, kinds, size=n)) % kinds
    clumsy = _COMPOUND[frames[:, ACTION], picks[:, ACTION]] & (templates == _NOMINAL)
    templates = np.where(clumsy, 0, templates)
    articles = rng.random((n, 2)) < 0.7
    orders = rng.integers(len(_ORDERS), size=n)
    fronts = rng.integers(3 * len(_ORDERS[0]), size=n)  # a third of the sentences front one of place, time, manner
    columns = (column.tolist() for column in (frames, picks, templates, articles, orders, fronts))
    return Wording([say(*row) for row in zip(*columns, strict=True)], picks, templates)


def noun_phrase(factor: int, value: int, pick: int, *, definite: bool, adjective: str = "") -> str:
    """A noun with its article, and an adjective where there is one."""
    phrase = f"{adjective} {_SYNONYMS[factor][value][pick]}".strip()
    return f"the {phrase}" if definite else with_article(phrase)


def say(
    frame: list[int],
    pick: list[int],
    template: int = 0,
    articles: Sequence[bool] = (True, True),
    order: int = 0,
    front: int = 99,
) -> str:
    """One sentence, every choice that `render` draws given: value ids and their synonyms, template, order of the rest.

    `articles` say whether agent and object take `the`; the phrase with the number `front`, if any, comes first.
    """
    adjective = said(frame, pick, ATTRIBUTE)
    agent = noun_phrase(AGENT, frame[AGENT], pick[AGENT], definite=articles[0])
    thing = noun_phrase(OBJECT, frame[OBJECT], pick[OBJECT], definite=articles[1], adjective=adjective)
    verb = _VERBS[frame[ACTION]][pick[ACTION]]
    affirmed, denied, end = TEMPLATES[template]
    pattern = denied if len(frame) > POLARITY and frame[POLARITY] else affirmed
    body = pattern.format(A=agent, O=thing, B=verb.base, V=verb.past, N=verb.participle, G=verb.gerund)
    rest = [phrase for column in _ORDERS[order] if (phrase := said(frame, pick, column))]
    if front < len(rest) and end == "." and template not in _UNFRONTED:
        body = f"{rest.pop(front)}, {body}"
    return sentence(" ".join([body, *rest]), end)


def said(frame: list[int], pick: list[int], column: int) -> str:
    """The words of one factor; none where the frame leaves it unsaid or the world has no such factor."""
    absent = column >= len(pick) or frame[column] == ABSENT
    return "" if absent else _SYNONYMS[column][frame[column]][pick[column]]


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
