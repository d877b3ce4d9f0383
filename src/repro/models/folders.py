"""Encoders on disk: ours, and those in the form of sentence-transformers, which is read and
written.

Ours are the network in Hugging Face layout, or adapters beside a named one, and `encoder.json`,
which says what neither does: pooling, pooler, how many tokens are read, and how the states are.
Weights are safetensors.

A folder without it is a published encoder's: its `modules.json` lists the parts. Transformer,
Pooling, Dense, Dropout, which does nothing outside a training, and Normalize are read; any other is
refused rather than left out. Of a folder with a `truncate_dim` only so many numbers of what comes
out last are read, as by a dense layer.

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

from repro.manifests import write_manifest
from repro.models.backbone import Backbone, load_backbone
from repro.models.lora import load_adapters, save_adapters
from repro.models.pooling import (
    ACTIVATIONS,
    JOIN,
    Dense,
    Head,
    Parts,
    Pooler,
    Unit,
    poolings_of,
)
from repro.models.pretrained import (
    MINILM,
    SHIPPED,
    WEIGHTS_MISSING,
    blueprint,
    causal_parts,
    check_intact,
    file_of,
    locate,
    notes_of,
    parts_of,
    read_json,
)
from repro.reading import is_out_of_memory
from repro.settings import LoraConfig
from repro.types import InputError, check_dim
from repro.writing import refuse_other_encoding, replacing_folder

if TYPE_CHECKING:
    from repro.models.encoder import SentenceEncoder

MODES = {
    "cls": "cls_token",
    "max": "max_tokens",
    "mean": "mean_tokens",
    "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "last": "lasttoken",
}
"""Our poolings to theirs, in the order in which several are read side by side: a switch for each in
older releases, in newer ones a list of names, which may be ours.
"""
OURS = {**{name: name for name in MODES}, **{theirs: name for name, theirs in MODES.items()}}


# ours


def write_encoder(
    folder: Path,
    backbone: Backbone,
    pooling: str,
    pooler: Head | None,
    **more: Any,
) -> None:
    """Write everything that loading needs, with what `more` there is to note; of a backbone with
    adapters, only these and what they stand beside.
    """
    folder.mkdir(parents=True, exist_ok=True)
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
    read_by = pooling or own or ("last" if backbone.causal else "cls")
    width = len(poolings_of(read_by)) * backbone.hidden_dim
    if with_head and note:
        head = _saved_head(folder / "pooler.safetensors", width, note)
    elif with_head and pooling in (None, own):
        head = read_parts(folder, width)
    return backbone.eval(), read_by, head


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


def _pooling_note(folder: Path) -> tuple[str, dict[str, Any]]:
    """Where the pooling of a published encoder is noted, and the note, empty if there is none."""
    kinds = parts_of(folder)
    path = next((path for kind, path in kinds if kind == "Pooling"), "1_Pooling") + "/config.json"
    return path, read_json(folder, path, {})


def own_pooling(folder: Path) -> str | None:
    """The pooling a published encoder was trained with; None where it has no note of it."""
    path, note = _pooling_note(folder)
    if not note:
        return "mean" if parts_of(folder) else None
    mode = note.get("pooling_mode")
    # The newer note goes before the switches, as in sentence-transformers
    modes: list[Any] = mode if isinstance(mode, list) else [mode] if mode else []
    if not modes:
        modes = [theirs for theirs in MODES.values() if note.get(f"pooling_mode_{theirs}") is True]
    if not modes or not {str(name) for name in modes} <= set(OURS):
        asked = f"{path} of {folder} asks for pooling {mode or note}"
        raise InputError(f"{asked}: expected one or more of {', '.join(MODES)}")
    return JOIN.join(OURS[name] for name in modes)


def leaves_prompt_out(name_or_path: str) -> bool:
    """Whether the pooling that a folder records reads no token of a prompt.

    Raises:
        InputError: where the tokens after it are weighted by their place, which the prompt moves.
    """
    folder = locate(name_or_path)
    _, published = _pooling_note(folder)
    note = read_json(folder, "encoder.json", {}) or published
    left_out = note.get("include_prompt") is False
    if left_out and published and "weightedmean" in str(own_pooling(folder)):
        raise InputError(
            f"the pooling of {name_or_path} leaves a prompt's tokens out of a weighted mean, which "
            "is not read here"
        )
    return left_out


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
        elif (kind, path) not in (("Transformer", ""), ("Dropout", path)) and (
            kind != "Pooling" or parts
        ):
            raise InputError(
                f"{folder}/modules.json has the part {kind} in {path!r}: only a "
                "Transformer at the top of the folder, "
                "Pooling, Dense, Dropout and Normalize are read, in this order"
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
    if asked is None:
        return str(prompts.get(note.get("default_prompt_name"), ""))
    return str(prompts.get(asked, asked))


def _read_dense(folder: Path, path: str) -> Dense:
    note = read_json(folder, f"{path}/config.json", {})
    activation = str(note.get("activation_function", "Tanh")).rpartition(".")[2]
    reads = note.get("module_input_name", "sentence_embedding")
    writes = note.get("module_output_name") or reads
    if note.get("use_residual") or {reads, writes} != {"sentence_embedding"}:
        raise InputError(
            f"{folder}/{path}/config.json: expected a dense layer of sentence embeddings without a "
            "residual connection, no other is read"
        )
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
