import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from repro.types import InputError
from rivals.lexical import fit_lsa, fit_tfidf

TEXTS = [
    "a dog sleeps",
    "the dog sleeps",
    "a cat sleeps on the mat",
    "the cook thanks a driver",
    "a driver thanks the cook",
    "dogs and cats",
    "the mat is red",
    "a red car",
    "the car of the driver",
    "sleeping dogs lie",
]


def test_tfidf_is_the_formula():
    encoder = fit_tfidf(TEXTS)
    X = encoder.encode(TEXTS)
    assert X.shape == (10, encoder.dim) and X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)
    words = encoder.words
    row, column = 0, words.vocabulary_["dog sleeps"]
    present = ["a", "dog", "sleeps", "a dog", "dog sleeps"]
    idf = [np.log(11 / (1 + sum(f" {w} " in f" {t} " for t in TEXTS))) + 1 for w in present]
    assert not encoder.encode(["doggy"]).any() and encoder.texts_unknown == 1
    assert X[row, column] == pytest.approx(idf[-1] / np.linalg.norm(idf), rel=1e-6)


def test_lsa_spans_the_leading_directions():
    encoder = fit_lsa(TEXTS, dim=4)
    X = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b").fit_transform(TEXTS)
    U, S, _ = np.linalg.svd(X.toarray(), full_matrices=False)
    ours = encoder.encode(TEXTS)
    np.testing.assert_allclose(ours @ ours.T, (U[:, :4] * S[:4] ** 2) @ U[:, :4].T, atol=1e-4)
    assert (encoder.directions[np.abs(encoder.directions).argmax(0), range(4)] > 0).all()


def test_the_same_seed_gives_the_same_bytes():
    a, b = (fit_lsa(TEXTS, dim=3, seed=2).encode(TEXTS).tobytes() for _ in range(2))
    assert a == b


def test_unusable_input_is_named():
    with pytest.raises(InputError, match="none of the 2 texts has a word"):
        fit_tfidf(["...", "!"])
    with pytest.raises(InputError, match="dim is 40: expected 1 to 9"):
        fit_lsa(TEXTS, dim=40)
    with pytest.raises(InputError, match="no layers"):
        fit_tfidf(TEXTS).encode(TEXTS, layer=1)
