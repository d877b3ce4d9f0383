"""Artefacts by digest: made once, verified on every read, safe to share between processes.

An artefact is a folder `REPRO_HOME/<kind>/<digest>/` with its files and a `manifest.json` that
holds their sha256 and the configuration that made them, under a seal. It appears whole or not at
all; a lock per key lets processes share a store, and what is finished is read without it. A damaged
artefact is moved aside with a warning and made again. Nothing is pickled.

A folder becomes a store by a marker, which it gets while it is new, empty or holds nothing but a
store's own; nowhere else is anything written. Things of other people may lie in a store all the
same. So only the names given here are looked at, each at its own place, and what is in the way or
left over is moved to `damaged/`, which nothing empties.

`remember` keeps what a function returns, arrays or JSON; `get_or_make` keeps whatever files a long
run writes.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from filelock import Timeout

from repro import paths
from repro.digests import digest, module_of, plain
from repro.paths import (
    disk_full_explained,
    locked,
    owner_of,
    read_json,
    regular_file,
    replacing,
    write_text,
)
from repro.types import InputError

log = logging.getLogger(__name__)
MANIFEST = "manifest.json"
MARKER = "repro-store.txt"
MARKED = """\
This folder is a store of the command `repro`: REPRO_HOME names it.

All that is kept here was computed and can be computed again: removing the whole folder costs
nothing but time. `repro doctor` examines it. Faulty entries are put into `damaged/`, which nothing
reads: remove it when you like.
"""
KIND = re.compile("[a-z][a-z0-9_-]*")
KEY = re.compile("[0-9a-f]{16}")
SCRATCH = re.compile(f"(?P<kind>{KIND.pattern})-(?P<key>{KEY.pattern})")
"""Names in a store: of a folder of artefacts, an artefact, the scratch of its run.

What is half made has a name of `paths.partial_of`.
"""
DATA, DAMAGED, WORK = "data", "damaged", "work"
"""Folders of no kind: snapshots of the hub's datasets, what was moved aside, scratch folders."""
CLOCK, STATE = "seconds", "state.safetensors"
"""Files of a scratch folder: the seconds spent before, and the state from which a run resumes."""


@dataclass(frozen=True)
class Made:
    """An artefact at hand: its folder, and whether this call made it or found it."""

    folder: Path
    hit: bool
    seconds: float  # to make it, when it was made; of killed runs, up to their last state


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
        if stranger is None or self._is_marked():  # by another process, in the meantime
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
        shapes = {DATA: _is_snapshots, DAMAGED: _is_moved, WORK: _is_scratch}
        for place in sorted(self.home.iterdir()):
            owner = owner_of(place)
            if owner is not None and owner.name == MARKER:  # another process is claiming the store
                continue
            if not _is_folder(place) or not KIND.fullmatch(place.name):
                yield place
                continue
            has_our_shape = shapes.get(place.name, _is_of_kind)
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
        if final.exists() and self.fault(final) is None:  # no lock: a store may be read-only
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
            for half in _halves(final.parent):
                if _key_of_half(half) == key:  # of a killed run: nobody else writes this key
                    self.move_partial(half)
            target = paths.partial_of(final, folder=True)
            target.mkdir()
            started = time.perf_counter() - _seconds_before(work)
            try:
                make(target, work)
                seconds = time.perf_counter() - started
                notes = {"kind": kind, "key": key, "config": config, "seconds": seconds}
                write_manifest(target, notes)
                os.replace(target, final)
            finally:
                shutil.rmtree(target, ignore_errors=True)  # made above, where nothing was
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
        for left in (work / CLOCK, work / STATE, *_unfinished(work)):
            if _is_file(left):
                left.unlink()
        with suppress(OSError):  # it holds something else
            work.rmdir()

    @contextmanager
    def _locked(self, final: Path) -> Iterator[None]:
        with ExitStack() as held:
            try:
                self.claim()
                final.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(_lock_of(final)))
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
        if not is_sealed(manifest) or not _is_manifest_of(folder, manifest):
            return "its manifest has changed, or is another artefact's"
        for name, expected in manifest["files"].items():
            if not _is_file(folder / name):
                return f"{name} is missing"
            if sha256(folder / name) != expected:
                return f"{name} has changed since it was written"
        return None

    def artefacts(self) -> Iterator[Path]:
        """All finished artefacts; a folder whose manifest speaks of something else is none."""
        for kind in self._kinds():
            for folder in sorted(kind.iterdir()):
                if KEY.fullmatch(folder.name) and _is_folder(folder) and _may_be_ours(folder):
                    yield folder

    def partials(self) -> list[Path]:
        """What killed runs left: half-made artefacts and half-written files.

        A resumable state is not among them.
        """
        if self.refusal():
            return []
        left = [half for kind in self._kinds() for half in _halves(kind)]
        for place in (self.home / WORK, self.home / DATA):
            for folder in place.iterdir() if _is_folder(place) else ():
                if _is_folder(folder):
                    left += _unfinished(folder)
        return sorted(left)

    def _kinds(self) -> list[Path]:
        """The folders of artefacts, in a store."""
        if self.refusal() or not self.home.is_dir():
            return []
        kinds = []
        for place in sorted(self.home.iterdir()):
            is_reserved = place.name in (DATA, DAMAGED, WORK)
            if KIND.fullmatch(place.name) and _is_folder(place) and not is_reserved:
                kinds.append(place)
        return kinds

    def abandoned(self, partial: Path) -> bool:
        """Whether nobody writes it any more: its process is gone, and its lock is free.

        The lock tells of a process on another machine.
        """
        owner = owner_of(partial)
        if owner is None:
            return False
        scratch = SCRATCH.fullmatch(partial.parent.name)
        if key := _key_of_half(partial):
            final, is_dead = partial.with_name(key), not psutil.pid_exists(owner.pid)
        else:
            final = self.home.joinpath(*scratch.groups()) if scratch else partial
            is_dead = owner.is_dead
        lock = _lock_of(final)
        if not is_dead or not (lock.exists() or paths.soft_lock(lock).exists()):
            return is_dead
        with suppress(Timeout), locked(lock, timeout=0):
            return True
        return False

    def is_proven(self, folder: Path) -> bool:
        """Whether the manifest of a faulty artefact still says that a store wrote it."""
        try:
            return {"kind", "key", "files", "seal"} <= read_manifest(folder).keys()
        except (InputError, OSError):
            return False

    def set_aside(self, folder: Path, fault: str) -> None:
        """Move a damaged artefact to `damaged/`, so that the next use makes it anew."""
        name = f"{folder.parent.name}/{folder.name}"
        aside = self._move_aside(folder, name)
        log.warning("%s is damaged (%s): moved to %s, making it anew", name, fault, aside)

    def move_partial(self, partial: Path) -> Path:
        """Move what a killed run left to `damaged/`; where it is now."""
        key = _key_of_half(partial)
        place = partial.with_name(key) if key else partial.parent
        return self._move_aside(partial, str(place.relative_to(self.home)))

    def _move_aside(self, path: Path, name: str) -> Path:
        self.claim()
        aside = self.home / DAMAGED / f"{name.replace(os.sep, '-')}-{time.time_ns()}"
        aside.parent.mkdir(exist_ok=True)
        os.replace(path, aside)
        return aside


