"""The menu of datasets, where each is had from, and the sets that they become: checked, frozen, in a fixed order."""

import numpy as np
import pytest

from microworld import SIZES
from repro.data import (
    DATASETS,
    Corpus,
    LabelledPairs,
    Retrieval,
    ScoredPairs,
    WordVectors,
    default_source,
    describe,
    get_spec,
    load,
    texts_of,
)
from repro.data.hub import fetch
from repro.types import InputError


def test_every_name_has_a_microworld_stand_in_with_the_same_splits():
    assert set(SIZES) == set(DATASETS)
    assert all(tuple(SIZES[name]) == spec.splits for name, spec in DATASETS.items())


def test_unknown_names_list_the_valid_ones(no_data):
    with pytest.raises(InputError, match=r"unknown dataset 'stsbb'.*sts12.*trec.*glove"):
        get_spec("stsbb")
    with pytest.raises(InputError, match="split of trec 'dev': choose one of train, test, all"):
        load("trec", split="dev")
    with pytest.raises(InputError, match=r"unknown source 'disk'.*local, hub, microworld"):
        load("trec", source="disk")
    with pytest.raises(InputError, match="leave out source='hub'"):
        load("some/file.tsv", source="hub")
    with pytest.raises(InputError, match=r"glove has no hub mirror.*REPRO_DATA"):
        fetch("glove")


def test_the_source_is_chosen_by_the_folder_and_recorded(no_data, monkeypatch, tmp_path):
    assert default_source() == load("cr", limit=5).source == "microworld"
    with pytest.raises(InputError, match="REPRO_DATA is not set"):  # an error, not a substitute
        load("stsb", source="local")
    assert {row["name"]: row["local"] for row in describe()} == dict.fromkeys(DATASETS, "–")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path))
    assert default_source() == "local"
    assert load("cr", source="microworld", limit=5).source == "microworld"


# sets


def pairs(**changes):
    fields = {"texts1": ("a", "b"), "texts2": ("c", "d"), "scores": [1, 2.5], "subsets": ["x", "y"]}
    return ScoredPairs("toy", "local", "test", **(fields | changes))


def retrieval(**changes):
    fields = {"query_ids": ("q0", "q1"), "queries": ("who?", "what?"), "document_ids": ("d0", "d1")}
    fields |= {"documents": ("he", "that"), "qrels": {"q0": {"d0": 1}, "q1": {"d1": 1, "d0": 0}}}
    return Retrieval("toy", "local", **(fields | changes))


def test_texts_of_keeps_sides_in_order_so_that_embeddings_slice_back():
    data = pairs(texts1=("same", "b"), texts2=("same", "d"))
    assert texts_of(data) == ("same", "b", "same", "d")
    assert texts_of(retrieval()) == ("who?", "what?", "he", "that")
    assert texts_of(Corpus("toy", "local", ["x"])) == ("x",)
    assert texts_of(WordVectors("toy", "local", ["x"], np.ones((1, 3)))) == ("x",)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pairs(texts1=("a",)), "texts1 has 1, texts2 has 2"),
        (lambda: pairs(texts1=("a", " ")), r"texts1\[1\] is ' '"),
        (lambda: pairs(texts1="ab"), "wrap it in a list"),
        (lambda: pairs(scores=[1, float("nan")]), r"scores\[1\] is nan"),
        (lambda: pairs(scores=["high", "low"]), "no number"),
        (lambda: LabelledPairs("toy", "local", "all", ["a"], ["b"], [""]), r"labels\[0\] is ''"),
        (lambda: retrieval(document_ids=("d0", "d0")), "'d0' more than once"),
        (lambda: retrieval(qrels={"q0": {"d7": 1}}), "'d7'.*not among the 2 documents"),
        (lambda: retrieval(answers=("only one",)), "answers has 1"),
        (lambda: WordVectors("toy", "local", ["x", "y"], np.ones((1, 3))), "words has 2, vectors has 1"),
    ],
)
def test_broken_sets_are_refused_with_the_offending_value(make, message):
    with pytest.raises(InputError, match=message):
        make()
