"""Checks of the columns of a set: each returns the column in its final form or says which row is wrong."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from repro.types import InputError

Strings: TypeAlias = NDArray[np.str_]


def check_texts(texts: Iterable[str], what: str) -> tuple[str, ...]:
    """Return texts as a tuple after checking that there is one and none is blank.

    Raises:
        InputError: for a bare string, an empty collection, a non-string or a blank text (its row named).
    """
    if isinstance(texts, str):
        raise InputError(f"{what} is one string, {texts[:40]!r}: expected a sequence of texts, so wrap it in a list")
    texts = tuple(texts)
    if not texts:
        raise InputError(f"{what} is empty: expected at least one text")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"{what}[{row}] is {text!r} ({type(text).__name__}): expected a string")
        if not text.strip():
            raise InputError(f"{what}[{row}] is {text!r}: expected a text that is not blank; drop that row")
    return texts


def check_scores(scores: Any, what: str) -> NDArray[np.float64]:
    """Return gold scores as a read-only float64 vector (n,).

    Raises:
        InputError: if they are not numbers in one dimension, or one is NaN or infinite (its row named).
    """
    try:
        scores = np.array(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} holds no number: {error}; expected one number per pair") from None
    if scores.ndim != 1:
        raise InputError(f"{what} has shape {scores.shape}: expected (n,), one number per pair")
    bad = ~np.isfinite(scores)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{what}[{row}] is {scores[row]}: expected finite scores; drop or repair that row")
    scores.setflags(write=False)
    return scores


def check_labels(labels: Any, what: str) -> Strings:
    """Return labels as a read-only vector (n,) of strings, numbers spelled as strings.

    Raises:
        InputError: if they are not one-dimensional or one is blank (its row named).
    """
    values = [str(label) for label in labels]
    for row, label in enumerate(values):
        if not label.strip():
            raise InputError(f"{what}[{row}] is {label!r}: expected a label for every text")
    checked: Strings = np.array(values, dtype=np.str_)
    checked.setflags(write=False)
    return checked


def check_ids(ids: Iterable[str], what: str) -> tuple[str, ...]:
    """Return ids as a tuple of distinct strings.

    Raises:
        InputError: if one is blank or occurs twice (it is named).
    """
    ids = tuple(str(value) for value in ids)
    repeated = [value for value, count in Counter(ids).items() if count > 1]
    if repeated:
        raise InputError(f"{what} holds {repeated[0]!r} more than once: expected every id once")
    if any(not value.strip() for value in ids):
        raise InputError(f"{what} holds a blank id: expected a name for every row")
    return ids
