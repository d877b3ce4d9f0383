"""Answers: the definition of exact match, and of an answer that a context holds."""

import pytest

from repro.evaluation import answer_in_context, exact_match
from repro.evaluation.rag import is_yes_no, normalize_answer
from repro.types import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat", "cat"),
        ("an apple, a day!", "apple day"),
        ("U.S.A.", "usa"),
        ("Theatre of the Absurd", "theatre of absurd"),  # an article is a word, not the start of one
        ("\tAnna\n", "anna"),
        ("École d'été", "école dété"),
        ("“quoted”", "“quoted”"),  # punctuation outside ASCII stays
        ("ÄRZTE", "ärzte"),
        ("the", ""),
        ("1,000", "1000"),
    ],
)
def test_normalize_answer(text, expected):
    assert normalize_answer(text) == expected
    assert normalize_answer(expected) == expected


def test_exact_match():
    assert exact_match("The Beatles.", ["Rolling Stones", "beatles"])
    assert exact_match("the Beatles", "Beatles")  # one answer may stand alone
    assert not exact_match("The Beatles from Liverpool", ["Beatles"])
    assert not exact_match("", ["Beatles"])


def test_answer_in_context_finds_whole_words():
    context = "In 1968, the band (The Beatles) recorded “Hey Jude” in London."
    assert answer_in_context(context, "Beatles") and answer_in_context(context, ["Paris", "the London"])
    assert answer_in_context(context, "band Beatles recorded")  # articles and brackets do not count
    assert not answer_in_context("I know that nothing is certain", "no")
    assert not answer_in_context(context, "Beatle")
    assert not answer_in_context(context, "the")  # nothing is left of it


def test_yes_and_no_are_no_pieces_of_text():
    assert is_yes_no("Yes.") and is_yes_no("no") and not is_yes_no("Norway")


@pytest.mark.parametrize("measure", [exact_match, answer_in_context])
def test_no_answer_is_refused(measure):
    with pytest.raises(InputError, match="answers is empty"):
        measure("anything", [])
