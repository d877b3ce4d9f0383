"""Artefacts by digest: made once, verified on every read, safe to share between processes.

An artefact is a folder `REPRO_HOME/<kind>/<digest>/` with its files and a `manifest.json` that holds their sha256 and
the configuration that made them. It appears whole or not at all; a lock per key lets processes share a store, and what
is finished is read without it. A damaged artefact is moved aside with a warning and made again. Nothing is pickled.

`remember` keeps what a function returns, arrays or JSON; `get_or_make` keeps whatever files a long run writes.
"""

import errno
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from filelock import Timeout

from repro import paths
from repro.digests import digest, module_of, plain
from repro.paths import disk_full_explained, locked, partial_of, partials_of, read_json, soft_lock, write_text
from repro.types import InputError

log = logging.getLogger(__name__)
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Made:
    """An artefact at hand: its folder, and whether this call made it or found it."""

    folder: Path
    hit: bool
    seconds: float  # time it took to make when it was made, that of killed runs up to their last state included


class Store:
    """The artefacts under one folder."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or paths.home()).resolve()

    def folder(self, kind: str, key: str) -> Path:
        """Where the artefact is, or would be."""
        return paths.inside(self.home, f"{kind}/{key}")

    def get_or_make(self, kind: str, key: str, make: Callable[[Path, Path], None], *, config: Any = None) -> Made:
        """Return the artefact, making it first if it is absent or damaged.

        `make(target, work)` writes the files into the empty folder `target`; `work` is a scratch folder that outlives a
        kill, so that a long run can resume. `config` stands in the manifest. On a full disk what is finished is kept.
        """
        final = self.folder(kind, key)
        if final.exists() and self.fault(final) is None:  # without the lock: a store may be read-only
            return Made(final, True, read_manifest(final)["seconds"])
        if (size := os.environ.get("WORLD_SIZE", "1")) != "1":
            raise InputError(f"WORLD_SIZE is {size}: each would wait for another's lock: unset it, start one process")
        with disk_full_explained(final), self._locked(final):
            if final.exists():
                if (fault := self.fault(final)) is None:
                    return Made(final, True, read_manifest(final)["seconds"])
                self.set_aside(final, fault)
            work = self.home / "work" / f"{kind}-{key}"
            work.mkdir(parents=True, exist_ok=True)
            for left in partials_of(final):  # of killed runs: nobody else writes this key
                shutil.rmtree(left, ignore_errors=True)
            target = partial_of(final)
            target.mkdir()
            started = time.perf_counter() - _seconds_before(work)
            try:
                make(target, work)
                seconds = time.perf_counter() - started
                write_manifest(target, {"kind": kind, "key": key, "config": config, "seconds": seconds})
                os.replace(target, final)
            finally:
                shutil.rmtree(target, ignore_errors=True)
            shutil.rmtree(work, ignore_errors=True)
            return Made(final, False, seconds)

    def remember(
        self,
        kind: str,
        config: Mapping[str, Any],
        compute: Callable[[], Any],
        *,
        code: str | tuple[str, ...] | None = None,
        mapped: bool = False,
    ) -> Any:
        """What `compute()` returns: an array, a dict of arrays or a JSON value; from the store where it is there.

        `config` is everything that decides the value but code, JSON-like, arrays by their numbers; `code` names the
        modules where that code starts, None the one of `compute`. A `mapped` array stays on disk, read as it is used.
        """
        roots = (code,) if isinstance(code, str) else code or (module_of(compute),)
        named = plain(config)

        def make(target: Path, work: Path) -> None:
            _write_value(target, compute())

        made = self.get_or_make(kind, digest(named, code=roots), make, config=named)
        return _read_value(made.folder, mapped)

    @contextmanager
    def _locked(self, final: Path) -> Iterator[None]:
        with ExitStack() as held:
            try:
                final.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(final.with_name(f"{final.name}.lock")))
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                lacking = f"does not hold {final.parent.name}/{final.name} whole"
                raise InputError(
                    f"{self.home} may not be written ({error.strerror}) and {lacking}: "
                    "set REPRO_HOME to a folder of your own"
                ) from error
            yield

    def fault(self, folder: Path) -> str | None:
        """What is wrong with an artefact, or None if every file has the checksum its manifest records."""
        try:
            manifest = read_manifest(folder)
            files, _ = dict(manifest["files"]), float(manifest["seconds"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"unreadable manifest ({error})"
        if not unchanged(manifest) or manifest.get("key") != folder.name:
            return "its manifest has changed, or is another artefact's"
        for name, expected in files.items():
            if not (folder / name).is_file():
                return f"{name} is missing"
            if sha256(folder / name) != expected:
                return f"{name} has changed since it was written"
        return None

    def artefacts(self) -> Iterator[Path]:
        """All finished artefacts."""
        for manifest in sorted(self.home.glob(f"*/*/{MANIFEST}")):
            if manifest.parts[-3] not in ("damaged", "work") and manifest.parent.suffix != ".partial":
                yield manifest.parent

    def partials(self) -> list[Path]:
        """What killed runs left: half-written folders and files (a resumable state is not among them)."""
        return sorted(self.home.glob("**/*.partial"))

    def abandoned(self, partial: Path) -> bool:
        """Whether nobody writes it any more: its process is gone, and, should that be elsewhere, its lock is free."""
        owner = partial.name.split(".")[-2]
        if owner.isdigit() and psutil.pid_exists(int(owner)):
            return False
        kind, name, *_ = (*partial.relative_to(self.home).parts, "")
        if kind == "work":
            kind, _, name = name.rpartition("-")
        lock = self.home / kind / f"{name.split('.')[0]}.lock"
        if not lock.exists() and not soft_lock(lock).exists():
            return True
        with suppress(Timeout), locked(lock, timeout=0):
            return True
        return False

    def set_aside(self, folder: Path, fault: str) -> None:
        """Move a damaged artefact to `damaged/`, so that the next use makes it anew."""
        aside = self.home / "damaged" / f"{folder.parent.name}-{folder.name}-{time.time_ns()}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        os.replace(folder, aside)
        log.warning("%s/%s is damaged (%s): moved to %s, making it anew", folder.parent.name, folder.name, fault, aside)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, notes: dict[str, Any]) -> None:
    """Seal a folder: record the checksum of every file in it, with some notes."""
    paths_in = sorted(p for p in folder.rglob("*") if p.is_file() and p != folder / MANIFEST)
    files = {str(p.relative_to(folder)): sha256(p) for p in paths_in}
    (folder / MANIFEST).write_text(json.dumps(sealed({**notes, "files": files}), indent=1), encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The notes and checksums of an artefact."""
    return dict(read_json(folder / MANIFEST))


