"""Vectors by their rows: in memory, and in a file of equal records.

Rows of a file of equal records are read where they lie and nothing is mapped into memory, so that
ten million rows cost no more than those that are asked for.
"""

import errno
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from repro.reading import is_out_of_memory
from repro.types import LARGEST, InputError, check_dim, check_range, plain_array

Rows: TypeAlias = NDArray[np.int64]
Block: TypeAlias = NDArray[np.float32]
BLOCK = 2**24  # Numbers in a block unless told otherwise: 64 MB
GAP = 2**18  # Bytes between two rows that are read with them rather than sought anew
STRETCH = 64  # So many gaps at most are read at once: 16 MB
NUMBERS = "fiu"  # Numpy's letters for floats and whole numbers
SMALLEST = 1e-12
"""Of a row's numbers the least largest modulus that has a length: `unit_rows` divides by no less.
"""
WIDEST = 2**31 - 1  # Bytes of a row, at most: numpy makes no larger record
SMALL_AND_GREEDY = "a small file that asks for so much is damaged"
JSON_NUMBERS = "JSON numbers"  # The kind of numbers that are written out
Name: TypeAlias = int | str | None
Layer: TypeAlias = int | None  # Of an encoder; None where there is but one version of vectors
MAPS = ("reducer.safetensors", "codes.safetensors")
"""Files of tensors that an advice leaves in a folder, which are no vectors."""


class NoMatrixError(InputError):
    """A file that is whole and holds something else than a matrix of numbers, such as ids."""


def read_json(
    content: str | bytes,
    where: str,
    wanted: str = "write it again",
    **options: Any,
) -> Any:
    """What a text in JSON says.

    Args:
        content: the text.
        where: it stands, for messages.
        wanted: what a reader of the message should do.
        options: of `json.loads`.

    Raises:
        InputError: for a text that is no JSON, or is nested too deeply to be read.
    """
    try:
        return json.loads(content, **options)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON ({error}): {wanted}") from None


@contextmanager
def memory_explained(doing: str, wanted: str = SMALL_AND_GREEDY) -> Iterator[None]:
    """Turn what is raised where memory is short while `doing` something into an InputError.

    It blames no file, and ends with what is `wanted` of its reader.
    """
    try:
        yield
    except Exception as error:
        if not _is_memory_short(error):
            raise
        details = f" ({error})" if str(error) else ""
        raise InputError(
            f"not enough memory to {doing}{details}: close other programs, or take a machine with "
            f"more; {wanted}"
        ) from error


def _is_memory_short(error: Exception) -> bool:
    if not isinstance(error, OSError | pa.ArrowException):
        return is_out_of_memory(error)
    # Arrow gives no number where it maps a file or starts a thread, but the words of the system.
    words = os.strerror(errno.ENOMEM), os.strerror(errno.EAGAIN)
    return is_out_of_memory(error) or any(of_system in str(error) for of_system in words)


