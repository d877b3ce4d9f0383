"""Every dataset's stand-in: one name, one split, one seed, always the same bytes."""

from collections.abc import Callable
from functools import partial

import numpy as np

from microworld.documents import posts, retrieval
from microworld.frames import Frames
from microworld.graded import Flavour, graded_pairs
from microworld.opinions import GOODS, Labelled, phrases, sentiments, subjectivity
from microworld.questions import questions
from microworld.relations import LabelledLists, entailments, paraphrases
from microworld.surface import render
from microworld.vectors import word_vectors
from microworld.world import World, draw_split
from repro.seeding import make_rng
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, ScoredPairs
from repro.types import one_of

# Modest, because notebooks run live on two cores.
SIZES: dict[str, dict[str, int]] = {
    **{f"sts{year}": {"test": 1000} for year in (12, 13, 14, 15, 16)},
    "stsb": {"train": 2000, "dev": 500, "test": 1000},
    "sickr": {"train": 1000, "dev": 300, "test": 1000},
    "sicke": {"train": 1200, "dev": 300, "test": 600},
    "mr": {"all": 1200},
    "cr": {"all": 1200},
    "subj": {"all": 1200},
    "mpqa": {"all": 1200},
    "sst2": {"train": 2000, "dev": 300, "test": 600},
    "trec": {"train": 1500, "test": 500},
    "mrpc": {"train": 1500, "test": 600},
    "20news": {"train": 1000, "test": 600},
    "hotpotqa": {"test": 200},
    "wiki": {"train": 20000},
    "nli": {"train": 6000},
    "flickr30k": {"train": 10000, "val": 500, "test_2016": 500},
    "glove": {"all": 20000},
}

# The years differ as the real ones do: in how much wording is shared and how long the sentences are.
FLAVOURS: dict[str, Flavour] = {
    "sts12": Flavour(differ=0.2, unsaid=0.5),
    "sts13": Flavour(differ=0.4, unsaid=0.7),
    "sts14": Flavour(differ=0.5, unsaid=0.6),
    "sts15": Flavour(differ=0.3, unsaid=0.6),
    "sts16": Flavour(differ=0.6, unsaid=0.5),
    "stsb": Flavour(),
    "sickr": Flavour(differ=0.2, unsaid=0.8),
}
WORDINGS = 5
"""Captions per image."""

_Maker = Callable[[World, str, int, np.random.Generator], DataSet]


def make_set(name: str, split: str, *, seed: int = 0, size: int | None = None, world: World | None = None) -> DataSet:
    """The microworld's stand-in for one split of a dataset; `all` joins every split.

    Args:
        name: A name of `SIZES`.
        split: One of its splits, or `all`.
        seed: Draws the sentences; the same seed gives the same bytes.
        size: Sentences of the corpus (`wiki`); other sets have their fixed size.
        world: Another world than the full one.

    Raises:
        InputError: if the name or split is unknown, or the world is too small for the set.
    """
    sizes = SIZES[one_of(name, tuple(SIZES), "microworld set")]
    one_of(split, tuple(dict.fromkeys((*sizes, "all"))), f"split of {name}")
    world = world or World()
    if split in sizes:
        n = size if name == "wiki" and size is not None else sizes[split]
        return _MAKERS[name](world, split, n, make_rng(seed, "microworld set", name, split, world.seed))
    if len(sizes) == 1:
        return make_set(name, next(iter(sizes)), seed=seed, size=size, world=world)
    return _join([make_set(name, part, seed=seed, world=world) for part in sizes])


def _scored(world: World, split: str, n: int, rng: np.random.Generator, *, name: str) -> DataSet:
    pairs = graded_pairs(world, n, rng, split=split, flavour=FLAVOURS[name])
    words = np.array([len(text.split()) for text in pairs.texts1])
    subsets = np.array(["short", "medium", "long"])[np.searchsorted(np.quantile(words, [1 / 3, 2 / 3]), words)]
    # SICK's scale runs from 1 to 5, the others' from 0.
    scores = 1 + 4 * pairs.similarity if name == "sickr" else 5 * pairs.similarity
    return ScoredPairs(name, "microworld", split, tuple(pairs.texts1), tuple(pairs.texts2), scores, subsets)


