import struct

import numpy as np
import pytest

from repro.data.files import read_vectors
from repro.types import InputError
from rivals.skipgram import FastText
from rivals.static import StaticEncoder, Vocabulary, fit_sif, tokens_of

WORDS = ("the", "cat", "dog", "n't", "do", ".")
TEXTS = ["The cat.", "the dog the dog", "do n't", "a cat don't"]


@pytest.fixture
def table():
    return Vocabulary(WORDS, np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32))


def test_a_text_is_the_mean_of_its_known_words(table):
    X = StaticEncoder(table).encode(["the cat zebra cat"])
    by_hand = (table.vectors[0] + 2 * table.vectors[1]) / 3
    np.testing.assert_allclose(X[0], by_hand, rtol=1e-6)
    assert X.dtype == np.float32 and X.shape == (1, 5)


def test_tokens_are_parted_only_where_the_vocabulary_lacks_them():
    assert tokens_of("The dog.", {"dog"}) == ["the", "dog", "."]
    assert tokens_of("U.S. don't dog's", {"u.s."}) == ["u.s.", "do", "n't", "dog", "'s"]
    assert tokens_of("(well-known)", set()) == ["(", "well", "-", "known", ")"]


def test_unknown_texts_are_zero_and_counted(table):
    encoder = StaticEncoder(table)
    X = encoder.encode(["zebra", "the", "", "zebra"], normalize=True)
    assert not X[[0, 2, 3]].any() and encoder.texts_unknown == 2  # the repeated text is embedded once
    assert np.linalg.norm(X[1]) == pytest.approx(1)
    assert encoder.encode([]).shape == (0, 5)


def test_sif_weighs_by_frequency_and_removes_the_common_direction(table):
    encoder = fit_sif(table, TEXTS, a=0.1)
    counts = {"the": 3, "cat": 2, ".": 1, "dog": 2, "do": 2, "n't": 2, "a": 1}
    total = sum(counts.values())
    assert encoder.weights == pytest.approx({word: 0.1 / (0.1 + n / total) for word, n in counts.items()})
    plain = StaticEncoder(table, weights=encoder.weights).encode(TEXTS)
    u = np.linalg.svd(plain)[2][0]
    np.testing.assert_allclose(encoder.encode(TEXTS), plain - np.outer(plain @ u, u), atol=1e-6)


def test_sif_refuses_what_it_cannot_be_fitted_on(table):
    with pytest.raises(InputError, match="none of the 2 texts"):
        fit_sif(table, ["zebra", "yak"])
    with pytest.raises(InputError, match="a is 0"):
        fit_sif(table, TEXTS, a=0)


@pytest.fixture
def write(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write


def test_headers_trailing_spaces_and_words_of_several_parts_are_read(write):
    read = read_vectors(write("a.vec", "3 2", "the 1 2 ", ". . . 3 4", "é 5 6"))
    assert read.words == ("the", ". . .", "é") and read.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    twice = read_vectors(write("c.txt", "the 1 2", "of 3 4", "the 5 6"))
    assert twice.words == ("the", "of") and twice.vectors[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("the 1 2", "of 3"), "line 2: 1 numbers for 'of', expected 2"),
        (("the 1 2", "of 3 4 5"), "line 2: 3 numbers for 'of', expected 2"),
        (("the 1 2", "of 3 x"), "line 2: could not convert"),
        (("the 1 2", "of 3 nan"), "line 2: 'of' has a number that is not finite"),
        (("4 2", "the 1 2"), "ends after 1 of the 4 words"),
        (("0 2",), "a header and no words"),
    ],
)
def test_malformed_lines_are_named(write, lines, message):
    with pytest.raises(InputError, match=message):
        read_vectors(write("v.txt", *lines))


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    from gensim.models import FastText as Gensim
    from gensim.models.fasttext import save_facebook_model

    sentences = [text.lower().split() for text in ("a red café", "the red cat sat", "the cat saw a café")] * 5
    model = Gensim(sentences, vector_size=8, min_count=1, bucket=50, min_n=2, max_n=4, epochs=1, seed=0, workers=1)
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    save_facebook_model(model, str(path))
    return model.wv, path


def test_fasttext_agrees_with_gensim_on_known_and_unknown_words(oracle):
    wv, path = oracle
    table = FastText(path)
    words = ["café", "cat", "cats", "naïveté"]
    vectors, known = table.lookup(words)
    np.testing.assert_allclose(vectors, np.stack([wv[word] for word in words]), atol=1e-6)
    assert known.all() and "cat" in table and "cats" not in table and table.dim == 8
    assert StaticEncoder(table).encode(["cats"]).any()


def test_damaged_fasttext_files_are_refused(oracle, tmp_path):
    whole = oracle[1].read_bytes()
    path = tmp_path / "broken.bin"
    for content, message in (
        (b"3 2\nthe 1 2\n", "is no fastText model"),
        (whole[:100], "broken.bin cannot be read .*cut short"),
        (whole[: len(whole) // 2], "cut short"),
        (whole[:8] + struct.pack("<i", 9) + whole[12:], "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            FastText(path)
    with pytest.raises(InputError, match="no file"):
        FastText(tmp_path / "absent.bin")
