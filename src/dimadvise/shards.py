"""Vectors in several files, one after the other."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dimadvise.files import Name, Rows, Vectors
from repro.types import InputError


class Shards(Vectors):
    """Several files of one width, one after the other."""

    def __init__(self, parts: Sequence[Vectors], name: str) -> None:
        """Put parts behind each other."""
        widths = {part.shape[1]: part.name for part in parts}
        if len(widths) > 1:
            told = ", ".join(f"{path} has {width} columns" for width, path in widths.items())
            raise InputError(f"{told}: expected shards of one width")
        self.parts, self.name = parts, name
        self.kind = " and ".join(sorted({part.kind for part in parts}))
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = int(self.starts[-1]), parts[0].shape[1]
        columns = {part.id_column for part in parts}
        self.id_column = columns.pop() if len(columns) == 1 else ""
        if not self.id_column:
            named = [part.id_column or part.unread_ids for part in parts]
            self.unread_ids = next(filter(None, named), "")
        self.named: Sequence[Name] = ()

    def name_rows(self, ids: Sequence[Name]) -> None:
        """Take ids (n,) that lie beside the parts, if any, in place of those of the parts."""
        if ids:
            self.named, self.id_column = ids, "id"

    def ids(self, start: int, stop: int) -> list[Name]:
        """Those beside the parts, or those of the parts."""
        if self.named:
            return list(self.named[start:stop])
        named: list[Name] = []
        for part, first in zip(self.parts, self.starts.tolist(), strict=False):
            low, high = max(start - first, 0), min(stop - first, part.shape[0])
            if low < high:
                named += part.ids(low, high)
        return named

    def _take(self, rows: Rows) -> Any:
        cuts = np.searchsorted(rows, self.starts)
        asked = zip(self.parts, self.starts, cuts, cuts[1:], strict=False)
        return np.concatenate([part.take(rows[a:b] - start) for part, start, a, b in asked])

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        for part, start in zip(self.parts, self.starts, strict=False):
            if first < start + part.shape[0]:
                yield from part.blocks(size, max(0, first - int(start)))
