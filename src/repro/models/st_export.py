"""An encoder as a folder that sentence-transformers loads: network, pooling, and what follows as dense layers.

The folder needs nothing of this package. A shallower encoder is written without its upper blocks; a linear reducer
becomes a dense layer whose bias carries the mean that PCA subtracts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from repro.models.encoder import SentenceEncoder
from repro.models.parts import Dense, Parts
from repro.models.pooler import Head, Pooler
from repro.store import disk_full_explained, write_manifest
from repro.types import InputError, check_dim

MODES = {"cls": "cls_token", "mean": "mean_tokens", "last": "lasttoken"}
"""our poolings to theirs"""
PACKAGE = "sentence_transformers.models"
"""module names that every version since 2.0 reads"""


@dataclass(frozen=True)
class Linear:
    """A dense layer: activation(x @ matrix + bias)."""

    matrix: NDArray[Any]
    """(inputs, outputs)"""
    bias: NDArray[Any]
    """(outputs,)"""
    activation: str = "Identity"


UNIT = None
"""in a chain: rows are divided by their length"""


def export_folder(
    encoder: SentenceEncoder,
    folder: Path,
    *,
    layer: int | None = None,
    dim: int | None = None,
    reducer: tuple[NDArray[Any], NDArray[Any]] | None = None,
    unit_rows: bool = False,
    normalize: bool = False,
) -> Path:
    """Write an encoder for `SentenceTransformer(folder)`.

    Args:
        encoder: what is written; with its pooler, unless `layer` is below the last. Cut to `layer` in passing.
        folder: a new or empty folder.
        layer: stop after this layer; the blocks above are not written.
        dim: keep the first so many numbers of what comes out last.
        reducer: matrix (inputs, outputs) and bias of a linear reducer, applied after the pooler.
        unit_rows: the reducer was fitted on rows of length 1, so that they are made such before it.
        normalize: end with rows of length 1.

    Raises:
        InputError: for a folder with something in it, sizes that do not fit, or what sentence-transformers cannot
            express: another pooling, bidirectional attention, adapters, layer 0.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} is there already: give a new folder, nothing is overwritten")
    backbone = encoder.backbone
    depth = backbone.layer_index(layer)
    _check_expressible(encoder, depth)
    pooler = encoder.pooler if depth == encoder.n_layers else None
    chain = [] if pooler is None else _chain(pooler)
    width = encoder.hidden_dim if pooler is None else pooler.dim
    if reducer is not None:
        if reducer[0].shape[0] != width:
            raise InputError(f"the reducer takes {reducer[0].shape[0]} numbers, the encoder gives {width}")
        chain += [*([UNIT] if unit_rows and chain[-1:] != [UNIT] else []), Linear(*reducer)]
        width = reducer[0].shape[1]
    if dim is not None and check_dim(dim, limit=width) < width:
        whole = (chain.pop() if chain and chain[-1] else UNIT) or Linear(np.eye(width), np.zeros(width))
        chain.append(Linear(whole.matrix[:, :dim], whole.bias[:dim], whole.activation))
    if normalize and chain[-1:] != [UNIT]:
        chain.append(UNIT)
    if depth < encoder.n_layers:
        backbone.keep(depth)
    with disk_full_explained(folder):
        backbone.save(folder)
        padding = backbone.tokenizer.id_to_token(backbone.pad_id)
        tokens = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": padding}
        _note(folder / "tokenizer_config.json", {**tokens, "model_max_length": backbone.max_length})
        _write_modules(folder, encoder, chain)
        write_manifest(folder, {"kind": "export"})
    return folder


def _check_expressible(encoder: SentenceEncoder, depth: int) -> None:
    backbone = encoder.backbone
    if encoder.pooling not in MODES:
        raise InputError(f"sentence-transformers has no {encoder.pooling} pooling: it has {', '.join(MODES)}")
    if depth < 1:
        raise InputError("layer 0 is the embedding output: a folder needs at least one block")
    if backbone.bidirectional:
        raise InputError("attention both ways is set by code that a folder does not bring along: export is refused")
    if backbone.lora is not None:
        raise InputError("the encoder holds adapters: merge them into the network first (merge_lora)")
    unlike = backbone.final_norm == "none" or (depth < encoder.n_layers and backbone.final_norm != "all")
    if backbone.has_final_norm and unlike:
        raise InputError(
            f"layer {depth} is read without the network's final norm (final_norm={backbone.final_norm}), which a "
            "written network applies: load the encoder with final_norm='all'"
        )


def _write_modules(folder: Path, encoder: SentenceEncoder, chain: Sequence[Linear | None]) -> None:
    parts: list[tuple[str, str]] = [("Transformer", ""), ("Pooling", "1_Pooling")]
    _note(folder / "sentence_bert_config.json", {"max_seq_length": encoder.backbone.max_length, "do_lower_case": False})
    modes = {f"pooling_mode_{name}": MODES[encoder.pooling] == name for name in MODES.values()}
    _note(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": encoder.hidden_dim, **modes})
    if encoder.prompt:
        prompts = {"prompts": {"default": encoder.prompt}, "default_prompt_name": "default"}
        _note(folder / "config_sentence_transformers.json", prompts)
    for linear in chain:
        kind = "Normalize" if linear is UNIT else "Dense"
        parts.append((kind, f"{len(parts)}_{kind}"))
        (folder / parts[-1][1]).mkdir()
        if linear is not UNIT:
            _dense(folder / parts[-1][1], linear)
    named = enumerate(parts)
    listed = [{"idx": i, "name": str(i), "path": path, "type": f"{PACKAGE}.{kind}"} for i, (kind, path) in named]
    _note(folder / "modules.json", listed)


def _chain(head: Head) -> list[Linear | None]:
    if isinstance(head, Pooler):
        return [_of_layer(head.linear, head.activation.capitalize()), *([UNIT] if head.normalize else [])]
    assert isinstance(head, Parts)
    return [
        _of_layer(part.linear, type(part.activation).__name__) if isinstance(part, Dense) else UNIT
        for part in head.parts
    ]


def _of_layer(layer: nn.Linear, activation: str) -> Linear:
    weight, bias = layer.weight.detach().cpu().numpy(), layer.bias
    shift = np.zeros(len(weight)) if bias is None else bias.detach().cpu().numpy()
    return Linear(weight.T, shift, activation)


def _dense(folder: Path, linear: Linear) -> None:
    inputs, outputs = linear.matrix.shape
    kind = f"torch.nn.modules.{'linear' if linear.activation == 'Identity' else 'activation'}.{linear.activation}"
    _note(
        folder / "config.json",
        {"in_features": int(inputs), "out_features": int(outputs), "bias": True, "activation_function": kind},
    )
    weights = {
        "linear.weight": torch.from_numpy(np.ascontiguousarray(linear.matrix.T, np.float32)),
        "linear.bias": torch.from_numpy(np.ascontiguousarray(linear.bias, np.float32)),
    }
    save_file(weights, folder / "model.safetensors")


def _note(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
