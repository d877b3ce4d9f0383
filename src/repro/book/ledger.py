"""What builds of the book did, and which files below `_build/` they wrote, so that they replace and
remove no other.

A file is ours if it has a digest that was noted before it was written, or if it is a notebook that
says so itself. What else stands where a build writes gives way: it is moved to `_build/aside/`,
whole, and the terminal is told.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from threading import RLock

from repro.book import notebook
from repro.manifests import sha256
from repro.reading import read_json
from repro.terminal import complain
from repro.types import InputError
from repro.writing import replacing, write_text

log = logging.getLogger(__name__)
NAME = "book.json"
ASIDE = "aside"


class Ledger:
    """What builds below one folder did, in one JSON file that is replaced whole at each step;
    threads may share it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / NAME
        self._lock = RLock()
        self.pages: dict[str, dict[str, str]] = {}
        """The causes of each page's last good execution."""
        self.rendered = ""
        """The stamps of the tree that was last rendered without complaint; empty while one is
        rendered.
        """
        self.readable = True
        """Whether the file, if there is one, is a ledger."""
        self.files: dict[str, list[str]] = {}
        """By name below the folder, the digests a file of ours may have: of what it is to hold, and
        of what it held.
        """
        if self._path.is_dir():
            raise InputError(
                f"{self._path} is a folder, where builds note what they wrote: move it away"
            )
        if self._path.is_file():
            self._read()

    def _read(self) -> None:
        try:
            stored = read_json(self._path)
            pages = {name: dict(causes) for name, causes in stored["pages"].items()}
            files = {
                _inside(name): [str(digest) for digest in noted]
                for name, noted in stored["files"].items()
            }
            self.pages, self.files, self.rendered = pages, files, str(stored["rendered"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.readable = False
            log.warning("%s cannot be read (%s): every page is made anew", self._path, error)

    @contextmanager
    def changed(self) -> Iterator["Ledger"]:
        """The ledger for a change that no other thread sees half done, saved after it."""
        with self._lock:
            yield self
            content = {"pages": self.pages, "rendered": self.rendered, "files": self.files}
            write_text(self._path, json.dumps(content, indent=1))

    def owns(self, path: Path) -> bool:
        """Whether a file is as a build left it."""
        if path.is_symlink() or not path.is_file():
            return False
        return sha256(path) in self.files.get(self._name(path), ()) or notebook.ours(path)

    def holds(self, folder: Path) -> bool:
        """Whether all files that a build left below a folder are there, as it left them."""
        below = f"{self._name(folder)}/"
        names = [name for name in self.files if name.startswith(below)]
        return bool(names) and all(self.owns(self.folder / name) for name in names)

    def write(self, path: Path, content: bytes) -> bool:
        """Write a file, whole or not at all; whether it was written, or held just that before.

        A file that holds it keeps its time, by which Sphinx tells what changed. One that is not
        ours gives way.
        """
        return bool(
            self._write_all({path: lambda: content}, {path: hashlib.sha256(content).hexdigest()})
        )

    def mirror(self, source: Path, target: Path) -> None:
        """Let a folder hold the files of another; what an earlier build put there, and this one did
        not, is removed.
        """
        origins = {
            target / path.relative_to(source): path for path in source.rglob("*") if path.is_file()
        }
        digests = {path: sha256(origin) for path, origin in origins.items()}
        self._write_all({path: origin.read_bytes for path, origin in origins.items()}, digests)
        self.keep_only(target, origins)

    def note(self, paths: Iterable[Path]) -> None:
        """Take as ours the files that pages wrote on behalf of the build."""
        with self.changed():
            for path in paths:
                if path.is_file():
                    self.files[self._name(path)] = [sha256(path)]

    def remove(self, path: Path) -> None:
        """Clear the place of a file: one of ours is removed, another one gives way."""
        if self.owns(path):
            path.unlink()
        self.give_way([path])
        if self._name(path) in self.files:
            with self.changed():
                del self.files[self._name(path)]

    def keep_only(self, folder: Path, kept: Iterable[Path]) -> None:
        """Remove the files of ours below a folder that are not among those to keep."""
        names = {self._name(path) for path in kept}
        below = f"{self._name(folder)}/"
        for name in [name for name in self.files if name.startswith(below) and name not in names]:
            if self.owns(self.folder / name):
                (self.folder / name).unlink()
            with self.changed():
                del self.files[name]

    def give_way(self, paths: Iterable[Path]) -> None:
        """Move aside what stands at the places of files and is not ours."""
        moved = []
        for path in paths:
            if os.path.lexists(path) and not self.owns(path):
                place = self._aside(path)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, place)
                moved.append(path)
        if moved:
            others = f" and {len(moved) - 1} more" if len(moved) > 1 else ""
            complain(
                f"{moved[0]}{others}: not as a build left it, hence moved to {self.folder / ASIDE}"
            )

    def _aside(self, path: Path) -> Path:
        """A free place below `aside/` for what stands at a path."""
        first = place = self.folder / ASIDE / self._name(path)
        number = 0
        while os.path.lexists(place):
            number += 1
            place = first.with_name(f"{first.name}.{number}")
        return place

    def _write_all(
        self,
        contents: Mapping[Path, Callable[[], bytes]],
        wanted: Mapping[Path, str],
    ) -> list[Path]:
        """Write files with the digests they are to have; those that were written."""
        digests_there = {
            path: sha256(path) for path in wanted if path.is_file() and not path.is_symlink()
        }
        differing = [path for path in wanted if digests_there.get(path) != wanted[path]]
        self.give_way(differing)
        # What a file holds stays noted beside what it is to hold: it is ours whenever the process
        # is killed.
        noted_digests = {self._name(path): [wanted[path]] for path in wanted}
        for path in differing:
            if path.is_file():
                noted_digests[self._name(path)].append(digests_there[path])
        if any(self.files.get(name) != digests for name, digests in noted_digests.items()):
            with self.changed():
                self.files |= noted_digests
        for path in differing:
            with replacing(path) as partial:
                partial.write_bytes(contents[path]())
        return differing

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def _inside(name: str) -> str:
    """A name as it was noted, or an error if it leads out of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} leads out of the folder")
    return name
