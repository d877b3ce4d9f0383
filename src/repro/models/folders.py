"""Encoders on disk: ours, and those in the form of sentence-transformers, which is read and
written.

Ours are the network in Hugging Face layout, or adapters beside a named one, and `encoder.json`,
which says what neither does: pooling, pooler, how many tokens are read, and how the states are.
Weights are safetensors.

A folder without it is a published encoder's: its `modules.json` lists the parts. Transformer,
Pooling (mean, first or last token), Dense and Normalize are read; any other is refused rather than
left out. Of a folder with a `truncate_dim` only so many numbers of what comes out last are read, as
by a dense layer.

What is exported needs nothing of this package: a shallower encoder lacks its upper blocks, and a
linear reducer is a dense layer whose bias carries the mean that PCA subtracts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from repro.models.backbone import Backbone, causal_parts, load_backbone
from repro.models.lora import load_adapters, save_adapters
from repro.models.pooling import ACTIVATIONS, Dense, Head, Parts, Pooler, Unit
from repro.models.pretrained import (
    MINILM,
    SHIPPED,
    WEIGHTS_MISSING,
    blueprint,
    check_intact,
    file_of,
    locate,
    notes_of,
    parts_of,
    read_json,
)
from repro.paths import is_out_of_memory, replacing_folder
from repro.settings import LoraConfig
from repro.store import write_manifest
from repro.types import InputError, check_dim

if TYPE_CHECKING:
    from repro.models.encoder import SentenceEncoder

MODES = {"cls": "cls_token", "mean": "mean_tokens", "last": "lasttoken"}
"""Our poolings to theirs: a switch for each in older releases, in newer ones one name, which may be
ours.
"""
OURS = {"cls": "cls", "mean": "mean", **{theirs: pooling for pooling, theirs in MODES.items()}}


# ours


def write_encoder(folder: Path, backbone: Backbone, pooling: str, pooler: Head | None) -> None:
    """Write everything that loading needs; of a backbone with adapters, only these and what they
    stand beside.
    """
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
    note: dict[str, Any] = read_json(folder, "encoder.json", {})
    base = note.get("base")
    if base:
        check_intact(folder)  # of a network it is done where that is loaded
    recorded: dict[str, Any] = {"bidirectional": False, "final_norm": "last", **note}
    seen = {name: recorded[name] if value is None else value for name, value in seen.items()}
    backbone = load_backbone(base["name"] if base else name_or_path, device=device, **seen)
    backbone.max_length = min(backbone.max_length, note.get("max_length") or backbone.max_length)
    if base:
        lora = LoraConfig(**{**note["lora"], "targets": tuple(note["lora"]["targets"])})
        load_adapters(backbone, folder, lora, base)
    own = note.get("pooling")
    head: Head | None = None
    if not note:
        try:
            own = own_pooling(folder)
        except InputError:  # a pooling that is not known here, and another is asked for
            if pooling is None:
                raise
    if with_head and note:
        head = _saved_head(folder / "pooler.safetensors", backbone.hidden_dim, note)
    elif with_head and pooling in (None, own):
        head = read_parts(folder, backbone.hidden_dim)
    return backbone.eval(), pooling or own or ("last" if backbone.causal else "cls"), head


def _saved_head(file: Path, hidden_dim: int, note: dict[str, Any]) -> Head | None:
    """The pooler, or the parts of a published encoder, that an encoder of ours was saved with."""
    try:
        if note.get("pooler"):
            head: Head = Pooler(hidden_dim, **note["pooler"])
        elif note.get("parts"):
            head = Parts(hidden_dim, [Dense(**part) if part else Unit() for part in note["parts"]])
        else:
            return None
        head.load_state_dict(load_file(file))
    except (OSError, TypeError, SafetensorError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(
            f"{file} cannot be read ({error}): the encoder folder is damaged"
        ) from error
    return head


# published ones, read


def own_pooling(folder: Path) -> str | None:
    """The pooling a published encoder was trained with; None where it has no note of it."""
    kinds = parts_of(folder)
    path = next((path for kind, path in kinds if kind == "Pooling"), "1_Pooling") + "/config.json"
    note = read_json(folder, path, {})
    if not note:
        return "mean" if kinds else None
    mode = note.get("pooling_mode")
    switches = [
        name for name, value in note.items() if name.startswith("pooling_mode_") and value is True
    ]
    modes = [name.removeprefix("pooling_mode_") for name in switches] or (
        mode if isinstance(mode, list) else [mode]
    )
    own = OURS.get(str(modes[0])) if len(modes) == 1 else None
    if own is None:
        asked = f"{path} of {folder} asks for pooling {switches or mode}"
        raise InputError(f"{asked}: only mean, cls or the last token alone is read")
    return own


def decoder_pooling(name_or_path: str) -> str | None:
    """What a causal decoder is read by: the pooling that its folder records, else its last token.

    None of any other network, and of one that is not here. Its weights are not loaded: that later
    tokens are hidden is seen from how it is built, which a few (Bloom, Mamba) do not show.
    """
    if name_or_path in (*SHIPPED, MINILM):
        return None
    try:
        folder = notes_of(name_or_path)
        note: dict[str, Any] = read_json(folder, "encoder.json", {})
        if note.get("bidirectional"):
            return None
        base = note.get("base")
        if not causal_parts(blueprint(base["name"] if base else name_or_path)):
            return None
    except InputError:  # whatever loads the network says what is wrong
        return None
    own = note.get("pooling") if note else own_pooling(folder)
    return own or "last"


def read_parts(folder: Path, hidden_dim: int) -> Parts | None:
    """What follows the pooling by `modules.json`, cut to `truncate_dim`; None if nothing does."""
    parts: list[nn.Module] = []
    for kind, path in parts_of(folder):
        if kind == "Dense":
            parts.append(_read_dense(folder, path))
        elif kind == "Normalize":
            parts.append(Unit())
        elif (kind, path) != ("Transformer", "") and (kind != "Pooling" or parts):
            raise InputError(
                f"{folder}/modules.json has the part {kind} in {path!r}: only a "
                "Transformer at the top of the folder, "
                "Pooling, Dense and Normalize are read, in this order"
            )
    width = Parts(hidden_dim, parts).dim
    cut_to(parts, width, truncate_dim(folder))
    return Parts(hidden_dim, parts) if parts else None


def truncate_dim(folder: Path) -> int | None:
    """How many numbers of its embeddings a published encoder keeps; None where it keeps all."""
    name = "config_sentence_transformers.json"
    dim = read_json(folder, name, {}).get("truncate_dim")
    return None if dim is None else check_dim(dim, what=f"truncate_dim of {folder}/{name}")


def cut_to(chain: list[Any], width: int, dim: int | None) -> None:
    """Keep the first `dim` of the `width` numbers that the parts give, by a last dense layer."""
    if dim is None or dim >= width:
        return
    if not chain or isinstance(chain[-1], Unit):
        chain.append(_dense({"linear.weight": torch.eye(width)}))
    chain[-1] = _dense(chain[-1].state_dict(), chain[-1].settings["activation"], dim)


def prompt_of(name_or_path: str, asked: str | None) -> str:
    """The text before every text: `asked` itself, or the prompt of that name; None is the default
    prompt, if any.
    """
    folder = locate(name_or_path)
    note = read_json(folder, "config_sentence_transformers.json", {})
    prompts: Mapping[str, Any] = note.get("prompts") or {}
    if asked is not None and asked not in prompts and re.fullmatch(r"[\w-]+", asked):
        raise InputError(
            f"prompt {asked!r}: {name_or_path} names "
            f"{', '.join(prompts) or 'no prompts'}; a text of your own ends in "
            f"a space or a sign, such as {asked + ': '!r}"
        )
    text = str(
        prompts.get(note.get("default_prompt_name"), "")
        if asked is None
        else prompts.get(asked, asked)
    )
    if text and read_json(folder, "1_Pooling/config.json", {}).get("include_prompt") is False:
        raise InputError(
            f"the pooling of {name_or_path} leaves a prompt's tokens out, which is not read here"
        )
    return text


def _read_dense(folder: Path, path: str) -> Dense:
    note = read_json(folder, f"{path}/config.json", {})
    activation = str(note.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS or not {"in_features", "out_features"} <= set(note):
        raise InputError(
            f"{folder}/{path}/config.json: expected in_features, out_features and an "
            "activation among "
            f"{', '.join(ACTIVATIONS)}, found {activation!r} and {', '.join(note) or 'nothing'}"
        )
    layer = Dense(
        int(note["in_features"]),
        int(note["out_features"]),
        bool(note.get("bias", True)),
        activation,
    )
    weights = file_of(folder, f"{path}/model.safetensors")
    if weights is None:
        raise InputError(f"{folder}/{path} has no {WEIGHTS_MISSING}")
    try:
        layer.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{weights} does not fit its config.json: {error}") from error
    return layer


# exported


def refuse_full(folder: Path) -> None:
    """Check that a folder is new or empty, before anything is loaded or written for it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: give a new folder, nothing is overwritten")


