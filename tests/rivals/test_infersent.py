from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.seeding import make_rng
from repro.sets import LabelledPairs
from repro.types import InputError
from rivals import infersent
from rivals.infersent import BiLSTMMax, InferSent, InferSentConfig, train_infersent
from rivals.static import Vocabulary

TEXTS = ["the cat sat", "a dog", "the mat . a cat sat on the dog", "zebra", "on a zebra mat"]
LETTERS = tuple("abcdefghij")
TABLE = Vocabulary(LETTERS, np.eye(len(LETTERS), dtype=np.float32))
SMALL = InferSentConfig(
    hidden_dim=16,
    classifier_dim=32,
    epochs=12,
    batch_size=16,
    learning_rate=0.5,
)


@pytest.fixture
def encoder():
    words = ("the", "cat", "dog", "sat", "on", "a", "mat", ".")
    table = Vocabulary(
        words,
        np.random.default_rng(0).normal(size=(len(words), 5)).astype(np.float32),
    )
    return InferSent(BiLSTMMax(5, 4), table)


def test_the_maximum_over_tokens_is_the_literal_one(encoder):
    """One text at a time, without packing or padding."""
    found = encoder.encode(TEXTS)
    for row, text in enumerate(TEXTS):
        if known := [word for word in text.split() if word in encoder.table]:
            states, _ = encoder.net.lstm(torch.from_numpy(encoder.table.lookup(known)[0]))
            np.testing.assert_allclose(found[row], states.detach().amax(0), atol=1e-6)


def test_company_order_and_unknown_words_do_not_matter_and_long_texts_are_cut(encoder, monkeypatch):
    X = encoder.encode(TEXTS)
    assert X.shape == (5, 8) and X.dtype == np.float32 and not X[3].any()
    np.testing.assert_allclose(
        X,
        np.concatenate([encoder.encode([text]) for text in TEXTS]),
        atol=1e-6,
    )
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1]), X[::-1], atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(["zebra the cat"]), encoder.encode(["the CAT"]))
    monkeypatch.setattr(infersent, "LONGEST", 2)
    np.testing.assert_allclose(encoder.encode(TEXTS)[0], encoder.encode(["the cat"])[0], atol=1e-6)


@pytest.fixture(scope="module")
def pairs():
    """Entailed if the words are the same, neutral if they are of one half of the alphabet,
    contradicted otherwise.
    """
    rng = np.random.default_rng(0)
    left, right = rng.integers(10, size=(2, 600))
    right = np.where(rng.random(600) < 0.3, left, right)
    labels = np.where(
        left == right,
        "entailment",
        np.where(left // 5 == right // 5, "neutral", "contradiction"),
    )
    texts = ([LETTERS[i] for i in side] for side in (left, right))
    return LabelledPairs("toy", "local", "train", *map(tuple, texts), labels)


def test_it_learns_what_pairs_have_in_common(pairs):
    encoder, history = train_infersent(pairs, TABLE, replace(SMALL, shrink=1.1))
    assert history["accuracy"].max() > 0.8 and history["loss"].iloc[-1] < 0.7 * history["loss"][0]
    assert encoder.dim == 32


def test_the_rate_shrinks_where_the_held_out_accuracy_falls_and_the_best_epoch_is_kept(pairs):
    config = replace(SMALL, learning_rate=0.3, decay=0.9)
    encoder, history = train_infersent(pairs, TABLE, config)
    rate, best = 0.3, -1.0
    for found, accuracy in zip(history["rate"], history["accuracy"], strict=True):
        assert found == pytest.approx(rate)
        rate *= 0.9 / (1 if accuracy > best else 5)
        best = max(best, accuracy)
    assert history["rate"].iloc[-1] < 0.3 * 0.9 ** (len(history) - 1)  # It did shrink
    again, short = train_infersent(
        pairs,
        TABLE,
        replace(config, epochs=history["accuracy"].idxmax() + 1),
    )
    assert len(short) < len(history)
    np.testing.assert_array_equal(encoder.encode(LETTERS), again.encode(LETTERS))


def test_held_out_labels_teach_nothing(pairs):
    held_out = make_rng(0, "infersent dev").permutation(600)[:60]
    labels = pairs.labels.copy()
    labels[held_out] = np.roll(labels[held_out], 1)
    both, once = (pairs, replace(pairs, labels=labels)), replace(SMALL, epochs=1)
    given, turned = (train_infersent(some, TABLE, once)[1] for some in both)
    assert given["loss"].equals(turned["loss"]) and not given["accuracy"].equals(turned["accuracy"])


def test_unsuitable_pairs_are_refused(pairs):
    few = LabelledPairs(
        "few",
        "local",
        "train",
        pairs.texts1[:12],
        pairs.texts2[:12],
        pairs.labels[:12],
    )
    with pytest.raises(
        InputError,
        match="11 pairs beside 1 held-out ones do not fill one batch of 16",
    ):
        train_infersent(few, TABLE, SMALL)
    with pytest.raises(InputError, match="no word of toy is known"):
        train_infersent(pairs, Vocabulary(["zebra"], np.ones((1, 4), np.float32)), SMALL)
