"""Files of vectors, one class for each way in which rows lie in them.

Rows of a file of equal records are read where they lie and nothing is mapped into memory, so that ten million rows cost
no more than those that are asked for.
"""

import errno
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from repro.types import LARGEST, InputError, check_dim, check_range

Rows: TypeAlias = NDArray[np.int64]
Block: TypeAlias = NDArray[np.float32]
BLOCK = 2**24  # numbers in a block unless told otherwise: 64 MB
NUMBERS = "fiu"  # numpy's letters for floats and whole numbers
SMALLEST = 1e-12
"""largest modulus of a row's numbers below which single precision gives it no length: `unit_rows` divides by no less"""
WIDEST = 2**31 - 1  # bytes of a row, at most: numpy makes no larger record


def read_json(content: str | bytes, where: str, wanted: str = "write it again", **options: Any) -> Any:
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
def memory_explained(doing: str, wanted: str = "a small file that asks for so much is damaged") -> Iterator[None]:
    """Turn what is raised where memory is short while `doing` something into an InputError, by which no file is blamed.

    The message ends with what is `wanted` of its reader.
    """
    try:
        yield
    except Exception as error:
        if not _is_memory_short(error):
            raise
        details = f" ({error})" if str(error) else ""
        raise InputError(
            f"not enough memory to {doing}{details}: close other programs, or take a machine with more; {wanted}"
        ) from error


def _is_memory_short(error: Exception) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    # Arrow gives no number where it maps a file or starts a thread, but the words of the system.
    words = (os.strerror(errno.ENOMEM), os.strerror(errno.EAGAIN))
    return isinstance(error, OSError | pa.ArrowException) and any(each in str(error) for each in words)