class Vectors(ABC):
    """A matrix (n, D) that is read in parts; a part with a number that is not finite is an
    InputError with its row.
    """

    name: str  # Of the file, in messages
    shape: tuple[int, int]
    kind: str  # Of its numbers, such as float16
    id_column: str = ""  # That names the rows, where there is one
    unread_ids: str = ""  # Another by such a name, of values that are no ids here
    named: Sequence[Name] = ()  # Ids (n,), where they were all read at once
    files: Sequence[str] = ()  # Names of those that hold the rows, where there are several

    def take(self, rows: Any) -> Block:
        """Rows by their numbers from 0, in the order asked for, repeated ones too (len(rows), D)
        float32.
        """
        distinct, place = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        if not len(distinct):
            return np.empty((0, self.shape[1]), np.float32)
        if not 0 <= distinct[0] <= distinct[-1] < self.shape[0]:
            raise InputError(
                f"rows {distinct[0]} to {distinct[-1]} of {self.name}: expected 0 to "
                f"{self.shape[0] - 1}"
            )
        return self._checked(self._take(distinct), distinct)[place]

    def blocks(self, rows_per_block: int | None = None, start: int = 0) -> Iterator[Block]:
        """The rows from `start` on in their order, as blocks (b, D) float32, of which any may be
        shorter.
        """
        size = check_dim(rows_per_block or max(1, BLOCK // self.shape[1]), what="rows_per_block")
        for block in self._blocks(size, start):
            yield self._checked(block, np.arange(start, start + len(block)))
            start += len(block)

    def taken(self, rows: Rows) -> Iterator[Block]:
        """Rows by their numbers, as many as there are, in blocks that fit into memory (b, D)
        float32.
        """
        size = max(1, BLOCK // self.shape[1])
        return (self.take(rows[start : start + size]) for start in range(0, len(rows), size))

    def keys(self, rows: Rows) -> list[bytes]:
        """What equal rows share, of rows by their numbers."""
        return [key for block in self.taken(rows) for key in row_keys(block)]

    def ids(self, start: int, stop: int) -> list[Name]:
        """What names the rows from `start` to before `stop`; nothing without an `id_column`."""
        return self._ids(start, stop) if self.id_column else []

    def _ids(self, start: int, stop: int) -> list[Name]:
        """The same, where there is one."""
        return list(self.named[start:stop])

    @abstractmethod
    def _take(self, rows: Rows) -> Any:
        """Rows by ascending numbers within reach, none twice."""

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        for start in range(first, self.shape[0], size):
            yield self._take(np.arange(start, min(start + size, self.shape[0])))

    def _checked(self, block: Any, rows: Rows) -> Block:
        # A number beyond float32 becomes infinite, and is named
        with np.errstate(over="ignore", invalid="ignore"):
            single = np.asarray(block, np.float32)
            sound = np.isfinite(single.sum(dtype=np.float64))
        if not sound:
            row = rows[np.argmax(~np.isfinite(single).all(axis=1))]
            raise InputError(
                f"{self.name} row {row} holds NaN or an infinite number: drop or repair such rows"
            )
        exact = block if block.dtype.itemsize > single.dtype.itemsize else single
        highest, lowest = (np.asarray(end(axis=1), np.float64) for end in (exact.max, exact.min))
        reach = np.maximum(highest, -lowest)
        if reach.max() > LARGEST:
            check_range(single, self.name)
        faint = (reach > 0) & (reach < SMALLEST)
        if faint.any():
            row = int(np.argmax(faint))
            raise InputError(
                f"{self.name} row {rows[row]} holds no number beyond {reach[row]:.0e}, of which "
                "single precision knows no length: multiply all rows by one number, or make such "
                "rows zero"
            )
        return single


def row_keys(X: Block) -> Iterator[bytes]:
    """What equal rows share; a zero has no sign."""
    return (blake2b(row.tobytes(), digest_size=16).digest() for row in X + np.float32(0))


class Matrix(Vectors):
    """An array that is there already."""

    def __init__(self, X: Any, name: str) -> None:
        """Wrap X (n, D) of numbers."""
        self.X = plain_array(X, name)
        self.name, self.shape = name, matrix_shape(self.X.shape, name)
        self.kind = _kind(self.X.dtype, name)

    def _take(self, rows: Rows) -> Any:
        is_contiguous = rows[-1] - rows[0] + 1 == len(rows)  # A view where it can be one
        return self.X[rows[0] : rows[-1] + 1] if is_contiguous else self.X[rows]


class Records(Vectors):
    """A file of equal records: `lead` whole numbers of 4 bytes, which are D where there are any,
    then D numbers.
    """

    def __init__(
        self,
        path: Path,
        offset: int,
        shape: Sequence[int],
        dtype: Any,
        *,
        lead: int = 0,
        kind: str = "",
    ) -> None:
        """The records begin at `offset`; `kind` names numbers that numpy has no word for."""
        self.path, self.offset, self.name = path, offset, str(path)
        self.shape = matrix_shape(shape, self.name)
        self.kind = kind or _kind(np.dtype(dtype), self.name)
        bytes_of_row = 4 * lead + self.shape[1] * np.dtype(dtype).itemsize
        if path.stat().st_size < offset + self.shape[0] * bytes_of_row:
            raise InputError(
                f"{path} ends before row {self.shape[0] - 1}, its last: copy the file again"
            )
        if bytes_of_row > WIDEST:
            raise InputError(
                f"{path} has rows of {self.shape[1]:,} numbers: expected one row for each vector"
            )
        self.record = np.dtype([("lead", "<i4", (lead,)), ("row", dtype, (self.shape[1],))])

    def _take(self, rows: Rows) -> Any:
        records = np.empty(len(rows), self.record)
        # Rows that lie near one another are read at once, with what is between them.
        step = max(1, GAP // self.record.itemsize)
        is_gap = (np.diff(rows) > step) | (np.diff(rows // (STRETCH * step)) > 0)
        ends = [*(np.flatnonzero(is_gap) + 1).tolist(), len(rows)]
        with self.path.open("rb", buffering=0) as file:
            for start, end in zip([0, *ends], ends, strict=False):
                first = int(rows[start])
                file.seek(self.offset + first * self.record.itemsize)
                stretch = np.fromfile(file, self.record, int(rows[end - 1]) + 1 - first)
                is_cut = first + len(stretch) <= rows[end - 1]
                if is_cut or (stretch["lead"] != self.shape[1]).any():
                    wrong = "is cut short" if is_cut else f"has not the length {self.shape[1]}"
                    raise InputError(
                        f"{self.path}: a row from {first} on {wrong}: write the file again"
                    )
                records[start:end] = stretch[rows[start:end] - first]
        numbers = records["row"]
        if self.kind == "bfloat16":  # The upper half of a float32
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers


def in_memory(X: Any, name: str = "embeddings") -> Vectors:
    """An array (n, D) as `Vectors`, which stay what they are."""
    return X if isinstance(X, Vectors) else Matrix(X, name)


def matrix_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """The shape, if it is that of a matrix with at least one number; `name` is told in messages."""
    if len(shape) != 2 or min(shape) < 1:
        refused = f"{name} has shape {tuple(shape)}: expected"
        if len(shape) == 2:
            raise InputError(f"{refused} at least one row and one column")
        raise NoMatrixError(f"{refused} a matrix (n, dim), one row per vector")
    return int(shape[0]), int(shape[1])


def _kind(dtype: Any, name: str) -> str:
    if dtype.kind not in NUMBERS:
        raise NoMatrixError(f"{name} holds {dtype} values: expected numbers, such as float32")
    return str(dtype.newbyteorder("="))  # As numbers are called here, whatever machine wrote them
