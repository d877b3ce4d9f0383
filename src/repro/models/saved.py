"""Encoders of ours on disk: written whole, and read with what is noted of them.

They are the network in Hugging Face layout, or adapters beside a named one, and `encoder.json`,
which says what neither does: pooling, pooler, how many tokens are read, and how the states are.
Weights are safetensors. A folder without that note is a published encoder's.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file

from repro.manifests import move_folder, write_manifest
from repro.models.backbone import Backbone, load_backbone
from repro.models.lora import load_adapters, save_adapters
from repro.models.notes import saved_note
from repro.models.pooling import Dense, Head, Parts, Pooler, Unit, poolings_of
from repro.models.published import own_pooling, read_parts
from repro.models.sources import locate
from repro.models.whole import SAVED_KIND, WRITTEN, check_intact, read_weights, refuse_foreign
from repro.reading import is_out_of_memory
from repro.settings import LoraConfig
from repro.types import InputError
from repro.writing import partial_folder, writable_folder


def write_encoder(
    folder: Path,
    backbone: Backbone,
    pooling: str,
    pooler: Head | None,
    **more: Any,
) -> None:
    """Write everything that loading needs, with what `more` there is to note; of a backbone with
    adapters, only these and what they stand beside.

    It is written whole, then takes the place of what an earlier call wrote; other files stay as
    they are.

    Raises:
        InputError: before anything is replaced, for a folder with a file that would be read with
            the encoder, and was not saved with one or was edited.
    """
    folder = writable_folder(Path(folder))
    # Inside, since a folder may be a disk of its own
    with partial_folder(folder / "encoder") as written:
        _write_files(written, backbone, pooling, pooler, more)
        write_manifest(written, {"kind": SAVED_KIND})
        refuse_foreign(folder, written)
        move_folder(written, folder, WRITTEN)


def _write_files(
    folder: Path,
    backbone: Backbone,
    pooling: str,
    pooler: Head | None,
    more: dict[str, Any],
) -> None:
    """The network or its adapters, the pooler, and the note of both."""
    note: dict[str, Any] = {"pooling": pooling, "name": backbone.name, "pooler": None, **more}
    note |= {key: getattr(backbone, key) for key in ("max_length", "bidirectional", "final_norm")}
    if backbone.lora is None:
        backbone.save(folder)
    else:
        note["lora"] = asdict(backbone.lora)
        note["base"] = save_adapters(backbone, folder)
    if pooler is not None:
        weights = {name: value.cpu().contiguous() for name, value in pooler.state_dict().items()}
        save_file(weights, folder / "pooler.safetensors")
        note["parts" if isinstance(pooler, Parts) else "pooler"] = pooler.settings
    (folder / "encoder.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


def read_encoder(
    name_or_path: str,
    pooling: str | None,
    *,
    with_head: bool,
    device: str | None,
    **seen: Any,
) -> tuple[Backbone, str, Head | None]:
    """The network of a name or folder, its pooling, and what follows that, as a note of ours or
    published parts say.

    Where no pooling is recorded it is the last token of a causal decoder, the first of others. With
    another one than is recorded by a published encoder, the states alone are read: nothing after
    the pooling was made for them. What is `seen` (bidirectional, final_norm) is as recorded where
    it is None.
    """
    folder = locate(name_or_path)
    note = saved_note(folder)
    base = note.get("base")
    if base:
        check_intact(folder)  # Of a network it is done where that is loaded
    recorded: dict[str, Any] = {"bidirectional": False, "final_norm": "last", **note}
    seen = {name: recorded[name] if value is None else value for name, value in seen.items()}
    backbone = load_backbone(base["name"] if base else name_or_path, device=device, **seen)
    if (most := note.get("max_length")) is not None:
        backbone.max_length = min(backbone.max_length, most)
    if base:
        load_adapters(backbone, folder, _lora_of(folder, note["lora"]), base)
    own = note.get("pooling")
    head: Head | None = None
    if not note:
        try:
            own = own_pooling(folder)
        except InputError:  # A pooling that is not known here, and another is asked for
            if pooling is None:
                raise
    read_by = own if pooling is None else pooling
    if read_by is None:
        read_by = "last" if backbone.causal else "cls"
    width = len(poolings_of(read_by)) * backbone.hidden_dim
    if with_head and note:
        head = _saved_head(folder / "pooler.safetensors", width, note)
    elif with_head and pooling in (None, own):
        head = read_parts(folder, width)
    return backbone.eval(), read_by, head


def _lora_of(folder: Path, settings: dict[str, Any]) -> LoraConfig:
    """The settings of adapters, as an encoder's note has them."""
    try:
        return LoraConfig(**{**settings, "targets": tuple(settings["targets"])})
    except TypeError as error:
        raise InputError(
            f"{folder / 'encoder.json'}: lora is not as we write it ({error})"
        ) from error


def _saved_head(file: Path, hidden_dim: int, note: dict[str, Any]) -> Head | None:
    """The pooler, or the parts of a published encoder, that an encoder of ours was saved with."""
    try:
        if note.get("pooler"):
            head: Head = Pooler(hidden_dim, **note["pooler"])
        elif note.get("parts"):
            head = Parts(hidden_dim, [Dense(**part) if part else Unit() for part in note["parts"]])
        else:
            return None
        head.load_state_dict(read_weights(file))
    except (OSError, TypeError, SafetensorError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(
            f"{file} cannot be read ({error}): the encoder folder is damaged"
        ) from error
    return head
