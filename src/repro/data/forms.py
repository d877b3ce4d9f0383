"""The forms a table may have: TSV, CSV, JSON lines, parquet. Each becomes column names and rows of strings.

TSV has no quoting: a tab always ends a column and a line feed always ends a row, so a text may hold bare quotes.
CSV is quoted as spreadsheets and pandas do; commas, semicolons or tabs separate. An empty cell is an empty string.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from repro.data.lines import LONGEST, read_lines
from repro.types import InputError

Row: TypeAlias = tuple[int, list[str]]
"""Its number, which is the line where it starts (in parquet: the row, from 1), and its values."""

ENDINGS = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")


def ending(path: Path) -> str:
    """The ending that says what form a file has, `.gz` aside."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def read_form(path: Path) -> tuple[tuple[str, ...], Iterator[Row]]:
    """Column names of a table and its rows, each with as many values.

    Raises:
        InputError: if the file is empty or malformed; while the rows are read, for a row that is.
    """
    match ending(path):
        case ".csv":
            return _csv(path)
        case ".jsonl" | ".ndjson" | ".json":
            return _json_lines(path)
        case ".parquet":
            return _parquet(path)
        case _:
            return _tsv(path)


def _tsv(path: Path) -> tuple[tuple[str, ...], Iterator[Row]]:
    lines = read_lines(path)
    header = _first(path, next(lines, None))[1].split("\t")
    return tuple(header), ((number, line.split("\t")) for number, line in lines)


def _csv(path: Path) -> tuple[tuple[str, ...], Iterator[Row]]:
    first = _first(path, next(read_lines(path), None))[1]
    csv.field_size_limit(LONGEST)
    reader = csv.reader(
        (f"{line}\n" for _, line in read_lines(path)), delimiter=max(",;\t", key=first.count), strict=True
    )

    def rows() -> Iterator[Row]:
        start = 1
        try:
            for values in reader:
                if values:  # a blank line is no row
                    yield start, values
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                f"{path} line {start}: {error}; expected CSV, a text with quotes or line ends in double quotes"
            ) from None

    found = rows()
    return tuple(_first(path, next(found, None))[1]), found


def _json_lines(path: Path) -> tuple[tuple[str, ...], Iterator[Row]]:
    def records() -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in read_lines(path):
            if line.strip():
                yield number, _record(path, number, line)

    first = _first(path, next(records(), None))[1]

    def rows() -> Iterator[Row]:
        for number, record in records():
            lacking = [name for name in first if name not in record]
            if lacking:
                raise InputError(f"{path} line {number}: no {lacking[0]!r}, which the first line has")
            yield number, [_plain(record[name]) for name in first]

    return tuple(first), rows()


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number} is not JSON ({error}): expected one object on each line") from None
    if not isinstance(record, dict):
        raise InputError(f"{path} line {number} is {line[:40]!r}: expected one JSON object on each line")
    return record


def _parquet(path: Path) -> tuple[tuple[str, ...], Iterator[Row]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is no parquet file that can be read ({error}): write it again") from None
    names = tuple(file.schema_arrow.names)

    def rows() -> Iterator[Row]:
        number = 0
        try:
            for batch in file.iter_batches(10_000):
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, [_plain(value) for value in values]
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} cannot be read after row {number} ({error}): write it again") from None

    return names, rows()


def _plain(value: Any) -> str:
    """A cell as text; what is no text (nothing, NaN, a list, an object) is empty, and refused where it is wanted."""
    if value is None or isinstance(value, list | dict | bytes) or value != value:
        return ""
    return str(value)


def _first(path: Path, found: Any) -> Any:
    if found is None:
        raise InputError(f"{path} is empty: expected column names and rows")
    return found