def export_folder(
    encoder: "SentenceEncoder",
    folder: Path,
    *,
    layer: int | None = None,
    dim: int | None = None,
    reducer: tuple[NDArray[Any], NDArray[Any]] | None = None,
    unit_rows: bool = False,
    normalize: bool = False,
) -> Path:
    """Write an encoder for `SentenceTransformer(folder)`, whole or not at all.

    Args:
        encoder: what is written; with its pooler, unless `layer` is below the last. Cut to `layer`
            in passing.
        folder: a new or empty folder.
        layer: stop after this layer; the blocks above are not written.
        dim: keep the first so many numbers of what comes out last.
        reducer: matrix (inputs, outputs) and bias of a linear reducer, applied after the pooler.
        unit_rows: the reducer was fitted on rows of length 1, so that they are made such before it.
        normalize: end with rows of length 1.

    Raises:
        InputError: for a folder with something in it, sizes that do not fit, or what
            sentence-transformers cannot express: another pooling, bidirectional attention,
            adapters, layer 0.
    """
    refuse_full(folder)
    backbone = encoder.backbone
    depth = backbone.layer_index(layer)
    _check_expressible(encoder, depth, fitted=reducer is not None)
    pooler = encoder.pooler if depth == encoder.n_layers else None
    chain = _chain(pooler)
    width = encoder.hidden_dim if pooler is None else pooler.dim
    if reducer is not None:
        matrix, bias = map(torch.as_tensor, reducer)
        if len(matrix) != width:
            raise InputError(f"the reducer takes {len(matrix)} numbers, the encoder gives {width}")
        chain += [Unit()] * unit_rows + [_dense({"linear.weight": matrix.T, "linear.bias": bias})]
        width = matrix.shape[1]
    cut_to(chain, width, None if dim is None else check_dim(dim, limit=width))
    chain += [Unit()] * normalize
    pairs = pairwise([None, *chain])  # rows of length 1 stay as they are
    chain = [
        part for before, part in pairs if not (isinstance(before, Unit) and isinstance(part, Unit))
    ]
    if depth < encoder.n_layers:
        backbone.keep(depth)
    with replacing_folder(folder) as partial:
        backbone.save(partial)
        _write_parts(partial, encoder, chain)
        write_manifest(partial, {"kind": "export"})
    return folder


