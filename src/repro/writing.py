"""Files that appear whole or not at all, whoever is killed and however full the disk is.

A file or folder is written under a name of its process, `<name>.<pid>.<16 hex>.partial`, and
renamed into place. The hex digits stand for the machine and for the rest of the name: what carries
them was written here, and nothing else is ever removed.
"""

import errno
import glob
import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil

from repro.paths import home, resolved
from repro.types import InputError

ENDINGS = {
    *(".npy", ".npz", ".safetensors", ".parquet", ".arrow", ".feather", ".csv", ".tsv", ".xlsx"),
    *(".json", ".jsonl", ".ndjson", ".txt", ".ipynb", ".md", ".html", ".pdf", ".py"),
    *(".pt", ".pth", ".pkl", ".h5", ".hdf5", ".fvecs", ".fbin", ".gz", ".zip"),
}
"""Endings of files by which readers tell their form."""
LONGEST_NAME = 216
"""Bytes of an output's name; file systems take 255, of which its partial name needs up to 39."""


@contextmanager
def disk_full_explained(place: Path) -> Iterator[None]:
    """Turn the errors of a full disk into an InputError that says what to do."""
    try:
        yield
    except Exception as error:
        if not _is_disk_full(error):
            raise
        there = next(folder for folder in place.parents if folder.exists())
        free = shutil.disk_usage(there).free / 1e6
        is_stored = place.is_relative_to(home())
        elsewhere = "set REPRO_HOME to another disk" if is_stored else "name an output on another"
        raise InputError(
            f"the disk of {there} is full ({free:.0f} MB free): free some space or {elsewhere}, "
            "then run the same command again; what was finished is kept"
        ) from error


def _is_disk_full(error: Exception) -> bool:
    full = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError):
        # numpy gives no number when a write comes back short
        return error.errno in full or bool(
            re.fullmatch(r"\d+ requested and \d+ written", str(error))
        )
    # safetensors writes in Rust and has an exception of its own, which holds the number in its text
    # only
    return type(error).__name__ == "SafetensorError" and any(
        f"os error {number})" in str(error) for number in full
    )


def writable_file(path: Path, *inputs: Path | str) -> Path:
    """The file that an output's name stands for, links followed; refuses what renaming over it
    would destroy, and a name too long to be written under a partial one.
    """
    real = Path(os.path.realpath(path))
    if (length := len(os.fsencode(real.name))) > LONGEST_NAME:
        expected = f"expected at most {LONGEST_NAME}"
        raise InputError(f"the name {real.name} has {length} bytes: {expected}")
    if real.exists() and any(os.path.exists(each) and real.samefile(each) for each in inputs):
        raise InputError(f"the output {path} is an input: expected another file")
    writable_folder(real.parent)
    if real.is_symlink() or (real.exists() and not real.is_file()):
        what = "a folder" if real.is_dir() else "no regular file"
        raise InputError(f"{path} is {what}: give the name of a file, there already or not")
    return real


def refuse_other_form(path: Path, form: str) -> None:
    """Refuse the name of an output whose ending says another form than it is written in, by which
    a reader would take it for damaged.
    """
    if path.suffix.lower() in ENDINGS - {form}:
        raise InputError(f"{path} would be no {path.suffix} file: give a name that ends in {form}")


