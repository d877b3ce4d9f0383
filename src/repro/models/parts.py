"""What a published encoder says beside its network, in sentence-transformers' folder form.

`modules.json` lists the parts. What we read: Transformer, Pooling (mean, first or last token), Dense, Normalize;
any other is refused rather than left out. Weights are safetensors.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from repro.models.pooler import Head
from repro.models.pooling import published_pooling
from repro.models.pretrained import file_of, locate, read_json
from repro.types import InputError

ACTIVATIONS: dict[str, type[nn.Module]] = {"Tanh": nn.Tanh, "Identity": nn.Identity, "ReLU": nn.ReLU, "GELU": nn.GELU}
WEIGHTS_MISSING = "safetensors weights, which some published folders keep only as pickles: convert them first"


class Dense(nn.Module):
    """z = activation(h Wᵀ + b), as sentence-transformers stores it."""

    def __init__(self, inputs: int, outputs: int, bias: bool, activation: str) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=bias)
        self.activation = ACTIVATIONS[activation]()

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, inputs) to z (B, outputs)."""
        z: Tensor = self.activation(self.linear(h))
        return z


class Unit(nn.Module):
    """Rows divided by their length."""

    def forward(self, h: Tensor) -> Tensor:
        """Divide every row of h (B, D) by its length; a zero row stays."""
        return nn.functional.normalize(h, dim=-1, eps=1e-12)


class Parts(Head):
    """All that follows the pooling, in order; takes the place of a pooler."""

    def __init__(self, hidden_dim: int, parts: Sequence[Mapping[str, Any]]) -> None:
        """Fresh weights; each part is what `Dense` takes, or empty for `Unit`."""
        super().__init__()
        self.parts = nn.ModuleList(Dense(**part) if part else Unit() for part in parts)
        self.settings = list(parts)
        self.dim = hidden_dim
        for part in parts:
            if part and part["inputs"] != self.dim:
                raise InputError(f"a dense layer takes {part['inputs']} numbers, what comes before it gives {self.dim}")
            self.dim = part["outputs"] if part else self.dim

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, D) to z (B, dim)."""
        for part in self.parts:
            h = part(h)
        return h


def own_pooling(name_or_path: str) -> str | None:
    """The pooling a published encoder was trained with; None where it has no note of it.

    Raises:
        InputError: for a pooling that is not known here.
    """
    place = locate(name_or_path)
    kinds = _kinds(place)
    path = next((path for kind, path in kinds if kind == "Pooling"), "1_Pooling") + "/config.json"
    note = read_json(place, path, {})
    if not note:
        return "mean" if kinds else None
    return published_pooling(note, f"{path} of {name_or_path}")


def recorded_pooling(name_or_path: str) -> str:
    """The same, `cls` where there is no note."""
    return own_pooling(name_or_path) or "cls"


def read_parts(name_or_path: str, hidden_dim: int) -> Parts | None:
    """What follows the pooling by `modules.json`; None if nothing does, or there is no such file.

    Raises:
        InputError: for a part that is not known here, or settings or weights that cannot be read.
    """
    place = locate(name_or_path)
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

    Raises:
        InputError: for a word that names no prompt, or a pooling that leaves the prompt's tokens out.
    """
    place = locate(name_or_path)
    note = read_json(place, "config_sentence_transformers.json", {})
    prompts = note.get("prompts") or {}
    if asked is None:
        text = str(prompts.get(note.get("default_prompt_name"), ""))
    elif asked in prompts:
        text = str(prompts[asked])
    elif re.fullmatch(r"[\w-]+", asked):
        raise InputError(
            f"prompt {asked!r}: {name_or_path} names {', '.join(prompts) or 'no prompts'}; a text of your own ends in "
            f"a space or a sign, such as {asked + ': '!r}"
        )
    else:
        text = asked
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
