"""What an advice writes for the program that stores the vectors, and the ways to read it.

A folder holds `reducer.safetensors`, the linear map, `codes.safetensors`, what fewer bits for each
number need (ranges, means or centroids), and `reducer.json`, all else with the digests of both.
From it come arrays (`Deployment`), an index of faiss (`faiss_index`), a transformer of scikit-learn
(`SavedReducer`) and, by `repro export`, an encoder of sentence-transformers. Nothing that somebody
else wrote in a binary form of their own is read.
"""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, TransformerMixin

from dimadvise.files import MAPS, read_json
from dimadvise.transform import Transform
from repro.evaluation.quantise import (
    BITS,
    FLOATS,
    Codebook,
    Codes,
    dequantise,
    quantise,
    vector_bytes,
)
from repro.paths import replacing, writable_folder, write_text
from repro.store import sealed, sha256, unchanged
from repro.types import InputError, one_of, optional, unit_rows

Vectors: TypeAlias = NDArray[np.float32]
SIGN = np.uint8(128)  # the bit by which a code from 0 to 255 and one from -128 differ
SIMILARITIES = ("cosine", "ip", "l2")
NOTE = "reducer.json"
WEIGHTS, CODES = MAPS
# Files, and under what the note has their digests
TENSORS = {WEIGHTS: "sha256", CODES: "codes_sha256"}
FACTORY_WORDS = {"pca": "PCA{dim}", "pca-rotated": "PCAR{dim}", "opq": "OPQ{bytes}_{dim}"}
"""What `faiss.index_factory` calls a method."""
LEVEL_WORDS = {"float32": "Flat", "float16": "SQfp16", "int8": "SQ8", "int4": "SQ4"}
"""What it calls a level."""
PRODUCT = "pq"  # a level of product quantisation is this and its bytes, such as pq48
LLOYD = "lloyd"
"""A level of as many values as its bits tell, which suit a normal distribution (Max, 1960)."""
CACHED = 128  # rows that a processor keeps at hand while it compares them with all values
MENU = (*BITS, *(f"{LLOYD}{bits}" for bits in (7, 6, 5, 4, 3, 2)), PRODUCT)
"""Levels that may be asked for; one of product codes stands for all of them."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """How vectors are stored: made shorter, divided by their length where cosines count, and put
    into fewer bits.
    """

    transform: Transform
    similarity: str
    """Of stored vectors with queries: cosine, inner product (ip), or Euclidean distance (l2)."""
    level: str = "float32"
    """Bits of each number, a key of `BITS`; or `lloyd` and its bits, or `pq` and its bytes."""
    codebook: Codebook | None = None  # of a level of `BITS`; None where numbers stay floats
    centroids: Vectors | None = None
    """What each code of a part of a row stands for (`centroid_shape`), of all other levels."""
    rerank: int = 0
    """How many times as many vectors as are wanted are found by their codes, then ordered by the
    full vectors.
    """
    symmetric: bool = False
    """Whether codes of queries are compared with codes, not queries as they are."""

    def __post_init__(self) -> None:
        one_of(self.similarity, SIMILARITIES, "similarity")
        dim = self.transform.dim
        expected = centroid_shape(self.level, dim)
        if expected:
            shape = None if self.centroids is None else self.centroids.shape
            if shape != expected:
                raise InputError(
                    f"{self.level} of {dim} dims has centroids of shape {shape}: expected "
                    f"{expected}"
                )
        elif one_of(self.level, list(BITS), "level") not in FLOATS:
            book = self.codebook
            if book is None or (book.level, book.dim) != (self.level, dim):
                found = "none" if book is None else f"{book.level} of {book.dim}"
                raise InputError(
                    f"{self.level} of {dim} dims needs such a codebook; there is {found}"
                )

    @property
    def named(self) -> dict[str, Any]:
        """Method, dim and level."""
        transform = self.transform
        return {"method": transform.method, "dim": transform.dim, "level": self.level}

    @property
    def bytes(self) -> int:
        """Of one stored vector."""
        return level_bytes(self.level, self.transform.dim)

    def vectors(self, X: Any) -> Vectors:
        """Rows X (n, D) as (n, dim) float32, not yet in fewer bits; what float stores take."""
        Y = self.transform.apply(X)
        return np.asarray(unit_rows(Y), np.float32) if self.similarity == "cosine" else Y

    def codes(self, X: Any) -> Codes:
        """Rows X (n, D) as they are stored, `bytes` of them each."""
        return self._coded(self.vectors(X))

    def _coded(self, Y: Vectors) -> Codes:
        if self.centroids is None:
            codes = quantise(Y, self._book)
            return (codes ^ SIGN).view(np.int8) if self._signed else codes
        return packed(nearest_centroids(Y, self.centroids), self._part_bits)

    def decode(self, codes: Codes) -> Vectors:
        """What codes stand for (n, dim); of the binary level signs, ±1, with which `queries`
        agree.
        """
        if self.centroids is None:
            codes = codes.view(np.uint8) ^ SIGN if self._signed else codes
            return dequantise(codes, self._book)
        return self._meant(unpacked(codes, len(self.centroids), self._part_bits))

    def stored(self, X: Any) -> Vectors:
        """What remains of rows X (n, D) once they are stored (n, dim)."""
        return self.stored_of(self.vectors(X))

    def stored_of(self, Y: Vectors) -> Vectors:
        """What remains of rows Y (n, dim) as `vectors` gives them."""
        if self.centroids is None:
            return self.decode(self._coded(Y))
        return self._meant(nearest_centroids(Y, self.centroids))

    def queries(self, Q: Any) -> Vectors:
        """Queries (m, D) as they are compared with what is `stored` (m, dim)."""
        if self.symmetric:
            return self.stored(Q)
        Y = self.vectors(Q)
        return Y - self._book.offset if self.level == "binary" else Y

    def _meant(self, numbers: NDArray[np.uint8]) -> Vectors:
        """The centroids of such numbers (n, parts), side by side (n, dim)."""
        assert self.centroids is not None
        return self.centroids[np.arange(numbers.shape[1]), numbers].reshape(len(numbers), -1)

    @property
    def _signed(self) -> bool:
        """Whether codes are numbers from -128 to 127, which are compared as they are."""
        return self.symmetric and self.level == "int8"

    @property
    def _part_bits(self) -> int:
        """Of the code of one part."""
        assert self.centroids is not None
        return int(np.log2(self.centroids.shape[1]))

    @property
    def _book(self) -> Codebook:
        dim = self.transform.dim
        return self.codebook or Codebook(
            self.level,
            np.zeros(dim, np.float32),
            np.ones(dim, np.float32),
        )


def centroid_shape(level: str, dim: int) -> tuple[int, int, int] | None:
    """Parts of a row, values that a code tells apart and numbers of a part; None of a level without
    centroids.
    """
    for kind in (LLOYD, PRODUCT):
        count = level.removeprefix(kind)
        if level.startswith(kind) and count.isdigit():
            parts = dim if kind == LLOYD else int(count)
            return parts, 2 ** int(count) if kind == LLOYD else 256, dim // parts
    return None


def level_bytes(level: str, dim: int) -> int:
    """Bytes of one vector of so many numbers, the bits that fill up its last byte included."""
    shape = centroid_shape(level, dim)
    if shape is None:
        return vector_bytes(dim, level)
    return -(-shape[0] * int(np.log2(shape[1])) // 8)


def nearest_centroids(Y: Vectors, centroids: Vectors) -> NDArray[np.uint8]:
    """The number of the nearest centroid of each part of rows Y (n, dim), of which single numbers
    have ascending ones (n, parts); the first of equals.
    """
    if centroids.shape[2] == 1:
        values = centroids[:, :, 0].T
        middles = (values[1:] + values[:-1]) / 2  # (values - 1, dim)
        below = np.zeros(Y.shape, np.uint8)
        for start in range(0, len(Y), CACHED):
            rows = slice(start, start + CACHED)
            for middle in middles:
                below[rows] += middle < Y[rows]
        return below
    parts = Y.reshape(len(Y), len(centroids), -1)
    codes = np.empty(parts.shape[:2], np.uint8)
    for m, each in enumerate(centroids):
        codes[:, m] = (parts[:, m] @ each.T - (each**2).sum(1) / 2).argmax(1)
    return codes


def packed(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Numbers (n, parts) of so many bits each, as bytes with zeros at the end."""
    each = np.unpackbits(numbers[:, :, None], axis=2)[:, :, 8 - bits :]
    return np.packbits(each.reshape(len(numbers), -1), axis=1)