def writable_folder(path: Path) -> Path:
    """The folder that an output's name stands for, links followed; refuses what is there and is no
    folder.
    """
    real = resolved(path)
    there = next(place for place in (real, *real.parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{there} is not a folder: give the name of one, there already or not")
    return real


def refuse_other_encoding(folder: Path) -> None:
    """Refuse the name of a network's folder that is no UTF-8: no tokenizer is read from such a
    place.
    """
    try:
        str(folder.absolute()).encode("utf-8")
    except UnicodeEncodeError:
        way_out = "tokenizers open no such folder, so give another name"
        raise InputError(f"the name {str(folder)!r} is no UTF-8: {way_out}") from None


class Owner(NamedTuple):
    """What the name of a partial file says: what it was to become, and who was writing it."""

    name: str
    pid: int
    machine: str

    @property
    def is_dead(self) -> bool:
        """Whether the process is gone; of one on another machine nothing is known."""
        return self.machine == _machine() and not psutil.pid_exists(self.pid)


def partial_of(path: Path, ending: str = ".partial", *, folder: bool = False) -> Path:
    """A name of this process beside `path`, to write a file or folder under and then rename; what
    dead processes left of that kind is removed.
    """
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{ending}"):
        owner = owner_of(left, ending)
        is_left = owner is not None and owner.name == path.name and owner.is_dead
        if is_left and left.is_dir() == folder:
            _remove(left)
    return path.with_name(_partial_name(Owner(path.name, os.getpid(), _machine())) + ending)


def owner_of(partial: Path, ending: str = ".partial") -> Owner | None:
    """Who wrote a partial file or folder; None for what bears no name of ours, or is a link."""
    stem = partial.name.removesuffix(ending)
    parts = re.fullmatch(r"(.+)\.([1-9][0-9]{0,8})\.([0-9a-f]{8})[0-9a-f]{8}", stem, re.DOTALL)
    is_written = partial.is_file() or partial.is_dir()
    if parts is None or partial.is_symlink() or not is_written:
        return None
    owner = Owner(parts[1], int(parts[2]), parts[3])
    return owner if stem == _partial_name(owner) else None


def _partial_name(owner: Owner) -> str:
    """The name without its ending; its last digits are a checksum, which no other name has."""
    start = f"{owner.name}.{owner.pid}.{owner.machine}"
    return start + hashlib.sha256(os.fsencode(start)).hexdigest()[:8]


def _remove(partial: Path) -> None:
    """Remove a file or folder that bears a name of ours, if it is there."""
    if partial.is_dir():
        shutil.rmtree(partial)
    else:
        partial.unlink(missing_ok=True)


@cache
def _machine() -> str:
    """Eight hex digits that stand for this machine: on another, a process has another number."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that becomes `path` when the block ends well, and vanishes when it does
    not.

    It may be read by whom the file of this name might be before, so that what is private stays so;
    a new one by whom new files may be, also where a library made it for its owner alone.
    """
    path = writable_file(path)
    with disk_full_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = partial_of(path)
        try:
            mode = _mode_of_new(partial)
            yield partial
            partial.chmod(mode_at(path, mode))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def mode_at(path: Path, usual: int) -> int:
    """Who may read what takes the place of `path`: whoever might before, else as is `usual`."""
    return path.stat().st_mode if path.exists() else usual


def _mode_of_new(partial: Path) -> int:
    """The mode that a new file has at a place, by a file that is made there and removed."""
    partial.unlink(missing_ok=True)
    partial.touch()
    mode = partial.stat().st_mode
    partial.unlink()
    return mode


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, under its partial name, which vanishes at the end unless it was
    renamed.
    """
    with disk_full_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = partial_of(path, folder=True)
        _remove(partial)  # Of a dead process that had our number
        partial.mkdir()
        try:
            yield partial
        finally:
            _remove(partial)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder that becomes `path`, new or empty so far, when the block ends well, and vanishes
    when it does not; who might enter an empty one still may.
    """
    path = writable_folder(path)
    with partial_folder(path) as partial:
        yield partial
        if path.is_dir():
            partial.chmod(mode_at(path, 0))
            path.rmdir()  # Which refuses one that has been filled in the meantime
        os.replace(partial, path)


def writable_text(text: str) -> str:
    r"""A text that UTF-8 can hold: of a file's name in another encoding, what Python has for its
    bytes is spelled out, such as `\udcff`, which JSON reads as it was.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_text(path: Path, text: str) -> None:
    """Write a text file as `writable_text`, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(writable_text(text), encoding="utf-8", newline="\n")


def write_array(path: Path, X: Any) -> None:
    """Write an array of numbers as a `.npy` file, or fail: `np.save` hands it to the C library and
    does not ask whether its last few thousand bytes found room on the disk.
    """
    import numpy as np  # Slow to load, for those who write text alone

    with path.open("wb") as file:
        plain = SimpleNamespace(write=file.write)  # What is no file is written to by Python
        np.lib.format.write_array(plain, np.asarray(X), allow_pickle=False)
