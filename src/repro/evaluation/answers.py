"""Whether a context holds an answer, and whether a generated one is exact (method-answers in the
book).

The two are different measures and never stand in one column: the former is what a generator needs,
not what it makes of it.
"""

import re
import string
from collections.abc import Iterable, Sequence

from repro.types import InputError

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation, a, an and the, and with single spaces: as SQuAD and
    HotpotQA compare.
    """
    if not isinstance(text, str):
        raise InputError(f"an answer or context is {text!r}: expected a text")
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction: str, answers: str | Sequence[str]) -> bool:
    """Whether a prediction equals any of the answers, of which there must be one, both
    normalised.
    """
    return normalize_answer(prediction) in map(normalize_answer, _listed(answers))


def answer_in_context(context: str, answers: str | Sequence[str]) -> bool:
    """Whether any of the answers stands in a context as whole words, both normalised; one of no
    words does not.
    """
    words = f" {normalize_answer(context)} "
    normalized = filter(None, map(normalize_answer, _listed(answers)))
    return any(f" {answer} " in words for answer in normalized)


def is_yes_no(answer: str) -> bool:
    """Whether an answer is yes or no, a judgement that no context can be searched for."""
    return normalize_answer(answer) in ("yes", "no")


def _listed(answers: str | Sequence[str]) -> list[str]:
    if isinstance(answers, str) or not isinstance(answers, Iterable):
        return [answers]
    listed = list(answers)
    if not listed:
        raise InputError("answers is empty: expected at least one, such as ['Paris']")
    return listed
