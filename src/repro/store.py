"""Artefacts by digest: made once, verified on every read, safe to share between processes.

An artefact is a folder `REPRO_HOME/<kind>/<digest>/` with its files and a `manifest.json` that
holds their sha256 and the configuration that made them, under a seal. It appears whole or not at
all; a lock per key lets processes share a store, and what is finished is read without it. A damaged
artefact is moved aside with a warning and made again. Nothing is pickled.

A folder becomes a store by a marker, which it gets while it is new, empty or holds nothing but a
store's own; nowhere else is anything written. Things of other people may lie in a store all the
same. So only the names of `store_layout` are looked at, each at its own place, and what is in the
way or left over is moved to `damaged/`, which nothing empties.

`remember` keeps what a function returns, arrays or JSON; `get_or_make` keeps whatever files a long
run writes.
"""

import errno
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repro import paths
from repro.digests import digest, module_of, plain
from repro.locks import locked
from repro.manifests import is_sealed, read_manifest, sha256, write_manifest
from repro.paths import is_file, is_folder
from repro.reading import read_json
from repro.store_layout import (
    DAMAGED,
    DATA,
    KEY,
    KIND,
    MARKED,
    MARKER,
    WORK,
    halves,
    is_manifest_of,
    is_moved,
    is_of_kind,
    is_scratch,
    is_snapshots,
    key_of_half,
    lock_of,
    unfinished,
)
from repro.types import InputError
from repro.writing import disk_full_explained, owner_of, partial_of, write_array, write_text

log = logging.getLogger(__name__)
CLOCK, STATE = "seconds", "state.safetensors"
"""Files of a scratch folder: the seconds spent before, and the state from which a run resumes."""


@dataclass(frozen=True)
class Made:
    """An artefact at hand: its folder, and whether this call made it or found it."""

    folder: Path
    hit: bool
    seconds: float  # To make it, when it was made; of killed runs, up to their last state


