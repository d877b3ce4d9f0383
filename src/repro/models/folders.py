"""Encoders on disk, ours and published ones.

Ours: the network in Hugging Face layout, or adapters beside a named one, and in `encoder.json` what neither says:
pooling, pooler, how many tokens are read, and how the states are. Published ones: sentence-transformers' form, where
`modules.json` lists the parts. Transformer, Pooling (mean, first or last token), Dense and Normalize are read; any
other is refused rather than left out. Weights are safetensors.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from repro.models.backbone import Backbone, load_backbone
from repro.models.lora import load_adapters, save_adapters
from repro.models.pooling import ACTIVATIONS, Head, Parts, Pooler
from repro.models.pretrained import WEIGHTS_MISSING, check_intact, file_of, locate, read_json
from repro.objectives import LoraConfig
from repro.store import write_manifest
from repro.types import InputError

MODES = {"cls": "cls_token", "mean": "mean_tokens", "last": "lasttoken"}
"""our poolings to theirs: a switch for each in older releases, in newer ones one name, which may be ours"""
OURS = {"cls": "cls", "mean": "mean", **{theirs: pooling for pooling, theirs in MODES.items()}}


def write_encoder(folder: Path, backbone: Backbone, pooling: str, pooler: Head | None) -> None:
    """Write everything that loading needs; of a backbone with adapters, only these and what they stand beside."""
    folder.mkdir(parents=True, exist_ok=True)
    note: dict[str, Any] = {"pooling": pooling, "name": backbone.name, "pooler": None}
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
    write_manifest(folder, {"kind": "encoder"})


def read_encoder(
    name_or_path: str,
    pooling: str | None,
    *,
    with_head: bool,
    device: torch.device | str | None,
    bidirectional: bool | None,
    final_norm: str | None,
) -> tuple[Backbone, str, Head | None]:
    """The network of a name or folder, its pooling, and what follows that, as a note of ours or published parts say.

    Where no pooling is recorded it is the last token of a causal decoder, the first of others. With another one than
    is recorded by a published encoder, the states alone are read: nothing after the pooling was made for them.
    """
    place = locate(name_or_path)
    folder = Path(place)
    note: dict[str, Any] = read_json(place, "encoder.json", {}) if folder.is_dir() else {}
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
        lora = LoraConfig(**{**note["lora"], "targets": tuple(note["lora"]["targets"])})
        load_adapters(backbone, folder, lora, base)
    own = note.get("pooling")
    head: Head | None = None
    if not note:
        try:
            own = own_pooling(name_or_path)
        except InputError:  # a pooling that is not known here, and another is asked for
            if pooling is None:
                raise
    if with_head and note:
        head = _saved_head(folder / "pooler.safetensors", backbone.hidden_dim, note)
    elif with_head and pooling in (None, own):
        head = read_parts(place, backbone.hidden_dim)
    return backbone.eval(), pooling or own or ("last" if backbone.causal else "cls"), head


def _saved_head(file: Path, hidden_dim: int, note: dict[str, Any]) -> Head | None:
    """The pooler, or the parts of a published encoder, that an encoder of ours was saved with."""
    if not note.get("pooler") and not note.get("parts"):
        return None
    try:
        head: Head = Pooler(hidden_dim, **note["pooler"]) if note.get("pooler") else Parts(hidden_dim, note["parts"])
        head.load_state_dict(load_file(file))
    except (OSError, TypeError, SafetensorError, RuntimeError) as error:
        raise InputError(f"{file} cannot be read ({error}): the encoder folder is damaged") from error
    return head


def own_pooling(name_or_path: str) -> str | None:
    """The pooling a published encoder was trained with; None where it has no note of it."""
    place = locate(name_or_path)
    kinds = _kinds(place)
    path = next((path for kind, path in kinds if kind == "Pooling"), "1_Pooling") + "/config.json"
    note = read_json(place, path, {})
    if not note:
        return "mean" if kinds else None
    switches = sorted(name for name, value in note.items() if name.startswith("pooling_mode_") and value is True)
    mode = note.get("pooling_mode")
    modes = [name.removeprefix("pooling_mode_") for name in switches] or (mode if isinstance(mode, list) else [mode])
    own = OURS.get(str(modes[0])) if len(modes) == 1 else None
    if own is None:
        asked = f"{path} of {name_or_path} asks for pooling {switches or mode}"
        raise InputError(f"{asked}: only mean, cls or the last token alone is read")
    return own


def read_parts(place: str, hidden_dim: int) -> Parts | None:
    """What follows the pooling by `modules.json`; None if nothing does, or there is no such file."""
    settings: list[dict[str, Any]] = []
    dense: dict[int, str] = {}
    for kind, path in _kinds(place):
        match kind:
            case "Transformer" if not path:
                pass
            case "Pooling" if not settings:
                pass
            case "Dense":
                dense[len(settings)] = path
                settings.append(_dense_settings(place, path))
            case "Normalize":
                settings.append({})
            case _:
                raise InputError(
                    f"{place}/modules.json has the part {kind} in {path!r}: only a Transformer at the top of the "
                    "folder, Pooling, Dense and Normalize are read, in this order"
                )
    if not settings:
        return None
    found = Parts(hidden_dim, settings)
    for number, path in dense.items():
        weights = file_of(place, f"{path}/model.safetensors")
        if weights is None:
            raise InputError(f"{place}/{path} has no {WEIGHTS_MISSING}")
        try:
            found.parts[number].load_state_dict(load_file(weights))
        except (SafetensorError, RuntimeError) as error:
            raise InputError(f"{weights} does not fit its config.json: {error}") from error
    return found


def prompt_of(name_or_path: str, asked: str | None) -> str:
    """The text that stands before every text.

    Args:
        name_or_path: of the encoder.
        asked: a name among the prompts of its `config_sentence_transformers.json`, or the text itself; None is its
            default prompt, if it has one.
    """
    place = locate(name_or_path)
    note = read_json(place, "config_sentence_transformers.json", {})
    prompts: Mapping[str, Any] = note.get("prompts") or {}
    if asked is None:
        text = str(prompts.get(note.get("default_prompt_name"), ""))
    elif asked not in prompts and re.fullmatch(r"[\w-]+", asked):
        raise InputError(
            f"prompt {asked!r}: {name_or_path} names {', '.join(prompts) or 'no prompts'}; a text of your own ends in "
            f"a space or a sign, such as {asked + ': '!r}"
        )
    else:
        text = str(prompts.get(asked, asked))
    if text and read_json(place, "1_Pooling/config.json", {}).get("include_prompt") is False:
        raise InputError(f"the pooling of {name_or_path} leaves a prompt's tokens out, which is not read here")
    return text


def _kinds(place: str) -> list[tuple[str, str]]:
    modules = read_json(place, "modules.json", [])
    try:
        return [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in modules]
    except (TypeError, KeyError) as error:
        raise InputError(f"{place}/modules.json: expected a list of parts with type and path") from error


def _dense_settings(place: str, path: str) -> dict[str, Any]:
    note = read_json(place, f"{path}/config.json", {})
    activation = str(note.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS or not {"in_features", "out_features"} <= set(note):
        raise InputError(
            f"{place}/{path}/config.json: expected in_features, out_features and an activation among "
            f"{', '.join(ACTIVATIONS)}, found {activation!r} and {', '.join(note) or 'nothing'}"
        )
    sizes = {"inputs": int(note["in_features"]), "outputs": int(note["out_features"])}
    return {**sizes, "bias": bool(note.get("bias", True)), "activation": activation}
