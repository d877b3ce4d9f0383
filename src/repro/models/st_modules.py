"""Published sentence encoders in sentence-transformers' folder form: a network, a pooling, and perhaps a dense layer.

`modules.json` lists the parts. What we read: Transformer, Pooling (mean, first or last token), Dense, Normalize;
any other is refused rather than left out. Weights are safetensors. Also the one place that looks into the hub's cache.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from repro.models.encoder import SentenceEncoder
from repro.models.pooling import published_pooling
from repro.models.transformed import Transformed
from repro.types import Array, Encoder, InputError

FILES = ("*.json", "*.txt", "*.model", "model*.safetensors", "*/model.safetensors")
"""what is read of a published model; no pickled weights, no other framework's"""
ACTIVATIONS: dict[str, nn.Module] = {"Tanh": nn.Tanh(), "Identity": nn.Identity(), "ReLU": nn.ReLU(), "GELU": nn.GELU()}
WEIGHTS_MISSING = "safetensors weights, which some published folders keep only as pickles: convert them first"


def hub_folder(name: str, *, download: bool = False) -> Path:
    """Folder of a published model in the hub's cache, fetched into it first if `download` is set.

    Raises:
        InputError: if it is not there, cannot be fetched, or has no weights in safetensors.
    """
    try:
        folder = Path(snapshot_download(name, allow_patterns=list(FILES), local_files_only=not download))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        if not download:
            raise InputError(f"{name} is not in the hub's cache on this machine") from error
        reason = (str(error) or repr(error)).splitlines()[0][:160]
        raise InputError(f"{name} cannot be fetched from the hub ({reason})") from error
    if not list(folder.glob("model*.safetensors")):
        raise InputError(f"{name} in {folder} has no {WEIGHTS_MISSING}")
    return folder


def load_modules(folder: Path, *, device: str | None = None) -> Encoder:
    """The encoder that a folder's `modules.json` describes; without that file, mean pooling of the network.

    Raises:
        InputError: for a part that is not known here, or settings or weights that cannot be read.
    """
    kinds = [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in _read(folder / "modules.json", [])]
    pooling = "mean"
    dense: list[nn.Module] = []
    for kind, path in kinds:
        match kind:
            case "Transformer" if not path:
                pass
            case "Pooling":
                file = folder / path / "config.json"
                pooling = published_pooling(_read(file, {}), str(file))
            case "Dense":
                dense.append(_dense(folder / path))
            case "Normalize":
                dense.append(_Unit())
            case _:
                raise InputError(
                    f"{folder}/modules.json has the part {kind} in {path!r}: only a Transformer at the top of the "
                    "folder, Pooling, Dense and Normalize are read"
                )
    encoder = SentenceEncoder.load(str(folder), pooling=pooling, device=device)
    if not dense:
        return encoder
    chain = nn.Sequential(*dense).to(encoder.backbone.device).eval()
    width = next((part.linear.out_features for part in reversed(dense) if isinstance(part, Dense)), encoder.hidden_dim)

    @torch.no_grad()
    def transform(h: Array) -> Array:
        return np.asarray(chain(torch.from_numpy(h).to(encoder.backbone.device)).cpu().numpy())

    return Transformed(encoder, transform, width)


class Dense(nn.Module):
    """z = activation(h Wᵀ + b), as sentence-transformers stores it."""

    def __init__(self, inputs: int, outputs: int, bias: bool, activation: str) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, h: Tensor) -> Tensor:
        """Project h (B, inputs) to z (B, outputs)."""
        z: Tensor = self.activation(self.linear(h))
        return z


class _Unit(nn.Module):
    def forward(self, h: Tensor) -> Tensor:
        return nn.functional.normalize(h, dim=-1, eps=1e-12)


def _dense(folder: Path) -> Dense:
    note = _read(folder / "config.json", {})
    activation = str(note.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS or not {"in_features", "out_features"} <= set(note):
        raise InputError(
            f"{folder}/config.json: expected in_features, out_features and an activation among "
            f"{', '.join(ACTIVATIONS)}, found {activation!r} and {', '.join(note) or 'nothing'}"
        )
    layer = Dense(note["in_features"], note["out_features"], bool(note.get("bias", True)), activation)
    if not (folder / "model.safetensors").is_file():
        raise InputError(f"{folder} has no {WEIGHTS_MISSING}")
    try:
        layer.load_state_dict(load_file(folder / "model.safetensors"))
    except (SafetensorError, RuntimeError) as error:
        raise InputError(f"{folder}/model.safetensors does not fit its config.json: {error}") from error
    return layer


def _read(path: Path, absent: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else absent
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}): the folder is damaged") from error
