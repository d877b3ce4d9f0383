"""TF-IDF and LSA: a text is the weights of its words, or of directions in which words go together (PROTOCOLS §6).

References:
    Sparck Jones (1972), A statistical interpretation of term specificity; Deerwester et al. (1990), Indexing by latent
    semantic analysis.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from repro.models.encoder import LayerlessEncoder, merge_equal
from repro.types import Array, InputError, check_dim


class TfidfEncoder(LayerlessEncoder):
    """Weights of sequences of words, rows of length 1; a text of unknown words is the zero vector."""

    def __init__(self, words: TfidfVectorizer) -> None:
        self.words = words
        self.texts_unknown = 0

    @property
    def dim(self) -> int:
        """Number of sequences."""
        return len(self.words.vocabulary_)

    def weights(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """The same as `embed`, as a sparse matrix (n, dim): most weights are zero."""
        X = self.words.transform(texts)
        self.texts_unknown += int((np.diff(X.indptr) == 0).sum())
        return X

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Weights (n, dim) of distinct texts; dense, as embeddings are."""
        return np.asarray(self.weights(texts).toarray(), np.float32)


class LsaEncoder(LayerlessEncoder):
    """TF-IDF read along its strongest singular directions, V (sequences, dim)."""

    def __init__(self, base: TfidfEncoder, directions: Array) -> None:
        self.base = base
        self.directions = directions

    @property
    def dim(self) -> int:
        """Number of directions."""
        return int(self.directions.shape[1])

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Coordinates (n, dim) of distinct texts."""
        return np.asarray(self.base.weights(texts) @ self.directions, np.float32)


def fit_tfidf(texts: Sequence[str], *, ngrams: tuple[int, int] = (1, 2)) -> TfidfEncoder:
    """TF-IDF of sequences of words, sublinear in their count, with smoothed inverse document frequencies of `texts`.

    Equal texts count once; `ngrams` are the shortest and the longest sequence.
    """
    distinct, _ = merge_equal(texts)
    pattern = r"(?u)\b\w+\b"
    words = TfidfVectorizer(ngram_range=ngrams, token_pattern=pattern, sublinear_tf=True, dtype=np.float32)
    try:
        return TfidfEncoder(words.fit(distinct))
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise InputError(f"none of the {len(distinct)} texts has a word: nothing to count") from error


def fit_lsa(texts: Sequence[str], *, dim: int = 300, seed: int = 0) -> LsaEncoder:
    """LSA: the `dim` strongest right singular directions of the TF-IDF matrix of `texts`, largest entries positive.

    By a randomised decomposition. InputError for a dim that is not below both the number of distinct texts and of
    sequences.
    """
    base = fit_tfidf(texts)
    X = base.weights(merge_equal(texts)[0])
    base.texts_unknown = 0
    check_dim(dim, limit=min(X.shape) - 1)
    fit = TruncatedSVD(dim, algorithm="randomized", n_iter=7, n_oversamples=20, random_state=seed).fit(X)
    V = fit.components_.T
    V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(dim)] < 0, -1.0, 1.0)
    return LsaEncoder(base, V.astype(np.float32))
