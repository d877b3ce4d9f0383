"""Vectors that are put through an advice, shard by shard, and whether they are as they were."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dimadvise.files import Block, Name, Vectors
from dimadvise.vectors import files_of, open_vectors
from repro.stamps import MIXED, Stamps, first_stamps, stamps_of
from repro.types import InputError


@dataclass(frozen=True)
class Shard:
    """Rows `start` to before `stop`, and the name of the file that they are written to."""

    name: str
    start: int
    stop: int

    @property
    def ids_name(self) -> str:
        """Of the file of their ids."""
        return self.name.replace(".npy", ".ids.parquet")


@dataclass(frozen=True)
class Source:
    """Vectors as they were when they were opened, and where they came from."""

    path: Path  # That they lie at, links followed
    given: Path  # By which they are read, maybe a link that is turned elsewhere meanwhile
    vectors: Vectors
    files: Stamps

    @classmethod
    def opened(cls, path: Path, column: str) -> "Source":
        """Open a file or folder; a change while it is opened is noticed as a later one is."""
        files = first_stamps(path, files_of)
        return cls(path.resolve(), path, open_vectors(path, column), files)

    def check_unchanged(self) -> None:
        """Refuse to go on where a file was written to since: old rows would be mixed with new."""
        if stamps_of(self.given, files_of) != self.files:
            raise InputError(f"{self.path} {MIXED}; what was finished is kept")

    def blocks(self, shard: Shard) -> Iterator[Block]:
        """The rows of a shard, part by part."""
        row = shard.start
        for block in self.vectors.blocks(start=shard.start):
            yield block[: shard.stop - row]
            row += len(block)
            if row >= shard.stop:
                return
        raise InputError(
            f"{self.path} ended at row {row} of {shard.stop}: it changed while it was read"
        )

    def ids(self, shard: Shard) -> list[Name]:
        """What names the rows of a shard; nothing where nothing does."""
        return self.vectors.ids(shard.start, shard.stop)

    def digest(self, shard: Shard, seen: Callable[[Block], None] = lambda block: None) -> str:
        """Digest of all rows of a shard as float32, and of their ids; each block is `seen`."""
        hasher = hashlib.sha256()
        for block in self.blocks(shard):
            hasher.update(np.ascontiguousarray(block).data)
            seen(block)
        hasher.update(json.dumps(self.ids(shard)).encode())
        return hasher.hexdigest()
