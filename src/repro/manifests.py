"""Folders under a seal: a manifest that holds the sha256 of every file, and a digest of itself."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from repro.digests import digest
from repro.paths import is_file, is_folder
from repro.reading import read_json, regular_file
from repro.types import InputError
from repro.writing import mode_at, replacing, write_text

MANIFEST = "manifest.json"
SETTLED = 2_000_000_000
"""Nanoseconds after which another change of a file has another time on every file system."""
WAY_OUT = (
    "nothing is overwritten, give another folder, or empty this one if what wrote there was stopped"
)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with regular_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_large(path: Path) -> str:
    """The same, read again only where size, times or place on the disk are others: weights that a
    network is loaded from are asked for by each of its parts.
    """
    stat = path.stat()
    if time.time_ns() - stat.st_ctime_ns < SETTLED:
        return sha256(path)
    stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return _sha256_at(path, stamp)


@lru_cache(maxsize=256)
def _sha256_at(path: Path, stamp: tuple[int, ...]) -> str:
    return sha256(path)


def write_manifest(folder: Path, notes: dict[str, Any]) -> None:
    """Seal a folder: record the checksum of every file in it, with some notes.

    All of them may be read by whom the manifest may be: libraries make some for their owner alone.
    """
    files = {name: sha256(folder / name) for name in _files_in(folder)}
    note = sealed({**notes, "files": files})
    write_text(folder / MANIFEST, json.dumps(note, indent=1))
    usual = (folder / MANIFEST).stat().st_mode
    for name in files:
        (folder / name).chmod(usual)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The notes and checksums of an artefact.

    Raises:
        InputError: for a file that is no manifest.
        OSError: for one that is missing or may not be read.
    """
    manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict):
        what = type(manifest).__name__
        raise InputError(f"{folder / MANIFEST} holds a {what}: expected names and values")
    return manifest


def sealed(note: Mapping[str, Any]) -> dict[str, Any]:
    """A note as JSON has it, with a digest of what it says."""
    said = json.loads(json.dumps(note, default=str))
    return {**said, "seal": digest(said)}


def is_sealed(note: Mapping[str, Any]) -> bool:
    """Whether a note was `sealed` and says what it did then."""
    said = {name: value for name, value in note.items() if name != "seal"}
    return note.get("seal") == digest(said)


def unchanged(note: Mapping[str, Any]) -> bool:
    """Whether a note says what it did when it was `sealed`; one that never was passes."""
    return "seal" not in note or is_sealed(note)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a sealed folder, each file whole or not at all, over an earlier copy; its manifest last.

    Raises:
        InputError: before anything is copied, if the target holds a file of one of these names that
            no sealed manifest there lists with its checksum: somebody else wrote or edited it.
    """
    for name in _differing(source, target):
        with replacing(target / name) as partial:
            shutil.copyfile(source / name, partial)


def move_folder(source: Path, target: Path, patterns: Iterable[str]) -> None:
    """Move the files of a sealed folder into another of the same disk, over those of an earlier
    one; the manifest comes last.

    What that one had besides by one of the `patterns`, and is as it was written, is removed.

    Raises:
        InputError: as `copy_folder`, before anything is moved.
    """
    differing = _differing(source, target)
    kept = {*read_manifest(source)["files"], MANIFEST}
    left = {}
    for name, checksum in _written(target).items():
        if name not in kept and any(fnmatchcase(name, pattern) for pattern in patterns):
            left[name] = checksum
    for name in differing:
        if name != MANIFEST:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            _move(source / name, target / name)
    for name, checksum in left.items():
        if is_file(target / name) and sha256(target / name) == checksum:
            (target / name).unlink()
    if MANIFEST in differing:
        _move(source / MANIFEST, target / MANIFEST)


def _move(source: Path, target: Path) -> None:
    """Rename a file to another, which may be read by whoever might read the one that was there."""
    source.chmod(mode_at(target, source.stat().st_mode))
    os.replace(source, target)


def _differing(source: Path, target: Path) -> list[str]:
    """The names of files that the target lacks or has otherwise, the manifest last; an InputError
    for one that somebody else wrote or edited there.
    """
    written = _written(target)
    differing = []
    for name in (*read_manifest(source)["files"], MANIFEST):
        there = target / name
        if not os.path.lexists(there):
            differing.append(name)
            continue
        if not is_file(there):
            raise InputError(f"{there} is no regular file: give another output")
        content = sha256(there)
        if content == sha256(source / name):
            continue
        if content != written.get(name):
            raise InputError(
                f"{there} is none of ours, was edited or was left half done: {WAY_OUT}"
            )
        differing.append(name)
    return differing


def _written(folder: Path) -> dict[str, str]:
    """The checksums of what we wrote into a folder, by its sealed manifest; of that one too."""
    try:
        manifest = read_manifest(folder)
    except (InputError, OSError):
        return {}
    if not is_sealed(manifest) or not isinstance(manifest.get("files"), dict):
        return {}
    return {**manifest["files"], MANIFEST: sha256(folder / MANIFEST)}


def _files_in(folder: Path) -> list[str]:
    """The names, below a folder, of all that is no folder, but for its manifest."""
    names = []
    for path in sorted(folder.rglob("*")):
        if path != folder / MANIFEST and not is_folder(path):
            names.append(str(path.relative_to(folder)))
    return names
