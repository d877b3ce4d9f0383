"""Vectors in a column of parquet."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dimadvise.columns import TENSOR, chosen, hint, named_by
from dimadvise.files import (
    BLOCK,
    JSON_NUMBERS,
    Name,
    Rows,
    Vectors,
    matrix_shape,
    memory_explained,
)
from dimadvise.jsonlines import vector_in
from repro.types import InputError


class Parquet(Vectors):
    """A column of lists, read by row groups; those that hold no row asked for are left alone.

    The numbers of a row may be a list, a tensor of one axis, or a list of JSON spelt as text.
    """

    def __init__(self, path: Path, column: str) -> None:
        """Open a column of lists of numbers, by default the only one."""
        self.name = str(path)
        with self._damage_told():
            self.file = pq.ParquetFile(path, memory_map=True)
        names = self.file.schema_arrow.names
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise InputError(
                f"{path}: the column {repeated!r} occurs twice; expected every column once"
            )
        types = {field.name: field.type for field in self.file.schema_arrow}
        counts = [self.file.metadata.row_group(g).num_rows for g in range(self.file.num_row_groups)]
        self.starts = np.cumsum([0, *counts])
        numbers = {name: _number_type(kind) for name, kind in types.items()}
        lists = [name for name, kind in numbers.items() if kind is not None]
        texts = [name for name, kind in types.items() if _is_text(kind)]
        looked_into = [name for name in texts if name == column or not lists]
        spelt = [name for name in looked_into if vector_in(self._first(name)) is not None]
        tips = hint(self.name, column, {name: _content(kind) for name, kind in types.items()})
        expected = "a list of numbers in each row"
        self.column = chosen(column, [*lists, *spelt], list(types), self.name, expected, tips)
        self.spelt = self.column in spelt
        self.dtype = np.dtype(np.float64 if self.spelt else numbers[self.column].to_pandas_dtype())
        self.kind = JSON_NUMBERS if self.spelt else str(self.dtype)
        first = next((rows for _, rows in self._batches(range(len(counts)), 1)), np.empty((0, 0)))
        self.shape = matrix_shape((self.file.metadata.num_rows, first.shape[1]), self.name)
        nameable = {name: _names_rows(kind) for name, kind in types.items()}
        self.id_column, self.unread_ids = named_by(nameable, self.column)

    def _ids(self, start: int, stop: int) -> list[Name]:
        """The values of the column that names rows."""
        first, last = self._groups([start, stop - 1])
        with self._damage_told():
            groups = self.file.read_row_groups(range(first, last + 1), [self.id_column])
            named = groups.column(0).slice(start - int(self.starts[first]), stop - start)
            return list(named.to_pylist())

    def _first(self, column: str) -> Any:
        """The value of the first row; None where there is no row."""
        with self._damage_told():
            for batch in self.file.iter_batches(1, columns=[column]):
                return batch.column(0)[0].as_py()
        return None

    def _groups(self, rows: Any) -> Any:
        """The row group of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def _take(self, rows: Rows) -> Any:
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        groups = np.unique(self._groups(rows)).tolist()
        for start, block in self._batches(groups, max(1, BLOCK // 4 // self.shape[1])):
            low, high = np.searchsorted(rows, [start, start + len(block)])
            out[low:high] = block[rows[low:high] - start]
        return out

    def _blocks(self, size: int, first: int) -> Iterator[Any]:
        groups = range(int(self._groups(first)), len(self.starts) - 1)
        for start, block in self._batches(groups, size):
            if start + len(block) > first:
                yield block[max(0, first - start) :]

    def _batches(self, groups: Sequence[int], size: int) -> Iterator[tuple[int, Any]]:
        """Number of the first row, and rows, of parts of some row groups."""
        for group in groups:
            start = int(self.starts[group])
            for lists in self._lists(size, group):
                values = lists.flatten()
                D = self.shape[1] if hasattr(self, "shape") else len(values) // len(lists)
                bad = np.asarray(lists.value_lengths().fill_null(-1)) != D
                if D and values.null_count and not bad.any():
                    bad = np.asarray(values.is_null()).reshape(-1, D).any(axis=1)
                if not D or bad.any():
                    place = int(np.argmax(bad)) if D else 0
                    wrong = _wrong_with(lists[place].as_py(), D)
                    raise InputError(f"{self.name} row {start + place} {wrong}: drop such rows")
                yield start, values.to_numpy(zero_copy_only=False).reshape(-1, D)
                start += len(lists)

    def _lists(self, size: int, group: int) -> Iterator[Any]:
        """Parts of the column as lists of numbers, null where there is none."""
        with self._damage_told():
            for batch in self.file.iter_batches(size, row_groups=[group], columns=[self.column]):
                lists = batch.column(0)
                if self.spelt:
                    spelt = [vector_in(text) for text in lists.to_pylist()]
                    lists = pa.array(spelt, pa.list_(pa.float64()))
                yield lists.storage if isinstance(lists, pa.ExtensionArray) else lists

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            with memory_explained(f"read {self.name}"):
                yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.name} is not a whole parquet file ({error}): write it again"
            ) from None


def _wrong_with(numbers: Sequence[Any] | None, D: int) -> str:
    """What is wrong with a row that is no list of D numbers; D is 0 where no row has told it."""
    if not numbers:
        return "holds no list of numbers" if numbers is None else "is empty"
    if None in numbers:
        return f"has a null at {numbers.index(None)} among its {len(numbers)} numbers"
    return f"has {len(numbers)} numbers, row 0 has {D}"


def _content(kind: Any) -> str:
    """What a column of Arrow holds, in the words of `hint`."""
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return "a number"
    if isinstance(kind, pa.FixedShapeTensorType):
        return f"{TENSOR} {kind.shape}"
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if any(is_kind(kind) for is_kind in binary):
        return "bytes"
    return str(kind)


def _is_text(kind: Any) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in texts)


def _names_rows(kind: Any) -> bool:
    """Whether values of a type of Arrow are ids: whole numbers, texts, or a dictionary of these."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(_is_text(kind) or pa.types.is_integer(kind))


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
