import struct

import numpy as np
import pytest
from gensim.models import FastText as Gensim
from gensim.models.fasttext import save_facebook_model
from sklearn.feature_extraction.text import TfidfVectorizer

from repro.data.vectors import read_vectors
from repro.types import InputError
from rivals.skipgram import FastText, fit_doc2vec, fit_word2vec
from rivals.static import (
    SMOOTHING,
    StaticEncoder,
    Vocabulary,
    fit_lsa,
    fit_sif,
    fit_tfidf,
    tokens_of,
)

WORDS = ("the", "cat", "dog", "n't", "do", ".")
TEXTS = ["The cat.", "the dog the dog", "do n't", "a cat don't"]
COUNTED = [
    "a dog sleeps",
    "the dog sleeps",
    "a cat sleeps on the mat",
    "the cook thanks a driver",
    "dogs and cats",
    "a driver thanks the cook",
    "the mat is red",
    "a red car",
    "the car of the driver",
    "sleeping dogs lie",
]

TABLE = Vocabulary(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32))


def test_a_text_is_the_mean_of_its_known_words_and_zero_without_any():
    encoder = StaticEncoder(TABLE)
    X = encoder.encode(["the cat zebra cat"])
    np.testing.assert_allclose(X[0], (TABLE.vectors[0] + 2 * TABLE.vectors[1]) / 3, rtol=1e-6)
    assert X.dtype == np.float32 and X.shape == (1, 5)
    X = encoder.encode(["zebra", "the", "", "zebra"], normalize=True)
    assert not X[[0, 2, 3]].any()
    assert np.linalg.norm(X[1]) == pytest.approx(1)


def test_tokens_are_parted_only_where_the_vocabulary_lacks_them():
    assert tokens_of("The dog.", {"dog"}) == ["the", "dog", "."]
    assert tokens_of("U.S. don't dog's", {"u.s."}) == ["u.s.", "do", "n't", "dog", "'s"]
    assert tokens_of("(well-known)", set()) == ["(", "well", "-", "known", ")"]


def test_sif_weighs_by_frequency_and_removes_the_common_direction():
    encoder = fit_sif(TABLE, TEXTS)
    counts = {"the": 3, "cat": 2, ".": 1, "dog": 2, "do": 2, "n't": 2, "a": 1}
    weights = {
        word: SMOOTHING / (SMOOTHING + n / sum(counts.values())) for word, n in counts.items()
    }
    assert encoder.weights == pytest.approx(weights)
    plain = StaticEncoder(TABLE, weights=encoder.weights).encode(TEXTS)
    u = np.linalg.svd(plain)[2][0]
    np.testing.assert_allclose(encoder.encode(TEXTS), plain - np.outer(plain @ u, u), atol=1e-6)
    with pytest.raises(InputError, match="none of the 2 texts"):
        fit_sif(TABLE, ["zebra", "yak"])


def test_tfidf_is_the_formula():
    encoder = fit_tfidf(COUNTED)
    X = encoder.encode(COUNTED)
    assert X.shape == (10, encoder.dim) and X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-6)
    present = ["a", "dog", "sleeps", "a dog", "dog sleeps"]
    idf = [np.log(11 / (1 + sum(f" {w} " in f" {t} " for t in COUNTED))) + 1 for w in present]
    column = encoder.words.vocabulary_["dog sleeps"]
    assert X[0, column] == pytest.approx(idf[-1] / np.linalg.norm(idf), rel=1e-6)
    assert not encoder.encode(["doggy"]).any()
    with pytest.raises(InputError, match="none of the 2 texts has a word"):
        fit_tfidf(["...", "!"])


def test_lsa_spans_the_leading_directions_with_the_same_bytes_each_time():
    encoder = fit_lsa(COUNTED, dim=4)
    X = TfidfVectorizer(
        sublinear_tf=True,
        ngram_range=(1, 2),
        token_pattern=r"(?u)\b\w+\b",
    ).fit_transform(COUNTED)
    U, S, _ = np.linalg.svd(X.toarray(), full_matrices=False)
    ours = encoder.encode(COUNTED)
    np.testing.assert_allclose(ours @ ours.T, (U[:, :4] * S[:4] ** 2) @ U[:, :4].T, atol=1e-4)
    assert (encoder.directions[np.abs(encoder.directions).argmax(0), range(4)] > 0).all()
    assert fit_lsa(COUNTED, dim=4).encode(COUNTED).tobytes() == ours.tobytes()
    with pytest.raises(InputError, match="dim is 40: expected 1 to 9"):
        fit_lsa(COUNTED, dim=40)


