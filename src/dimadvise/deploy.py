"""What an advice writes for the program that stores the vectors, and the ways to read it.

A folder holds `reducer.safetensors`, the linear map, `codes.safetensors`, what fewer bits for each
number need (ranges, means or centroids), and `reducer.json`, all else with the digests of both.
From it come arrays (`Deployment`), an index of faiss (`faiss_index`), a transformer of scikit-learn
(`SavedReducer`) and, by `repro export`, an encoder of sentence-transformers. Nothing that somebody
else wrote in a binary form of their own is read.
"""

import json
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, TransformerMixin

from dimadvise.coding import Deployment
from dimadvise.files import MAPS, Block
from dimadvise.indices import faiss_factory, index_of
from dimadvise.transform import Transform
from repro.evaluation.quantise import FLOATS, Codebook
from repro.manifests import sealed, sha256, unchanged
from repro.reading import read_json
from repro.types import InputError, plain_array
from repro.writing import replacing, writable_folder, write_text

NOTE = "reducer.json"
WEIGHTS, CODES = MAPS
# Files, and under what the note has their digests
TENSORS = {WEIGHTS: "sha256", CODES: "codes_sha256"}


def write(folder: Path, deployment: Deployment, **note: Any) -> list[Path]:
    """Write a deployment as files; of an earlier one in the folder nothing is left.

    Args:
        folder: made if need be.
        deployment: what is written.
        note: whatever else `reducer.json` is to say, such as encoder, source and the recall that is
            promised.

    Raises:
        InputError: where the folder holds files of these names that are no deployment.
    """
    writable_folder(folder)
    check_ours(folder)
    transform = deployment.transform
    codes: dict[str, Block] = {}
    if deployment.centroids is not None:
        codes = {"centroids": deployment.centroids}
    elif deployment.codebook is not None and deployment.level not in FLOATS:
        codes = {"offset": deployment.codebook.offset, "step": deployment.codebook.step}
    content: dict[str, Any] = {
        "formula": f"y = {'(x / |x|)' if transform.unit else 'x'} @ matrix + bias",
        "input_dim": len(transform.matrix),
        "dim": transform.dim,
        "sha256": None,
        "similarity": deployment.similarity,
        "level": deployment.level,
        "bytes": deployment.bytes,
        "symmetric": deployment.symmetric,
        "rerank": deployment.rerank,
        "unit_rows": transform.unit,
        "reducer": transform.method,
        "compared_by": deployment.similarity,
        "faiss_factory": faiss_factory(deployment),
        "codes_sha256": None,
    }
    weights = {"matrix": transform.matrix, "bias": transform.bias}
    with ExitStack() as files:  # They get their names when it ends.
        for name, tensors in ((CODES, codes), (WEIGHTS, weights)):
            if not tensors:
                continue
            partial = files.enter_context(replacing(folder / name))
            plain = {key: np.ascontiguousarray(X, np.float32) for key, X in tensors.items()}
            save_file(plain, partial)
            content[TENSORS[name]] = sha256(partial)
        # Whenever this is stopped, each file of tensors is the one that the note tells the digest
        # of.
        for name in TENSORS:
            (folder / name).unlink(missing_ok=True)
        write_text(folder / NOTE, json.dumps(sealed(content | note), indent=1, ensure_ascii=False))
    return [folder / name for name in (WEIGHTS, NOTE, *([CODES] if codes else []))]


def check_ours(folder: Path) -> None:
    """Refuse to go on where a file of one of our names is not proved to be ours by the note beside
    it.

    Raises:
        InputError: with the name of the file.
    """
    note: dict[str, Any] = {}
    if (folder / NOTE).exists():
        note = read_note(folder)
        if not {"sha256", "input_dim"} <= set(note):
            raise InputError(
                f"{folder / NOTE} was written by no advice: give another folder, nothing is "
                "overwritten"
            )
    for name, key in TENSORS.items():
        path = folder / name
        if path.exists() and sha256(path) != note.get(key):
            raise InputError(
                f"{path} was written by no advice, or has changed since: move it away, or give "
                "another folder"
            )


