"""Vectors in several files, one after the other."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dimadvise.files import Name, Rows, Vectors
from repro.types import InputError


class Shards(Vectors):
    """Several files of one width, one after the other."""

    def __init__(self, shards: Sequence[Vectors], name: str) -> None:
        """Put parts behind each other."""
        widths = {shard.shape[1]: shard.name for shard in shards}
        if len(widths) > 1:
            listed = ", ".join(f"{path} has {width} columns" for width, path in widths.items())
            raise InputError(f"{listed}: expected shards of one width")
        self.parts, self.name = shards, name
        self.kind = " and ".join(sorted({shard.kind for shard in shards}))
        self.starts = np.cumsum([0, *(shard.shape[0] for shard in shards)])
        self.shape = int(self.starts[-1]), shards[0].shape[1]
        columns = {shard.id_column for shard in shards}
        self.id_column = columns.pop() if len(columns) == 1 else ""
        if not self.id_column:
            id_columns = [shard.id_column or shard.unread_ids for shard in shards]
            self.unread_ids = next(filter(None, id_columns), "")

    def _ids(self, start: int, stop: int) -> list[Name]:
        """Those beside the parts, or those of the parts."""
        if self.named:
            return super()._ids(start, stop)
        names: list[Name] = []
        for shard, first in zip(self.parts, self.starts.tolist(), strict=False):
            low, high = max(start - first, 0), min(stop - first, shard.shape[0])
            if low < high:
                names += shard.ids(low, high)
        return names

    def _take(self, rows: Rows) -> Any:
        cuts = np.searchsorted(rows, self.starts)
        slices = zip(self.parts, self.starts, cuts, cuts[1:], strict=False)
        return np.concatenate([shard.take(rows[a:b] - start) for shard, start, a, b in slices])

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        for shard, start in zip(self.parts, self.starts, strict=False):
            if first < start + shard.shape[0]:
                yield from shard.blocks(size, max(0, first - int(start)))
