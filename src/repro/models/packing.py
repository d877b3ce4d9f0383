"""Equal texts read once, and sentences of like lengths side by side."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from repro.types import InputError


def in_order(texts: Iterable[str]) -> list[str]:
    """Texts as a list, in the order in which they come: a column of a table is read by place,
    whatever its rows are called.

    Raises:
        TypeError: for one string, for what has no order or is a table, and for an item that is no
            string, with its place.
    """
    expected = "expected a sequence of strings"
    if isinstance(texts, str):
        raise TypeError(f"texts is one string: {expected}, such as [text]")
    is_row = isinstance(texts, Iterable) and getattr(texts, "ndim", 1) == 1
    if not is_row or isinstance(texts, Mapping | Set):
        raise TypeError(f"texts is of type {type(texts).__name__}: {expected}, such as a list")
    listed = list(texts)
    for i, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts[{i}] is {type(text).__name__}: expected a string")
    return listed


def merge_equal(texts: Iterable[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts in order of first appearance, and for each text the index of its distinct
    one.
    """
    texts = in_order(texts)
    index = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    try:
        "".join(index).encode()
    except UnicodeEncodeError as error:  # JSON can spell it, no tokenizer reads it
        raise InputError(
            f"texts hold {error.object[error.start]!r}, half of a character: drop or repair it"
        ) from None
    return list(index), np.array([index[text] for text in texts], np.int64)


def pack_by_tokens(
    lengths: Sequence[int] | NDArray[np.integer],
    budget: int,
) -> Iterator[NDArray[np.int64]]:
    """Rows in batches of at most `budget` padded tokens, longest first, so padding is small.

    A batch that is at least half full ends where the length changes: most then need no padding and
    no mask. A row longer than the budget travels alone.
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    while len(order):
        size = max(1, budget // max(1, int(lengths[order[0]])))
        batch = order[:size]
        changes = np.flatnonzero(np.diff(lengths[batch])) + 1
        ends = changes[2 * changes >= size]
        if len(ends):
            batch = batch[: ends[-1]]
        yield batch
        order = order[len(batch) :]