# what a store puts into its folders, by name and shape


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _lock_of(final: Path) -> Path:
    """The lock of an artefact, or of the place where one would be."""
    return final.with_name(f"{final.name}.lock")


def _halves(kind: Path) -> list[Path]:
    """The half-made artefacts of a kind."""
    return [each for each in sorted(kind.glob("*.partial")) if _key_of_half(each)]


def _unfinished(folder: Path) -> list[Path]:
    """The files of a folder that were to be renamed when they were whole."""
    return [each for each in sorted(folder.iterdir()) if owner_of(each)]


def _key_of_half(path: Path) -> str:
    """The key of the artefact that a folder was to become; empty for anything else."""
    owner = owner_of(path)
    is_half = owner is not None and KEY.fullmatch(owner.name) and _is_folder(path)
    return owner.name if owner is not None and is_half else ""


def _is_of_kind(path: Path) -> bool:
    """Whether this is an artefact, by its name and its manifest, or one half made, or a lock."""
    if re.fullmatch(rf"{KEY.pattern}(\.soft)?\.lock", path.name):
        return _is_file(path)
    if not KEY.fullmatch(path.name) or not _is_folder(path):
        return bool(_key_of_half(path))
    try:
        manifest = read_manifest(path)
    except (InputError, OSError):
        return False
    return is_sealed(manifest) and _is_manifest_of(path, manifest)


def _is_scratch(path: Path) -> bool:
    return SCRATCH.fullmatch(path.name) is not None and _is_folder(path)


def _is_moved(path: Path) -> bool:
    return re.fullmatch(rf"{KIND.pattern}-[0-9]+", path.name) is not None


def _is_snapshots(path: Path) -> bool:
    """Whether this is a folder of nothing but tables, whole or half written."""
    if not _is_folder(path):
        return False
    table = re.compile(r".+\.parquet(\.[0-9a-f.]+\.partial)?")
    return all(table.fullmatch(each.name) and _is_file(each) for each in path.iterdir())


# manifests


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with regular_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    written = _written(target)
    differing = []
    for name in (*read_manifest(source)["files"], MANIFEST):
        there = target / name
        if not os.path.lexists(there):
            differing.append(name)
            continue
        if not _is_file(there):
            raise InputError(f"{there} is no regular file: give another output")
        content = sha256(there)
        if content == sha256(source / name):
            continue
        if content != written.get(name):
            way_out = "nothing is overwritten, give another output"
            raise InputError(f"{there} is none of ours, or was edited: {way_out}")
        differing.append(name)
    for name in differing:
        with replacing(target / name) as partial:
            shutil.copyfile(source / name, partial)


def _written(folder: Path) -> dict[str, str]:
    """The checksums of what we wrote into a folder, by its sealed manifest; of that one too."""
    try:
        manifest = read_manifest(folder)
    except (InputError, OSError):
        return {}
    if not is_sealed(manifest) or not isinstance(manifest.get("files"), dict):
        return {}
    return {**manifest["files"], MANIFEST: sha256(folder / MANIFEST)}


def _is_manifest_of(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of the artefact in this folder."""
    named = manifest.get("kind"), manifest.get("key")
    return named == (folder.parent.name, folder.name)


def _may_be_ours(folder: Path) -> bool:
    """Whether a folder has a manifest that speaks of an artefact, or one that cannot be read."""
    try:
        return {"kind", "key", "files"} <= read_manifest(folder).keys()
    except FileNotFoundError:
        return False
    except (InputError, OSError):
        return True


def _files_in(folder: Path) -> list[str]:
    """The names, below a folder, of all that is no folder, but for its manifest."""
    names = []
    for path in sorted(folder.rglob("*")):
        if path != folder / MANIFEST and not _is_folder(path):
            names.append(str(path.relative_to(folder)))
    return names


# values


def _write_value(folder: Path, value: Any) -> None:
    if isinstance(value, np.ndarray):
        np.save(folder / "value.npy", value, allow_pickle=False)
    elif (
        isinstance(value, dict)
        and value
        and all(isinstance(part, np.ndarray) for part in value.values())
    ):
        for name, part in value.items():
            np.save(folder / f"value.{name}.npy", part, allow_pickle=False)
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
