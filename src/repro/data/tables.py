"""Files of a user's own: lines of text, and tables in TSV, CSV, JSON lines or parquet, gzipped or not.

Every fault names file, line and column.
TSV has no quoting: a tab always ends a column and a line feed always ends a row, so a text may hold bare quotes.
CSV is quoted as spreadsheets and pandas do; commas, semicolons or tabs separate. An empty cell is an empty string.
A column is known by our name in any case (`Score`), by a common other name (`text_a`), or as its reader names it.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from repro.data.spec import NOTHING
from repro.types import InputError

LONGEST = 2**24
"""Bytes in a line, at most: far beyond any text, and small beside what a few kB of gzip can unpack to."""
Row: TypeAlias = tuple[int, list[str]]
"""Its number, which is the line where it starts (in parquet: the row, from 1), and its values."""

ENDINGS = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "sentence1": ("text1", "texta", "sentencea", "question1", "premise"),
    "sentence2": ("text2", "textb", "sentenceb", "question2", "hypothesis"),
    "score": ("similarity", "similarityscore", "relatednessscore"),
    "label": ("class", "category"),
    "text": ("sentence",),
    **dict.fromkeys(("split", "subset", "row1", "row2", "query", "document", "relevance"), ()),
}
"""Our column → what else it is often called, without case, spaces, hyphens and underscores."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end); a byte order mark at the start is not part of the text."""
    if not path.is_file():
        raise InputError(f"no file {path}: check the path, or set REPRO_DATA to the folder that holds the benchmarks")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
                if len(line) > LONGEST:
                    limit = f"{LONGEST >> 20} MiB"
                    raise InputError(f"{path} line {number} is longer than {limit}: expected one text or row a line")
                yield number, _decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, path, number)
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{path} ends in the middle of its gzip stream after line {number} ({error}): copy the file again"
        ) from None
    except gzip.BadGzipFile as error:
        raise InputError(f"{path} is named .gz but is not gzip ({error}): compress it or drop the ending") from None


