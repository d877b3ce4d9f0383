"""Documents of several sentences: posts on twenty topics, and paragraphs to search."""

import numpy as np

from repro.data.microworld.frames import Frames
from repro.data.microworld.grammar import inflect
from repro.data.microworld.opinions import Labelled
from repro.data.microworld.surface import noun_phrase, render
from repro.data.microworld.taxonomy import ABSENT, ACTION, AGENT, FACTORS, OBJECT, PLACE, POLARITY, TIME
from repro.data.microworld.world import World, draw_split
from repro.data.sets import Retrieval

ON_TOPIC = 0.8
"""How often a post speaks of its own topic; the rest of the time it strays."""


def posts(world: World, n: int, rng: np.random.Generator, *, split: str) -> Labelled:
    """Make n posts of three to five sentences on twenty topics: what most of their sentences are done to."""
    topics = FACTORS[OBJECT].groups
    labels = rng.permutation(np.arange(n) % len(topics))
    lengths = rng.integers(3, 6, size=n)
    owner = np.repeat(np.arange(n), lengths)
    frames = draw_split(world, len(owner), rng, split)
    for topic in range(len(topics)):
        rows = np.flatnonzero((labels[owner] == topic) & (rng.random(len(owner)) < ON_TOPIC))
        frames[rows, OBJECT] = rng.choice(FACTORS[OBJECT].members(topic), size=len(rows))
        if world.factors > PLACE:  # a topic has its haunts: three places that it is often met at
            haunts = (topic * 3 + rng.integers(3, size=len(rows))) % len(FACTORS[PLACE])
            frames[rows, PLACE] = np.where(rng.random(len(rows)) < 0.5, haunts, frames[rows, PLACE])
    return Labelled(_join(render(frames, rng).texts, lengths), [topics[label] for label in labels.tolist()])


def retrieval(world: World, n: int, rng: np.random.Generator, *, name: str, documents: int = 1000) -> Retrieval:
    """Make n questions over paragraphs of three to five sentences, one paragraph relevant to each.

    A paragraph keeps one agent, so a question's words are met in many; it asks, in other words, who did what one of
    its sentences says. The answer is that agent, as the paragraph names it there. No two sentences of the corpus say
    the same deed.
    """
    lengths = rng.integers(3, 6, size=documents)
    frames = _distinct_deeds(world, int(lengths.sum()), rng)
    owner = np.repeat(np.arange(documents), lengths)
    frames[:, AGENT] = rng.choice(world.choices[AGENT], size=documents)[owner]
    wording = render(frames, rng, plain=True)
    relevant = np.sort(rng.choice(documents, size=n, replace=False))
    starts = np.cumsum(lengths) - lengths
    rows = starts[relevant] + rng.integers(lengths[relevant])
    other = render(frames[rows], rng, other=(frames[rows], wording._replace(
        texts=[], picks=wording.picks[rows], templates=wording.templates[rows])))  # fmt: skip
    query_ids = tuple(f"q{row:04d}" for row in range(n))
    document_ids = tuple(f"d{row:05d}" for row in range(documents))
    said = wording.picks[rows, AGENT].tolist()
    answers = [FACTORS[AGENT].synonyms[who][how] for who, how in zip(frames[rows, AGENT].tolist(), said, strict=True)]
    return Retrieval(
        name,
        "microworld",
        query_ids,
        tuple(map(_who, frames[rows].tolist(), other.picks.tolist())),
        document_ids,
        tuple(_join(wording.texts, lengths)),
        {query: {document_ids[document]: 1} for query, document in zip(query_ids, relevant.tolist(), strict=True)},
        tuple(answers),
    )


def _distinct_deeds(world: World, n: int, rng: np.random.Generator) -> Frames:
    """Draw n affirmed frames of which no two share action, object, place and time: only one answers a question."""
    deed = [column for column in (ACTION, OBJECT, PLACE, TIME) if column < world.factors]
    frames = draw_split(world, 4 * n, rng, "test", unsaid=0.25)
    if world.has_polarity:
        frames[:, POLARITY] = 0
    _, first = np.unique(frames[:, deed], axis=0, return_index=True)
    return frames[rng.permutation(first)[:n]]


def _who(frame: list[int], pick: list[int]) -> str:
    """The question for the agent of a frame."""
    verb = inflect(FACTORS[ACTION].synonyms[frame[ACTION]][pick[ACTION]])
    thing = noun_phrase(OBJECT, frame[OBJECT], pick[OBJECT], definite=True)
    tail = [
        FACTORS[column].synonyms[frame[column]][pick[column]]
        for column in (PLACE, TIME)
        if column < len(pick) and frame[column] != ABSENT
    ]
    return " ".join(["Who", verb.past, thing, *tail]) + "?"


def _join(sentences: list[str], lengths: np.ndarray) -> list[str]:
    ends = np.cumsum(lengths).tolist()
    return [" ".join(sentences[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]
