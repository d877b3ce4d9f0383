"""Artefacts by digest: made once, verified on every read, safe to share between processes.

An artefact is a folder `REPRO_HOME/<kind>/<digest>/` with its files and a `manifest.json` that holds
their sha256 and the configuration that made them. It is written under a temporary name and renamed into
place, so that it either exists whole or not at all; a per-key lock lets two processes share a store. A
damaged artefact is moved aside with a warning and made again. Nothing is pickled.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from repro import paths
from repro.types import InputError

log = logging.getLogger(__name__)
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Made:
    """An artefact at hand: its folder, and whether this call made it or found it."""

    folder: Path
    hit: bool
    seconds: float
    """time it took to make when it was made"""


class Store:
    """The artefacts under one folder."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or paths.home()).resolve()

    def folder(self, kind: str, key: str) -> Path:
        """Where the artefact is, or would be."""
        return paths.inside(self.home, f"{kind}/{key}")

    def get_or_make(self, kind: str, key: str, make: Callable[[Path, Path], None], *, config: Any = None) -> Made:
        """Return the artefact, making it first if it is absent or damaged.

        Args:
            kind: what it is, such as `encoders`.
            key: its digest.
            make: called as `make(target, work)`: writes the files into the empty folder `target`; `work`
                is a scratch folder that outlives a kill, so that a long run can resume.
            config: recorded in the manifest for the reader.

        Raises:
            InputError: when the disk is full; finished artefacts and resumable states are kept.
        """
        final = self.folder(kind, key)
        with disk_full_explained(final):
            final.parent.mkdir(parents=True, exist_ok=True)
        with disk_full_explained(final), FileLock(f"{final}.lock"):
            if final.exists():
                fault = self.fault(final)
                if fault is None:
                    return Made(final, True, float(read_manifest(final)["seconds"]))
                self.set_aside(final, fault)
            work = self.home / "work" / f"{kind}-{key}"
            work.mkdir(parents=True, exist_ok=True)
            target = final.with_name(f"{final.name}.{os.getpid()}.partial")
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            started = time.perf_counter()
            try:
                make(target, work)
                seconds = time.perf_counter() - started
                write_manifest(target, {"kind": kind, "key": key, "config": config, "seconds": seconds})
                os.replace(target, final)
            finally:
                shutil.rmtree(target, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)
            return Made(final, False, seconds)

    def fault(self, folder: Path) -> str | None:
        """What is wrong with an artefact, or None if every file has the checksum its manifest records."""
        try:
            manifest = read_manifest(folder)
            files, _ = dict(manifest["files"]), float(manifest["seconds"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"unreadable manifest ({error})"
        for name, expected in files.items():
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if sha256(path) != expected:
                return f"{name} has changed since it was written"
        return None

    def artefacts(self) -> Iterator[Path]:
        """All finished artefacts."""
        for manifest in sorted(self.home.glob(f"*/*/{MANIFEST}")):
            if manifest.parts[-3] not in ("damaged", "work") and manifest.parent.suffix != ".partial":
                yield manifest.parent

    def partials(self) -> list[Path]:
        """What killed runs left: half-written folders and files (a resumable state is not among them)."""
        return sorted(p for p in self.home.glob("**/*.partial"))

    def set_aside(self, folder: Path, fault: str) -> None:
        """Move a damaged artefact to `damaged/`, so that the next use makes it anew."""
        aside = self.home / "damaged" / f"{folder.parent.name}-{folder.name}-{time.time_ns()}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        os.replace(folder, aside)
        log.warning("%s/%s is damaged (%s): moved to %s, making it anew", folder.parent.name, folder.name, fault, aside)


@contextmanager
def disk_full_explained(place: Path) -> Iterator[None]:
    """Turn a full disk into a message that says what to do.

    Raises:
        InputError: when writing failed for want of space.
    """
    try:
        yield
    except Exception as error:
        if not _is_disk_full(error):
            raise
        there = next(folder for folder in place.parents if folder.exists())
        free = shutil.disk_usage(there).free / 1e6
        raise InputError(
            f"the disk of {there} is full ({free:.0f} MB free): free some space or set REPRO_HOME to "
            "another disk, then run the same command again; what was finished is kept"
        ) from error


def _is_disk_full(error: Exception) -> bool:
    full = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError):
        return error.errno in full
    # safetensors writes in Rust and has an exception of its own, which holds the number in its text only
    return type(error).__name__ == "SafetensorError" and any(f"os error {number})" in str(error) for number in full)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that becomes `path` when the block ends well, and vanishes when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with disk_full_explained(path):
            yield partial
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, notes: dict[str, Any]) -> None:
    """Seal a folder: record the checksum of every file in it, with some notes."""
    paths_in = sorted(p for p in folder.rglob("*") if p.is_file() and p != folder / MANIFEST)
    files = {str(p.relative_to(folder)): sha256(p) for p in paths_in}
    (folder / MANIFEST).write_text(json.dumps({**notes, "files": files}, indent=1, default=str), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The notes and checksums of an artefact."""
    return dict(json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
