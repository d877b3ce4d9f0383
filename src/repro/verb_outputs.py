"""Where verbs write: nothing is written over but what such a verb wrote there itself."""

import shutil
from collections.abc import Callable
from pathlib import Path

from repro.manifests import MANIFEST, copy_folder, read_manifest, sha256
from repro.reading import is_out_of_memory
from repro.types import InputError
from repro.writing import refuse_other_encoding, refuse_other_form, replacing


def refuse_others(path: Path, form: str, is_ours: Callable[[Path], bool]) -> None:
    """Refuse to write over a file unless it is empty, or holds what such a verb writes; and a name
    that promises another form.
    """
    refuse_other_form(path, form)
    if path.is_file() and path.stat().st_size and not is_ours(path):
        raise InputError(f"{path} is there and holds something else: give another name, or move it")


def is_embeddings(path: Path) -> bool:
    """Whether a file holds a float32 matrix as `.npy`."""
    import numpy as np

    try:
        X = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # Of a header, which is parsed as Python
        if is_out_of_memory(error):
            raise
        return False
    return bool(X.ndim == 2 and X.dtype == np.float32)


def is_rows(path: Path) -> bool:
    """Whether a file holds rows of `evaluate` alone: recorded ones tell of other experiments."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from repro.rows import COLUMNS, SCHEMA
    from repro.runs.evaluate import EXPERIMENT

    try:
        names = pq.read_schema(path).names
        if not set(SCHEMA) <= set(names) <= set(COLUMNS):
            return False
        experiments = pq.read_table(path, columns=["experiment"])["experiment"].unique()
    except (pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise
        return False
    return bool(experiments.to_pylist() == [EXPERIMENT])


def refuse_foreign(folder: Path, key: str, *, stored: bool) -> None:
    """Check that a folder is new or empty, or holds what was written of the network with this key,
    before any work.

    Of one that is `stored`, whoever copies it sees what was edited; else nothing may be.
    """
    refuse_other_encoding(folder)
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if all(name.endswith(".partial") for name in there):
        return
    try:
        manifest = read_manifest(folder)
        found, files = manifest["key"], dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        found, files = None, {}
    way_out = "give another --output, nothing is overwritten"
    if found != key:
        what = "files that no training wrote" if found is None else "a network of other settings"
        raise InputError(f"{folder} holds {what}: {way_out}")
    for name, written in files.items():
        is_there = not stored and (folder / name).is_file()
        if is_there and sha256(folder / name) != written:
            raise InputError(f"{folder / name} was edited: {way_out}")


def copy_encoder(source: Path, target: Path) -> None:
    """Copy a network out of the store, a manifest first: what a killed copy left is then known to
    be of it.
    """
    if not (target / MANIFEST).exists():
        with replacing(target / MANIFEST) as partial:
            shutil.copyfile(source / MANIFEST, partial)
    copy_folder(source, target)