def test_seeds_that_libraries_cannot_hold_are_taken(sentences):
    texts = sentences[:60]
    for fit in (fit_lsa, fit_word2vec, fit_doc2vec):
        assert fit(texts, dim=3, seed=2**40 + 1) is not None


def test_words_of_several_parts_are_read_and_malformed_lines_are_named(write):
    read = read_vectors(write("a.vec", "3 2", "the 1 2 ", ". . . 3 4", "é 5 6"))
    assert read.words == ("the", ". . .", "é") and read.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    twice = read_vectors(write("c.txt", "the 1 2", "of 3 4", "the 5 6"))
    assert twice.words == ("the", "of") and twice.vectors[0].tolist() == [1, 2]
    for lines, message in (
        (("the 1 2", "of 3"), "line 2: 1 numbers for 'of', expected 2"),
        (("the 1 2", "of 3 x"), "line 2: could not convert"),
        (("the 1 2", "of 3 nan"), "line 2: 'of' has a number that is not finite"),
        (("4 2", "the 1 2"), "ends after 1 of the 4 words"),
        (("0 2",), "a header and no words"),
    ):
        with pytest.raises(InputError, match=message):
            read_vectors(write("v.txt", *lines))


def test_fasttext_agrees_with_gensim_and_damaged_files_are_refused(tmp_path):
    sentences = [
        text.lower().split() for text in ("a red café", "the red cat sat", "the cat saw a café")
    ] * 5
    sizes = {"vector_size": 8, "min_count": 1, "bucket": 50, "min_n": 2, "max_n": 4}
    model, path = Gensim(sentences, **sizes, epochs=1, seed=0, workers=1), tmp_path / "model.bin"
    save_facebook_model(model, str(path))
    table = FastText(path)
    words = ["café", "cat", "cats", "naïveté"]
    vectors, known = table.lookup(words)
    np.testing.assert_allclose(vectors, np.stack([model.wv[word] for word in words]), atol=1e-6)
    assert known.all() and "cat" in table and "cats" not in table and table.dim == 8
    whole, path = path.read_bytes(), tmp_path / "broken.bin"
    for content, message in (
        (b"3 2\nthe 1 2\n", "is no fastText model"),
        (whole[: len(whole) // 2], "cut short"),
        (whole[:8] + struct.pack("<i", 9) + whole[12:], "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            FastText(path)
    with pytest.raises(InputError, match="no file"):
        FastText(tmp_path / "absent.bin")


# Learnt from texts


def test_word2vec_knows_the_words_that_it_has_seen(sentences):
    X, known = fit_word2vec(sentences, dim=24, epochs=2).lookup(["not", "the", "a", "nosuchword"])
    assert X.shape == (4, 24) and list(known) == [True, True, True, False]
    assert np.isfinite(X).all() and X[:3].any(axis=1).all()
    with pytest.raises(InputError, match="no word of the 2 texts occurs 2 times"):
        fit_word2vec(["a b", "c d"])


def test_a_text_is_closest_to_itself_with_a_word_changed(sentences):
    encoder = fit_doc2vec(sentences, dim=24, epochs=40)
    some = [t for t in sentences if len(t.split()) > 8][:40]
    changed = [" ".join(t.split()[1:]) for t in some]
    A, B = encoder.encode(some, normalize=True), encoder.encode(changed, normalize=True)
    assert (np.argmax(A @ B.T, axis=1) == np.arange(len(some))).mean() > 0.5  # Chance: 0.025
    # Whatever the company
    np.testing.assert_array_equal(encoder.encode(some[:5])[3], encoder.encode([some[3]])[0])
    assert not encoder.encode(["zzz qqq"]).any()


DIGEST = """
import hashlib
from repro import data
from rivals.skipgram import fit_doc2vec, fit_word2vec
texts = list(data.texts_of(data.load("wiki", source="microworld", limit=150)))
X = fit_doc2vec(texts, dim=8, epochs=2).encode(texts[:9])
words = fit_word2vec(texts, dim=8, epochs=2).vectors
digest = hashlib.sha256(X.tobytes() + words.tobytes()).hexdigest()
"""


def test_bytes_do_not_depend_on_the_process(forkserver):
    here: dict = {}
    exec(DIGEST, here)
    hears, tells = forkserver.Pipe(duplex=False)
    code = f"{DIGEST}\ntells.send((digest, hash('the dog')))"
    forkserver.Process(target=exec, args=(code, {"tells": tells}), daemon=True).start()
    tells.close()
    assert hears.poll(120), "waited in vain"
    digest, hashed = hears.recv()
    assert hashed != hash("the dog"), "another process has other hashes"
    assert digest == here["digest"]
