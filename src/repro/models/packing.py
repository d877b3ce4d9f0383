"""Packing: which texts share a batch when encoding, so that little of it is padding."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


def pack_by_tokens(lengths: Sequence[int] | NDArray[np.integer], budget: int) -> Iterator[NDArray[np.int64]]:
    """Rows in batches of at most `budget` padded tokens, longest first, so padding is small.

    A batch that is at least half full ends where the length changes: most then need no padding and no mask.
    A row longer than the budget travels alone.
    """
    lengths = np.asarray(lengths)
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        batch = order[start : start + size]
        changes = np.flatnonzero(np.diff(lengths[batch])) + 1
        ends = changes[2 * changes >= size]
        if len(ends):
            batch = batch[: ends[-1]]
        yield batch
        start += len(batch)
