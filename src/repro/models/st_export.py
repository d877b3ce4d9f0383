"""An encoder as a folder that sentence-transformers loads: network, pooling, and what follows as dense layers.

The folder needs nothing of this package. A shallower encoder is written without its upper blocks; a linear reducer
becomes a dense layer whose bias carries the mean that PCA subtracts.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn

from repro.models.encoder import SentenceEncoder
from repro.models.folders import MODES
from repro.models.pooling import Dense, Head, Parts, Pooler, Unit
from repro.store import disk_full_explained, write_manifest
from repro.types import InputError, check_dim


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
        matrix, bias = map(torch.as_tensor, reducer)
        if len(matrix) != width:
            raise InputError(f"the reducer takes {len(matrix)} numbers, the encoder gives {width}")
        if unit_rows and not _ends_in(chain, Unit):
            chain.append(Unit())
        chain.append(_dense({"linear.weight": matrix.T, "linear.bias": bias}))
        width = matrix.shape[1]
    if dim is not None and check_dim(dim, limit=width) < width:
        whole = chain.pop() if _ends_in(chain, Dense) else _dense({"linear.weight": torch.eye(width)})
        chain.append(_dense(whole.state_dict(), _activation(whole), dim))
    if normalize and not _ends_in(chain, Unit):
        chain.append(Unit())
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
        raise InputError("the encoder holds adapters, for which such a folder has no place: export is refused")
    unlike = backbone.final_norm == "none" or (depth < encoder.n_layers and backbone.final_norm != "all")
    if backbone.norm_name is not None and unlike:
        raise InputError(
            f"layer {depth} is read without the network's final norm (final_norm={backbone.final_norm}), which a "
            "written network applies: load the encoder with final_norm='all'"
        )


def _chain(head: Head) -> list[nn.Module]:
    """A pooler or the parts of a published encoder, as what is written."""
    if isinstance(head, Pooler):
        return [_dense(head.state_dict(), head.activation.capitalize()), *([Unit()] if head.normalize else [])]
    assert isinstance(head, Parts)
    return [_dense(part.state_dict(), _activation(part)) if isinstance(part, Dense) else Unit() for part in head.parts]


def _dense(weights: Mapping[str, Tensor], activation: str = "Identity", dim: int | None = None) -> Dense:
    """A layer of its own with the weights of a pooler or dense layer, cut to the first `dim` outputs."""
    weight = weights["linear.weight"][:dim]
    layer = Dense(weight.shape[1], len(weight), True, activation)
    bias = weights["linear.bias"][:dim] if "linear.bias" in weights else torch.zeros(len(weight))
    layer.load_state_dict({"linear.weight": weight, "linear.bias": bias})
    return layer


def _activation(layer: nn.Module) -> str:
    return type(layer.get_submodule("activation")).__name__


def _ends_in(chain: Sequence[nn.Module], kind: type[nn.Module]) -> bool:
    return bool(chain) and isinstance(chain[-1], kind)


def _write_modules(folder: Path, encoder: SentenceEncoder, chain: Sequence[nn.Module]) -> None:
    _note(folder / "sentence_bert_config.json", {"max_seq_length": encoder.backbone.max_length, "do_lower_case": False})
    modes = {f"pooling_mode_{name}": MODES[encoder.pooling] == name for name in MODES.values()}
    _note(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": encoder.hidden_dim, **modes})
    if encoder.prompt:
        prompts = {"prompts": {"default": encoder.prompt}, "default_prompt_name": "default"}
        _note(folder / "config_sentence_transformers.json", prompts)
    kinds = ["Transformer", "Pooling", *("Dense" if isinstance(part, Dense) else "Normalize" for part in chain)]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], 1))]
    for path, part in zip(paths[2:], chain, strict=True):
        (folder / path).mkdir()
        if isinstance(part, Dense):
            weights, activation = part.state_dict(), _activation(part)
            outputs, inputs = weights["linear.weight"].shape
            kind = f"torch.nn.modules.{'linear' if activation == 'Identity' else 'activation'}.{activation}"
            note = {"in_features": inputs, "out_features": outputs, "bias": True, "activation_function": kind}
            _note(folder / path / "config.json", note)
            save_file(weights, folder / path / "model.safetensors")
    package = "sentence_transformers.models"  # module names that every version since 2.0 reads
    named = enumerate(zip(paths, kinds, strict=True))
    listed = [{"idx": i, "name": str(i), "path": path, "type": f"{package}.{kind}"} for i, (path, kind) in named]
    _note(folder / "modules.json", listed)


def _note(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2), encoding="utf-8")
