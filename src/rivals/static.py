"""Static baselines: a text is the mean of its words' vectors, plain or smoothed by frequency, or
counts of its words.

Words are lower-cased. A token that the vocabulary knows is kept as it stands (benchmark texts come
tokenised); any other is parted into words, clitics and punctuation, so that `dog.` finds `dog`.
Words that are still unknown do not count; a text without a known word is the zero vector
(method-systems in the book).

References:
    Pennington et al. (2014), GloVe; Arora et al. (2017), Smooth inverse frequency; Sparck Jones
    (1972), Term specificity; Deerwester et al. (1990), Latent semantic analysis.
"""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from repro.models.layerless import LayerlessEncoder
from repro.models.packing import merge_equal
from repro.reducers.spectral import orient
from repro.types import Array, InputError, check_dim

PIECES = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b|\w+?(?=n't\b)|\w+|[^\w\s]")
"""Clitics as in the Penn Treebank, words, and single punctuation marks."""
SMOOTHING = 1e-3
"""A of SIF: the smaller, the less frequent words count."""


class WordTable(Protocol):
    """Vectors by word."""

    dim: int

    def __contains__(self, word: object, /) -> bool:
        """Whether the word is in the vocabulary, as opposed to built from its parts."""

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """Vectors (n, dim), zero where nothing is known of a word, and whether something is
        (n,).
        """


class Vocabulary:
    """A closed table: one vector per word of a list."""

    def __init__(self, words: Sequence[str], vectors: Array) -> None:
        self.rows = {word: row for row, word in enumerate(words)}
        self.vectors, self.dim = vectors, vectors.shape[1]

    def __contains__(self, word: object) -> bool:
        return word in self.rows

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """As `WordTable` has it."""
        rows = np.array([self.rows.get(word, -1) for word in words], dtype=np.int64)
        known = rows >= 0
        return np.where(known[:, None], self.vectors[rows], 0).astype(np.float32), known


def tokens_of(text: str, vocabulary: Container[str]) -> list[str]:
    """The lower-cased tokens of a text; one that the vocabulary lacks is parted at clitics and
    punctuation.
    """
    tokens: list[str] = []
    for token in text.lower().split():
        tokens += [token] if token in vocabulary else PIECES.findall(token)
    return tokens


class StaticEncoder(LayerlessEncoder):
    """Mean of known words' vectors, each by its weight (1 if not listed), less the part along
    `removed` (r, dim).
    """

    def __init__(
        self,
        table: WordTable,
        *,
        weights: Mapping[str, float] | None = None,
        removed: Array | None = None,
    ) -> None:
        self.table, self.dim = table, table.dim
        self.weights, self.removed = weights or {}, removed

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Means (n, dim) of distinct texts."""
        index: dict[str, int] = {}
        columns: list[int] = []
        ends = [0]
        for text in texts:
            columns += [
                index.setdefault(token, len(index)) for token in tokens_of(text, self.table)
            ]
            ends.append(len(columns))
        vectors, known = self.table.lookup(list(index))
        factors = np.array([self.weights.get(word, 1.0) for word in index], np.float32)
        shape = (len(texts), len(index))
        # (n, words)
        counts = sparse.csr_matrix((known[columns].astype(np.float32), columns, ends), shape=shape)
        total = np.asarray(counts.sum(axis=1))  # (n, 1)
        X = counts @ (factors[:, None] * vectors) / np.maximum(total, 1)
        return X if self.removed is None else X - (X @ self.removed.T) @ self.removed


def fit_sif(table: WordTable, texts: Sequence[str]) -> StaticEncoder:
    """Smooth inverse frequency (Arora et al., 2017, Algorithm 1): weights a/(a + p(w)), first
    direction removed.

    Frequencies p and the first right singular vector, not centred, are those of the distinct texts.
    """
    distinct, _ = merge_equal(texts)
    counts = Counter[str]()
    for text in distinct:
        counts.update(tokens_of(text, table))
    total = sum(counts.values())
    weights = {word: SMOOTHING / (SMOOTHING + count / total) for word, count in counts.items()}
    X = StaticEncoder(table, weights=weights).encode(distinct).astype(np.float64)
    if not X.any():
        raise InputError(
            f"none of the {len(distinct)} texts has a word of the table: SIF has nothing to be "
            "fitted on"
        )
    direction = np.linalg.eigh(X.T @ X)[1][:, -1:].T  # (1, dim)
    return StaticEncoder(table, weights=weights, removed=direction.astype(np.float32))


class TfidfEncoder(LayerlessEncoder):
    """Weights of sequences of words, rows of length 1; a text of unknown words is the zero
    vector.
    """

    def __init__(self, words: TfidfVectorizer) -> None:
        self.words, self.dim = words, len(words.vocabulary_)

    def weights(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """The same as `embed`, as a sparse matrix (n, dim): most weights are zero."""
        return self.words.transform(texts)

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Weights (n, dim) of distinct texts; dense, as embeddings are."""
        return np.asarray(self.weights(texts).toarray(), np.float32)


class LsaEncoder(LayerlessEncoder):
    """TF-IDF read along its strongest singular directions, V (sequences, dim)."""

    def __init__(self, base: TfidfEncoder, directions: Array) -> None:
        self.base, self.directions, self.dim = base, directions, directions.shape[1]

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Coordinates (n, dim) of distinct texts."""
        return np.asarray(self.base.weights(texts) @ self.directions, np.float32)


def fit_tfidf(texts: Sequence[str], *, ngrams: tuple[int, int] = (1, 2)) -> TfidfEncoder:
    """TF-IDF of sequences of words, sublinear in their count, with smoothed inverse document
    frequencies of `texts`.

    Equal texts count once; `ngrams` are the shortest and the longest sequence.
    """
    distinct, _ = merge_equal(texts)
    pattern = r"(?u)\b\w+\b"
    words = TfidfVectorizer(
        ngram_range=ngrams,
        token_pattern=pattern,
        sublinear_tf=True,
        dtype=np.float32,
    )
    try:
        return TfidfEncoder(words.fit(distinct))
    except ValueError as error:  # Scikit-learn's "empty vocabulary"
        raise InputError(
            f"none of the {len(distinct)} texts has a word: nothing to count"
        ) from error


def fit_lsa(texts: Sequence[str], *, dim: int = 300, seed: int = 0) -> LsaEncoder:
    """LSA: the `dim` strongest right singular directions of the TF-IDF matrix of `texts`, largest
    entries positive.
    """
    base = fit_tfidf(texts)
    X = base.weights(merge_equal(texts)[0])
    check_dim(dim, limit=min(X.shape) - 1)
    fit = TruncatedSVD(
        dim,
        algorithm="randomized",
        n_iter=7,
        n_oversamples=20,
        random_state=seed % 2**32,  # Scikit-learn takes no larger one
    ).fit(X)
    return LsaEncoder(base, orient(fit.components_.T).astype(np.float32))
