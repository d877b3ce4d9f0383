"""Vectors as people keep them, read a part at a time: a matrix in a file, or in a folder of shards.

`.npy`, `.npz`, `.safetensors` (which knows bfloat16), parquet (a list in each row), `.fvecs` and `.bvecs` (each row
behind its length), JSON lines. `.npz` alone is unpacked whole.
"""

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from dimadvise.files import (
    JsonLines,
    Matrix,
    Parquet,
    Records,
    Rows,
    Vectors,
    chosen,
    matrix_shape,
    memory_explained,
    read_json,
)
from repro.types import InputError

TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1", "U8": "u1", "I16": "<i2", "I32": "<i4"}
"""safetensors' word for a kind of number → numpy's, which has none for bfloat16"""


class Shards(Vectors):
    """Several files of one width, one after the other."""

    def __init__(self, parts: Sequence[Vectors], name: str) -> None:
        """Put parts behind each other."""
        widths = {part.shape[1]: part.name for part in parts}
        if len(widths) > 1:
            told = ", ".join(f"{path} has {width} columns" for width, path in widths.items())
            raise InputError(f"{told}: expected shards of one width")
        self.parts, self.name, self.kind = parts, name, " and ".join(sorted({part.kind for part in parts}))
        self.starts = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = int(self.starts[-1]), parts[0].shape[1]

    def _take(self, rows: Rows) -> Any:
        cuts = np.searchsorted(rows, self.starts)
        asked = zip(self.parts, self.starts, cuts, cuts[1:], strict=False)
        return np.concatenate([part.take(rows[a:b] - start) for part, start, a, b in asked])

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        for part, start in zip(self.parts, self.starts, strict=False):
            if first < start + part.shape[0]:
                yield from part.blocks(size, max(0, first - int(start)))


def in_memory(X: Any, name: str = "embeddings") -> Vectors:
    """An array (n, D) as `Vectors`, which stay what they are."""
    return X if isinstance(X, Vectors) else Matrix(X, name)


def open_vectors(path: Path, column: str = "") -> Vectors:
    """The vectors of a file, or of the files of one form in a folder, in the order of their names, 2 before 10.

    Args:
        path: file or folder.
        column: of parquet and JSON lines the field, of `.npz` and `.safetensors` the array that holds the vectors; by
            default the only one there is.

    Raises:
        InputError: for a form that is not read, and for a file in which there is no matrix of numbers.
    """
    path = Path(path)
    if path.is_dir():
        files = [file for file in path.iterdir() if file.suffix in FORMS and not file.name.startswith(".")]
        forms = sorted({file.suffix for file in files})
        if len(forms) != 1:
            found = f"files of the forms {', '.join(forms)}" if forms else "no file of vectors"
            raise InputError(f"{path} holds {found}: expected shards of one form, of {', '.join(FORMS)}")
        return Shards([open_vectors(file, column) for file in sorted(files, key=_numbered)], str(path))
    if not path.is_file():
        raise InputError(f"no file {path}: expected vectors as {', '.join(FORMS)}, or a folder of such files")
    if path.suffix not in FORMS:
        raise InputError(f"{path}: vectors are read from {', '.join(FORMS)}, not from {path.suffix or 'such a file'!r}")
    with memory_explained(f"read {path}"):
        return FORMS[path.suffix](path, column)


def _npy(path: Path, column: str) -> Vectors:
    with path.open("rb") as file, _numpy_damage_told(path):
        shape, by_columns, dtype = _npy_header(file)
        offset = file.tell()
    matrix_shape(shape, str(path))
    if not by_columns:
        bf16 = dtype == "V2"  # What numpy writes of the bfloat16 that other packages add to it.
        return Records(path, offset, shape, "<u2" if bf16 else dtype, kind="bfloat16" if bf16 else "")
    # Columns lie behind each other: nothing is gained by reading rows.
    with _numpy_damage_told(path):
        return Matrix(np.memmap(path, dtype, "r", offset, shape, "F"), str(path))


def _npz(path: Path, column: str) -> Vectors:
    with _numpy_damage_told(path):
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("what it holds has another ending")
    with arrays:
        array = chosen(column, arrays.files, arrays.files, str(path), "a matrix")
        with _numpy_damage_told(path):
            return Matrix(arrays[array], f"{path} {array}")


def _npy_header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether columns lie behind each other, and kind of the array that a file of numpy begins with."""
    version = np.lib.format.read_magic(file)
    first = version == (1, 0)  # All later versions count the bytes of the header by four.
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(file)
    except MemoryError:  # This is how Python's parser tells that an expression is nested too deeply.
        raise ValueError("its header is no description of an array") from None
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded")
    return shape, by_columns, dtype


@contextmanager
def _numpy_damage_told(path: Path) -> Iterator[None]:
    """Tell in words what numpy cannot read, which it tells in many ways: headers are parsed as Python, zip by zlib."""
    try:
        with memory_explained(f"read {path}"):
            yield
    except InputError:
        raise
    except Exception as error:
        if "object" in str(error).lower() and path.stat().st_size:
            raise InputError(f"{path} holds Python objects: save plain numbers, np.save(path, X)") from None
        what = f"is not a whole {path.suffix} file ({error})"
        raise InputError(f"{path} {what}: numpy.save or savez writes one") from None


def _safetensors(path: Path, column: str) -> Vectors:
    try:
        # Opening checks the header: its length, types and nesting; that tensors have the bytes that
        # their shapes need, and lie one behind the other from the header to the end of the file.
        with memory_explained(f"read {path}"), safe_open(path, "numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {name: each.get_dtype() for name, each in slices.items()}
            shapes = {name: each.get_shape() for name, each in slices.items()}
    except SafetensorError as error:
        raise InputError(f"{path} is not a whole safetensors file ({error}): write it again") from None
    readable = [name for name, kind in kinds.items() if kind in TENSORS]
    matrices = [name for name in readable if len(shapes[name]) == 2]
    tensor = chosen(column, matrices, list(kinds), str(path), "a matrix of numbers")
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = read_json(file.read(length), str(path))
    begin = header[tensor]["data_offsets"][0]
    kind = "bfloat16" if kinds[tensor] == "BF16" else ""
    return Records(path, 8 + length + begin, shapes[tensor], TENSORS[kinds[tensor]], kind=kind)


def _vecs(dtype: str) -> Callable[[Path, str], Vectors]:
    def opened(path: Path, column: str) -> Vectors:
        lead = np.fromfile(path, "<i4", 1)
        D, size = int(lead[0]) if len(lead) else 0, path.stat().st_size
        row = 4 + D * np.dtype(dtype).itemsize
        if D < 1 or size % row:
            raise InputError(f"{path} of {size:,} bytes is no file of rows of {D} numbers, each behind its length")
        return Records(path, 0, (size // row, D), dtype, lead=1)

    return opened


FORMS: dict[str, Callable[[Path, str], Vectors]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".parquet": Parquet,
    ".fvecs": _vecs("<f4"),
    ".bvecs": _vecs("u1"),
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
}
"""what is read, by its ending"""


def _numbered(path: Path) -> list[Any]:
    """The name with its digits as numbers, so that part-2 stands before part-10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]
