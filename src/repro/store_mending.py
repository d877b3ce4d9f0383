"""What `repro doctor` finds and mends in a store: finished artefacts, and what killed runs left.

Whatever is faulty or left over is moved to the store's `damaged/`, never removed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import Timeout

from repro.locks import locked, soft_lock
from repro.manifests import read_manifest
from repro.paths import is_folder
from repro.store import Store
from repro.store_layout import (
    DAMAGED,
    DATA,
    KEY,
    KIND,
    SCRATCH,
    WORK,
    halves,
    key_of_half,
    lock_of,
    may_be_ours,
    unfinished,
)
from repro.types import InputError
from repro.writing import owner_of


def artefacts(store: Store) -> Iterator[Path]:
    """All finished artefacts; a folder whose manifest speaks of something else is none."""
    for kind in _kinds(store):
        for folder in sorted(kind.iterdir()):
            if KEY.fullmatch(folder.name) and is_folder(folder) and may_be_ours(folder):
                yield folder


def partials(store: Store) -> list[Path]:
    """What killed runs left: half-made artefacts and half-written files.

    A resumable state is not among them.
    """
    if store.refusal():
        return []
    left = [half for kind in _kinds(store) for half in halves(kind)]
    for folder in _work_folders(store):
        if not _is_closed(folder):
            left += unfinished(folder)
    return sorted(left)


def closed(store: Store) -> list[Path]:
    """The folders of a store in which nothing can be examined: they may not be read."""
    if store.refusal() or not store.home.is_dir():
        return []
    if _is_closed(store.home):
        return [store.home]
    places = [*_folders_of_kinds(store), store.home / WORK, store.home / DATA]
    return [place for place in (*places, *_work_folders(store)) if _is_closed(place)]


def _kinds(store: Store) -> list[Path]:
    """The folders of artefacts, in a store, that may be read."""
    if store.refusal() or not store.home.is_dir() or _is_closed(store.home):
        return []
    return [place for place in _folders_of_kinds(store) if not _is_closed(place)]


def _folders_of_kinds(store: Store) -> list[Path]:
    kinds = []
    for place in sorted(store.home.iterdir()):
        is_reserved = place.name in (DATA, DAMAGED, WORK)
        if KIND.fullmatch(place.name) and is_folder(place) and not is_reserved:
            kinds.append(place)
    return kinds


def _work_folders(store: Store) -> list[Path]:
    """The folders in which runs keep what they go on with."""
    folders = []
    for place in (store.home / WORK, store.home / DATA):
        if is_folder(place) and not _is_closed(place):
            folders += [each for each in sorted(place.iterdir()) if is_folder(each)]
    return folders


def _is_closed(folder: Path) -> bool:
    """Whether a folder is there whose content this process may not see."""
    return folder.exists() and not os.access(folder, os.R_OK | os.X_OK)


def fault_of(store: Store, folder: Path) -> str | None:
    """What is wrong with an artefact, as `Store.fault` says it; one that cannot be read is faulty
    too.
    """
    try:
        return store.fault(folder)
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def is_proven(folder: Path) -> bool:
    """Whether the manifest of a faulty artefact still says that a store wrote it."""
    try:
        return {"kind", "key", "files", "seal"} <= read_manifest(folder).keys()
    except (InputError, OSError):
        return False


def is_abandoned(store: Store, partial: Path) -> bool:
    """Whether nobody writes it any more: its process is gone, and its lock is free.

    The lock tells of a process on another machine.
    """
    owner = owner_of(partial)
    if owner is None:
        return False
    scratch = SCRATCH.fullmatch(partial.parent.name)
    if key := key_of_half(partial):
        final, is_dead = partial.with_name(key), not psutil.pid_exists(owner.pid)
    else:
        final = store.home.joinpath(*scratch.groups()) if scratch else partial
        is_dead = owner.is_dead
    lock = lock_of(final)
    if not is_dead or not (lock.exists() or soft_lock(lock).exists()):
        return is_dead
    with suppress(Timeout), locked(lock, timeout=0):
        return True
    return False


def repair(store: Store, folder: Path) -> bool:
    """Move an artefact to `damaged/` if it is damaged still, and no other process holds its lock;
    whether it was moved.
    """
    with suppress(Timeout), locked(lock_of(folder), timeout=0):
        if folder.exists() and (fault := fault_of(store, folder)):
            store.set_aside(folder, fault)
            return True
    return False
