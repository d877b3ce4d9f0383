"""Files of vectors, one class for each way in which rows lie in them.

Rows of a file of equal records are read where they lie and nothing is mapped into memory, so that
ten million rows cost no more than those that are asked for.
"""

import errno
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from repro.data.files import read_lines
from repro.types import LARGEST, InputError, check_dim, check_range

Rows: TypeAlias = NDArray[np.int64]
Block: TypeAlias = NDArray[np.float32]
BLOCK = 2**24  # numbers in a block unless told otherwise: 64 MB
NUMBERS = "fiu"  # numpy's letters for floats and whole numbers
SMALLEST = 1e-12
"""Of a row's numbers the least largest modulus that has a length: `unit_rows` divides by no less.
"""
WIDEST = 2**31 - 1  # bytes of a row, at most: numpy makes no larger record
NAMING = ("id", "ids", "_id", "uuid", "doc_id", "docid", "document_id", "custom_id", "key")
"""Columns and arrays, in any case, of which the first that is there names the rows."""
SPREAD = 8  # columns of numbers from which on they look like the numbers of one vector
TENSOR = "a tensor of shape"
LISTED = 12  # columns that a message lists, at most
SMALL_AND_GREEDY = "a small file that asks for so much is damaged"
A_LINE_EACH = "expected one vector, or one object with a vector, on each line"
JSON_NUMBERS = "JSON numbers"  # the kind of numbers that are written out
BASE64 = re.compile(r"[A-Za-z0-9+/]{80,}={0,2}")
Name: TypeAlias = int | str | None
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
        way_out = "close other programs, or take a machine with more"
        raise InputError(f"not enough memory to {doing}{details}: {way_out}; {wanted}") from error


def _is_memory_short(error: Exception) -> bool:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    # Arrow gives no number where it maps a file or starts a thread, but the words of the system.
    if not isinstance(error, OSError | pa.ArrowException):
        return False
    return os.strerror(errno.ENOMEM) in str(error) or os.strerror(errno.EAGAIN) in str(error)


class Vectors(ABC):
    """A matrix (n, D) that is read in parts; a part with a number that is not finite is an
    InputError with its row.
    """

    name: str  # of the file, in messages
    shape: tuple[int, int]
    kind: str  # of its numbers, such as float16
    id_column: str = ""  # that names the rows, where there is one

    def take(self, rows: Any) -> Block:
        """Rows by their numbers from 0, in the order asked for, repeated ones too (len(rows), D)
        float32.
        """
        asked, place = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        if not len(asked):
            return np.empty((0, self.shape[1]), np.float32)
        if not 0 <= asked[0] <= asked[-1] < self.shape[0]:
            raise InputError(
                f"rows {asked[0]} to {asked[-1]} of {self.name}: expected 0 to {self.shape[0] - 1}"
            )
        return self._checked(self._take(asked), asked)[place]

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

    def ids(self, start: int, stop: int) -> list[Name]:
        """What names the rows from `start` to before `stop`; nothing without an `id_column`."""
        return []

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
            small = f"row {rows[row]} holds no number beyond {reach[row]:.0e}"
            raise InputError(
                f"{self.name} {small}, of which single precision knows no length: "
                "multiply all rows by "
                "one number, or make such rows zero"
            )
        return single


def row_keys(X: Block) -> Iterator[bytes]:
    """What equal rows share; a zero has no sign."""
    return (blake2b(row.tobytes(), digest_size=16).digest() for row in X + np.float32(0))


