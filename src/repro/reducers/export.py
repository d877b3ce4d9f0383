"""A linear map as files that anybody can read: safetensors, with a JSON note beside it (no pickle)."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from repro.paths import disk_full_explained, replacing
from repro.store import sealed, sha256, unchanged
from repro.types import InputError, check_same_length

Weights: TypeAlias = NDArray[np.float32]


def write_linear(folder: Path, matrix: NDArray[Any], bias: NDArray[Any], **note: Any) -> list[Path]:
    """Write `reducer.safetensors` with `matrix` (D, d) and `bias` (d,), `reducer.json` with digest and note."""
    check_same_length(columns_of_matrix=matrix.T, bias=bias)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {"matrix": np.ascontiguousarray(matrix, np.float32), "bias": np.ascontiguousarray(bias, np.float32)}
    weights, description = folder / "reducer.safetensors", folder / "reducer.json"
    with disk_full_explained(folder):
        with replacing(weights) as partial:
            save_file(tensors, partial)
        with replacing(description) as partial:
            shape = {"formula": "y = x @ matrix + bias", "input_dim": int(matrix.shape[0]), "dim": int(matrix.shape[1])}
            shape["sha256"] = sha256(weights)
            said = sealed({**shape, **note})
            partial.write_text(json.dumps(said, indent=1, ensure_ascii=False), encoding="utf-8")
    return [weights, description]


def read_linear(folder: Path) -> tuple[Weights, Weights]:
    """Matrix (D, d) and bias (d,) that `write_linear` wrote; InputError for other bytes than its note says."""
    path = folder / "reducer.safetensors"
    if not path.is_file():
        raise InputError(f"no {path}: expected a folder that `repro advise` wrote, with a smaller size as its answer")
    if read_note(folder).get("sha256") != sha256(path):
        raise InputError(f"{path} has changed since it was written, or belongs to another reducer.json: write it anew")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise InputError(f"{path} cannot be read ({error}): write the folder anew") from error
    if set(tensors) != {"matrix", "bias"}:
        raise InputError(f"{path} holds {', '.join(sorted(tensors))}: expected matrix and bias")
    return tensors["matrix"], tensors["bias"]


def read_note(folder: Path) -> dict[str, Any]:
    """What `reducer.json` says of a linear map beside its tensors, such as the encoder and layer it was fitted on."""
    path = folder / "reducer.json"
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"no {path}: expected a folder that an export wrote") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error}): write the folder anew") from error
    if not isinstance(note, dict):
        raise InputError(f"{path} holds a {type(note).__name__}: expected names and values")
    if not unchanged(note):
        raise InputError(f"{path} has changed since it was written: copy the whole folder again, or write a new one")
    return note
