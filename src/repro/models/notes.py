"""What a folder in Hugging Face layout notes of itself: small JSON files, and its list of parts."""

from pathlib import Path
from typing import Any

from repro import paths, reading
from repro.types import InputError


def file_of(folder: Path, name: str) -> Path | None:
    """A file of a model, whose own notes may name it; None where there is none of that name."""
    outward = ".." in Path(name).parts or Path(name).is_absolute()
    path = paths.inside(folder, name) if outward else folder / name
    return path if path.is_file() else None


def read_json(folder: Path, name: str, absent: Any) -> Any:
    """A small JSON file of a model; `absent`, which it must be like, where the model has none."""
    path = file_of(folder, name)
    if path is None:
        return absent
    found = reading.read_json(path, "the folder is damaged")
    if type(found) is not type(absent):
        raise InputError(
            f"{path} holds a {type(found).__name__}: expected a {type(absent).__name__}"
        )
    return found


def parts_of(folder: Path) -> list[tuple[str, str]]:
    """Kind and subfolder of each part of a published encoder; none without a `modules.json`."""
    modules = read_json(folder, "modules.json", [])
    try:
        return [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in modules]
    except (TypeError, KeyError) as error:
        expected = "expected a list of parts with type and path"
        raise InputError(f"{folder}/modules.json: {expected}") from error


def refuse_other_kinds(folder: Path) -> None:
    """Refuse a published encoder that begins with something else than a network at its top."""
    parts = parts_of(folder)
    if parts and parts[0] != ("Transformer", ""):
        kind, place = parts[0]
        where = f"in {place!r}" if place else "at its top"
        raise InputError(
            f"{folder} is no single network: its modules.json begins with the part {kind} {where}, "
            "and only encoders that begin with a Transformer at the top of the folder are read"
        )
