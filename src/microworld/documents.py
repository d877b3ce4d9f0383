"""Documents of several sentences: posts on twenty topics, and paragraphs to search."""

import numpy as np

from microworld.frames import Frames
from microworld.grammar import inflect
from microworld.opinions import Labelled
from microworld.surface import noun_phrase, render
from microworld.taxonomy import ABSENT, ACTION, AGENT, FACTORS, OBJECT, PLACE, POLARITY, TIME
from microworld.world import World, draw_split
from repro.sets import Retrieval
from repro.types import InputError

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


def retrieval(world: World, n: int, rng: np.random.Generator, *, name: str, documents: int = 500) -> Retrieval:
    """N questions over paragraphs of three to five sentences, one paragraph relevant to each.

    A paragraph is a scene: one agent, one place, mostly things of one kind. A question asks, in other words, who did
    what one of its sentences says; the answer is the agent, as that sentence names it. Many paragraphs share the
    place or the things, but no other sentence of the corpus answers the question.
    """
    lengths = rng.integers(3, 6, size=documents)
    owner = np.repeat(np.arange(documents), lengths)
    frames = _scenes(world, owner, rng)
    wording = render(frames, rng, plain=True)
    relevant, rows = _answerable(frames, owner, n, rng)
    said = wording._replace(picks=wording.picks[rows], templates=wording.templates[rows])
    other = render(frames[rows], rng, other=(frames[rows], said))
    query_ids = tuple(f"q{row:04d}" for row in range(n))
    document_ids = tuple(f"d{row:05d}" for row in range(documents))
    names = zip(frames[rows, AGENT].tolist(), said.picks[:, AGENT].tolist(), strict=True)
    answers = [FACTORS[AGENT].synonyms[who][how] for who, how in names]
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


def _scenes(world: World, owner: np.ndarray, rng: np.random.Generator) -> Frames:
    """Affirmed frames of the test split's world, those of one document sharing agent, place and kind of thing."""
    frames = draw_split(world, len(owner), rng, "test", unsaid=0.4)
    documents = int(owner[-1]) + 1
    if world.has_polarity:
        frames[:, POLARITY] = 0
    frames[:, AGENT] = rng.choice(world.choices[AGENT], size=documents)[owner]
    if world.factors > PLACE:
        frames[:, PLACE] = rng.choice(world.choices[PLACE], size=documents)[owner]
    groups = np.array(FACTORS[OBJECT].group_of)[world.choices[OBJECT]]
    kind = rng.choice(np.unique(groups), size=documents)[owner]
    on_topic = rng.random(len(owner)) < ON_TOPIC
    for group in np.unique(kind):
        rows = np.flatnonzero(on_topic & (kind == group))
        frames[rows, OBJECT] = rng.choice(world.choices[OBJECT][groups == group], size=len(rows))
    return frames


def _answerable(frames: Frames, owner: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """N documents, and one row of each whose deed (action, object, place, time) is told once in the whole corpus."""
    deed = [column for column in (ACTION, OBJECT, PLACE, TIME) if column < frames.shape[1]]
    _, which, counts = np.unique(frames[:, deed], axis=0, return_inverse=True, return_counts=True)
    rows = rng.permutation(np.flatnonzero(counts[which.ravel()] == 1))
    documents, first = np.unique(owner[rows], return_index=True)
    if len(documents) < n:
        raise InputError(f"{n} questions asked for, but only {len(documents)} have one answer: raise factors or values")
    kept = np.sort(rng.choice(len(documents), size=n, replace=False))
    return documents[kept], rows[first[kept]]


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
