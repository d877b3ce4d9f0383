"""word2vec and Doc2Vec, trained on the texts at hand, and fastText's files; the one importer of
gensim (method-word-means in the book).

One worker and a hash that does not change from run to run: the same texts and seed give the same
vectors.

References: Mikolov et al. (2013), word2vec; Le & Mikolov (2014), Doc2Vec; Bojanowski et al. (2017),
fastText.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from repro.models.layerless import LayerlessEncoder
from repro.models.packing import merge_equal
from repro.types import Array, InputError, check_dim, optional
from rivals.static import Vocabulary, tokens_of

FASTTEXT = struct.pack("<i", 793712314)
"""What a model of fastText starts with."""
MIN_COUNT = 2
"""Occurrences that a word needs to be learned."""
INFERENCE = 50
"""Steps by which a new text's vector is found."""


class FastText:
    """Vectors by word from fastText's .bin: the mean of a word's own and its subwords', so that
    every word has one.
    """

    def __init__(self, path: Path) -> None:
        """Read the model; InputError for a file that is missing, not fastText's, cut short,
        quantised, a classifier.
        """
        if not path.is_file():
            raise InputError(
                f"no file {path}: expected a fastText model such as crawl-300d-2M-subword.bin"
            )
        with path.open("rb") as file:
            if file.read(4) != FASTTEXT:
                raise InputError(
                    f"{path} is no fastText model: expected plain word vectors in .bin; a .vec?"
                )
        models = optional("gensim.models.fasttext", "classic")
        try:
            self.wv = models.load_facebook_vectors(str(path))
        except (NotImplementedError, ValueError, AssertionError, EOFError, struct.error) as error:
            raise InputError(
                f"{path} cannot be read ({error or 'numbers are missing'}): copy the file again if "
                "it is cut short; of a quantised model (.ftz) take the .bin it was made from; a "
                "classifier holds no plain word vectors"
            ) from error
        self.dim = int(self.wv.vector_size)

    def __contains__(self, word: object) -> bool:
        return word in self.wv.key_to_index

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """As `WordTable` has it; a word is known by any of its parts."""
        vectors = np.zeros((len(words), self.dim), np.float32)
        for i, word in enumerate(words):
            if word in self or self.wv.bucket:
                vectors[i] = self.wv[word]
        return vectors, np.asarray(vectors.any(axis=1))


def fit_word2vec(
    texts: Sequence[str],
    *,
    dim: int = 300,
    epochs: int = 20,
    seed: int = 0,
) -> Vocabulary:
    """Skip-gram with 5 negative samples and 5 words to each side: a vector for every word that
    occurs twice.
    """
    sentences = _tokens(texts)
    models = optional("gensim.models", "classic")
    model = models.Word2Vec(sentences, window=5, sg=1, **_always(dim, epochs, seed))
    return Vocabulary(model.wv.index_to_key, np.asarray(model.wv.vectors, np.float32))


class Doc2VecEncoder(LayerlessEncoder):
    """PV-DBOW: a text is the vector that predicts its words best; each is found by a few steps of
    its own.
    """

    def __init__(self, model: Any, *, seed: int) -> None:
        self.model, self.seed, self.dim = model, seed, int(model.vector_size)

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Inferred vectors (n, dim) of distinct texts; zero where no word is known."""
        X = np.zeros((len(texts), self.dim), np.float32)
        known = self.model.wv.key_to_index
        for row, text in enumerate(texts):
            words = [word for word in tokens_of(text, known) if word in known]
            if words:
                X[row] = self._infer(words)
        return X

    def _infer(self, words: list[str]) -> Array:
        """Steps of stochastic gradient descent on one text's vector, words and weights held still.

        gensim's own `infer_vector` starts from Python's hash of the text, which differs from
        process to process.
        """
        model, step = self.model, optional("gensim.models.doc2vec", "classic").train_document_dbow
        start = np.random.default_rng([self.seed, _hash(" ".join(words))]).random(
            self.dim,
            np.float32,
        )
        vector = ((start - 0.5) / self.dim).reshape(1, -1)
        # Negative samples, for a text alone as for the same text among others
        model.random.seed(self.seed)
        work, free = np.zeros(self.dim, np.float32), np.ones(1, np.float32)
        for rate in np.linspace(model.alpha, model.min_alpha, INFERENCE):
            still = {"learn_words": False, "learn_hidden": False}
            step(model, words, [0], rate, work, **still, doctag_vectors=vector, doctags_lockf=free)
        return vector[0]


def fit_doc2vec(
    texts: Sequence[str],
    *,
    dim: int = 300,
    epochs: int = 20,
    seed: int = 0,
) -> Doc2VecEncoder:
    """PV-DBOW with 5 negative samples."""
    sentences = _tokens(texts)
    models = optional("gensim.models.doc2vec", "classic")
    tagged = [models.TaggedDocument(words, [row]) for row, words in enumerate(sentences)]
    return Doc2VecEncoder(
        models.Doc2Vec(tagged, dm=0, dbow_words=0, **_always(dim, epochs, seed)),
        seed=seed,
    )


def _always(dim: int, epochs: int, seed: int) -> dict[str, Any]:
    settings = {"vector_size": check_dim(dim), "epochs": epochs, "seed": seed % 2**32}
    return {**settings, "min_count": MIN_COUNT, "negative": 5, "workers": 1, "hashfxn": _hash}


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    """The words of the distinct texts, some of which must occur often enough."""
    sentences = [tokens_of(text, ()) for text in merge_equal(texts)[0]]
    counts = Counter(chain.from_iterable(sentences))
    if max(counts.values(), default=0) < MIN_COUNT:
        raise InputError(
            f"no word of the {len(sentences)} texts occurs {MIN_COUNT} times: nothing to learn "
            "vectors of"
        )
    return sentences


def _hash(word: object) -> int:
    return crc32(str(word).encode())
