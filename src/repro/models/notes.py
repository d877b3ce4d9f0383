"""What a folder in Hugging Face layout notes of itself: small JSON files, and its list of parts."""

from pathlib import Path
from typing import Any

from repro import paths, reading
from repro.types import InputError

KINDS: dict[str, type] = {
    **dict.fromkeys(("pooling", "final_norm", "prompt"), str),
    **dict.fromkeys(("bidirectional", "include_prompt"), bool),
    **dict.fromkeys(("pooler", "base", "lora"), dict),
    "max_length": int,
    "parts": list,
}
"""Of what kind the entries of a note are, where they are not null."""
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


def saved_note(folder: Path) -> dict[str, Any]:
    """The note of an encoder of ours, empty if there is none; what is of another kind than we
    write, as after an edit by hand, is refused.
    """
    note: dict[str, Any] = read_json(folder, "encoder.json", {})
    for name, kind in KINDS.items():
        value = note.get(name)
        if value is not None and type(value) is not kind:
            said = f"{folder / 'encoder.json'}: {name} is {value!r}"
            raise InputError(f"{said}: expected {CALLED[kind]}, as `save` writes")
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