class Vectors(ABC):
    """A matrix (n, D) that is read in parts; a part with a number that is not finite is an InputError with its row."""

    name: str  # of the file, in messages
    shape: tuple[int, int]
    kind: str  # of its numbers, such as float16

    def take(self, rows: Any) -> Block:
        """Rows by their numbers from 0, in the order asked for, repeated ones too (len(rows), D) float32."""
        asked, place = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        if not len(asked):
            return np.empty((0, self.shape[1]), np.float32)
        if not 0 <= asked[0] <= asked[-1] < self.shape[0]:
            raise InputError(f"rows {asked[0]} to {asked[-1]} of {self.name}: expected 0 to {self.shape[0] - 1}")
        return self._checked(self._take(asked), asked)[place]

    def blocks(self, rows_per_block: int | None = None, start: int = 0) -> Iterator[Block]:
        """The rows from `start` on in their order, as blocks (b, D) float32, of which any may be shorter."""
        size = check_dim(rows_per_block or max(1, BLOCK // self.shape[1]), what="rows_per_block")
        for block in self._blocks(size, start):
            yield self._checked(block, np.arange(start, start + len(block)))
            start += len(block)

    def taken(self, rows: Rows) -> Iterator[Block]:
        """Rows by their numbers, as many as there are, in blocks that fit into memory (b, D) float32."""
        size = max(1, BLOCK // self.shape[1])
        return (self.take(rows[start : start + size]) for start in range(0, len(rows), size))

    @abstractmethod
    def _take(self, rows: Rows) -> Any:
        """Rows by ascending numbers within reach, none twice."""

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        for start in range(first, self.shape[0], size):
            yield self._take(np.arange(start, min(start + size, self.shape[0])))

    def _checked(self, block: Any, rows: Rows) -> Block:
        with np.errstate(over="ignore", invalid="ignore"):  # a number beyond float32 becomes infinite, and is named
            single = np.asarray(block, np.float32)
            sound = np.isfinite(single.sum(dtype=np.float64))
        if not sound:
            row = rows[np.argmax(~np.isfinite(single).all(axis=1))]
            raise InputError(f"{self.name} row {row} holds NaN or an infinite number: drop or repair such rows")
        exact = block if block.dtype.itemsize > single.dtype.itemsize else single
        highest, lowest = (np.asarray(end(axis=1), np.float64) for end in (exact.max, exact.min))
        reach = np.maximum(highest, -lowest)
        if reach.max() > LARGEST:
            check_range(single, self.name)
        faint = (reach > 0) & (reach < SMALLEST)
        if faint.any():
            row = int(np.argmax(faint))
            raise InputError(
                f"{self.name} row {rows[row]} holds no number beyond {reach[row]:.0e}, of which single precision knows "
                "no length: multiply all rows by one number, or make such rows zero"
            )
        return single


class Matrix(Vectors):
    """An array that is there already."""

    def __init__(self, X: Any, name: str) -> None:
        """Wrap X (n, D) of numbers."""
        self.X = np.asarray(X)
        self.name, self.shape, self.kind = name, matrix_shape(self.X.shape, name), _kind(self.X.dtype, name)

    def _take(self, rows: Rows) -> Any:
        whole = rows[-1] - rows[0] + 1 == len(rows)  # a view where it can be one
        return self.X[rows[0] : rows[-1] + 1] if whole else self.X[rows]


class Records(Vectors):
    """A file of equal records: `lead` whole numbers of 4 bytes, which are D where there are any, then D numbers."""

    def __init__(
        self, path: Path, offset: int, shape: Sequence[int], dtype: Any, *, lead: int = 0, kind: str = ""
    ) -> None:
        """The records begin at `offset`; `kind` names numbers that numpy has no word for."""
        self.path, self.offset, self.name = path, offset, str(path)
        self.shape, self.kind = matrix_shape(shape, self.name), kind or _kind(np.dtype(dtype), self.name)
        bytes_of_row = 4 * lead + self.shape[1] * np.dtype(dtype).itemsize
        if path.stat().st_size < offset + self.shape[0] * bytes_of_row:
            raise InputError(f"{path} ends before row {self.shape[0] - 1}, its last: copy the file again")
        if bytes_of_row > WIDEST:
            raise InputError(f"{path} has rows of {self.shape[1]:,} numbers: expected one row for each vector")
        self.record = np.dtype([("lead", "<i4", (lead,)), ("row", dtype, (self.shape[1],))])

    def _take(self, rows: Rows) -> Any:
        is_bfloat16 = self.kind == "bfloat16"
        out = np.empty((len(rows), self.shape[1]), np.float32 if is_bfloat16 else self.record["row"].base)
        size = self.record.itemsize
        ends = [*(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]  # of runs of rows that lie side by side
        with self.path.open("rb", buffering=0) as file:
            for start, end in zip([0, *ends], ends, strict=False):
                file.seek(self.offset + int(rows[start]) * size)
                found = np.fromfile(file, self.record, end - start)
                if len(found) < end - start or (found["lead"] != self.shape[1]).any():
                    wrong = "is cut short" if len(found) < end - start else f"has not the length {self.shape[1]}"
                    raise InputError(f"{self.path}: a row from {rows[start]} on {wrong}: write the file again")
                numbers = found["row"]
                if is_bfloat16:  # the upper half of a float32
                    numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
                out[start:end] = numbers
        return out


class Parquet(Vectors):
    """A column of lists, read by row groups, of which those that hold no row asked for are left alone."""

    def __init__(self, path: Path, column: str) -> None:
        """Open a column of lists of numbers, by default the only one."""
        self.name = str(path)
        with self._damage_told():
            self.file = pq.ParquetFile(path, memory_map=True)
        kinds = {field.name: getattr(field.type, "value_type", pa.null()) for field in self.file.schema_arrow}
        lists = [name for name, kind in kinds.items() if pa.types.is_floating(kind) or pa.types.is_integer(kind)]
        self.column = chosen(column, lists, list(kinds), str(path), "a list of numbers in each row")
        counts = [self.file.metadata.row_group(g).num_rows for g in range(self.file.num_row_groups)]
        self.starts = np.cumsum([0, *counts])
        self.kind = str(np.dtype(kinds[self.column].to_pandas_dtype()))
        first = next((rows for _, rows in self._batches(range(len(counts)), 1)), np.empty((0, 0)))
        self.shape = matrix_shape((self.file.metadata.num_rows, first.shape[1]), self.name)

    def _take(self, rows: Rows) -> Any:
        out = np.empty((len(rows), self.shape[1]), self.kind)
        groups = np.unique(np.searchsorted(self.starts, rows, side="right") - 1).tolist()
        for start, block in self._batches(groups, max(1, BLOCK // 4 // self.shape[1])):
            low, high = np.searchsorted(rows, [start, start + len(block)])
            out[low:high] = block[rows[low:high] - start]
        return out

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        groups = range(int(np.searchsorted(self.starts, first, side="right")) - 1, len(self.starts) - 1)
        for start, block in self._batches(groups, size):
            if start + len(block) > first:
                yield block[max(0, first - start) :]

    def _batches(self, groups: Sequence[int], size: int) -> Iterator[tuple[int, Any]]:
        """Number of the first row, and rows, of parts of some row groups."""
        for group in groups:
            start = int(self.starts[group])
            for batch in self._read(size, group):
                lists = batch.column(0)
                values = lists.flatten()
                D = self.shape[1] if hasattr(self, "shape") else len(values) // len(lists)
                wrong = np.asarray(lists.value_lengths().fill_null(-1)) != D
                if not D or wrong.any() or values.null_count:
                    row = start + int(np.argmax(wrong)) if wrong.any() else start
                    raise InputError(f"{self.name} row {row} or after is empty or has not {D} numbers: drop such rows")
                yield start, values.to_numpy(zero_copy_only=False).reshape(-1, D)
                start += len(lists)

    def _read(self, size: int, group: int) -> Iterator[Any]:
        with self._damage_told():
            yield from self.file.iter_batches(size, row_groups=[group], columns=[self.column])

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            with memory_explained(f"read {self.name}"):
                yield
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.name} is not a whole parquet file ({error}): write it again") from None


class JsonLines(Vectors):
    """One vector on each line, bare or a field of an object; where lines begin is found by reading the file once."""

    kind = "JSON numbers"

    def __init__(self, path: Path, column: str) -> None:
        """Open a field of numbers, by default the only one."""
        self.path, self.name, self.column = path, str(path), ""
        if not len(self.starts):
            raise InputError(f"{path} is empty: expected one JSON object with a vector on each line")
        first = self._json(0)
        if isinstance(first, dict):
            lists = [name for name, value in first.items() if _is_vector(value)]
            self.column = chosen(column, lists, list(first), f"{path} line 1", "a list of numbers")
        self.shape = len(self.starts), len(self._vector(0))

    @cached_property
    def starts(self) -> Rows:
        """Where each line that is not blank begins."""
        at, found = 0, []
        with self.path.open("rb") as file:
            for line in file:
                if not line.isspace():
                    found.append(at)
                at += len(line)
        return np.array(found, np.int64)

    def _take(self, rows: Rows) -> Any:
        out = np.empty((len(rows), self.shape[1]))
        for place, row in enumerate(rows.tolist()):
            vector = self._vector(row)
            if len(vector) != self.shape[1]:
                raise InputError(f"{self.path} row {row} has {len(vector)} numbers, row 0 has {self.shape[1]}")
            out[place] = vector
        return out

    def _json(self, row: int) -> Any:
        self._file.seek(int(self.starts[row]))
        wanted = "expected one object on each line"
        # Whole numbers may be of any length.
        return read_json(self._file.readline(), f"{self.path} row {row}", wanted, parse_int=float)

    def _vector(self, row: int) -> list[float]:
        found = self._json(row)
        if isinstance(found, dict):
            found = found.get(self.column)
        if not _is_vector(found):
            where = f" under {self.column!r}" if self.column else ""
            raise InputError(f"{self.path} row {row} holds no list of numbers{where}: drop or repair such rows")
        return list(found)

    @cached_property
    def _file(self) -> Any:
        return self.path.open("rb")


def chosen(column: str, fitting: Sequence[str], there: Sequence[str], where: str, what: str) -> str:
    """The column named, or the only one that fits."""
    if column and column not in fitting:
        raise InputError(f"{where}: {column!r} is not {what}; there are {', '.join(there)}")
    if not fitting:
        raise InputError(f"{where}: none of {', '.join(there)} is {what}")
    if not column and len(fitting) > 1:
        raise InputError(f"{where}: {', '.join(fitting)} are each {what}: name one by --column")
    return column or fitting[0]


def matrix_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """The shape, if it is that of a matrix with at least one number; `name` is told in messages."""
    if len(shape) != 2 or 0 in shape:
        wanted = "at least one row and one column" if len(shape) == 2 else "a matrix (n, dim), one row per vector"
        raise InputError(f"{name} has shape {tuple(shape)}: expected {wanted}")
    return int(shape[0]), int(shape[1])


def _kind(dtype: Any, name: str) -> str:
    if dtype.kind not in NUMBERS:
        raise InputError(f"{name} holds {dtype} values: expected numbers, such as float32")
    return str(dtype)


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(x) is float for x in value)