def unpacked(codes: Codes, parts: int, bits: int) -> NDArray[np.uint8]:
    """The numbers (n, parts) that were `packed`."""
    each = np.unpackbits(codes, axis=1, count=parts * bits).reshape(len(codes), parts, bits)
    return np.asarray(np.packbits(each, axis=2)[:, :, 0] >> (8 - bits), np.uint8)


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
    codes: dict[str, Vectors] = {}
    if deployment.centroids is not None:
        codes = {"centroids": deployment.centroids}
    elif deployment.codebook is not None and deployment.level not in FLOATS:
        codes = {"offset": deployment.codebook.offset, "step": deployment.codebook.step}
    said: dict[str, Any] = {
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
            plain = {part: np.ascontiguousarray(each, np.float32) for part, each in tensors.items()}
            save_file(plain, partial)
            said[TENSORS[name]] = sha256(partial)
        # Whenever this is stopped, each file of tensors is the one that the note tells the digest
        # of.
        for name in TENSORS:
            (folder / name).unlink(missing_ok=True)
        write_text(folder / NOTE, json.dumps(sealed(said | note), indent=1, ensure_ascii=False))
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
            refused = "was written by no advice: give another folder, nothing is overwritten"
            raise InputError(f"{folder / NOTE} {refused}")
    for name, key in TENSORS.items():
        path = folder / name
        if path.exists() and sha256(path) != note.get(key):
            refused = "was written by no advice, or has changed since"
            raise InputError(f"{path} {refused}: move it away, or give another folder")


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
    book = (
        Codebook(level, tensors["offset"], tensors["step"])
        if {"offset", "step"} <= set(tensors)
        else None
    )
    transform = Transform(
        str(note.get("reducer")),
        len(bias),
        matrix,
        bias,
        bool(note.get("unit_rows")),
    )
    similarity = note.get("similarity", note.get("compared_by"))
    return Deployment(
        transform,
        str(similarity),
        level,
        book,
        tensors.get("centroids"),
        int(note.get("rerank", 0)),
        bool(note.get("symmetric")),
    )


def read_linear(folder: Path) -> tuple[Vectors, Vectors]:
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
        wanted = "expected a folder that `repro advise` wrote, with a smaller size as its answer"
        raise InputError(f"no {path}: {wanted}")
    return read_sealed(path)


def read_sealed(path: Path) -> dict[str, Any]:
    """The names and values in a file that holds a note as it was `sealed`.

    Raises:
        InputError: for anything else, such as a note that has no seal or was changed.
    """
    note = read_json(path.read_bytes(), str(path))
    if not isinstance(note, dict):
        raise InputError(f"{path} holds a {type(note).__name__}: expected names and values")
    if "seal" not in note:
        missing = "has no seal: it was written by no advice, or changed since"
        raise InputError(f"{path} {missing}; copy the whole folder again, or give another one")
    try:
        as_sealed = unchanged(note)
    except RecursionError:  # What is nested so deeply that no digest can be taken was never sealed.
        as_sealed = False
    if not as_sealed:
        raise InputError(
            f"{path} has changed since it was written: copy the whole folder again, "
            "or write a new one"
        )
    return note


def _tensors(path: Path, digest: Any) -> dict[str, Vectors]:
    """What a file beside the note holds, which must be the bytes of that digest."""
    if not path.is_file() or sha256(path) != digest:
        found = (
            f"has changed since it was written, or belongs to another {NOTE}"
            if path.is_file()
            else "is missing"
        )
        raise InputError(f"{path} {found}: advise anew, or copy the whole folder again")
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
        self.transform(np.asarray(X)[:1])
        return self

    def transform(self, X: Any) -> Vectors:
        """Rows X (n, D) as (n, dim) float32."""
        return self._deployment.vectors(X)

    def __sklearn_is_fitted__(self) -> bool:
        """Always: the folder holds what was learned."""
        return True

    @cached_property
    def _deployment(self) -> Deployment:
        return self.source if isinstance(self.source, Deployment) else read(Path(self.source))


def faiss_factory(deployment: Deployment) -> str:
    """What `faiss.index_factory` makes an index of this kind from, to be trained anew;
    `faiss_index` needs no training.

    Nothing where faiss has no word for the map, as for singular directions and random projections,
    or for the level, as for one bit a number.
    """
    transform, level = deployment.transform, deployment.level
    code = f"PQ{deployment.bytes}" if level.startswith(PRODUCT) else LEVEL_WORDS.get(level)
    word = FACTORY_WORDS.get(transform.method)
    is_whole = transform.method == "truncate" and transform.dim == len(transform.matrix)
    if code is None or not (word or is_whole):
        return ""
    reduced = (word or "").format(dim=transform.dim, bytes=deployment.bytes)
    length = "L2norm" if deployment.similarity == "cosine" else ""
    refined = "RFlat" if deployment.rerank else ""
    steps = ["L2norm" if transform.unit else "", reduced, length, code, refined]
    return ",".join(step for step in steps if step)


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
    deployment = source if isinstance(source, Deployment) else read(source)
    faiss = optional("faiss", "eval")
    metric = faiss.METRIC_L2 if deployment.similarity == "l2" else faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexPreTransform(_codes_index(faiss, deployment, metric))
    for step in reversed(_steps(faiss, deployment)):
        index.prepend_transform(step)
    if not deployment.rerank:
        return index
    full = len(deployment.transform.matrix)
    whole = faiss.IndexFlat(full, metric)
    if deployment.similarity == "cosine":
        whole = faiss.IndexPreTransform(faiss.NormalizationTransform(full), whole)
    refined = faiss.IndexRefine(index, whole)
    refined.k_factor = float(deployment.rerank)
    return refined


def _steps(faiss: Any, deployment: Deployment) -> list[Any]:
    """What happens to a row before it is coded."""
    transform = deployment.transform
    steps = [faiss.NormalizationTransform(len(transform.matrix))] if transform.unit else []
    steps.append(_linear(faiss, transform.matrix, transform.bias))
    if deployment.similarity == "cosine":
        steps.append(faiss.NormalizationTransform(transform.dim))
    if deployment.level == "binary":  # whole bytes: numbers that are always 0 fill the last one up
        assert deployment.codebook is not None
        matrix = np.eye(transform.dim, 8 * deployment.bytes, dtype=np.float32)
        steps.append(_linear(faiss, matrix, -deployment.codebook.offset @ matrix))
    return steps


def _linear(faiss: Any, matrix: Vectors, bias: Vectors) -> Any:
    step = faiss.LinearTransform(*matrix.shape, True)
    faiss.copy_array_to_vector(np.ascontiguousarray(matrix.T).ravel(), step.A)
    faiss.copy_array_to_vector(np.ascontiguousarray(bias, np.float32), step.b)
    step.is_trained = True
    return step


def _codes_index(faiss: Any, deployment: Deployment, metric: int) -> Any:
    """An index of our codes: faiss cuts ranges into the same steps, and signs are product codes of
    known centroids.
    """
    dim, level, book, centroids = (
        deployment.transform.dim,
        deployment.level,
        deployment.codebook,
        deployment.centroids,
    )
    if level == "float32":
        return faiss.IndexFlat(dim, metric)
    kinds = {"float16": "QT_fp16", "int8": "QT_8bit", "int4": "QT_4bit"}
    if level in kinds:
        index = faiss.IndexScalarQuantizer(
            dim,
            getattr(faiss.ScalarQuantizer, kinds[level]),
            metric,
        )
        # Faiss rounds down and reads the middle of a step, we round and read its end
        if book is not None:
            ranges = [book.offset - book.step / 2, book.step * np.float32(2 ** BITS[level] - 1)]
            faiss.copy_array_to_vector(np.concatenate(ranges).astype(np.float32), index.sq.trained)
    else:
        if centroids is None:
            signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(
                2
            ) - np.float32(1)
            centroids = np.broadcast_to(signs, (deployment.bytes, *signs.shape))
        count, values, width = centroids.shape
        index = faiss.IndexPQ(count * width, count, int(np.log2(values)), metric)
        faiss.copy_array_to_vector(
            np.ascontiguousarray(centroids, np.float32).ravel(),
            index.pq.centroids,
        )
    index.is_trained = True
    return index
