"""What a folder in Hugging Face layout notes of itself: small JSON files, and its list of parts."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from repro import paths, reading
from repro.types import InputError

SAVED: dict[str, type] = {
    **dict.fromkeys(("pooling", "final_norm", "prompt"), str),
    **dict.fromkeys(("bidirectional", "include_prompt"), bool),
    **dict.fromkeys(("pooler", "base", "lora"), dict),
    "max_length": int,
    "parts": list,
}
POOLING: dict[str, type] = {"include_prompt": bool}
DENSE: dict[str, type] = {
    **dict.fromkeys(("in_features", "out_features"), int),
    **dict.fromkeys(("bias", "use_residual"), bool),
}
PROMPTS: dict[str, type] = {"prompts": dict, "default_prompt_name": str}
LENGTHS: dict[str, type] = {"max_seq_length": int, "do_lower_case": bool}
"""Of what kind the entries of notes are, where they are not null: of ours, and of the parts, the
prompts and the lengths of published encoders.
"""
CALLED = {
    str: "a name or text",
    bool: "true or false",
    dict: "names and values",
    int: "a whole number",
    list: "a list",
}
ADAPTERS = {"base": {"name", "digest", "layers"}, "lora": {"targets"}}
"""What the note of adapters says at least."""


def file_of(folder: Path, name: str) -> Path | None:
    """A file of a model, whose own notes may name it; None where there is none of that name."""
    outward = ".." in Path(name).parts or Path(name).is_absolute()
    path = paths.inside(folder, name) if outward else folder / name
    return path if path.is_file() else None


def read_json(
    folder: Path,
    name: str,
    absent: Any,
    kinds: Mapping[str, type] = MappingProxyType({}),
) -> Any:
    """A small JSON file of a model; `absent`, which it must be like, where the model has none.

    Raises:
        InputError: for a damaged file, and for one whose entries are not of the `kinds` that they
            have as they are published: an edit by hand would be misread.
    """
    path = file_of(folder, name)
    if path is None:
        return absent
    found = reading.read_json(path, "the folder is damaged")
    if type(found) is not type(absent):
        raise InputError(
            f"{path} holds a {type(found).__name__}: expected a {type(absent).__name__}"
        )
    for entry, kind in kinds.items():
        value = found.get(entry)
        if value is not None and type(value) is not kind:
            raise InputError(f"{path}: {entry} is {value!r}: expected {CALLED[kind]}")
    return found


def saved_note(folder: Path) -> dict[str, Any]:
    """The note of an encoder of ours, empty if there is none."""
    note: dict[str, Any] = read_json(folder, "encoder.json", {}, SAVED)
    if note.get("base"):
        for name, needed in ADAPTERS.items():
            if lacking := needed - (note.get(name) or {}).keys():
                raise InputError(f"{folder / 'encoder.json'}: {name} lacks {min(lacking)}")
    return note


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
