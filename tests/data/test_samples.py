"""What a source holds by its fingerprint, and the samples drawn from it: sentences, pairs,
triples.
"""

import os

import numpy as np
import pytest

from repro import data
from repro.config import TrainConfig
from repro.data import samples
from repro.data.samples import fingerprint, training_sentences
from repro.data.sampling import like_or_unlike, triples
from repro.sets import LabelledPairs
from repro.store import Store
from repro.types import InputError


def test_the_sample_is_drawn_once(monkeypatch):
    config = TrainConfig(sentences=50, source="microworld")
    first = training_sentences(config, Store())
    assert len(first) == 50 and all(isinstance(text, str) for text in first)
    monkeypatch.setattr(samples.data, "load", None)
    assert training_sentences(config, Store()) == first
    assert (
        training_sentences(TrainConfig(sentences=50, source="microworld", dim=3, seed=4), Store())
        == first
    )


def test_a_sample_is_not_kept_under_the_name_of_a_file_that_has_changed(write, monkeypatch):
    corpus, store = write("corpus.txt", "a", "b", "c"), Store()
    config = TrainConfig(corpus=str(corpus), source="local", sentences=2)
    load = data.load

    def edited(*args, **how):
        found = load(*args, **how)
        write("corpus.txt", "d", "e", "f", "g")
        return found

    monkeypatch.setattr(data, "load", edited)
    with pytest.raises(InputError, match=r"corpus\.txt was written to while it was read"):
        training_sentences(config, store)
    monkeypatch.setattr(data, "load", load)
    assert set(training_sentences(config, store)) <= set("defg")


def test_a_file_of_ones_own(write):
    path = write("mine.txt", "one line", "another line", "a third")
    config = TrainConfig(corpus=str(path), sentences=3, source="local")
    assert training_sentences(config, Store()) == ("one line", "another line", "a third")
    before = fingerprint(str(path), "local")
    write("mine.txt", "one line", "another line", "something else")
    assert fingerprint(str(path), "local") != before
    assert training_sentences(config, Store())[-1] == "something else"  # In the same process


def test_a_file_edited_to_the_same_size_and_time_is_another(write):
    path = write("mine.txt", "one line", "another line")
    long_ago = (1_000_000_000, 1_000_000_000)
    os.utime(path, long_ago)
    before = fingerprint(str(path), "local")
    write("mine.txt", "one lime", "another lime")
    os.utime(path, long_ago)  # As `rsync --times` and `cp --preserve` leave it
    assert fingerprint(str(path), "local") != before  # In the same process


def test_fingerprints_tell_sources_apart(write, tmp_path, monkeypatch):
    write("train/wiki.txt.gz", "a", "b")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert len({fingerprint("wiki", source) for source in ("local", "hub", "microworld")}) == 3


# Entailment pairs: what is kept, what is drawn, and which hypotheses go together


def make(*rows):
    premises, hypotheses, labels = zip(*rows, strict=True)
    return LabelledPairs("mine", "local", "train", premises, hypotheses, np.array(labels))


LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}
NAMES = ("a1e", "b1n", "a2c", "b2c", "a3e", "c1e", "c2c", "c3c", "c4e", "d1n")
PAIRS = make(*((name[0], name[:2], LABELS[name[2]]) for name in NAMES))


def test_neutral_pairs_are_dropped_and_the_order_is_kept():
    kept = like_or_unlike(PAIRS)
    assert kept.texts2 == ("a1", "a2", "b2", "a3", "c1", "c2", "c3", "c4")
    assert set(kept.labels) == {"entailment", "contradiction"}


def test_the_limit_counts_what_is_kept_and_draws_are_nested_in_the_order_of_the_file():
    pairs = data.load("nli", split="train", source="microworld", limit=600)
    every, some, few = (like_or_unlike(pairs, limit) for limit in (None, 200, 50))
    assert (len(few), len(some), len(every)) == (50, 200, int((pairs.labels != "neutral").sum()))
    for part, whole in ((some, every), (few, some)):
        rest = iter(zip(whole.texts1, whole.texts2, strict=True))
        assert all(pair in rest for pair in zip(part.texts1, part.texts2, strict=True))
    assert (
        like_or_unlike(pairs, 200).texts1
        == some.texts1
        != like_or_unlike(pairs, 200, seed=1).texts1
    )


def test_hypotheses_of_one_premise_go_together_in_their_order():
    found = triples(PAIRS)
    rows = list(zip(found.queries, found.positives, found.negatives, strict=True))
    assert rows == [("a", "a1", "a2"), ("c", "c1", "c2"), ("c", "c4", "c3")]
    assert len(found) == 3
    drawn = triples(PAIRS, 2, seed=3)
    assert (
        set(zip(drawn.queries, drawn.positives, drawn.negatives, strict=True)) < set(rows)
        and len(drawn) == 2
    )
    assert triples(PAIRS, 9).queries == found.queries


def test_what_cannot_be_used_is_named():
    with pytest.raises(
        InputError,
        match="mine has the label 'maybe': expected contradiction, entailment, neutral",
    ):
        like_or_unlike(make(("a", "b", "maybe")))
    with pytest.raises(InputError, match="mine has neutral pairs only"):
        like_or_unlike(make(("a", "b", "neutral")))
    with pytest.raises(
        InputError,
        match="no premise of mine has both an entailed and a contradicted hypothesis",
    ):
        triples(make(("a", "b", "entailment"), ("c", "d", "contradiction")))
    with pytest.raises(InputError, match="limit is 0"):
        triples(PAIRS, 0)