def _labelled_pairs(lists: LabelledLists, name: str, split: str) -> DataSet:
    texts1, texts2, labels = lists
    return LabelledPairs(name, "microworld", split, tuple(texts1), tuple(texts2), np.array(labels))


def _labelled(made: Labelled, name: str, split: str) -> DataSet:
    return LabelledTexts(name, "microworld", split, tuple(made.texts), np.array(made.labels))


def _sst2(world: World, split: str, n: int, rng: np.random.Generator) -> DataSet:
    made = sentiments(n, rng, split=split)
    labels = ["1" if label == "positive" else "0" for label in made.labels]
    return _labelled(Labelled(made.texts, labels), "sst2", split)


def _wiki(world: World, split: str, n: int, rng: np.random.Generator) -> DataSet:
    """Mostly events, with opinions and questions, so that every set's words and forms occur."""
    events = n - n // 5
    texts = render(draw_split(world, events, rng, "train", unsaid=0.4), rng).texts
    if n - events:
        asked = questions(world, n - events, rng, split="train").texts
        texts = texts[: events - events // 10] + asked[: (n - events) // 2]
        texts += subjectivity(world, n - len(texts), rng, split="train").texts
    return Corpus("wiki", "microworld", tuple(texts[row] for row in rng.permutation(n)))


def _captions(world: World, split: str, n: int, rng: np.random.Generator) -> DataSet:
    part = {"val": "dev", "test_2016": "test"}.get(split, split)
    frames: Frames = draw_split(world, n // WORDINGS, rng, part)
    columns = [render(frames, rng, plain=True).texts for _ in range(WORDINGS)]
    texts = tuple(text for row in zip(*columns, strict=True) for text in row)
    labels = np.repeat([f"{split}-{row:05d}" for row in range(len(frames))], WORDINGS)
    return LabelledTexts("flickr30k", "microworld", split, texts, labels)


def _join(parts: list[DataSet]) -> DataSet:
    """Sets of one kind, one after the other."""
    first = parts[0]
    kind, common = type(first), {"name": first.name, "source": first.source, "split": "all"}
    sides = [side for side in ("texts", "texts1", "texts2") if hasattr(first, side)]
    columns = [column for column in ("scores", "subsets", "labels") if hasattr(first, column)]
    joined = {side: tuple(text for part in parts for text in getattr(part, side)) for side in sides}
    arrays = {column: np.concatenate([getattr(part, column) for part in parts]) for column in columns}
    return kind(**common, **joined, **arrays)  # type: ignore[arg-type]


_MAKERS: dict[str, _Maker] = {
    **{name: partial(_scored, name=name) for name in FLAVOURS},
    "sicke": lambda w, s, n, r: _labelled_pairs(entailments(w, n, r, split=s, shares=(0.29, 0.5, 0.21)), "sicke", s),
    "nli": lambda w, s, n, r: _labelled_pairs(entailments(w, n, r, split=s), "nli", s),
    "mrpc": lambda w, s, n, r: _labelled_pairs(paraphrases(w, n, r, split=s), "mrpc", s),
    "mr": lambda w, s, n, r: _labelled(sentiments(n, r), "mr", s),
    "cr": lambda w, s, n, r: _labelled(sentiments(n, r, about=GOODS, positive=0.64), "cr", s),
    "mpqa": lambda w, s, n, r: _labelled(phrases(n, r), "mpqa", s),
    "subj": lambda w, s, n, r: _labelled(subjectivity(w, n, r), "subj", s),
    "sst2": _sst2,
    "trec": lambda w, s, n, r: _labelled(questions(w, n, r, split=s), "trec", s),
    "20news": lambda w, s, n, r: _labelled(posts(w, n, r, split=s), "20news", s),
    "hotpotqa": lambda w, s, n, r: retrieval(w, n, r, name="hotpotqa"),
    "wiki": _wiki,
    "flickr30k": _captions,
    "glove": lambda w, s, n, r: word_vectors(list(_wiki(w, "train", n, r).texts), name="glove"),  # type: ignore[union-attr]
}
