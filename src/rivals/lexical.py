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
    """Weights of word and character n-grams, rows of length 1; a text of unknown words is the zero vector."""

    def __init__(self, words: TfidfVectorizer, characters: TfidfVectorizer | None = None) -> None:
        self.words = words
        self.characters = characters
        self.texts_unknown = 0

    @property
    def dim(self) -> int:
        """Number of n-grams."""
        return sum(len(part.vocabulary_) for part in (self.words, self.characters) if part is not None)

    def weights(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """The same as `embed`, as a sparse matrix (n, dim): most weights are zero."""
        X = self.words.transform(texts)
        if self.characters is not None:
            # two unit vectors side by side have length √2
            X = sparse.hstack([X, self.characters.transform(texts)], format="csr") / np.sqrt(2.0)
        self.texts_unknown += int((np.diff(X.indptr) == 0).sum())
        return X

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Weights (n, dim) of distinct texts; dense, as embeddings are."""
        return np.asarray(self.weights(texts).toarray(), np.float32)


class LsaEncoder(LayerlessEncoder):
    """TF-IDF read along its strongest singular directions."""

    def __init__(self, base: TfidfEncoder, directions: Array) -> None:
        self.base = base
        self.directions = directions
        """V (n-grams, dim)"""

    @property
    def dim(self) -> int:
        """Number of directions."""
        return int(self.directions.shape[1])

    def embed(self, texts: list[str], *, progress: bool = False) -> Array:
        """Coordinates (n, dim) of distinct texts."""
        return np.asarray(self.base.weights(texts) @ self.directions, np.float32)


def fit_tfidf(
    texts: Sequence[str], *, ngrams: tuple[int, int] = (1, 2), characters: bool = False, min_count: int = 1
) -> TfidfEncoder:
    """TF-IDF of words, sublinear in a word's count, with smoothed inverse document frequencies of `texts`.

    Args:
        texts: whose words and frequencies are learned; equal ones count once.
        ngrams: shortest and longest sequence of words.
        characters: add sequences of 3 to 5 characters within words.
        min_count: texts that a sequence must occur in.

    Raises:
        InputError: if no word is left.
    """
    distinct, _ = merge_equal(texts)
    common = {"sublinear_tf": True, "min_df": check_dim(min_count, what="min_count"), "dtype": np.float32}
    words = TfidfVectorizer(ngram_range=ngrams, token_pattern=r"(?u)\b\w+\b", **common)
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), **common) if characters else None
    try:
        words.fit(distinct)
        if pieces is not None:
            pieces.fit(distinct)
    except ValueError as error:  # scikit-learn's "empty vocabulary" and "no terms remain"
        raise InputError(
            f"none of the {len(distinct)} texts has a word that occurs in {min_count} of them: nothing to count"
        ) from error
    return TfidfEncoder(words, pieces)


def fit_lsa(texts: Sequence[str], *, dim: int = 300, seed: int = 0, **options: object) -> LsaEncoder:
    """LSA: the `dim` strongest right singular directions of the TF-IDF matrix of `texts`, largest entries positive.

    Args:
        texts: what it is fitted on.
        dim: directions kept.
        seed: of the randomised decomposition.
        options: of `fit_tfidf`.

    Raises:
        InputError: if dim is not below both the number of distinct texts and of n-grams.
    """
    base = fit_tfidf(texts, **options)  # type: ignore[arg-type]
    X = base.weights(merge_equal(texts)[0])
    base.texts_unknown = 0
    check_dim(dim, limit=min(X.shape) - 1)
    fit = TruncatedSVD(dim, algorithm="randomized", n_iter=7, n_oversamples=20, random_state=seed).fit(X)
    V = fit.components_.T
    V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(dim)] < 0, -1.0, 1.0)
    return LsaEncoder(base, V.astype(np.float32))