class Matrix(Vectors):
    """An array that is there already."""

    def __init__(
        self,
        X: Any,
        name: str,
        *,
        kind: str = "",
        ids: Sequence[Name] = (),
        id_column: str = "",
    ) -> None:
        """Wrap X (n, D) of numbers, with their `kind` where numpy has no word for it.

        Ids (n,) have a column by which they are known.
        """
        self.X = np.asarray(X)
        self.name, self.shape = name, matrix_shape(self.X.shape, name)
        self.kind = kind or _kind(self.X.dtype, name)
        self.named, self.id_column = ids, id_column

    def ids(self, start: int, stop: int) -> list[Name]:
        """Those that were given."""
        return list(self.named[start:stop])

    def _take(self, rows: Rows) -> Any:
        whole = rows[-1] - rows[0] + 1 == len(rows)  # a view where it can be one
        return self.X[rows[0] : rows[-1] + 1] if whole else self.X[rows]


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
            wide = f"{path} has rows of {self.shape[1]:,} numbers"
            raise InputError(f"{wide}: expected one row for each vector")
        self.record = np.dtype([("lead", "<i4", (lead,)), ("row", dtype, (self.shape[1],))])

    def _take(self, rows: Rows) -> Any:
        is_bfloat16 = self.kind == "bfloat16"
        dtype = np.dtype(np.float32) if is_bfloat16 else self.record["row"].base
        out = np.empty((len(rows), self.shape[1]), dtype)
        size = self.record.itemsize
        # Of runs of rows that lie side by side
        ends = [*(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
        with self.path.open("rb", buffering=0) as file:
            for start, end in zip([0, *ends], ends, strict=False):
                file.seek(self.offset + int(rows[start]) * size)
                found = np.fromfile(file, self.record, end - start)
                if len(found) < end - start or (found["lead"] != self.shape[1]).any():
                    wrong = (
                        "is cut short"
                        if len(found) < end - start
                        else f"has not the length {self.shape[1]}"
                    )
                    raise InputError(
                        f"{self.path}: a row from {rows[start]} on {wrong}: write the file again"
                    )
                numbers = found["row"]
                if is_bfloat16:  # the upper half of a float32
                    numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
                out[start:end] = numbers
        return out


class Parquet(Vectors):
    """A column of lists, read by row groups; those that hold no row asked for are left alone.

    The numbers of a row may be a list, a tensor of one axis, or a list of JSON spelt as text.
    """

    def __init__(self, path: Path, column: str) -> None:
        """Open a column of lists of numbers, by default the only one."""
        self.name = str(path)
        with self._damage_told():
            self.file = pq.ParquetFile(path, memory_map=True)
        types = {field.name: field.type for field in self.file.schema_arrow}
        counts = [self.file.metadata.row_group(g).num_rows for g in range(self.file.num_row_groups)]
        self.starts = np.cumsum([0, *counts])
        numbers = {name: _number_type(kind) for name, kind in types.items()}
        lists = [name for name, kind in numbers.items() if kind is not None]
        texts = [name for name, kind in types.items() if _is_text(kind)]
        looked_into = [name for name in texts if name == column or not lists]
        spelt = [name for name in looked_into if vector_in(self._first(name)) is not None]
        what = "a list of numbers in each row"
        hint = _hint(str(path), column, {name: _content(kind) for name, kind in types.items()})
        self.column = chosen(column, [*lists, *spelt], list(types), str(path), what, hint)
        self.spelt = self.column in spelt
        self.dtype = np.dtype(np.float64 if self.spelt else numbers[self.column].to_pandas_dtype())
        self.kind = JSON_NUMBERS if self.spelt else str(self.dtype)
        first = next((rows for _, rows in self._batches(range(len(counts)), 1)), np.empty((0, 0)))
        self.shape = matrix_shape((self.file.metadata.num_rows, first.shape[1]), self.name)
        nameable = [
            name for name, kind in types.items() if _is_text(kind) or pa.types.is_integer(kind)
        ]
        self.id_column = naming([name for name in nameable if name != self.column])

    def ids(self, start: int, stop: int) -> list[Name]:
        """The values of the column that names rows."""
        first, last = np.searchsorted(self.starts, [start, stop - 1], side="right") - 1
        named: list[Name] = []
        for group in range(first, last + 1):
            for batch in self._read(2**16, group, self.id_column):
                with self._damage_told():
                    named += batch.column(0).to_pylist()
        skipped = start - int(self.starts[first])
        return named[skipped : skipped + stop - start]

    def _first(self, column: str) -> Any:
        """The value of the first row."""
        for group in range(len(self.starts) - 1):
            for batch in self._read(1, group, column):
                with self._damage_told():
                    return batch.column(0)[0].as_py()
        return None

    def _take(self, rows: Rows) -> Any:
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        groups = np.unique(np.searchsorted(self.starts, rows, side="right") - 1).tolist()
        for start, block in self._batches(groups, max(1, BLOCK // 4 // self.shape[1])):
            low, high = np.searchsorted(rows, [start, start + len(block)])
            out[low:high] = block[rows[low:high] - start]
        return out

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        groups = range(
            int(np.searchsorted(self.starts, first, side="right")) - 1,
            len(self.starts) - 1,
        )
        for start, block in self._batches(groups, size):
            if start + len(block) > first:
                yield block[max(0, first - start) :]

    def _batches(self, groups: Sequence[int], size: int) -> Iterator[tuple[int, Any]]:
        """Number of the first row, and rows, of parts of some row groups."""
        for group in groups:
            start = int(self.starts[group])
            for batch in self._read(size, group, self.column):
                lists = self._lists(batch.column(0))
                values = lists.flatten()
                D = self.shape[1] if hasattr(self, "shape") else len(values) // len(lists)
                wrong = np.asarray(lists.value_lengths().fill_null(-1)) != D
                if not D or wrong.any() or values.null_count:
                    row = start + int(np.argmax(wrong)) if wrong.any() else start
                    raise InputError(
                        f"{self.name} row {row} or after is empty or has not {D} numbers: drop "
                        "such rows"
                    )
                yield start, values.to_numpy(zero_copy_only=False).reshape(-1, D)
                start += len(lists)

    def _lists(self, column: Any) -> Any:
        """A part of the column as lists of numbers, null where there is none."""
        if isinstance(column, pa.ExtensionArray):
            return column.storage
        if self.spelt:
            with self._damage_told():
                vectors = [vector_in(text) for text in column.to_pylist()]
            return pa.array(vectors, pa.list_(pa.float64()))
        return column

    def _read(self, size: int, group: int, column: str) -> Iterator[Any]:
        with self._damage_told():
            yield from self.file.iter_batches(size, row_groups=[group], columns=[column])

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            with memory_explained(f"read {self.name}"):
                yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.name} is not a whole parquet file ({error}): write it again"
            ) from None


@dataclass(frozen=True)
class Field:
    """Where the vector is in each line of JSON: bare, or a field of an object."""

    file: str
    column: str = ""  # none where the vector is bare
    id_column: str = ""

    @classmethod
    def of(cls, file: str, first: Any, column: str) -> "Field":
        """The field named, or the only one of the first line that is a list of numbers."""
        if not isinstance(first, dict):
            return cls(file)
        lists = [name for name, value in first.items() if vector_in(value) is not None]
        hint = _hint(file, column, {name: _content_of(value) for name, value in first.items()})
        named = chosen(column, lists, list(first), f"{file} line 1", "a list of numbers", hint)
        nameable = [name for name, value in first.items() if isinstance(value, int | str)]
        return cls(file, named, naming([name for name in nameable if name != named]))

    def vector(self, record: Any, row: int, width: int = 0) -> list[float]:
        """The numbers of a line, of which `width` are expected unless that is 0."""
        value = record.get(self.column) if isinstance(record, dict) else record
        numbers = vector_in(value)
        if numbers is None:
            where = f" under {self.column!r}" if self.column else ""
            lacking = f"{self.file} row {row} holds no list of numbers{where}"
            raise InputError(f"{lacking}: drop or repair such rows")
        if width and len(numbers) != width:
            raise InputError(f"{self.file} row {row} has {len(numbers)} numbers, row 0 has {width}")
        return numbers

    def id(self, record: Any) -> Name:
        """What names a line."""
        value = record.get(self.id_column) if isinstance(record, dict) else None
        return value if isinstance(value, int | str) else None


class JsonLines(Vectors):
    """One vector on each line, bare or a field of an object; where lines begin is found by reading
    the file once.
    """

    kind = JSON_NUMBERS

    def __init__(self, path: Path, column: str) -> None:
        """Open a field of numbers, by default the only one."""
        self.path, self.name = path, str(path)
        with path.open("rb") as file:
            line = next((line for line in file if not line.isspace()), None)
        if line is None:
            raise InputError(f"{path} is empty: {A_LINE_EACH}")
        first = read_line(line, self.name, 0)
        self.field = Field.of(self.name, first, column)
        self.id_column = self.field.id_column
        self.shape = len(self.starts), len(self.field.vector(first, 0))

    @cached_property
    def starts(self) -> Rows:
        """Where each line that is not blank begins."""
        place, starts = 0, []
        with self.path.open("rb") as file:
            for line in file:
                if not line.isspace():
                    starts.append(place)
                place += len(line)
        return np.array(starts, np.int64)

    def ids(self, start: int, stop: int) -> list[Name]:
        """The values of the field that names rows."""
        return [self.field.id(self._json(row)) for row in range(start, stop)]

    def _take(self, rows: Rows) -> Any:
        out = np.empty((len(rows), self.shape[1]))
        for place, row in enumerate(rows.tolist()):
            out[place] = self.field.vector(self._json(row), row, self.shape[1])
        return out

    def _json(self, row: int) -> Any:
        self._file.seek(int(self.starts[row]))
        return read_line(self._file.readline(), self.name, row)

    @cached_property
    def _file(self) -> Any:
        return self.path.open("rb")


def packed_json_lines(path: Path, column: str) -> Vectors:
    """Vectors of gzipped JSON lines, unpacked whole: no row of gzip is read without all before
    it.
    """
    field: Field | None = None
    rows: list[Any] = []
    ids: list[Name] = []
    for _, line in read_lines(path):
        if not line.strip():
            continue
        record = read_line(line, str(path), len(rows))
        field = field or Field.of(str(path), record, column)
        width = len(rows[0]) if rows else 0
        rows.append(np.array(field.vector(record, len(rows), width), np.float64))
        ids.append(field.id(record))
    if field is None:
        raise InputError(f"{path} is empty: {A_LINE_EACH}")
    X = np.stack(rows)
    return Matrix(X, str(path), kind=JSON_NUMBERS, ids=ids, id_column=field.id_column)


def read_line(line: str | bytes, file: str, row: int) -> Any:
    """What a line of JSON says."""
    return read_json(line, f"{file} row {row}", A_LINE_EACH, parse_int=_whole_number)


def _whole_number(digits: str) -> int | float:
    """A number, exactly as ids need it; a float where it is longer than ids are."""
    return int(digits) if len(digits) < 20 else float(digits)


def vector_in(value: Any) -> list[float] | None:
    """The numbers of a list, or of a list of JSON spelt as text; None where there are none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(InputError):
            value = read_json(value, "the text", parse_int=float)
    if not isinstance(value, list) or not value:
        return None
    return value if all(type(number) is float or type(number) is int for number in value) else None


def naming(columns: Sequence[str]) -> str:
    """The column that names rows; empty where none does."""
    for name in NAMING:
        for column in columns:
            if column.lower() == name:
                return column
    return ""


def chosen(
    column: str,
    fitting: Sequence[str],
    there: Sequence[str],
    where: str,
    what: str,
    hint: str = "",
) -> str:
    """The column named, or the only one that fits; a message of another ends with the hint."""
    listed = ", ".join(there[:LISTED])
    if len(there) > LISTED:
        listed += f" and {len(there) - LISTED} more"
    if column and column not in fitting:
        raise NoMatrixError(f"{where}: {column!r} is not {what}; there are {listed}{hint}")
    if not fitting:
        raise NoMatrixError(f"{where}: none of {listed} is {what}{hint}")
    if not column and len(fitting) > 1:
        raise InputError(f"{where}: {', '.join(fitting)} are each {what}: name one by --column")
    return column or fitting[0]


def _hint(file: str, column: str, contents: Mapping[str, str]) -> str:
    """What to do where a file holds its vectors in a form that is not read; empty if none is seen.

    `contents` says of each column what it holds: "a number", "base64", "bytes", a tensor, or else.
    """
    outer, _, inner = column.partition(".")
    if inner and outer in contents:
        steps = [f"[{step}]" if step.isdecimal() else f".{step}" for step in column.split(".")]
        wanted = f"write the vectors by themselves, jq -c '{''.join(steps)}' {file} > X.jsonl"
        return f"; fields of fields are not read: {wanted}"
    for name in [column] if column in contents else contents:
        if contents[name] in ("base64", "bytes"):
            decoded = f"base64.b64decode({name})" if contents[name] == "base64" else name
            wanted = f"decode each, np.frombuffer({decoded}, '<f4'), and save the matrix by np.save"
            return f"; {name} looks like {contents[name]} of numbers: {wanted}"
        if contents[name].startswith(TENSOR):
            return f"; {name} holds {contents[name]} in each row: save one vector a row"
    if sum(content == "a number" for content in contents.values()) >= SPREAD:
        wanted = "make a matrix of them, np.save('X.npy', frame[columns].to_numpy())"
        return f"; columns of single numbers are not read as one vector: {wanted}"
    return ""


def _content(kind: Any) -> str:
    """What a column of Arrow holds, in the words of `_hint`."""
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return "a number"
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"{TENSOR} {kind.shape}"
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(is_kind(kind) for is_kind in binary):
        return "bytes"
    return str(kind)


def _content_of(value: Any) -> str:
    """What a field of JSON holds, in the words of `_hint`."""
    if isinstance(value, str):
        return "base64" if BASE64.fullmatch(value) else "text"
    return "a number" if isinstance(value, int | float) else type(value).__name__


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _number_type(kind: Any) -> Any:
    """Arrow's type of the numbers in the lists or vectors of a column; None if it holds others."""
    if isinstance(kind, pa.FixedShapeTensorType) and len(kind.shape) != 1:
        return None
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(kind) for is_kind in lists):
        return None
    number = kind.value_type
    return number if pa.types.is_floating(number) or pa.types.is_integer(number) else None


def matrix_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """The shape, if it is that of a matrix with at least one number; `name` is told in messages."""
    if len(shape) != 2 or min(shape) < 1:
        wanted = (
            "at least one row and one column"
            if len(shape) == 2
            else "a matrix (n, dim), one row per vector"
        )
        kind = InputError if len(shape) == 2 else NoMatrixError
        raise kind(f"{name} has shape {tuple(shape)}: expected {wanted}")
    return int(shape[0]), int(shape[1])


def _kind(dtype: Any, name: str) -> str:
    if dtype.kind not in NUMBERS:
        raise NoMatrixError(f"{name} holds {dtype} values: expected numbers, such as float32")
    return str(dtype)
