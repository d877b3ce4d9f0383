"""Tables of a user's own: TSV, CSV, JSON lines, parquet. Every fault names file, line and column.

TSV has no quoting: a tab always ends a column and a line feed always ends a row, so a text may hold bare quotes.
CSV is quoted as spreadsheets and pandas do; commas, semicolons or tabs separate. An empty cell is an empty string.
A column is known by our name in any case (`Score`), by a common other name (`text_a`), or as its reader names it.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from repro.data.lines import LONGEST, read_lines
from repro.data.spec import NOTHING
from repro.types import InputError

Row: TypeAlias = tuple[int, list[str]]
"""Its number, which is the line where it starts (in parquet: the row, from 1), and its values."""
Form: TypeAlias = tuple[tuple[str, ...], Iterator[Row]]
"""Column names, and the rows that follow."""

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


class Table:
    """A table by our names for its columns; its rows are read when they are first asked for."""

    def __init__(self, path: Path, named: Mapping[str, str] = NOTHING, needed: Sequence[str] = ()) -> None:
        """Read the header.

        Args:
            path: The file; its ending says its form, TSV unless it is another.
            named: Our column → the file's, where it goes by a name of its own.
            needed: Our columns that it must have.

        Raises:
            InputError: if the file is empty or malformed, or a column is missing or occurs twice.
        """
        forms = {".csv": _csv, ".parquet": _parquet, **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json_lines)}
        self.path = path
        self.found, self._rest = forms.get(ending(path), _tsv)(path)
        self.columns = _known(path, self.found, named)
        missing = [column for column in needed if column not in self.columns]
        if missing:
            raise InputError(
                f"{path} line 1: the header has columns {', '.join(self.found)} but lacks {', '.join(missing)}; "
                f"expected at least {', '.join(needed)}; name another column by --columns {missing[0]}=COLUMN"
            )

    @cached_property
    def rows(self) -> list[Row]:
        """All rows.

        Raises:
            InputError: for a row that is malformed or has another number of values than the table has columns.
        """
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
        """The values of a column of texts.

        Raises:
            InputError: if one is blank.
        """
        for (number, _), text in zip(self.rows, self[column], strict=True):
            if not text.strip():
                where = f"{self.path} line {number}, column {column}"
                raise InputError(f"{where}: empty; expected a text, so fill it or drop the row")
        return tuple(self[column])

    def numbers(self, column: str) -> list[float]:
        """The values of a column of finite numbers.

        Raises:
            InputError: if one is not a number, or not finite.
        """
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
    """Our column → the file's, from `name=column` as typed on the command line.

    Raises:
        InputError: for something of another form, or a name that is none of ours.
    """
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


def _tsv(path: Path) -> Form:
    lines = read_lines(path)
    header = _first(path, lines)[1].split("\t")
    return tuple(header), ((number, line.split("\t")) for number, line in lines)


def _csv(path: Path) -> Form:
    first = _first(path, read_lines(path))[1]
    csv.field_size_limit(LONGEST)
    lines = (f"{line}\n" for _, line in read_lines(path))
    reader = csv.reader(lines, delimiter=max(",;\t", key=first.count), strict=True)

    def rows() -> Iterator[Row]:
        start = 1
        try:
            for values in reader:
                if values:  # a blank line is no row
                    yield start, values
                start = reader.line_num + 1
        except csv.Error as error:
            wanted = "expected CSV, a text with quotes or line ends in double quotes"
            raise InputError(f"{path} line {start}: {error}; {wanted}") from None

    found = rows()
    return tuple(_first(path, found)[1]), found


def _json_lines(path: Path) -> Form:
    def records() -> Iterator[tuple[int, dict[str, Any]]]:
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
            yield number, record

    first = tuple(_first(path, records())[1])

    def rows() -> Iterator[Row]:
        for number, record in records():
            lacking = [name for name in first if name not in record]
            if lacking:
                raise InputError(f"{path} line {number}: no {lacking[0]!r}, which the first line has")
            yield number, [_plain(record[name]) for name in first]

    return first, rows()


def _parquet(path: Path) -> Form:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is no parquet file that can be read ({error}): write it again") from None
    columns = [map(_plain, column.to_pylist()) for column in table.columns]
    return tuple(table.column_names), enumerate(map(list, zip(*columns, strict=True)), start=1)


def _plain(value: Any) -> str:
    """A cell as text; what is no text (nothing, NaN, a list, an object) is empty, and refused where it is wanted."""
    if value is None or isinstance(value, list | dict | bytes) or value != value:
        return ""
    return str(value)


def _first(path: Path, found: Iterator[Any]) -> Any:
    """The first of them, in a file that is not empty."""
    for one in found:
        return one
    raise InputError(f"{path} is empty: expected column names and rows")
