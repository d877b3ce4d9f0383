"""The forms that a table comes in: TSV, CSV, JSON lines, parquet, and a folder that the package
`datasets` saved to disk, which has a column of its splits.

Each is a function that gives the column names as its first row, and then the rows that follow.
"""

import csv
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from repro.data.lines import LONGEST, read_lines
from repro.paths import inside
from repro.reading import fields_once, is_out_of_memory, parse_json, read_json, regular_file
from repro.types import InputError

Row: TypeAlias = tuple[int, list[str]]
"""Its number, which is the line where it starts (in parquet and Arrow: the row, from 1), and its
values.
"""
RawRow: TypeAlias = tuple[int, list[Any]]
"""The same as a form gives it: None where the row has nothing by that name."""
ENDINGS = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")


def ending(path: Path) -> str:
    """The ending that says what form a file has, `.gz` aside."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def tsv(path: Path) -> Iterator[Row]:
    """Lines of columns that tabs separate; nothing is quoted."""
    return ((number, line.split("\t")) for number, line in read_lines(path))


def _csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)
    header = next(read_lines(path), (0, ""))[1]
    lines = (f"{line}\n" for _, line in read_lines(path))
    reader, start = csv.reader(lines, delimiter=max(",;\t", key=header.count), strict=True), 1
    try:
        for values in reader:
            if values:  # A blank line is no row
                yield start, values
            start = reader.line_num + 1
    except csv.Error as error:
        expected = "expected CSV, a text with quotes or line ends in double quotes"
        raise InputError(f"{path} line {start}: {error}; {expected}") from None


def _json_lines(path: Path) -> Iterator[RawRow]:
    names: list[str] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        expected = "expected one JSON object on each line"
        where = f"{path} line {number}"
        record = parse_json(line, where, expected, object_pairs_hook=fields_once)
        if not isinstance(record, dict):
            raise InputError(f"{where} is {line[:40]!r}: {expected}")
        if not names:
            names = list(record)
            yield number, names
        yield number, [_plain(record[name]) if name in record else None for name in names]


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        regular_file(path)
    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        file = pq.ParquetFile(path)
        yield 0, file.schema_arrow.names
        number = count(1)
        for batch in file.iter_batches():
            for values in _batch_rows(batch):
                yield next(number), values
    except (pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(
            f"{path} is no parquet file that can be read ({error}): write it again"
        ) from None


def _batch_rows(batch: Any) -> Iterator[list[str]]:
    """The rows of an Arrow batch; what is nested, such as a vector, is no text and costs
    nothing.
    """
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        nested = pa.types.is_nested(column.type)
        columns.append(
            [""] * len(column) if nested else [_plain(value) for value in column.to_pylist()]
        )
    return map(list, zip(*columns, strict=True))


# Notes of a set that `datasets` saved, and of one with splits
STATE, SPLITS = "state.json", "dataset_dict.json"


def saved_folder(folder: Path) -> Iterator[Row]:
    """Rows of a folder that `save_to_disk` of the package `datasets` wrote; of several splits, with
    a column split.
    """
    import pyarrow as pa

    parts: dict[str, Path] = {"": folder}
    if (folder / SPLITS).is_file():
        parts = {
            str(split): inside(folder, str(split)) for split in _noted(folder / SPLITS, "splits")
        }
    elif not (folder / STATE).is_file():
        raise InputError(
            f"{folder} is a folder without {STATE} or {SPLITS}: give a file, or a folder that "
            "`save_to_disk` of the package datasets wrote"
        )
    names: list[str] = []
    number = count(1)
    for split, part in parts.items():
        for file in _saved_files(part):
            try:
                reader = pa.ipc.open_stream(pa.memory_map(str(file)))
                if not names:
                    names = reader.schema.names
                    named = "split" in names or not split
                    yield 0, names if named else ["split", *names]
                if reader.schema.names != names:
                    found = ", ".join(reader.schema.names)
                    raise InputError(
                        f"{file} has the columns {found}: expected {', '.join(names)}, as the first"
                    )
                for batch in reader:
                    batch.validate(full=True)  # Offsets are trusted afterwards
                    for values in _batch_rows(batch):
                        yield next(number), values if named else [split, *values]
            except (pa.ArrowException, OSError) as error:
                raise InputError(
                    f"{file} is no Arrow file that can be read ({error}): save it again"
                ) from None


def _saved_files(folder: Path) -> list[Path]:
    """The Arrow files of one split, in their order."""
    note = folder / STATE
    files = _noted(note, "_data_files")
    try:
        return [inside(folder, str(file["filename"])) for file in files]
    except (TypeError, KeyError):
        raise InputError(f"{note} names no files that can be read: save the set again") from None


def _noted(note: Path, key: str) -> list[Any]:
    """A list that a note of `datasets` holds."""
    try:
        found = read_json(note, "save the set again")[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{note} cannot be read ({error}): save the set again") from None
    if not isinstance(found, list):
        raise InputError(f"{note} holds {found!r} as {key}: expected a list; save the set again")
    return found


FORMS = {
    ".csv": _csv,
    ".parquet": _parquet,
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json_lines),
}


def _plain(value: Any) -> str:
    """A cell as text; what is no text (nothing, NaN, a list, an object) is empty, and refused where
    it is wanted.
    """
    if value is None or isinstance(value, list | dict | bytes) or value != value:
        return ""
    return str(value)
