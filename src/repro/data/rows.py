"""Lines of a text file and rows of a TSV file, read strictly: every fault names file, line and column.

The format has no quoting: a tab always ends a column and a line feed always ends a row, so a text may hold bare quotes.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from repro.types import InputError


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end) of a UTF-8 text file, plain or gzipped.

    Raises:
        InputError: if the file is missing, is not gzip though named .gz, is cut short, or is not UTF-8.
    """
    if not path.is_file():
        raise InputError(f"no file {path}: check the path, or set REPRO_DATA to the folder that holds the benchmarks")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, _decode(line, path, number)
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{path} ends in the middle of its gzip stream after line {number} ({error}): copy the file again"
        ) from None
    except gzip.BadGzipFile as error:
        raise InputError(f"{path} is named .gz but is not gzip ({error}): compress it or drop the ending") from None


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, {column: value}) of a TSV file whose header holds at least `columns`.

    Raises:
        InputError: for a missing header column or a row with another number of columns than the header.
    """
    lines = read_lines(path)
    header = _header(path, lines)
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputError(
            f"{path} line 1: the header has columns {', '.join(header)} but lacks {', '.join(missing)}; "
            f"expected at least {', '.join(columns)}, separated by tabs"
        )
    for number, line in lines:
        values = line.split("\t")
        if len(values) != len(header):
            raise InputError(
                f"{path} line {number}: {len(values)} columns, expected {len(header)} ({', '.join(header)}); "
                "tabs separate columns and nothing is quoted"
            )
        yield number, dict(zip(header, values, strict=True))


def read_header(path: Path) -> tuple[str, ...]:
    """The column names of a TSV file.

    Raises:
        InputError: if the file is empty or a name occurs twice.
    """
    return _header(path, read_lines(path))


def text_value(row: dict[str, str], column: str, path: Path, number: int) -> str:
    """The text in one column.

    Raises:
        InputError: if it is blank.
    """
    if not row[column].strip():
        raise InputError(f"{path} line {number}, column {column}: empty; expected a text, so fill it or drop the row")
    return row[column]


def number_value(row: dict[str, str], column: str, path: Path, number: int) -> float:
    """The finite number in one column.

    Raises:
        InputError: if it is not a number, or not finite.
    """
    try:
        value = float(row[column])
    except ValueError:
        value = float("nan")
    if value - value != 0:  # NaN and both infinities
        raise InputError(f"{path} line {number}, column {column}: {row[column]!r} is not a finite number")
    return value


def _header(path: Path, lines: Iterator[tuple[int, str]]) -> tuple[str, ...]:
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty: expected a header line and rows")
    header = tuple(first[1].removeprefix("\ufeff").split("\t"))
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{path} line 1: the column {repeated!r} occurs twice; expected every column once")
    return header


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column = line[: error.start].count(b"\t") + 1
        raise InputError(
            f"{path} line {number}, column {column}: byte 0x{line[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from None
