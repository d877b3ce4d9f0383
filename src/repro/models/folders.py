"""Encoders on disk: the network in Hugging Face layout, or adapters beside a named one, and a note of the rest.

The note, `encoder.json`, holds what neither says: pooling, pooler, how many tokens are read, and how the states are.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file

from repro.models.backbone import Backbone, load_backbone
from repro.models.lora import load_adapters, save_adapters
from repro.models.pooler import Pooler
from repro.objectives import LoraConfig
from repro.types import InputError

if TYPE_CHECKING:
    from repro.models.encoder import SentenceEncoder


def write_encoder(encoder: "SentenceEncoder", folder: Path) -> None:
    """Write everything that loading needs; of a backbone with adapters, only these and what they stand beside."""
    folder.mkdir(parents=True, exist_ok=True)
    backbone = encoder.backbone
    note: dict[str, Any] = {"pooling": encoder.pooling, "name": backbone.name, "pooler": None}
    note["max_length"] = backbone.max_length
    note["bidirectional"] = backbone.bidirectional
    note["final_norm"] = backbone.final_norm
    if backbone.lora is None:
        backbone.save(folder)
    else:
        note["lora"] = asdict(backbone.lora)
        note["base"] = save_adapters(backbone, folder)
    if encoder.pooler is not None:
        weights = {name: value.cpu().contiguous() for name, value in encoder.pooler.state_dict().items()}
        save_file(weights, folder / "pooler.safetensors")
        note["pooler"] = {
            "dim": encoder.pooler.dim,
            "activation": encoder.pooler.activation,
            "bias": encoder.pooler.linear.bias is not None,
            "normalize": encoder.pooler.normalize,
        }
    (folder / "encoder.json").write_text(json.dumps(note, indent=1), encoding="utf-8")


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


def read_pooler(folder: Path, note: dict[str, Any], hidden_dim: int) -> Pooler | None:
    """The pooler that an encoder was saved with, if it had one."""
    if not note.get("pooler"):
        return None
    pooler = Pooler(hidden_dim, **note["pooler"])
    pooler.load_state_dict(load_file(folder / "pooler.safetensors"))
    return pooler
