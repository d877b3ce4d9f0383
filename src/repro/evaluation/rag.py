"""Answers: exact match of a generated one, and whether a context holds the answer at all (PROTOCOLS §5.8).

The two are different measures and never stand in one column: a context that holds the answer is what a generator
needs, not what it makes of it.
"""

import re
import string
from collections.abc import Sequence

from repro.types import InputError

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
YES_NO = ("yes", "no")
"""answers that are a judgement, not a piece of text: no context holds them"""


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation and the words a, an and the, single spaces: as SQuAD and HotpotQA compare.

    Punctuation outside ASCII stays, as in the published measure.
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, answers: str | Sequence[str]) -> bool:
    """Whether a prediction equals any of the answers, both normalised.

    Raises:
        InputError: for no answer at all.
    """
    return normalize_answer(prediction) in {normalize_answer(answer) for answer in _listed(answers)}


def answer_in_context(context: str, answers: str | Sequence[str]) -> bool:
    """Whether any of the answers stands in a context as whole words, both normalised.

    An answer of which nothing is left (`The`) is in no context.

    Raises:
        InputError: for no answer at all.
    """
    words = f" {normalize_answer(context)} "
    return any(f" {answer} " in words for answer in map(normalize_answer, _listed(answers)) if answer)


def is_yes_no(answer: str) -> bool:
    """Whether an answer is yes or no, which no context can be searched for."""
    return normalize_answer(answer) in YES_NO


def _listed(answers: str | Sequence[str]) -> list[str]:
    listed = [answers] if isinstance(answers, str) else list(answers)
    if not listed:
        raise InputError("answers is empty: expected at least one, such as ['Paris']")
    return listed
