"""Matrices in files of arrays: numpy's, safetensors, and rows behind their lengths or counts."""

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from dimadvise.columns import chosen, named_by
from dimadvise.files import (
    NUMBERS,
    Matrix,
    NoMatrixError,
    Records,
    Vectors,
    matrix_shape,
    memory_explained,
    read_json,
)
from repro.types import InputError

OBJECTS = "holds Python objects: save plain numbers, np.save(path, X)"
IDS = "iuU"  # Numpy's letters for what names a row: whole numbers and texts
TENSORS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I8": "i1",
    "U8": "u1",
    "I16": "<i2",
    "I32": "<i4",
}
"""Safetensors' word for a kind of number → numpy's, which has none for bfloat16."""
SPARSE = (
    "; it looks like a sparse matrix: save a plain one, np.save('X.npy', "
    "scipy.sparse.load_npz('{path}').toarray())"
)


def open_npy(path: Path, column: str) -> Vectors:
    """An array of numpy by itself; no column can be asked for."""
    with path.open("rb") as file, _numpy_damage_told(path):
        shape, by_columns, dtype = _npy_header(file)
        offset = file.tell()
    matrix_shape(shape, str(path))
    if not by_columns:
        if dtype == "V2":  # What numpy writes of the bfloat16 that other packages add to it.
            return Records(path, offset, shape, "<u2", kind="bfloat16")
        return Records(path, offset, shape, dtype)
    # Columns lie behind each other: nothing is gained by reading rows.
    with _numpy_damage_told(path):
        return Matrix(np.memmap(path, dtype, "r", offset, shape, "F"), str(path))


def open_npz(path: Path, column: str) -> Vectors:
    """The matrix of an archive, by its name where there are several, with ids beside it."""
    with _numpy_damage_told(path):
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("what it holds has another ending")
    with arrays, zipfile.ZipFile(path) as members:
        headers = {}
        for member in members.namelist():
            if not member.endswith(".npy"):
                continue
            with _numpy_damage_told(path), suppress(NoMatrixError), members.open(member) as file:
                headers[member.removesuffix(".npy")] = _npy_header(file)
        shapes = {
            name: shape for name, (shape, _, dtype) in headers.items() if dtype.kind in NUMBERS
        }
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if not matrices and len(arrays.files) == 1:
            matrices = arrays.files  # What is wrong with it is told below.
        hint = SPARSE.format(path=path) if "indptr" in arrays.files else ""
        array = chosen(column, matrices, arrays.files, str(path), "a matrix of numbers", hint)
        with _numpy_damage_told(path):
            X = arrays[array]
            nameable = dict.fromkeys(arrays.files, False)
            for name, (shape, _, dtype) in headers.items():
                nameable[name] = shape == X.shape[:1] and dtype.kind in IDS
            id_column, unread_ids = named_by(nameable, array)
            ids = arrays[id_column].tolist() if id_column else ()
    matrix = Matrix(X, f"{path} {array}")
    matrix.named, matrix.id_column, matrix.unread_ids = ids, id_column, unread_ids
    return matrix


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether columns lie behind each other, and kind of an array of numpy, by its
    header.
    """
    version = np.lib.format.read_magic(file)
    first = version == (1, 0)  # All later versions count the bytes of the header by four.
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(file)
    except MemoryError:  # Python's parser says so of an expression that is nested too deeply.
        raise ValueError("its header is no description of an array") from None
    if dtype.hasobject:
        raise NoMatrixError(f"{file.name} {OBJECTS}")
    return shape, by_columns, dtype


@contextmanager
def _numpy_damage_told(path: Path) -> Iterator[None]:
    """Tell what numpy cannot read, of which it tells in many ways: headers are parsed as Python."""
    try:
        with memory_explained(f"read {path}"):
            yield
    except InputError:
        raise
    except Exception as error:
        if "object" in str(error).lower() and path.stat().st_size:
            raise NoMatrixError(f"{path} {OBJECTS}") from None
        raise InputError(
            f"{path} is not a whole {path.suffix.lower()} file ({error}): numpy.save or savez "
            "writes one"
        ) from None


def open_safetensors(path: Path, column: str) -> Vectors:
    """The matrix of a file of tensors, by its name where there are several."""
    try:
        # Opening checks the header: its length, types and nesting; that tensors have the bytes that
        # their shapes need, and lie one behind the other from the header to the end of the file.
        with memory_explained(f"read {path}"), safe_open(path, "numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {name: of_tensor.get_dtype() for name, of_tensor in slices.items()}
            shapes = {name: of_tensor.get_shape() for name, of_tensor in slices.items()}
    except SafetensorError as error:
        raise InputError(
            f"{path} is not a whole safetensors file ({error}): write it again"
        ) from None
    readable = [name for name, kind in kinds.items() if kind in TENSORS]
    matrices = [name for name in readable if len(shapes[name]) == 2]
    tensor = chosen(column, matrices, list(kinds), str(path), "a matrix of numbers")
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = read_json(file.read(length), str(path))
    begin = header[tensor]["data_offsets"][0]
    kind = "bfloat16" if kinds[tensor] == "BF16" else ""
    return Records(path, 8 + length + begin, shapes[tensor], TENSORS[kinds[tensor]], kind=kind)


def open_vecs(dtype: str, path: Path, column: str) -> Vectors:
    """Rows of which each stands behind its length."""
    lead = np.fromfile(path, "<i4", 1)
    D, size = int(lead[0]) if len(lead) else 0, path.stat().st_size
    row = 4 + D * np.dtype(dtype).itemsize
    if D < 1 or size % row:
        raise InputError(
            f"{path} of {size:,} bytes is no file of rows of {D} numbers, each behind its length"
        )
    return Records(path, 0, (size // row, D), dtype, lead=1)


def open_bin(dtype: str, path: Path, column: str) -> Vectors:
    """Rows behind their number and their length."""
    lead = np.fromfile(path, "<u4", 2)
    n, D = lead.tolist() if len(lead) == 2 else (0, 0)
    size = path.stat().st_size
    if size != 8 + n * D * np.dtype(dtype).itemsize:
        raise InputError(
            f"{path} of {size:,} bytes is no file of {n:,} rows of {D} numbers behind both counts"
        )
    return Records(path, 8, (n, D), dtype)
