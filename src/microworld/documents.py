"""Documents of several sentences: posts on twenty topics, and paragraphs to search."""

import numpy as np

from microworld import vocabulary as english
from microworld.texts import Labelled
from microworld.vocabulary import (
    ACTION,
    AGENT,
    FACTORS,
    OBJECT,
    PLACE,
    TIME,
    Frames,
)
from microworld.world import World, draw_split
from repro.sets import Retrieval
from repro.types import InputError

ON_TOPIC = 0.8  # How often a post speaks of its own topic; the rest of the time it strays


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
    wording_of_queries = wording._replace(
        picks=wording.picks[rows], templates=wording.templates[rows]
    )
    other = english.render(frames[rows], rng, other=(frames[rows], wording_of_queries))
    answers = tuple(
        words[AGENT] for words in english.spoken(frames[rows], wording_of_queries.picks)
    )
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
    queries = [
        "Who",
        english.inflect(words[ACTION]).past,
        f"the {words[OBJECT]}",
        words[PLACE],
        words[TIME],
    ]
    return " ".join(word for word in queries if word) + "?"


def _join(sentences: list[str], lengths: np.ndarray) -> list[str]:
    """Documents of so many sentences each."""
    return [" ".join(document) for document in np.split(sentences, np.cumsum(lengths)[:-1])]