def remove(folder: Path) -> None:
    """Remove the deployment in a folder, if there is one; InputError where a file is not proved to
    be ours.
    """
    check_ours(folder)
    for name in (*TENSORS, NOTE):
        (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> Deployment:
    """The deployment in a folder; InputError where files are missing, damaged or of another
    deployment.
    """
    folder = Path(folder)
    matrix, bias = read_linear(folder)
    note = read_note(folder)
    level, digest = str(note.get("level", "float32")), note.get("codes_sha256")
    tensors = _tensors(folder / CODES, digest) if digest else {}
    book = None
    if {"offset", "step"} <= set(tensors):
        book = Codebook(level, tensors["offset"], tensors["step"])
    method, unit = str(note.get("reducer")), bool(note.get("unit_rows"))
    transform = Transform(method, len(bias), matrix, bias, unit)
    similarity = str(note.get("similarity", note.get("compared_by")))
    rerank, symmetric = int(note.get("rerank", 0)), bool(note.get("symmetric"))
    centroids = tensors.get("centroids")
    return Deployment(transform, similarity, level, book, centroids, rerank, symmetric)


def read_linear(folder: Path) -> tuple[Block, Block]:
    """Matrix (D, d) and bias (d,) of the linear map alone; InputError for other bytes than the note
    says.
    """
    path = folder / WEIGHTS
    tensors = _tensors(path, read_note(folder).get("sha256"))
    if set(tensors) != {"matrix", "bias"}:
        raise InputError(f"{path} holds {', '.join(sorted(tensors))}: expected matrix and bias")
    return tensors["matrix"], tensors["bias"]


def read_note(folder: Path) -> dict[str, Any]:
    """What `reducer.json` says beside the tensors, such as the encoder and layer that the map was
    fitted on.
    """
    path = folder / NOTE
    if not path.exists():
        raise InputError(
            f"no {path}: expected a folder that `dimadvise advise` wrote; an advice to keep "
            "vectors as they are leaves no map, and there is nothing to apply"
        )
    return read_sealed(path)


def read_sealed(path: Path) -> dict[str, Any]:
    """The names and values in a file that holds a note as it was `sealed`.

    Raises:
        InputError: for anything else, such as a note that has no seal or was changed.
    """
    note = read_json(path)
    if not isinstance(note, dict):
        raise InputError(f"{path} holds a {type(note).__name__}: expected names and values")
    if "seal" not in note:
        raise InputError(
            f"{path} has no seal: it was written by no advice, or changed since; copy the whole "
            "folder again, or give another one"
        )
    if not unchanged(note):
        raise InputError(
            f"{path} has changed since it was written: copy the whole folder again, or write a new "
            "one"
        )
    return note


def _tensors(path: Path, digest: Any) -> dict[str, Block]:
    """What a file beside the note holds, which must be the bytes of that digest."""
    if not path.is_file() or sha256(path) != digest:
        reason = (
            f"has changed since it was written, or belongs to another {NOTE}"
            if path.is_file()
            else "is missing"
        )
        raise InputError(f"{path} {reason}: advise anew, or copy the whole folder again")
    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise InputError(f"{path} cannot be read ({error}): advise anew") from error


class SavedReducer(TransformerMixin, BaseEstimator):
    """The written map as a transformer of scikit-learn: what was fitted once is applied, nothing is
    fitted again.

    Args:
        source: folder of an advice, or a deployment.
    """

    def __init__(self, source: str | Path | Deployment) -> None:
        self.source = source

    def fit(self, X: Any, y: Any = None) -> "SavedReducer":
        """Check that rows X (n, D) are as wide as those that the map was fitted on."""
        self.transform(plain_array(X)[:1])
        return self

    def transform(self, X: Any) -> Block:
        """Rows X (n, D) as (n, dim) float32."""
        return self._deployment.vectors(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Always: the folder holds what was learned."""
        return True

    @cached_property
    def _deployment(self) -> Deployment:
        return self.source if isinstance(self.source, Deployment) else read(Path(self.source))


def faiss_index(source: Path | Deployment) -> Any:
    """An empty index of faiss that takes vectors of full size and stores them as advised; no
    training is needed.

    `add` and `search` take float32 rows (n, D) as the encoder gives them. Scores are cosines, inner
    products or squared distances as the advice has it; of the binary level they have the order of
    cosines, not their size.

    Args:
        source: folder of an advice, or a deployment; with `rerank` the index keeps the full vectors
            as well.

    Raises:
        InputError: where faiss is not installed.
    """
    return index_of(source if isinstance(source, Deployment) else read(source))
