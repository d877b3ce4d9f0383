import numpy as np
import pytest

from repro.evaluation import linear_probe, nested_cv_accuracy, sts_spearman
from repro.evaluation.classify import pair_features, score_classification
from repro.evaluation.stats import bootstrap_spearman
from repro.evaluation.sts import score_sts
from repro.sets import LabelledPairs, LabelledTexts, ScoredPairs


def embed(texts):
    """A text is a number in words; its embedding depends on nothing else."""
    return np.vstack([np.random.default_rng(int(text)).standard_normal(6) for text in texts])


def numbers(count, start=0):
    return tuple(str(start + i) for i in range(count))


@pytest.fixture
def pairs():
    scores = np.linspace(0, 5, 50)
    subsets = np.repeat(["a", "b"], 25)
    return ScoredPairs("made", "local", "test", numbers(50), numbers(50, 1000), scores, subsets)


def labelled(split, count=60, start=0):
    texts = numbers(count, start)
    return LabelledTexts("made", "local", split, texts, np.where(embed(texts)[:, 0] > 0, "up", "down"))


@pytest.mark.parametrize("aggregate", ["all", "mean", "wmean"])
def test_similarity(pairs, aggregate):
    score = score_sts(embed, pairs, aggregate=aggregate)
    X1, X2 = embed(pairs.texts1), embed(pairs.texts2)
    expected = sts_spearman(X1, X2, pairs.scores, subsets=pairs.subsets, aggregate=aggregate)
    assert score.value == pytest.approx(expected)
    assert score.metric == ("spearman" if aggregate == "all" else f"spearman_{aggregate}")
    assert score.n == len(score.items) == 50
    if aggregate == "all":
        within = bootstrap_spearman(score.items, pairs.scores, subsets=pairs.subsets, seed=0)
        assert (score.ci_low, score.ci_high) == (within.low, within.high)
        assert score.ci_low < score.value < score.ci_high


def test_the_form_follows_from_the_splits():
    train, dev, test = labelled("train"), labelled("dev", 30, 100), labelled("test", 40, 200)
    X, y = embed(train.texts), train.labels
    X_test, y_test = embed(test.texts), test.labels
    kfold = score_classification(embed, {"train": train, "test": test})
    assert kfold.value == linear_probe(X, y, X_test, y_test)
    split = score_classification(embed, {"train": train, "dev": dev, "test": test})
    assert split.value == linear_probe(X, y, X_test, y_test, X_dev=embed(dev.texts), y_dev=dev.labels)
    nested = score_classification(embed, {"all": train})
    assert nested.value == nested_cv_accuracy(X, y)
    assert (kfold.n, nested.n, kfold.metric) == (40, 60, "accuracy")
    for score in (kfold, split, nested):
        assert score.ci_low <= score.value <= score.ci_high and 0 <= score.floor <= 1


def test_pairs_are_classified_by_their_features():
    train, test = (
        LabelledPairs(
            "made", "local", split, numbers(n, start), numbers(n, start + 500), np.array(["x", "y"] * (n // 2))
        )
        for split, n, start in (("train", 60, 0), ("test", 20, 100))
    )
    found = score_classification(embed, {"train": train, "test": test})
    sides = [pair_features(embed(part.texts1), embed(part.texts2)) for part in (train, test)]
    assert found.value == linear_probe(sides[0], train.labels, sides[1], test.labels)
