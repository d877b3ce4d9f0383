"""Published encoders, in the form of sentence-transformers: what a folder says, and its parts.

A folder's `modules.json` lists the parts. Transformer, Pooling, Dense, Dropout, which does nothing
outside a training, and Normalize are read; any other is refused rather than left out. Of a folder
with a `truncate_dim` only so many numbers of what comes out last are read, as by a dense layer.
What a note of ours says instead, an `encoder.json`, goes before.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from repro.models.attention import causal_parts
from repro.models.notes import (
    DENSE,
    POOLING,
    PROMPTS,
    file_of,
    parts_of,
    read_json,
    saved_note,
)
from repro.models.pooling import ACTIVATIONS, JOIN, Dense, Parts, Unit
from repro.models.pretrained import blueprint
from repro.models.sources import MINILM, SHIPPED, WEIGHTS_MISSING, locate, notes_of
from repro.models.whole import read_weights
from repro.reading import is_out_of_memory
from repro.types import InputError, check_dim

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


def _pooling_note(folder: Path) -> tuple[str, dict[str, Any]]:
    """Where the pooling of a published encoder is noted, and the note, empty if there is none."""
    kinds = parts_of(folder)
    path = next((path for kind, path in kinds if kind == "Pooling"), "1_Pooling") + "/config.json"
    return path, read_json(folder, path, {}, POOLING)


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
        statement = f"{path} of {folder} asks for pooling {mode or note}"
        raise InputError(f"{statement}: expected one or more of {', '.join(MODES)}")
    return JOIN.join(OURS[name] for name in modes)


def leaves_prompt_out(name_or_path: str) -> bool:
    """Whether the pooling that a folder records reads no token of a prompt.

    Raises:
        InputError: where the tokens after it are weighted by their place, which the prompt moves.
    """
    folder = locate(name_or_path)
    _, published = _pooling_note(folder)
    note = saved_note(folder) or published
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
        note = saved_note(folder)
        if note.get("bidirectional"):
            return None
        base = note.get("base")
        if not causal_parts(blueprint(base["name"] if base else name_or_path)):
            return None
    except InputError:  # Whatever loads the network says what is wrong
        return None
    own = note.get("pooling") if note else own_pooling(folder)
    return own or "last"


def read_parts(folder: Path, hidden_dim: int) -> Parts | None:
    """What follows the pooling by `modules.json`, cut to `truncate_dim`; None if nothing does."""
    parts: list[nn.Module] = []
    for number, (kind, path) in enumerate(parts_of(folder)):
        is_network = (number, kind, path) == (0, "Transformer", "")
        if kind == "Dense":
            parts.append(_read_dense(folder, path))
        elif kind == "Normalize":
            parts.append(Unit())
        elif not is_network and (number, kind) != (1, "Pooling") and kind != "Dropout":
            raise InputError(
                f"{folder}/modules.json has the part {kind} in {path!r}: only a Transformer at the "
                "top of the folder, Pooling, Dense, Dropout and Normalize are read, in this order"
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
        chain.append(dense_with({"linear.weight": torch.eye(width)}))
    chain[-1] = dense_with(chain[-1].state_dict(), chain[-1].settings["activation"], dim)


def prompt_of(name_or_path: str, prompt: str | None) -> str:
    """The text before every text: `prompt` itself, or the prompt of that name; None is the default
    prompt, if any.
    """
    if prompt is not None and not isinstance(prompt, str):
        raise InputError(f"prompt is {prompt!r}: expected a text, or the name of one")
    folder = locate(name_or_path)
    name = "config_sentence_transformers.json"
    note = read_json(folder, name, {}, PROMPTS)
    prompts: Mapping[str, Any] = note.get("prompts") or {}
    for key, text in prompts.items():
        if not isinstance(text, str):
            raise InputError(f"{folder / name}: prompt {key!r} is {text!r}: expected a text")
    if prompt is not None and prompt not in prompts and re.fullmatch(r"[\w-]+", prompt):
        raise InputError(
            f"prompt {prompt!r}: {name_or_path} names {', '.join(prompts) or 'no prompts'}; a text "
            f"of your own ends in a space or a sign, such as {prompt + ': '!r}"
        )
    if prompt is None and (saved := saved_note(folder)):
        return str(saved.get("prompt") or "")
    default = note.get("default_prompt_name")
    if prompt is None and default is not None and default not in prompts:
        known = ", ".join(prompts) or "none, as there are no prompts"
        raise InputError(f"{folder / name}: default_prompt_name is {default!r}: expected {known}")
    wanted = (default or "") if prompt is None else prompt
    return str(prompts.get(wanted, wanted))


def _read_dense(folder: Path, path: str) -> Dense:
    note = read_json(folder, f"{path}/config.json", {}, DENSE)
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
            f"{folder}/{path}/config.json: expected in_features, out_features and an activation "
            f"among {', '.join(ACTIVATIONS)}, found {activation!r} and "
            f"{', '.join(note) or 'nothing'}"
        )
    layer = Dense(
        check_dim(note["in_features"], what=f"in_features of {folder}/{path}/config.json"),
        check_dim(note["out_features"], what=f"out_features of {folder}/{path}/config.json"),
        note.get("bias") is not False,
        activation,
    )
    weights = file_of(folder, f"{path}/model.safetensors")
    if weights is None:
        raise InputError(f"{folder}/{path} has no {WEIGHTS_MISSING}")
    try:
        layer.load_state_dict(read_weights(weights))
    except (SafetensorError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{weights} does not fit its config.json: {error}") from error
    return layer


def dense_with(
    weights: Mapping[str, Tensor],
    activation: str = "Identity",
    dim: int | None = None,
) -> Dense:
    """A layer with the weights of a pooler or dense layer, cut to the first `dim` outputs."""
    outputs, inputs = weights["linear.weight"][:dim].shape
    layer = Dense(inputs, outputs, "linear.bias" in weights, activation)
    layer.load_state_dict({name: value[:dim] for name, value in weights.items()})
    return layer
