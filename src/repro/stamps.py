"""Whether files stay as they are while they are read: what was read before a change and after it is
no one input.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from repro.types import InputError

MIXED = "was written to while it was read: give the same command again when it is whole"


class Stamp(NamedTuple):
    """What tells a file from another by its name, and from itself after it was written to."""

    name: str
    number: int  # Of the file, whatever link leads to it
    size: int  # In bytes
    mtime_ns: int


Stamps: TypeAlias = tuple[Stamp, ...]
Files: TypeAlias = Callable[[Path], Sequence[Path]]
"""The files that are read where a path is given."""


def files_below(path: Path) -> list[Path]:
    """A file itself, or all files below a folder; nothing of what is neither, such as a pipe."""
    places = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [place for place in places if place.is_file()]


def stamps_of(path: Path, files: Files = files_below) -> Stamps:
    """The stamp of each file that is read."""
    stats = ((file.name, file.stat()) for file in files(path))
    return tuple(Stamp(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def first_stamps(path: Path, files: Files = files_below) -> Stamps:
    """The same as `stamps_of`, such that whatever is written from here on makes others.

    Another process may have a file mapped into memory. While a page that it changed waits for the
    disk, the system notes the time of no further write to it; hence they are put on the disk first.
    File systems in memory note none at all.
    """
    for file in files(path):
        if file.is_file():  # Whoever opens a pipe waits
            with suppress(OSError), file.open("rb") as opened:
                os.fsync(opened.fileno())
    return stamps_of(path, files)


@contextmanager
def unchanged(*sources: Any, files: Files = files_below) -> Iterator[None]:
    """Refuse what was read inside the block where a file of `sources` was written to meanwhile, and
    whatever fault was found in it then.

    What is no path of something there, such as an array or the name of a dataset, is passed over.
    """
    paths = [Path(source) for source in sources if isinstance(source, str | Path)]
    before = {path: first_stamps(path, files) for path in paths if path.exists()}
    try:
        yield
    except Exception as error:
        if path := _first_changed(before, files):
            raise InputError(f"{path} {MIXED}") from error
        raise
    if path := _first_changed(before, files):
        raise InputError(f"{path} {MIXED}")


def _first_changed(before: Mapping[Path, Stamps], files: Files) -> Path | None:
    """The first of some paths whose files are others now, or gone."""
    for path, stamps in before.items():
        now: Stamps | None = None
        with suppress(OSError, InputError):
            now = stamps_of(path, files)
        if now != stamps:
            return path
    return None