def filled_lines(path: Path) -> list[str]:
    """The lines of a file of which line i is row i; blank lines at its end are not rows."""
    lines: list[str] = []
    blank = 0
    for number, line in read_lines(path):
        if not line.strip():
            blank = blank or number
        elif blank:
            raise InputError(
                f"{path} line {blank} is blank: expected a text or label on every line, for line i is row i; fill it, "
                "or delete such lines (`grep .`) together with what belongs to them elsewhere"
            )
        else:
            lines.append(line)
    return lines


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column = line[: error.start].count(b"\t") + 1
        raise InputError(
            f"{path} line {number}, column {column}: byte 0x{line[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from None


class Table:
    """A table by our names for its columns; its rows are read when they are first asked for."""

    def __init__(self, path: Path, named: Mapping[str, str] = NOTHING, needed: Sequence[str] = ()) -> None:
        """Read the header of a file whose ending says its form, TSV unless it is another.

        Args:
            path: The file.
            named: Our column → the file's, where it goes by a name of its own.
            needed: Our columns that it must have.
        """
        self.path = path
        self._rest = _FORMS.get(ending(path), _tsv)(path)
        try:
            self.found = tuple(next(self._rest)[1])
        except StopIteration:
            raise InputError(f"{path} is empty: expected column names and rows") from None
        self.columns = _known(path, self.found, named)
        missing = [column for column in needed if column not in self.columns]
        if missing:
            raise InputError(
                f"{path} line 1: the header has columns {', '.join(self.found)} but lacks {', '.join(missing)}; "
                f"expected at least {', '.join(needed)}; name another column by --columns {missing[0]}=COLUMN"
            )

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        rows = []
        for number, values in self._rest:
            if len(values) != len(self.columns):
                raise InputError(
                    f"{self.path} line {number}: {len(values)} columns, expected {len(self.columns)} "
                    f"({', '.join(self.found)}); in TSV tabs separate columns and nothing is quoted"
                )
            rows.append((number, values))
        return rows

    def __getitem__(self, column: str) -> list[str]:
        """The values of one of our columns."""
        place = self.columns.index(column)
        return [values[place] for _, values in self.rows]

    def texts(self, column: str) -> tuple[str, ...]:
        """The values of a column of texts."""
        for (number, _), text in zip(self.rows, self[column], strict=True):
            if not text.strip():
                where = f"{self.path} line {number}, column {column}"
                raise InputError(f"{where}: empty; expected a text, so fill it or drop the row")
        return tuple(self[column])

    def numbers(self, column: str) -> list[float]:
        """The values of a column of finite numbers."""
        found = []
        for (number, _), text in zip(self.rows, self[column], strict=True):
            try:
                found.append(float(text))
            except ValueError:
                found.append(float("nan"))
            if found[-1] - found[-1] != 0:  # NaN and both infinities
                raise InputError(f"{self.path} line {number}, column {column}: {text!r} is not a finite number")
        return found


def column_names(given: Sequence[str]) -> dict[str, str]:
    """Our column → the file's, from `name=column` as typed on the command line."""
    named = {}
    for pair in given:
        name, equals, column = pair.partition("=")
        if not (equals and column and name in OTHER_NAMES):
            known = ", ".join(OTHER_NAMES)
            raise InputError(f"columns {pair!r}: expected NAME=COLUMN, COLUMN as in the file and NAME one of {known}")
        named[name] = column
    return named


def ending(path: Path) -> str:
    """The ending that says what form a file has, `.gz` aside."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _known(path: Path, header: tuple[str, ...], named: Mapping[str, str]) -> tuple[str, ...]:
    """The header with our names in place of the file's: named ones first, then ours, then common other ones."""
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(f"{path} line 1: the column {repeated!r} occurs twice; expected every column once")
    plain = ["".join(letter for letter in name.lower() if letter not in " _-") for name in header]
    ours: dict[int, str] = {}
    for name, column in named.items():
        if column not in header:
            raise InputError(f"{path} line 1: no column {column!r} for {name}: it has {', '.join(header)}")
        ours[header.index(column)] = name
    for name, others in OTHER_NAMES.items():
        places = [header.index(name)] if name in header else []
        places += [plain.index(spelling) for spelling in (name, *others) if spelling in plain]
        place = next((place for place in places if place not in ours), None)
        if place is not None and name not in ours.values():
            ours[place] = name
    return tuple(ours.get(i, f"({name})" if name in ours.values() else name) for i, name in enumerate(header))


# one function for each form: the column names as the first row, and the rows that follow


def _tsv(path: Path) -> Iterator[Row]:
    return ((number, line.split("\t")) for number, line in read_lines(path))


def _csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(LONGEST)
    header = next(read_lines(path), (0, ""))[1]
    lines = (f"{line}\n" for _, line in read_lines(path))
    reader, start = csv.reader(lines, delimiter=max(",;\t", key=header.count), strict=True), 1
    try:
        for values in reader:
            if values:  # a blank line is no row
                yield start, values
            start = reader.line_num + 1
    except csv.Error as error:
        wanted = "expected CSV, a text with quotes or line ends in double quotes"
        raise InputError(f"{path} line {start}: {error}; {wanted}") from None


def _json_lines(path: Path) -> Iterator[Row]:
    names: list[str] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            wanted = "expected one object on each line"
            raise InputError(f"{path} line {number} is not JSON ({error}): {wanted}") from None
        if not isinstance(record, dict):
            raise InputError(f"{path} line {number} is {line[:40]!r}: expected one JSON object on each line")
        if not names:
            names = list(record)
            yield number, names
        lacking = [name for name in names if name not in record]
        if lacking:
            raise InputError(f"{path} line {number}: no {lacking[0]!r}, which the first line has")
        yield number, [_plain(record[name]) for name in names]


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is no parquet file that can be read ({error}): write it again") from None
    columns = [map(_plain, column.to_pylist()) for column in table.columns]
    return enumerate([table.column_names, *map(list, zip(*columns, strict=True))])


_FORMS = {".csv": _csv, ".parquet": _parquet, **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json_lines)}


def _plain(value: Any) -> str:
    """A cell as text; what is no text (nothing, NaN, a list, an object) is empty, and refused where it is wanted."""
    if value is None or isinstance(value, list | dict | bytes) or value != value:
        return ""
    return str(value)
