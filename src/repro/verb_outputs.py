"""Where verbs write: nothing is written over but what such a verb wrote there itself."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.manifests import MANIFEST, copy_folder, is_sealed, read_manifest, sealed, sha256
from repro.reading import read_json
from repro.types import InputError
from repro.writing import (
    refuse_other_encoding,
    refuse_other_form,
    replacing,
    writable_file,
    write_text,
)

OUTPUT_KIND = "output"
"""What the note beside a file calls it."""
ABOUT = "{} was written by `repro`, which writes over it while it has a digest of these."


def refuse_others(path: Path, form: str) -> None:
    """Refuse to write over a file unless it is empty, or is as such a verb wrote it, by the note
    beside it; and a name that promises another form.
    """
    refuse_other_form(path, form)
    writable_file(_note_of(path))
    _refuse_unproved(path)


@contextmanager
def replacing_own(path: Path) -> Iterator[Path]:
    """As `replacing`, of a file that `refuse_others` let pass, with a note of its digest beside it:
    by that it is known as ours the next time.
    """
    with replacing(path) as partial:
        yield partial
        _refuse_unproved(path)  # Hours may have passed
        written = sha256(partial)
        before = [sha256(path)] if path.is_file() else []
        # Whenever this is stopped, the file that is there is one of these
        _write_note(path, [written, *before])
    _write_note(path, [written])


def _note_of(path: Path) -> Path:
    """The place of the note of an output: beside what its name leads to."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}.json")


def _write_note(path: Path, digests: list[str]) -> None:
    note = sealed({"kind": OUTPUT_KIND, "note": ABOUT.format(path.name), "sha256": digests})
    write_text(_note_of(path), json.dumps(note, indent=1))


def _refuse_unproved(path: Path) -> None:
    """Refuse to write over a file that its note does not prove to be ours, or over such a note."""
    way_out = "nothing is overwritten, give another name, or move it"
    note = _note_of(path)
    digests: list[str] = []
    if os.path.lexists(note):
        try:
            said = read_json(note)
        except (InputError, OSError):
            said = None
        if not isinstance(said, dict) or said.get("kind") != OUTPUT_KIND or not is_sealed(said):
            raise InputError(f"{note} is there and is no note of ours: {way_out}")
        digests = said["sha256"]
    if path.is_file() and path.stat().st_size and sha256(path) not in digests:
        is_changed = "has changed since it was written" if digests else "no note proves it ours"
        raise InputError(f"{path} is there, and {is_changed}: {way_out}")


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
