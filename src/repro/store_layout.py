"""What a store puts into its folders, by name and shape."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.manifests import is_sealed, read_manifest
from repro.paths import is_file, is_folder
from repro.types import InputError
from repro.writing import owner_of

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

What is half made has a name of `writing.partial_of`.
"""
DATA, DAMAGED, WORK = "data", "damaged", "work"
"""Folders of no kind: snapshots of the hub's datasets, what was moved aside, scratch folders."""


def lock_of(final: Path) -> Path:
    """The lock of an artefact, or of the place where one would be."""
    return final.with_name(f"{final.name}.lock")


def halves(kind: Path) -> list[Path]:
    """The half-made artefacts of a kind."""
    return [each for each in sorted(kind.glob("*.partial")) if key_of_half(each)]


def unfinished(folder: Path) -> list[Path]:
    """The files of a folder that were to be renamed when they were whole."""
    return [each for each in sorted(folder.iterdir()) if owner_of(each)]


def key_of_half(path: Path) -> str:
    """The key of the artefact that a folder was to become; empty for anything else."""
    owner = owner_of(path)
    is_half = owner is not None and KEY.fullmatch(owner.name) and is_folder(path)
    return owner.name if owner is not None and is_half else ""


def is_of_kind(path: Path) -> bool:
    """Whether this is an artefact, by its name and its manifest, or one half made, or a lock."""
    if re.fullmatch(rf"{KEY.pattern}(\.soft)?\.lock", path.name):
        return is_file(path)
    if not KEY.fullmatch(path.name) or not is_folder(path):
        return bool(key_of_half(path))
    try:
        manifest = read_manifest(path)
    except (InputError, OSError):
        return False
    return is_sealed(manifest) and is_manifest_of(path, manifest)


def is_scratch(path: Path) -> bool:
    """Whether this is the scratch folder of a run, by its name."""
    return SCRATCH.fullmatch(path.name) is not None and is_folder(path)


def is_moved(path: Path) -> bool:
    """Whether this was moved aside, by its name."""
    return re.fullmatch(rf"{KIND.pattern}-[0-9]+", path.name) is not None


def is_snapshots(path: Path) -> bool:
    """Whether this is a folder of nothing but tables, whole or half written."""
    if not is_folder(path):
        return False
    table = re.compile(r".+\.parquet(\.[0-9a-f.]+\.partial)?")
    return all(table.fullmatch(each.name) and is_file(each) for each in path.iterdir())


def is_manifest_of(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of the artefact in this folder."""
    named = manifest.get("kind"), manifest.get("key")
    return named == (folder.parent.name, folder.name)


def may_be_ours(folder: Path) -> bool:
    """Whether a folder has a manifest that speaks of an artefact, or one that cannot be read."""
    try:
        return {"kind", "key", "files"} <= read_manifest(folder).keys()
    except FileNotFoundError:
        return False
    except (InputError, OSError):
        return True
