"""The state of a run that a kill leaves to be gone on with: its weights, the best ones, the
optimiser's moments and what happened so far.
"""

import hashlib
import json
import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from repro.reading import is_out_of_memory, parse_json
from repro.types import InputError
from repro.writing import replacing

log = logging.getLogger(__name__)
Weights: TypeAlias = dict[str, Tensor]


@dataclass
class History:
    """What happened: one loss per step, one (step, score) per check, which step was kept."""

    losses: list[float] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)
    best_step: int = 0
    best_score: float = -math.inf
    seconds: float = 0.0
    resumed_at: int = 0


def save_state(
    path: Path,
    module: nn.Module,
    optimiser: Optimizer,
    best: Weights | None,
    history: History,
    config: Any,
) -> None:
    """One file, renamed into place, with its digest: a kill leaves either the old state or the new
    one, never half.
    """
    groups = {"weights": module.state_dict(), "best": best or {}, **optimiser.state_dict()["state"]}
    tensors: Weights = {}
    for group, members in groups.items():
        for name, tensor in members.items():
            # A clone each: safetensors refuses tensors that share memory (tied embeddings)
            tensors[f"{group}/{name}"] = tensor.detach().cpu().clone().contiguous()
    notes = json.dumps({"history": asdict(history), "config": asdict(config)})
    with replacing(path) as partial:
        save_file(tensors, partial, metadata={"loop": notes, "sha256": _digest(tensors, notes)})


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """What decides the bytes of a run: how often its state is saved does not."""
    return {name: value for name, value in config.items() if name != "save_every"}


def _digest(tensors: Weights, notes: str) -> str:
    """Of all that a state says: a wrong bit would be trained on and end in an artefact that is
    sealed as valid.
    """
    return hashlib.sha256(notes.encode() + save(tensors)).hexdigest()


def load_state(
    path: Path | None,
    module: nn.Module,
    optimiser: Optimizer,
    config: Any,
) -> tuple[History, Weights | None]:
    """History and best weights of a resumable state; a fresh start for none, and, with a warning,
    for a damaged one.
    """
    if path is None or not path.exists():
        return History(), None
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            # The file is not a dict
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if _digest(tensors, metadata["loop"]) != metadata["sha256"]:
            raise ValueError("its digest is another")
        notes = parse_json(metadata["loop"], str(path), "starting anew")
    except (SafetensorError, KeyError, TypeError, ValueError, OSError, RuntimeError) as error:
        if is_out_of_memory(error):  # The state is whole, and worth hours
            raise
        log.warning("%s cannot be read (%s): starting anew", path, error)
        return History(), None
    if _settings(notes.get("config", {})) != _settings(json.loads(json.dumps(asdict(config)))):
        raise InputError(
            f"{path} holds a run with other settings: remove it to start anew, or restore its "
            "settings"
        )
    try:
        return _restored(notes, tensors, module, optimiser)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} was saved by another version of this package or of its libraries ({reason}): "
            "remove it to start anew, or restore that version"
        ) from error


def _restored(
    notes: Mapping[str, Any],
    tensors: Weights,
    module: nn.Module,
    optimiser: Optimizer,
) -> tuple[History, Weights | None]:
    """Put a state into a module and its optimiser; its history and best weights."""
    groups = defaultdict[str, Weights](dict)
    for key, value in tensors.items():
        group, name = key.split("/", 1)
        groups[group][name] = value
    module.load_state_dict(groups.pop("weights"))
    best = groups.pop("best", None)
    moments = {int(number): members for number, members in groups.items()}
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    history = History(**notes["history"])
    history.checks = [(step, score) for step, score in history.checks]  # JSON has no tuples
    history.resumed_at = len(history.losses)
    return history, best
