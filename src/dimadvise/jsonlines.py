"""Vectors in lines of JSON, and in texts of a table that spell lists of JSON."""

import re
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dimadvise.columns import NAMING, chosen, hint, named_by, naming
from dimadvise.files import JSON_NUMBERS, Name, Rows, Vectors, read_json
from repro.data.lines import read_lines
from repro.reading import fields_once
from repro.types import InputError

A_LINE_EACH = "expected one vector, or one object with a vector, on each line"
NAMED = re.compile(rf'"({"|".join(NAMING)})"\s*:'.encode(), re.IGNORECASE)
"""What a line has in it where a field may name rows."""
BASE64 = re.compile(r"[A-Za-z0-9+/]{80,}={0,2}")


class JsonLines(Vectors):
    """One vector on each line, bare or a field of an object; where lines begin is found by reading
    the file once.
    """

    kind = JSON_NUMBERS

    def __init__(self, path: Path, column: str) -> None:
        """Open a field of numbers, by default the only one that the first line has."""
        self.name, self.file = str(path), _plain_lines(path)
        self.named_row: dict[str, Any] = {}
        self.starts = self._starts()
        if not len(self.starts):
            raise InputError(f"{path} is empty: {A_LINE_EACH}")
        first = self._json(0)
        self.column = ""  # none where vectors are bare
        if isinstance(first, dict):
            lists = [name for name, value in first.items() if vector_in(value) is not None]
            tips = hint(self.name, column, {name: _content(cell) for name, cell in first.items()})
            where = f"{path} line 1"
            self.column = chosen(column, lists, list(first), where, "a list of numbers", tips)
            # The first row may have no name where others do
            nameable = {name: _names_a_row(cell) for name, cell in self.named_row.items()}
            self.id_column, self.unread_ids = named_by(nameable, self.column)
        self.shape = len(self.starts), len(self._vector(0))

    def _ids(self, start: int, stop: int) -> list[Name]:
        """The values of the field that names rows."""
        names: list[Name] = []
        for row in range(start, stop):
            record = self._json(row)
            value = record.get(self.id_column) if isinstance(record, dict) else None
            if not _names_a_row(value):
                raise InputError(
                    f"{self.name} row {row} has {value!r} under {self.id_column!r}: expected a "
                    "whole number or a text that names the row"
                )
            names.append(value)
        return names

    def _take(self, rows: Rows) -> Any:
        return np.array([self._vector(row) for row in rows.tolist()], np.float64)

    def _vector(self, row: int) -> list[float]:
        record = self._json(row)
        numbers = vector_in(record.get(self.column) if isinstance(record, dict) else record)
        if numbers is None:
            where = f" under {self.column!r}" if self.column else ""
            raise InputError(
                f"{self.name} row {row} holds no list of numbers{where}: drop or repair such rows"
            )
        if row and len(numbers) != self.shape[1]:
            raise InputError(
                f"{self.name} row {row} has {len(numbers)} numbers, row 0 has {self.shape[1]}"
            )
        return numbers

    def _json(self, row: int) -> Any:
        self.file.seek(int(self.starts[row]))
        where = f"{self.name} row {row}"
        reading = {"parse_int": _whole_number, "object_pairs_hook": fields_once}
        return read_json(self.file.readline(), where, A_LINE_EACH, **reading)

    def _starts(self) -> Rows:
        """Where each line that is not blank begins."""
        place, starts = 0, []
        for line in self.file:
            if not line.isspace():
                starts.append(place)
                if not self.named_row and NAMED.search(line):
                    self.named_row = _row_with_a_name(line)
            place += len(line)
        return np.array(starts, np.int64)


def _row_with_a_name(line: bytes) -> dict[str, Any]:
    """The object on a line if a field of it may name rows, not a field within another; else
    nothing.
    """
    with suppress(InputError):
        record = read_json(line, "the line", parse_int=_whole_number)
        if isinstance(record, dict) and naming(list(record)):
            return record
    return {}


def _plain_lines(path: Path) -> Any:
    """The file, open; what is gzipped is unpacked whole, as no row of it is read without all
    before it.
    """
    if path.suffix.lower() != ".gz":
        return path.open("rb")
    file = BytesIO()
    for _, line in read_lines(path):
        file.write(line.encode() + b"\n")
    file.seek(0)
    return file


def _whole_number(digits: str) -> int | float:
    """A number, exactly as ids need it; a float where it is longer than ids are, of 64 bits with or
    without a sign.
    """
    return int(digits) if len(digits.lstrip("-")) <= 20 else float(digits)


def _names_a_row(value: Any) -> bool:
    """Whether a value of JSON names a row or is none; a text with half a letter does not."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def vector_in(value: Any) -> list[float] | None:
    """The numbers of a list, or of a list of JSON spelt as text; None where there are none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        with suppress(InputError):
            value = read_json(value, "the text", parse_int=float)
    if not isinstance(value, list) or not value:
        return None
    return value if all(type(number) is float or type(number) is int for number in value) else None


def _content(value: Any) -> str:
    """What a field of JSON holds, in the words of `hint`."""
    if isinstance(value, str):
        return "base64" if BASE64.fullmatch(value) else "text"
    return "a number" if isinstance(value, int | float) else type(value).__name__
