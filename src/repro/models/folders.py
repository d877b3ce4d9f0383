"""Encoders on disk: the network in Hugging Face layout, or adapters beside a named one, and a note of the rest.

The note, `encoder.json`, holds what neither says: pooling, pooler, how many tokens are read, and how the states are.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from repro.models.backbone import Backbone, load_backbone
from repro.models.intact import check_intact
from repro.models.lora import load_adapters, save_adapters
from repro.models.parts import Parts, own_pooling, read_parts
from repro.models.pooler import Head, Pooler
from repro.models.pretrained import locate
from repro.objectives import LoraConfig
from repro.store import write_manifest
from repro.types import InputError


def write_encoder(folder: Path, backbone: Backbone, pooling: str, pooler: Head | None) -> None:
    """Write everything that loading needs; of a backbone with adapters, only these and what they stand beside."""
    folder.mkdir(parents=True, exist_ok=True)
    note: dict[str, Any] = {"pooling": pooling, "name": backbone.name, "pooler": None}
    note["max_length"] = backbone.max_length
    note["bidirectional"] = backbone.bidirectional
    note["final_norm"] = backbone.final_norm
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
    write_manifest(folder, {"kind": "encoder"})


def read_note(folder: Path) -> dict[str, Any]:
    """The note of an encoder that we wrote; empty for a network of others.

    Raises:
        InputError: if it is damaged.
    """
    path = folder / "encoder.json"
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}): the encoder folder is damaged") from error


def read_backbone(
    name_or_path: str,
    folder: Path,
    note: dict[str, Any],
    *,
    device: torch.device | str | None,
    bidirectional: bool | None,
    final_norm: str | None,
) -> Backbone:
    """The network of a name or folder as its note describes it, with its adapters if it has any.

    Raises:
        InputError: for an unknown name, or adapters whose base is not the network they were trained beside.
    """
    base = note.get("base")
    if base:
        check_intact(folder)  # of a network it is done where that is loaded
    backbone = load_backbone(
        base["name"] if base else name_or_path,
        device=device,
        bidirectional=bool(note.get("bidirectional")) if bidirectional is None else bidirectional,
        final_norm=final_norm or note.get("final_norm") or "last",
    )
    backbone.max_length = min(backbone.max_length, note.get("max_length") or backbone.max_length)
    if base:
        settings = note["lora"]
        load_adapters(backbone, folder, LoraConfig(**{**settings, "targets": tuple(settings["targets"])}), base)
    return backbone.eval()


def read_pooling(name_or_path: str, note: dict[str, Any], backbone: Backbone) -> str:
    """The pooling that a folder records; without one, the last token of a causal decoder, the first of others.

    Raises:
        InputError: for a pooling that is not known here.
    """
    recorded = note.get("pooling") or own_pooling(name_or_path)
    return recorded or ("last" if backbone.causal else "cls")


def read_head(name_or_path: str, note: dict[str, Any], backbone: Backbone, pooling: str | None) -> Head | None:
    """What follows the pooling: the pooler that an encoder was saved with, or the parts a published one names.

    With another `pooling` than it was published with, the states alone are read: nothing after it was made for them.

    Raises:
        InputError: for damaged weights, or a part that is not known here.
    """
    if not note:
        try:
            own = pooling is None or pooling == own_pooling(name_or_path)
        except InputError:  # a pooling that is not known here, and another is asked for
            own = False
        return read_parts(name_or_path, backbone.hidden_dim) if own else None
    if not note.get("pooler") and not note.get("parts"):
        return None
    file = Path(locate(name_or_path)) / "pooler.safetensors"
    try:
        head: Head = (
            Pooler(backbone.hidden_dim, **note["pooler"])
            if note.get("pooler")
            else Parts(backbone.hidden_dim, note["parts"])
        )
        head.load_state_dict(load_file(file))
    except (OSError, TypeError, SafetensorError, RuntimeError) as error:
        raise InputError(f"{file} cannot be read ({error}): the encoder folder is damaged") from error
    return head
