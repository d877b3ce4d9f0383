"""Entailment pairs as examples: what is kept, what is drawn, and which hypotheses go together."""

import numpy as np
import pytest

from repro import data
from repro.data.sampling import like_or_unlike, triples
from repro.sets import LabelledPairs
from repro.types import InputError


def make(*rows):
    premises, hypotheses, labels = zip(*rows, strict=True)
    return LabelledPairs("mine", "local", "train", premises, hypotheses, np.array(labels))


PAIRS = make(
    ("a", "a1", "entailment"),
    ("b", "b1", "neutral"),
    ("a", "a2", "contradiction"),
    ("b", "b2", "contradiction"),
    ("a", "a3", "entailment"),
    ("c", "c1", "entailment"),
    ("c", "c2", "contradiction"),
    ("c", "c3", "contradiction"),
    ("c", "c4", "entailment"),
    ("d", "d1", "neutral"),
)


def test_neutral_pairs_are_dropped_and_the_order_is_kept():
    kept = like_or_unlike(PAIRS)
    assert kept.texts2 == ("a1", "a2", "b2", "a3", "c1", "c2", "c3", "c4")
    assert set(kept.labels) == {"entailment", "contradiction"}


def test_the_limit_counts_what_is_kept():
    pairs = data.load("nli", split="train", source="microworld")
    every = like_or_unlike(pairs)
    some = like_or_unlike(pairs, 500)
    assert (len(some), len(every)) == (500, int((pairs.labels != "neutral").sum()))
    rows = set(zip(every.texts1, every.texts2, strict=True))
    assert set(zip(some.texts1, some.texts2, strict=True)) <= rows
    assert like_or_unlike(pairs, 500).texts1 == some.texts1
    assert like_or_unlike(pairs, 500, seed=1).texts1 != some.texts1
    # a smaller draw is part of a larger one, so that curves over the number of pairs are nested
    assert set(like_or_unlike(pairs, 100).texts1) <= set(some.texts1)
    rest = iter(every.texts2)
    assert all(text in rest for text in some.texts2), "in the order of the file"


def test_hypotheses_of_one_premise_go_together_in_their_order():
    found = triples(PAIRS)
    rows = list(zip(found.queries, found.positives, found.negatives, strict=True))
    assert rows == [("a", "a1", "a2"), ("c", "c1", "c2"), ("c", "c4", "c3")]
    assert len(found) == 3
    drawn = triples(PAIRS, 2, seed=3)
    assert set(zip(drawn.queries, drawn.positives, drawn.negatives, strict=True)) < set(rows) and len(drawn) == 2
    assert triples(PAIRS, 9).queries == found.queries


def test_what_cannot_be_used_is_named():
    with pytest.raises(InputError, match="mine has the label 'maybe': expected contradiction, entailment, neutral"):
        like_or_unlike(make(("a", "b", "maybe")))
    with pytest.raises(InputError, match="mine has neutral pairs only"):
        like_or_unlike(make(("a", "b", "neutral")))
    with pytest.raises(InputError, match="no premise of mine has both an entailed and a contradicted hypothesis"):
        triples(make(("a", "b", "entailment"), ("c", "d", "contradiction")))
    with pytest.raises(InputError, match="limit is 0"):
        triples(PAIRS, 0)
