"""The microworld is a fair miniature: a trained encoder reads it, counting words does not."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import paired_cosine_distances

from microworld import World
from microworld.pairs import swap_roles
from microworld.vocabulary import ABSENT, AGENT, ATTRIBUTE, FACTORS, OBJECT, say, spoken
from repro.data import load
from repro.evaluation import sts_spearman
from repro.models import SentenceEncoder
from repro.models.sources import MINILM


def word_cosines(texts1, texts2, vectorizer):
    vectorizer.fit([*texts1, *texts2])
    return 1 - paired_cosine_distances(vectorizer.transform(texts1), vectorizer.transform(texts2))


def shuffled(texts, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.permutation(text.rstrip(".?").split())) for text in texts]


def test_a_trained_encoder_reads_it_and_needs_the_order_of_words():
    pairs = load("stsb", split="test", source="microworld", limit=250)
    encoder = SentenceEncoder.load(MINILM, pooling="mean")
    sides = [[pairs.texts1, pairs.texts2], [shuffled(pairs.texts1), shuffled(pairs.texts2, seed=1)]]
    in_order, out_of_order = (
        sts_spearman(*map(encoder.encode, both), pairs.scores) for both in sides
    )
    assert in_order >= 0.70 and out_of_order < in_order - 0.01


@pytest.mark.parametrize("name", ["stsb", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr"])
def test_counting_words_does_not_read_it(name):
    data = load(name, source="microworld")
    for ngrams in ((1, 1), (1, 2)):
        cosines = word_cosines(data.texts1, data.texts2, TfidfVectorizer(ngram_range=ngrams))
        assert 0.1 < spearmanr(cosines, data.scores).statistic <= 0.60


def test_swapped_roles_are_at_chance_for_any_bag_of_words():
    frames = World().draw(300, np.random.default_rng(0))
    frames[:, OBJECT] %= len(FACTORS[AGENT])  # Only beings act
    frames = frames[frames[:, AGENT] != frames[:, OBJECT]]
    frames[:, ATTRIBUTE] = ABSENT  # An adjective would change hands with its noun
    texts, same, swapped = (
        [say(words, front=front) for words in spoken(rows, np.zeros_like(rows)[:, :-1])]
        for rows, front in ((frames, 99), (frames, 0), (swap_roles(frames), 0))
    )
    cosines = word_cosines(texts * 2, same + swapped, CountVectorizer())
    assert roc_auc_score(np.repeat([1, 0], len(frames)), np.round(cosines, 9)) == 0.5
    assert all(one != other for one, other in zip(same, swapped, strict=True))


def test_question_types_can_be_learned_but_not_guessed():
    train, test = (load("trec", split=split, source="microworld") for split in ("train", "test"))
    vectorizer = TfidfVectorizer().fit(train.texts)
    probe = LogisticRegression(max_iter=300).fit(vectorizer.transform(train.texts), train.labels)
    accuracy = probe.score(vectorizer.transform(test.texts), test.labels)
    guess = max(np.mean(test.labels == label) for label in set(test.labels.tolist()))
    assert guess < 0.4 < accuracy
