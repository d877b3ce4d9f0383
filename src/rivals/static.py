"""Static baselines: a text is the mean of its words' vectors, plain or smoothed by frequency (PROTOCOLS §6).

Words are lower-cased. A token that the vocabulary knows is kept as it stands (benchmark texts come tokenised); any
other is parted into words, clitics and punctuation, so that `dog.` finds `dog`. Words that are still unknown do
not count; a text without a known word is the zero vector, and `texts_unknown` counts such texts.

References:
    Pennington et al. (2014), GloVe; Arora et al. (2017), A simple but tough-to-beat baseline for sentence embeddings.
"""

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from repro.models.encoder import LayerlessEncoder, merge_equal
from repro.types import Array, InputError, check_same_length

PIECES = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b|\w+?(?=n't\b)|\w+|[^\w\s]")
"""clitics as in the Penn Treebank, words, and single punctuation marks"""


class WordTable(Protocol):
    """Vectors by word."""

    @property
    def dim(self) -> int:
        """Size of a word's vector."""
        ...

    def __contains__(self, word: object, /) -> bool:
        """Whether the word is in the vocabulary, as opposed to built from its parts."""
        ...

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """Vectors (n, dim), zero where nothing is known of a word, and whether something is (n,)."""
        ...


class Vocabulary:
    """A closed table: one vector per word of a list."""

    def __init__(self, words: Sequence[str], vectors: Array) -> None:
        check_same_length(words=words, vectors=vectors)
        if np.ndim(vectors) != 2 or not len(words):
            raise InputError(f"vectors have shape {np.shape(vectors)}: expected (words, dim), at least one word")
        self.rows = {word: row for row, word in reversed(list(enumerate(words)))}  # of equal words, the first holds
        self.vectors = vectors

    @property
    def dim(self) -> int:
        """Size of a word's vector."""
        return int(self.vectors.shape[1])

    def __contains__(self, word: object) -> bool:
        return word in self.rows

    def lookup(self, words: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
        """Vectors (n, dim), zero for unknown words, and which words are known (n,)."""
        rows = np.array([self.rows.get(word, -1) for word in words], dtype=np.int64)
        known = rows >= 0
        return np.where(known[:, None], self.vectors[rows], 0).astype(np.float32), known


def tokens_of(text: str, vocabulary: Container[str]) -> list[str]:
    """The lower-cased tokens of a text; one that the vocabulary lacks is parted at clitics and punctuation."""
    tokens: list[str] = []
    for token in text.lower().split():
        tokens += [token] if token in vocabulary else PIECES.findall(token)
    return tokens


class StaticEncoder(LayerlessEncoder):
    """The (weighted) mean of known words' vectors, less its part along removed directions."""

    def __init__(
        self, table: WordTable, *, weights: Mapping[str, float] | None = None, removed: Array | None = None
    ) -> None:
        """Keep a table, a factor of each word (1 if not listed), and directions (r, dim) taken out of every mean.

        Directions are orthonormal; shorter ones are taken out in part, of squared length c by the share c.
        """
        self.table = table
        self.weights = weights or {}
        self.removed = removed
        self.texts_unknown = 0

    @property
    def dim(self) -> int:
        """Size of a word's vector."""
        return self.table.dim

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Means (n, dim) of distinct texts."""
        index: dict[str, int] = {}
        columns: list[int] = []
        ends = [0]
        for text in texts:
            columns += [index.setdefault(token, len(index)) for token in tokens_of(text, self.table)]
            ends.append(len(columns))
        vectors, known = self.table.lookup(list(index))
        factors = np.array([self.weights.get(word, 1.0) for word in index], np.float32)
        shape = (len(texts), len(index))
        counts = sparse.csr_matrix((known[columns].astype(np.float32), columns, ends), shape=shape)  # (n, words)
        total = np.asarray(counts.sum(axis=1))  # (n, 1)
        self.texts_unknown += int((total == 0).sum())
        X = counts @ (factors[:, None] * vectors) / np.maximum(total, 1)
        return X if self.removed is None else X - (X @ self.removed.T) @ self.removed


def fit_sif(table: WordTable, texts: Sequence[str], *, a: float = 1e-3) -> StaticEncoder:
    """Smooth inverse frequency (Arora et al., 2017, Algorithm 1): weights a/(a + p(w)), first direction removed.

    Frequencies p and the first right singular vector, not centred, are those of the distinct texts; a smaller a lets
    frequent words count less. InputError if a is not above 0, or no word of the texts is known.
    """
    if not a > 0:
        raise InputError(f"a is {a}: expected a number above 0")
    distinct, _ = merge_equal(texts)
    counts = Counter(token for text in distinct for token in tokens_of(text, table))
    total = sum(counts.values())
    weights = {word: a / (a + count / total) for word, count in counts.items()}
    X = StaticEncoder(table, weights=weights).encode(distinct).astype(np.float64)
    if not X.any():
        raise InputError(f"none of the {len(distinct)} texts has a word of the table: SIF has nothing to be fitted on")
    direction = np.linalg.eigh(X.T @ X)[1][:, -1:].T  # u, (1, dim)
    return StaticEncoder(table, weights=weights, removed=direction.astype(np.float32))