def _check_expressible(encoder: "SentenceEncoder", depth: int, *, fitted: bool) -> None:
    backbone = encoder.backbone
    unlike = backbone.final_norm == "none" or (
        depth < encoder.n_layers and backbone.final_norm != "all"
    )
    norm = f"layer {depth} is read without the network's final norm "
    norm += f"(final_norm={backbone.final_norm}), which a written network applies: "
    if fitted:
        norm += "save the encoder with final_norm='all', and fit the reducer on that folder"
    else:
        norm += "give --final-norm all, or load the encoder with final_norm='all'"
    for wrong, why in (
        (
            encoder.pooling not in MODES,
            f"sentence-transformers has no {encoder.pooling} pooling, only {tuple(MODES)}",
        ),
        (depth < 1, "layer 0 is the embedding output: a folder needs at least one block"),
        (
            backbone.bidirectional,
            "attention both ways is set by code that a folder does not bring along",
        ),
        (
            backbone.lora is not None,
            "the encoder holds adapters, for which such a folder has no place",
        ),
        (backbone.norm_name is not None and unlike, norm),
    ):
        if wrong:
            raise InputError(why)


def _chain(head: Head | None) -> list[Any]:
    """A pooler or the parts of a published encoder, as what is written."""
    if isinstance(head, Pooler):
        return [
            _dense(head.state_dict(), head.activation.capitalize()),
            *([Unit()] if head.normalize else []),
        ]
    return list(head.parts) if isinstance(head, Parts) else []


