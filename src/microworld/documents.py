"""Documents of several sentences: posts on twenty topics, and paragraphs to search."""

import numpy as np

from microworld.grammar import Labelled, inflect
from microworld.surface import noun_phrase, render, said
from microworld.taxonomy import ACTION, AGENT, FACTORS, OBJECT, PLACE, POLARITY, TIME, Frames
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
        frames[rows, OBJECT] = rng.choice(np.flatnonzero(FACTORS[OBJECT].group_of == topic), size=len(rows))
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
    asked = wording._replace(picks=wording.picks[rows], templates=wording.templates[rows])
    other = render(frames[rows], rng, other=(frames[rows], asked))
    names = zip(frames[rows, AGENT].tolist(), asked.picks[:, AGENT].tolist(), strict=True)
    answers = tuple(FACTORS[AGENT].synonyms[who][how] for who, how in names)
    queries = tuple(map(_who, frames[rows].tolist(), other.picks.tolist()))
    query_ids = tuple(f"q{row:04d}" for row in range(n))
    ids = tuple(f"d{row:05d}" for row in range(documents))
    qrels = {query: {ids[document]: 1} for query, document in zip(query_ids, relevant.tolist(), strict=True)}
    texts = tuple(_join(wording.texts, lengths))
    return Retrieval(name, "microworld", query_ids, queries, ids, texts, qrels, answers)


def _scenes(world: World, owner: np.ndarray, rng: np.random.Generator) -> Frames:
    """Affirmed frames of the test split's world, those of one document sharing agent, place and kind of thing."""
    frames = draw_split(world, len(owner), rng, "test", unsaid=0.4)
    documents = int(owner[-1]) + 1
    if world.has_polarity:
        frames[:, POLARITY] = 0
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
    verb = inflect(said(frame, pick, ACTION))
    thing = noun_phrase(OBJECT, frame[OBJECT], pick[OBJECT], definite=True)
    tail = [said(frame, pick, column) for column in (PLACE, TIME)]
    return " ".join(word for word in ("Who", verb.past, thing, *tail) if word) + "?"


def _join(sentences: list[str], lengths: np.ndarray) -> list[str]:
    """Documents of so many sentences each."""
    return [" ".join(document) for document in np.split(sentences, np.cumsum(lengths)[:-1])]
