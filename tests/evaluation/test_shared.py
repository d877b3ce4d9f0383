"""Averages over sets that share items: an item has one weight in all of them."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from repro.evaluation.shared import (
    items_of,
    means_with,
    sentence_weights,
    shared_weights,
    spearman_with,
)
from repro.evaluation.stats import Resampled, spearman_draws
from repro.sets import LabelledTexts, ScoredPairs, WordVectors
from repro.types import InputError


def pairs(name, places, parts=("x",)):
    """A set of the pairs at some places of a world of pairs, its subsets in turn."""
    scores = np.random.default_rng(0).uniform(0, 5, 500)[list(places)]
    sides = [tuple(f"{side} {place}" for place in places) for side in "ab"]
    return ScoredPairs(name, "made", "test", *sides, scores, np.resize(parts, len(places)))


ONE, TWO = pairs("one", range(60), ("x", "y")), pairs("two", range(40, 90))


def test_an_item_has_one_weight_in_all_sets_and_every_subset_keeps_its_number():
    weights = shared_weights({"one": ONE, "two": TWO}, resamples=50, seed=3)
    np.testing.assert_array_equal(weights["one"][:, 40:], weights["two"][:, :20])
    for part in ("x", "y"):
        assert (weights["one"][:, ONE.subsets == part].sum(1) == 30).all()
    assert (weights["two"].sum(1) == 50).all()
    assert weights["one"].std() == pytest.approx(1, abs=0.1)
    again, other = (shared_weights({"one": ONE}, resamples=50, seed=s)["one"] for s in (3, 4))
    assert not np.array_equal(again, other)


def test_an_average_of_one_set_under_two_names_is_as_unsure_as_that_set():
    cosines = [ONE.scores + np.random.default_rng(1).normal(0, 3, 60)]
    alone = spearman_draws(cosines, ONE.scores, subsets=ONE.subsets, seed=0)
    by_itself = [spearman_draws(cosines, ONE.scores, resamples=2000, seed=s) for s in (0, 1)]
    weights = shared_weights({"one": ONE, "same": pairs("same", range(60), ("x", "y"))}, seed=0)
    drawn = [spearman_with(weights[name], cosines, ONE.scores) for name in weights]
    assert np.std(Resampled.averaged(drawn).draws) == pytest.approx(np.std(alone.draws), rel=0.08)
    assert np.std(Resampled.averaged(by_itself).draws) < 0.8 * np.std(alone.draws)


def test_scores_of_given_resamples_are_those_of_the_items_drawn():
    cosines = ONE.scores + np.random.default_rng(1).normal(0, 3, 60)
    for draw in (shared_weights, sentence_weights):
        weights = draw({"one": ONE}, resamples=20, seed=0)["one"]
        found = spearman_with(weights, [cosines], ONE.scores)
        means = means_with(weights, [cosines])
        assert found.value[0] == pytest.approx(spearmanr(cosines, ONE.scores).statistic)
        for r in range(20):
            rows = np.repeat(np.arange(60), weights[r])
            expected = spearmanr(cosines[rows], ONE.scores[rows]).statistic
            assert found.draws[r, 0] == pytest.approx(expected)
            assert means.draws[r, 0] == pytest.approx(cosines[rows].mean())


def test_pairs_that_shared_sentences_connect_have_one_weight():
    sides = (("A cat.", "a dog", "one", "x"), ("a dog", "a bird", "two", "y"))
    linked = ScoredPairs("linked", "made", "test", *sides, [0, 1, 2, 3], ["s"] * 4)
    weights = sentence_weights({"linked": linked}, resamples=200, seed=0)["linked"]
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    assert not np.array_equal(weights[:, 1], weights[:, 2])


def test_items_are_one_whatever_their_capitals_punctuation_and_order():
    sides = (("A cat.", "a dog!"), ("A dog", "a  cat"))
    both = ScoredPairs("both", "made", "test", *sides, [0, 1], ["s", "s"])
    assert len(set(items_of(both))) == 1
    labelled = LabelledTexts("kinds", "made", "test", ("A cat.", "a cat", "x"), ["p", "q", "p"])
    assert items_of(labelled) == [("a cat",), ("a cat",), ("x",)]
    with pytest.raises(InputError, match="'words' has no items"):
        items_of(WordVectors("words", "made", ("a",), np.ones((1, 2))))