class Store:
    """The artefacts under one folder."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = paths.resolved(home or paths.home())

    def folder(self, kind: str, key: str) -> Path:
        """Where the artefact is, or would be.

        Raises:
            InputError: unless the kind is a word in small letters, and the key 16 hex digits.
        """
        is_reserved = kind in (DATA, DAMAGED, WORK)
        if is_reserved or not KIND.fullmatch(kind) or not KEY.fullmatch(key):
            expected = "expected a word in small letters, and 16 hex digits"
            raise InputError(f"{kind}/{key} is no name of an artefact: {expected}")
        return paths.inside(self.home, f"{kind}/{key}")

    def refusal(self) -> str:
        """Why nothing may be written or moved here; empty in a store, and where one can be made."""
        if self._is_marked():
            return ""
        there = next(place for place in (self.home, *self.home.parents) if place.exists())
        if not there.is_dir():
            return f"{there} is not a folder"
        if there != self.home:
            return ""
        stranger = next(self._strangers(), None)
        if stranger is None or self._is_marked():  # By another process, in the meantime
            return ""
        name = f"{stranger.relative_to(self.home)}, which is no part of one"
        return f"{self.home} has no marker of a store, {MARKER}, and holds {name}"

    def claim(self) -> None:
        """Make sure that the folder is a store, before something is written there.

        Raises:
            InputError: for a folder that holds something else, and for what is no folder.
        """
        if refusal := self.refusal():
            raise InputError(f"{refusal}: set REPRO_HOME to a folder of its own, new or empty")
        if not self._is_marked():
            write_text(self.home / MARKER, MARKED)

    def _is_marked(self) -> bool:
        first_line = MARKED.encode().splitlines()[0]
        marker = self.home / MARKER
        return marker.is_file() and marker.read_bytes().startswith(first_line)

    def _strangers(self) -> Iterator[Path]:
        """What lies in the folder, or in one of its folders, and was not put there by a store."""
        shapes = {DATA: is_snapshots, DAMAGED: is_moved, WORK: is_scratch}
        for place in sorted(self.home.iterdir()):
            owner = owner_of(place)
            if owner is not None and owner.name == MARKER:  # Another process is claiming the store
                continue
            if not is_folder(place) or not KIND.fullmatch(place.name):
                yield place
                continue
            has_our_shape = shapes.get(place.name, is_of_kind)
            for each in sorted(place.iterdir()):
                if not has_our_shape(each):
                    yield each

    def get_or_make(
        self,
        kind: str,
        key: str,
        make: Callable[[Path, Path], None],
        *,
        config: Any = None,
    ) -> Made:
        """Return the artefact, making it first if it is absent or damaged.

        `make(target, work)` writes the files into the empty folder `target`; `work` is a scratch
        folder that outlives a kill, so that a long run can resume from a file `STATE`, which goes
        when the run has ended; others there stay. `config` stands in the manifest. On a full disk
        what is finished is kept.
        """
        final = self.folder(kind, key)
        if final.exists() and self.fault(final) is None:  # No lock: a store may be read-only
            return Made(final, True, read_manifest(final)["seconds"])
        if (size := os.environ.get("WORLD_SIZE", "1")) != "1":
            why = "each would wait for another's lock: unset it, start one process"
            raise InputError(f"WORLD_SIZE is {size}: {why}")
        with disk_full_explained(final), self._locked(final):
            if final.exists():
                if (fault := self.fault(final)) is None:
                    return Made(final, True, read_manifest(final)["seconds"])
                self.set_aside(final, fault)
            work = self.scratch(kind, key)
            for half in halves(final.parent):
                if key_of_half(half) == key:  # Of a killed run: nobody else writes this key
                    self.move_partial(half)
            started = time.perf_counter() - _seconds_before(work)
            target = partial_of(final, folder=True)
            target.mkdir()
            try:
                make(target, work)
                seconds = time.perf_counter() - started
                notes = {"kind": kind, "key": key, "config": config, "seconds": seconds}
                write_manifest(target, notes)
                os.replace(target, final)
            finally:
                shutil.rmtree(target, ignore_errors=True)  # Made above, where nothing was
            self.drop_scratch(work)
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
        """What `compute()` returns: an array, a dict of arrays or a JSON value, computed once.

        `config` is everything that decides the value but code, JSON-like, arrays by their numbers;
        `code` names the modules where that code starts, None the one of `compute`. A `mapped` array
        stays on disk, read as it is used.
        """
        roots = (code,) if isinstance(code, str) else code or (module_of(compute),)
        named = plain(config)

        def make(target: Path, work: Path) -> None:
            _write_value(target, compute())

        made = self.get_or_make(kind, digest(named, code=roots), make, config=named)
        return _read_value(made.folder, read_manifest(made.folder)["files"], mapped)

    def scratch(self, kind: str, key: str) -> Path:
        """The scratch folder of a run, which outlives a kill; it is made if it is not there."""
        self.claim()
        work = self.home / WORK / f"{kind}-{key}"
        work.mkdir(parents=True, exist_ok=True)
        return work

    def drop_scratch(self, work: Path) -> None:
        """Remove what a run leaves in its scratch folder, and the folder if it is empty then."""
        for left in (work / CLOCK, work / STATE, *unfinished(work)):
            if is_file(left):
                left.unlink()
        with suppress(OSError):  # It holds something else
            work.rmdir()

    @contextmanager
    def _locked(self, final: Path) -> Iterator[None]:
        with ExitStack() as held:
            try:
                self.claim()
                final.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(lock_of(final)))
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
        """What is wrong with an artefact; None if the files of its manifest are there, unchanged.

        What lies beside them is somebody's own, such as notes: it is left alone, and not read.
        """
        try:
            manifest = read_manifest(folder)
        except (InputError, FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            return f"unreadable manifest ({error})"
        if missing := {"kind", "key", "files", "seconds"} - manifest.keys():
            return f"unreadable manifest (it lacks {', '.join(sorted(missing))})"
        if not is_sealed(manifest) or not is_manifest_of(folder, manifest):
            return "its manifest has changed, or is another artefact's"
        for name, expected in manifest["files"].items():
            if not is_file(folder / name):
                return f"{name} is missing"
            if sha256(folder / name) != expected:
                return f"{name} has changed since it was written"
        return None

    def set_aside(self, folder: Path, fault: str) -> None:
        """Move a damaged artefact to `damaged/`, so that the next use makes it anew."""
        name = f"{folder.parent.name}/{folder.name}"
        aside = self._move_aside(folder, name)
        log.warning("%s is damaged (%s): moved to %s, making it anew", name, fault, aside)

    def move_partial(self, partial: Path) -> Path:
        """Move what a killed run left to `damaged/`; where it is now."""
        key = key_of_half(partial)
        place = partial.with_name(key) if key else partial.parent
        return self._move_aside(partial, str(place.relative_to(self.home)))

    def _move_aside(self, path: Path, name: str) -> Path:
        self.claim()
        aside = self.home / DAMAGED / f"{name.replace(os.sep, '-')}-{time.time_ns()}"
        aside.parent.mkdir(exist_ok=True)
        os.replace(path, aside)
        return aside


def _write_value(folder: Path, value: Any) -> None:
    if isinstance(value, np.ndarray):
        write_array(folder / "value.npy", value)
    elif (
        isinstance(value, dict)
        and value
        and all(isinstance(part, np.ndarray) for part in value.values())
    ):
        for name, part in value.items():
            write_array(folder / f"value.{name}.npy", part)
    else:
        (folder / "value.json").write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _read_value(folder: Path, files: Collection[str], mapped: bool) -> Any:
    """What was written, from the files of the manifest alone."""
    if "value.json" in files:
        return read_json(folder / "value.json")
    if "value.npy" in files:
        return np.load(folder / "value.npy", mmap_mode="r" if mapped else None, allow_pickle=False)
    values = {}
    for file in sorted(files):
        name = file.removeprefix("value.").removesuffix(".npy")
        values[name] = np.load(folder / file, allow_pickle=False)
    return values


def _seconds_before(work: Path) -> float:
    """Seconds that killed runs spent on this folder.

    The clock holds those before the last run, written at its start.
    """
    clock, spent = work / CLOCK, 0.0
    if clock.is_file():
        last = max(path.stat().st_mtime for path in (clock, work / STATE) if path.exists())
        with suppress(ValueError):
            before = float(clock.read_text(encoding="utf-8"))
            spent = before + last - clock.stat().st_mtime
    write_text(clock, str(spent))
    return spent
