"""Every dataset's stand-in: one name, one split, one seed, always the same bytes."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from microworld.documents import posts, retrieval
from microworld.pairs import Flavour, entailments, graded_pairs, paraphrases
from microworld.texts import (
    GOODS,
    Labelled,
    phrases,
    questions,
    sentiments,
    subjectivity,
)
from microworld.vocabulary import render, table
from microworld.world import World, draw_split
from repro.seeding import make_rng
from repro.sets import Corpus, DataSet, LabelledPairs, LabelledTexts, ScoredPairs, WordVectors
from repro.types import one_of

SIZES: dict[str, dict[str, int]] = {}
"""Set → split → how many sentences or pairs; modest, because notebooks run live on two cores."""
FLAVOURS: dict[str, Flavour] = {}
"""The years differ as the real ones do: in how much wording is shared and how long the sentences
are.
"""
for _name, _split, _size, _differ, _unsaid in table("sets"):
    SIZES.setdefault(_name, {})[_split] = int(_size)
    if _differ:
        FLAVOURS[_name] = Flavour(float(_differ), float(_unsaid))
WORDINGS = 5  # Captions per image


def make_set(
    name: str,
    split: str,
    *,
    seed: int = 0,
    size: int | None = None,
    world: World | None = None,
) -> DataSet:
    """The microworld's stand-in for one split of a dataset; `all` joins every split.

    The same `seed` gives the same bytes. `size` counts the sentences of the corpus (`wiki`); other
    sets have their fixed size.
    """
    sizes = SIZES[one_of(name, tuple(SIZES), "microworld set")]
    one_of(split, tuple(dict.fromkeys((*sizes, "all"))), f"split of {name}")
    if split in sizes:
        n = size if name == "wiki" and size is not None else sizes[split]
        if world is None:
            return _of_usual_world(name, split, n, seed)
        return _of_world(world, name, split, n, seed)
    sets = [make_set(name, one, seed=seed, size=size, world=world) for one in sizes]
    return sets[0] if len(sets) == 1 else _join(sets)


@lru_cache(maxsize=32)  # Every training of a page asks for the same pairs
def _of_usual_world(name: str, split: str, n: int, seed: int) -> DataSet:
    return _of_world(World(), name, split, n, seed)


def _of_world(world: World, name: str, split: str, n: int, seed: int) -> DataSet:
    rng = make_rng(seed, "microworld set", name, split, world.seed)
    return _make(name, world, split, n, rng)


def _make(name: str, world: World, split: str, n: int, rng: np.random.Generator) -> DataSet:
    """One split with its own generator of random numbers."""
    match name:
        case "wiki":
            return _wiki(world, n, rng)
        case "glove":
            return word_vectors(list(_wiki(world, n, rng).texts), name=name)
        case "hotpotqa":
            return retrieval(world, n, rng, name=name)
        case _ if name in FLAVOURS:
            return _scored(name, world, split, n, rng)
    makers: dict[str, Callable[[], tuple[list[str], ...]]] = {
        "sicke": lambda: entailments(world, n, rng, split=split, shares=(0.29, 0.5, 0.21)),
        "nli": lambda: entailments(world, n, rng, split=split),
        "mrpc": lambda: paraphrases(world, n, rng, split=split),
        "sst2": lambda: sentiments(n, rng, split=split),
        "mr": lambda: sentiments(n, rng),
        "cr": lambda: sentiments(n, rng, about=GOODS),
        "mpqa": lambda: phrases(n, rng),
        "subj": lambda: subjectivity(world, n, rng),
        "trec": lambda: questions(world, n, rng, split=split),
        "20news": lambda: posts(world, n, rng, split=split),
        "flickr30k": lambda: _captions(world, n // WORDINGS, rng, split),
    }
    *texts, labels = makers[name]()
    if name == "sst2":
        labels = [str(int(label == "positive")) for label in labels]
    if len(texts) == 2:
        return LabelledPairs(
            name,
            "microworld",
            split,
            tuple(texts[0]),
            tuple(texts[1]),
            np.array(labels),
        )
    return LabelledTexts(name, "microworld", split, tuple(texts[0]), np.array(labels))


def _captions(world: World, images: int, rng: np.random.Generator, split: str) -> Labelled:
    """Some wordings of each meaning, which stands for an image."""
    frames = draw_split(world, images, rng, {"val": "dev", "test_2016": "test"}.get(split, split))
    columns = [render(frames, rng, plain=True).texts for _ in range(WORDINGS)]
    labels = []
    for image in range(images):
        labels += [f"{split}-{image:05d}"] * WORDINGS
    return list(chain.from_iterable(zip(*columns, strict=True))), labels


def _scored(name: str, world: World, split: str, n: int, rng: np.random.Generator) -> ScoredPairs:
    """Graded pairs; subsets are thirds by length."""
    pairs = graded_pairs(world, n, rng, split=split, flavour=FLAVOURS[name])
    words = np.array([len(text.split()) for text in pairs.texts1])
    subsets = np.array(["short", "medium", "long"])[
        np.searchsorted(np.quantile(words, [1 / 3, 2 / 3]), words)
    ]
    # SICK's scale runs from 1 to 5, the others' from 0.
    scores = 1 + 4 * pairs.similarity if name == "sickr" else 5 * pairs.similarity
    return ScoredPairs(
        name,
        "microworld",
        split,
        tuple(pairs.texts1),
        tuple(pairs.texts2),
        scores,
        subsets,
    )


def _wiki(world: World, n: int, rng: np.random.Generator) -> Corpus:
    """Mostly events, with opinions and questions, so that every set's words and forms occur."""
    events = n - n // 5
    texts = render(draw_split(world, events, rng, "train", unsaid=0.4), rng).texts
    if n - events:
        asked, _ = questions(world, n - events, rng, split="train")
        texts = texts[: events - events // 10] + asked[: (n - events) // 2]
        texts += subjectivity(world, n - len(texts), rng, split="train")[0]
    return Corpus("wiki", "microworld", tuple(texts[row] for row in rng.permutation(n)))


def _join(sets: list[DataSet]) -> DataSet:
    """Sets of one kind, one after the other."""
    joined: dict[str, Any] = {}
    for name, first in vars(sets[0]).items():
        columns = [getattr(one, name) for one in sets]
        if isinstance(first, tuple):
            joined[name] = tuple(chain(*columns))
        elif isinstance(first, np.ndarray):
            joined[name] = np.concatenate(columns)
    return replace(sets[0], split="all", **joined)


DIM, WINDOW = 50, 4


def word_vectors(texts: list[str], *, name: str) -> WordVectors:
    """Positive pointwise mutual information of words within `WINDOW` places, reduced to `DIM` by
    truncated SVD.

    Rows are in frequency order, as in GloVe's files; signs are fixed so that the same texts give
    the same bytes.

    References:
        Levy and Goldberg (2014), Neural word embedding as implicit matrix factorization.
    """
    lines = [text.lower().replace(",", " ").rstrip(".?!").split() for text in texts]
    counts = Counter(chain.from_iterable(lines))
    row = {
        word: rank
        for rank, word in enumerate(sorted(counts, key=lambda word: (-counts[word], word)))
    }
    left, right = [], []
    for line in lines:
        ids = [row[word] for word in line]
        for step in range(1, WINDOW + 1):
            left += ids[:-step]
            right += ids[step:]
    pairs = sparse.coo_matrix(
        (np.ones(len(left)), (left, right)),
        shape=(len(row), len(row)),
    ).tocsr()
    pairs = (pairs + pairs.T).tocoo()
    total = np.asarray(pairs.sum(axis=1)).ravel()
    pmi = np.log(pairs.data * total.sum() / (total[pairs.row] * total[pairs.col]))
    positive = sparse.csr_matrix((np.maximum(pmi, 0), (pairs.row, pairs.col)), shape=pairs.shape)
    U, s, _ = svds(positive, k=DIM, v0=np.ones(len(row)))
    U, s = U[:, ::-1], s[::-1]  # Svds returns the smallest first
    U = U * np.sign(U[np.abs(U).argmax(axis=0), np.arange(DIM)])
    return WordVectors(name, "microworld", tuple(row), (U * np.sqrt(s)).astype(np.float32))
