"""Is everything in order? Packages, backbones, data and the store (what `repro doctor` does)."""

import shutil
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from repro import paths
from repro.models.pretrained import MINILM, SHIPPED, locate
from repro.optional import installing
from repro.provenance import hardware
from repro.store import Store
from repro.types import InputError

PACKAGES = ("torch", "transformers", "scikit-learn", "papermill", "jupytext", "jupyter-book", "datasets", "accelerate")


def examine(*, repair: bool = False) -> Iterator[tuple[str, bool]]:
    """Findings one by one: a line, and whether it is a fault.

    Args:
        repair: move damaged artefacts aside, so that they are made anew, and remove what killed writes left.
    """
    yield f"hardware: {hardware()}", False
    for package in PACKAGES:
        try:
            yield f"{package} {version(package)}", False
        except PackageNotFoundError:
            yield f"{package} is not installed: `make .venv/.ready`, or {installing('all')}", True
    for name in (*SHIPPED, MINILM):
        try:
            yield f"backbone {name}: {locate(name)}", False
        except InputError as error:
            yield f"backbone {name}: {error}", True
    folder = paths.data_folder()
    yield f"REPRO_DATA: {folder or 'not set; the microworld is used'}", False
    store = Store()
    yield f"store: {store.home} ({shutil.disk_usage(_existing(store.home)).free / 1e9:.1f} GB free)", False
    count = 0
    for artefact in store.artefacts():
        count += 1
        fault = store.fault(artefact)
        if fault and repair:
            store.set_aside(artefact, fault)
            yield f"{artefact}: {fault}; moved aside", True
        elif fault:
            yield f"{artefact}: {fault}; `repro doctor --repair` moves it aside", True
    yield f"{count} artefacts examined", False
    for partial in store.partials():
        if not partial.exists() or not store.abandoned(partial):
            continue  # went with the folder it was in, or is still being written
        if repair:
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()
        yield f"{partial}: left by a killed run" + ("; removed" if repair else ""), True


def _existing(path: paths.Path) -> paths.Path:
    while not path.exists():
        path = path.parent
    return path
