from dataclasses import replace

import numpy as np
import pytest
import torch

from repro.seeding import make_rng
from repro.sets import LabelledPairs
from repro.types import InputError
from rivals.infersent import InferSentConfig, pair_features, train_infersent
from rivals.static import Vocabulary

WORDS = tuple("abcdefghij")
SMALL = InferSentConfig(hidden_dim=16, classifier_dim=32, epochs=12, batch_size=16, learning_rate=0.5)


@pytest.fixture
def table():
    return Vocabulary(WORDS, np.eye(len(WORDS), dtype=np.float32))


@pytest.fixture
def pairs():
    """Entailed if the words are the same, neutral if they are of one half of the alphabet, contradicted otherwise."""
    rng = np.random.default_rng(0)
    left, right = rng.integers(10, size=(2, 600))
    right = np.where(rng.random(600) < 0.3, left, right)
    labels = np.where(left == right, "entailment", np.where(left // 5 == right // 5, "neutral", "contradiction"))
    texts = ([WORDS[i] for i in side] for side in (left, right))
    return LabelledPairs("toy", "local", "train", *map(tuple, texts), labels)


def test_features_are_the_published_four():
    u, v = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    assert pair_features(u, v).tolist() == [[1, 2, 3, -1, 2, 3, 3, -2]]


def test_it_learns_what_pairs_have_in_common(pairs, table):
    encoder, history = train_infersent(pairs, table, replace(SMALL, shrink=1.1), progress=False)
    assert max(history.accuracies) > 0.8 and history.losses[-1] < 0.7 * history.losses[0]
    assert history.best_epoch == int(np.argmax(history.accuracies)) and encoder.dim == 32


def test_the_rate_decays_and_shrinks_where_the_held_out_accuracy_falls(pairs, table):
    config = replace(SMALL, learning_rate=0.3, decay=0.9)
    _, history = train_infersent(pairs, table, config, progress=False)
    rate, best = 0.3, -1.0
    for found, accuracy in zip(history.rates, history.accuracies, strict=True):
        assert found == pytest.approx(rate)
        rate *= 0.9 / (1 if accuracy > best else 5)
        best = max(best, accuracy)
    assert history.rates[-1] < 0.3 * 0.9 ** (len(history.rates) - 1)  # it did shrink
    early = replace(config, smallest_rate=0.25)
    assert len(train_infersent(pairs, table, early, progress=False)[1].rates) < len(history.rates)


def test_held_out_labels_teach_nothing(pairs, table):
    held_out = make_rng(0, "infersent dev").permutation(600)[:60]
    labels = pairs.labels.copy()
    labels[held_out] = np.roll(labels[held_out], 1)
    given, turned = (
        train_infersent(replace(pairs, labels=y), table, replace(SMALL, epochs=1), progress=False)[1]
        for y in (pairs.labels, labels)
    )
    assert given.losses == turned.losses and given.accuracies != turned.accuracies


def test_the_weights_of_the_best_epoch_are_kept(pairs, table):
    long, history = train_infersent(pairs, table, SMALL, progress=False)
    again, _ = train_infersent(pairs, table, replace(SMALL, epochs=history.best_epoch + 1), progress=False)
    np.testing.assert_array_equal(long.encode(WORDS), again.encode(WORDS))


def test_unsuitable_pairs_and_settings_are_refused(pairs, table):
    few = LabelledPairs("few", "local", "train", pairs.texts1[:12], pairs.texts2[:12], pairs.labels[:12])
    with pytest.raises(InputError, match="11 pairs beside 1 held-out ones do not fill one batch of 16"):
        train_infersent(few, table, SMALL, progress=False)
    other = LabelledPairs("other", "local", "train", pairs.texts1, pairs.texts2, np.array(["yes"] * 600))
    with pytest.raises(InputError, match="has the label 'yes'"):
        train_infersent(other, table, SMALL, progress=False)
    with pytest.raises(InputError, match="no word of toy is known"):
        train_infersent(pairs, Vocabulary(["zebra"], np.ones((1, 4), np.float32)), SMALL, progress=False)
    with pytest.raises(InputError, match="dev_share is 1"):
        InferSentConfig(dev_share=1)
    with pytest.raises(InputError, match="shrink 1"):
        InferSentConfig(shrink=1)
    with pytest.raises(InputError, match="hidden_dim is 0"):
        InferSentConfig(hidden_dim=0)
