"""Encoders exported as folders that sentence-transformers loads.

What is exported needs nothing of this package: a shallower encoder lacks its upper blocks, and a
linear reducer is a dense layer whose bias carries the mean that PCA subtracts.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from repro.manifests import write_manifest
from repro.models.pooling import Dense, Head, Parts, Pooler, Unit, poolings_of
from repro.models.published import MODES, cut_to, dense_with
from repro.types import InputError, check_dim
from repro.writing import refuse_other_encoding, replacing_folder

if TYPE_CHECKING:
    from repro.models.encoder import SentenceEncoder


def refuse_full(folder: Path) -> None:
    """Check that a folder is new or empty, before anything is loaded or written for it."""
    refuse_other_encoding(folder)
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
        chain += [Unit()] * unit_rows + [
            dense_with({"linear.weight": matrix.T, "linear.bias": bias})
        ]
        width = matrix.shape[1]
    cut_to(chain, width, None if dim is None else check_dim(dim, limit=width))
    chain += [Unit()] * normalize
    pairs = pairwise([None, *chain])  # Rows of length 1 stay as they are
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
            not set(poolings_of(encoder.pooling)) <= set(MODES),
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
            dense_with(head.state_dict(), head.activation.capitalize()),
            *([Unit()] if head.normalize else []),
        ]
    return list(head.parts) if isinstance(head, Parts) else []


def _pooling_modes(poolings: Sequence[str]) -> dict[str, Any]:
    """Poolings as a published encoder notes them: by switches, which every release reads, where
    they stand side by side in the order of these.
    """
    if list(poolings) == [name for name in MODES if name in poolings]:
        return {f"pooling_mode_{theirs}": name in poolings for name, theirs in MODES.items()}
    return {"pooling_mode": [MODES["last"] if name == "last" else name for name in poolings]}


def _write_parts(folder: Path, encoder: "SentenceEncoder", chain: Sequence[nn.Module]) -> None:
    """All but the network: settings of tokenizer, pooling and prompt, and a folder for each part
    that follows.
    """
    backbone = encoder.backbone
    padding = backbone.tokenizer.id_to_token(backbone.pad_id)
    tokens: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": padding}
    modes = _pooling_modes(poolings_of(encoder.pooling))
    if encoder.leaves_prompt_out:
        modes["include_prompt"] = False
        # By these it is told what of a prompt is the text's
        read = backbone.tokenizer.encode("a")
        special = zip(read.tokens, read.special_tokens_mask, strict=True)
        tokens["additional_special_tokens"] = [token for token, marks in special if marks]
    notes: dict[str, Any] = {
        "tokenizer_config.json": {**tokens, "model_max_length": backbone.max_length},
        "sentence_bert_config.json": {
            "max_seq_length": backbone.max_length,
            "do_lower_case": False,
        },
        "1_Pooling/config.json": {"word_embedding_dimension": backbone.hidden_dim, **modes},
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
    package = "sentence_transformers.models"  # Module names that every version since 2.0 reads
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
