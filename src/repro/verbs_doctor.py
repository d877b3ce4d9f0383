"""The verb of `repro` on an installation: `doctor` examines it and the store, which it can mend."""

import shutil
from collections.abc import Iterator

from repro.terminal import say
from repro.types import InputError, installed, installing

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
    if refusal := store.refusal():
        yield f"store: {refusal}: set REPRO_HOME to a folder of its own, new or empty", True
        return
    existing = next(folder for folder in (store.home, *store.home.parents) if folder.exists())
    yield f"store: {store.home} ({shutil.disk_usage(existing).free / 1e9:.1f} GB free)", False
    artefacts = list(store_mending.artefacts(store))
    for artefact in artefacts:
        fault = store_mending.fault_of(store, artefact)
        if not fault:
            continue
        if not store_mending.is_proven(artefact):
            outcome = "left alone, for its manifest does not say that it is ours: move it away"
        elif repair:
            in_use = "left alone, for another process makes it anew"
            outcome = "moved aside" if store_mending.repair(store, artefact) else in_use
        else:
            outcome = "`repro doctor --repair` moves it aside"
        yield f"{artefact}: {fault}; {outcome}", True
    yield f"{len(artefacts)} artefacts examined", False
    for partial in store_mending.partials(store):
        if store_mending.is_abandoned(store, partial):  # Else it is still being written
            outcome = f"; moved to {store.move_partial(partial)}" if repair else ""
            yield f"{partial}: left by a killed run{outcome}", True
    moved = [path for path in (store.home / DAMAGED).rglob("*") if path.is_file()]
    if moved:
        size = f"{sum(path.stat().st_size for path in moved) / 1e6:,.1f} MB"
        yield f"{store.home / DAMAGED}: {size} that nothing reads, to be removed at will", False


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