def sealed(note: Mapping[str, Any]) -> dict[str, Any]:
    """A note as JSON has it, with a digest of what it says."""
    said = json.loads(json.dumps(note, default=str))
    return {**said, "seal": digest(said)}


def unchanged(note: Mapping[str, Any]) -> bool:
    """Whether a note says what it did when it was `sealed`; of one that never was nothing is known."""
    return "seal" not in note or note["seal"] == digest({name: note[name] for name in note if name != "seal"})


def _write_value(folder: Path, value: Any) -> None:
    if isinstance(value, np.ndarray):
        np.save(folder / "value.npy", value, allow_pickle=False)
    elif isinstance(value, dict) and value and all(isinstance(part, np.ndarray) for part in value.values()):
        for name, part in value.items():
            np.save(folder / f"value.{name}.npy", part, allow_pickle=False)
    else:
        (folder / "value.json").write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _read_value(folder: Path, mapped: bool) -> Any:
    if (folder / "value.json").is_file():
        return read_json(folder / "value.json")
    if (folder / "value.npy").is_file():
        return np.load(folder / "value.npy", mmap_mode="r" if mapped else None, allow_pickle=False)
    found = sorted(folder.glob("value.*.npy"))
    return {path.name[len("value.") : -len(".npy")]: np.load(path, allow_pickle=False) for path in found}


def _seconds_before(work: Path) -> float:
    """Seconds that killed runs spent on this folder; `seconds` holds those before the last, written at its start."""
    clock, spent = work / "seconds", 0.0
    if clock.is_file():
        last = max(path.stat().st_mtime for path in work.rglob("*"))
        with suppress(ValueError):
            spent = float(clock.read_text(encoding="utf-8")) + last - clock.stat().st_mtime
    write_text(clock, str(spent))
    return spent
