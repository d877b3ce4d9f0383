"""Vectors that are put through an advice, shard by shard, and whether they are as they were."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dimadvise.files import Block, Name, Vectors
from dimadvise.vectors import files_of, open_vectors
from repro.types import InputError

MIXED = "was written to while it was read: give the same command again when it is whole"


@contextmanager
def unchanged(*sources: Any) -> Iterator[None]:
    """Refuse what was found inside the block where a file of `sources`, arrays aside, was written
    to meanwhile: rows of before and after are no one matrix.
    """
    paths = [Path(source) for source in sources if isinstance(source, str | Path)]
    before = {path: _first_stamps(path) for path in paths if path.exists()}
    yield
    for path, stamps in before.items():
        if not path.exists() or _stamps(path) != stamps:
            raise InputError(f"{path} {MIXED}")


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
    files: tuple["Stamp", ...]

    @classmethod
    def opened(cls, path: Path, column: str) -> "Source":
        """Open a file or folder; a change while it is opened is noticed as a later one is."""
        files = _first_stamps(path)
        return cls(path.resolve(), path, open_vectors(path, column), files)

    def check_unchanged(self) -> None:
        """Refuse to go on where a file was written to since: old rows would be mixed with new."""
        if _stamps(self.given) != self.files:
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


class Stamp(NamedTuple):
    """What tells a file from another by its name, and from itself after it was written to."""

    name: str
    number: int  # Of the file, whatever link leads to it
    size: int  # In bytes
    mtime_ns: int


def _first_stamps(path: Path) -> tuple[Stamp, ...]:
    """The same as `_stamps`, such that whatever is written from here on makes others.

    Another process may have a file mapped into memory. While a page that it changed waits for the
    disk, the system notes the time of no further write to it; hence they are put on the disk first.
    File systems in memory note none at all.
    """
    for file in files_of(path):
        if file.is_file():  # Whoever opens a pipe waits
            with suppress(OSError), file.open("rb") as opened:
                os.fsync(opened.fileno())
    return _stamps(path)


def _stamps(path: Path) -> tuple[Stamp, ...]:
    """The stamp of each file that vectors are read from."""
    stats = ((file.name, file.stat()) for file in files_of(path))
    return tuple(Stamp(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
