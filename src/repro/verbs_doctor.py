"""The verb of `repro` on an installation: `doctor` examines it and the store, which it can mend."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from repro.terminal import explained, say
from repro.types import InputError, installed, installing

if TYPE_CHECKING:
    from repro.store import Store

PACKAGES = (
    "torch",
    "transformers",
    "scikit-learn",
    "papermill",
    "jupytext",
    "jupyter-book",
    "datasets",
    "accelerate",
)


def doctor(repair: bool = False) -> int:
    """Whether installation, data and stored artefacts are in order; with --repair they are mended.

    Args:
        repair: move damaged artefacts aside, so that they are made anew, and what killed runs left;
            nothing is removed.
    """
    faults = 0
    for line, bad in examine(repair=repair):
        say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return int(any(bad for _, bad in examine()) if faults and repair else faults > 0)


def examine(*, repair: bool = False) -> Iterator[tuple[str, bool]]:
    """Findings of `repro doctor`, one by one: a line, and whether it is a fault."""
    from repro import paths
    from repro.provenance import hardware

    yield f"hardware: {hardware()}", False
    for package in PACKAGES:
        version = installed(package)
        absent = version == "absent"
        way_out = f": `make .venv/.ready`, or {installing('all')}" if absent else ""
        yield f"{package} {version}{way_out}", absent
    yield from _backbones()
    yield f"REPRO_DATA: {paths.data_folder() or 'not set; the microworld is used'}", False
    yield from _examine_store(repair=repair)


def _examine_store(*, repair: bool) -> Iterator[tuple[str, bool]]:
    """The findings in the store; repairing moves what is faulty or left over to `damaged/`."""
    from repro import store_mending
    from repro.store import Store
    from repro.store_layout import DAMAGED

    store = Store()
    try:
        refusal = store.refusal()
    except OSError as error:
        yield f"store: {explained(error)}", True
        return
    if refusal:
        yield f"store: {refusal}: set REPRO_HOME to a folder of its own, new or empty", True
        return
    existing = next(folder for folder in (store.home, *store.home.parents) if folder.exists())
    yield f"store: {store.home} ({shutil.disk_usage(existing).free / 1e9:.1f} GB free)", False
    for folder in store_mending.closed(store):
        yield f"{folder}: may not be read, nothing in it was examined", True
    artefacts = list(store_mending.artefacts(store))
    for artefact in artefacts:
        fault = store_mending.fault_of(store, artefact)
        if not fault:
            continue
        if not store_mending.is_proven(artefact):
            outcome = "left alone, for its manifest does not say that it is ours: move it away"
        elif repair:
            outcome = _mended(store, artefact)
        else:
            outcome = "`repro doctor --repair` moves it aside"
        yield f"{artefact}: {fault}; {outcome}", True
    yield f"{len(artefacts)} artefacts examined", False
    for partial in store_mending.partials(store):
        try:
            if store_mending.is_abandoned(store, partial):  # Else it is still being written
                outcome = f"; moved to {store.move_partial(partial)}" if repair else ""
                yield f"{partial}: left by a killed run{outcome}", True
        except OSError as error:  # Of somebody else, whose lock or folder may not be written
            yield f"{partial}: may not be examined or moved ({error.strerror})", True
    moved = [path for path in (store.home / DAMAGED).rglob("*") if path.is_file()]
    if moved:
        size = f"{sum(path.stat().st_size for path in moved) / 1e6:,.1f} MB"
        yield f"{store.home / DAMAGED}: {size} that nothing reads, to be removed at will", False


def _mended(store: "Store", artefact: Path) -> str:
    """Move a faulty artefact aside; what became of it, for what cannot be moved ends no
    examination of the others.
    """
    from repro import store_mending

    try:
        if store_mending.repair(store, artefact):
            return "moved aside"
    except OSError as error:
        return f"cannot be moved aside ({error.strerror})"
    return "left alone, for another process makes it anew"


def _backbones() -> Iterator[tuple[str, bool]]:
    """What `examine` finds about the networks that come with the installation."""
    try:
        from repro.models.sources import MINILM, SHIPPED, locate
        from repro.models.whole import check_intact
    except ModuleNotFoundError as error:  # Told above as absent
        yield f"backbones: not looked at without {error.name}", False
        return
    for name in (*SHIPPED, MINILM):
        try:
            folder = locate(name)
            check_intact(folder)
            yield f"backbone {name}: {folder}", False
        except InputError as error:
            yield f"backbone {name}: {error}", True