def _dense(
    weights: Mapping[str, Tensor],
    activation: str = "Identity",
    dim: int | None = None,
) -> Dense:
    """A layer with the weights of a pooler or dense layer, cut to the first `dim` outputs."""
    outputs, inputs = weights["linear.weight"][:dim].shape
    layer = Dense(inputs, outputs, "linear.bias" in weights, activation)
    layer.load_state_dict({name: value[:dim] for name, value in weights.items()})
    return layer


def _write_parts(folder: Path, encoder: "SentenceEncoder", chain: Sequence[nn.Module]) -> None:
    """All but the network: settings of tokenizer, pooling and prompt, and a folder for each part
    that follows.
    """
    backbone = encoder.backbone
    modes = {f"pooling_mode_{name}": MODES[encoder.pooling] == name for name in MODES.values()}
    padding = backbone.tokenizer.id_to_token(backbone.pad_id)
    tokens = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": padding}
    notes: dict[str, Any] = {
        "tokenizer_config.json": {**tokens, "model_max_length": backbone.max_length},
        "sentence_bert_config.json": {
            "max_seq_length": backbone.max_length,
            "do_lower_case": False,
        },
        "1_Pooling/config.json": {"word_embedding_dimension": encoder.hidden_dim, **modes},
    }
    if encoder.prompt:
        prompts = {"prompts": {"default": encoder.prompt}, "default_prompt_name": "default"}
        notes["config_sentence_transformers.json"] = prompts
    paths = ["", "1_Pooling"]
    for number, part in enumerate(chain, 2):
        paths.append(f"{number}_{'Dense' if isinstance(part, Dense) else 'Normalize'}")
        (folder / paths[-1]).mkdir()
        if isinstance(part, Dense):
            inputs, outputs, bias, activation = part.settings.values()
            module = "linear" if activation == "Identity" else "activation"
            kind = f"torch.nn.modules.{module}.{activation}"
            note = {
                "in_features": inputs,
                "out_features": outputs,
                "bias": bias,
                "activation_function": kind,
            }
            notes[f"{paths[-1]}/config.json"] = note
            save_file(part.state_dict(), folder / paths[-1] / "model.safetensors")
    package = "sentence_transformers.models"  # module names that every version since 2.0 reads
    notes["modules.json"] = [
        {
            "idx": i,
            "name": str(i),
            "path": path,
            "type": f"{package}.{path.partition('_')[2] or 'Transformer'}",
        }
        for i, path in enumerate(paths)
    ]
    for name, values in notes.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(values, indent=2), encoding="utf-8")
