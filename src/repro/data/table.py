"""Tables of a user's own, in TSV, CSV, JSON lines or parquet, gzipped or not, with our names for
their columns.

A folder that the package `datasets` saved to disk is a table too, with a column of its splits.
Every fault names file, line and column. TSV has no quoting: a tab always ends a column and a line
feed always ends a row, so a text may hold bare quotes. CSV is quoted as spreadsheets and pandas do;
commas, semicolons or tabs separate. An empty cell is an empty string. A column is known by our name
in any case (`Score`), by a common other name (`text_a`), or as its reader names it.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from repro.data.forms import FORMS, RawRow, Row, ending, saved_folder, tsv
from repro.types import InputError

NOTHING: Mapping[str, str] = MappingProxyType({})
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "sentence1": ("text1", "texta", "sentencea", "sent1", "senta", "question1", "premise"),
    "sentence2": ("text2", "textb", "sentenceb", "sent2", "sentb", "question2", "hypothesis"),
    "score": ("similarity", "similarityscore", "relatednessscore"),
    "label": ("class", "category"),
    "text": ("sentence",),
    **dict.fromkeys(("split", "subset", "row1", "row2", "query", "document", "relevance"), ()),
}
"""Our column → what else it is often called, without case, spaces, hyphens and underscores."""
TITLED = ("_id", "title", "text")
"""Columns of BEIR's documents, which are their title and their text, joined by a space."""


class Table:
    """A table by our names for its columns; its rows are read when they are first asked for."""

    def __init__(
        self,
        path: Path,
        named: Mapping[str, str] = NOTHING,
        needed: Sequence[str] = (),
    ) -> None:
        """Read the header of a file whose ending says its form, TSV unless it is another, with the
        columns `needed`.
        """
        self.path = path
        form = saved_folder if path.is_dir() else FORMS.get(ending(path), tsv)
        self._rest: Iterator[RawRow] = form(path)
        first = next(self._rest, None)
        if first is None:
            raise InputError(f"{path} is empty: expected column names and rows")
        self.found = first[1]
        self.columns = _known(path, self.found, named)
        self.titled = set(TITLED) <= set(self.columns) and "text" not in named
        if missing := [column for column in needed if column not in self.columns]:
            raise InputError(
                f"{path} line 1: the header has columns {', '.join(self.found)} but lacks "
                f"{', '.join(missing)}; expected at least {', '.join(needed)}; name another column "
                f"by --columns {missing[0]}=COLUMN"
            )

    @cached_property
    def rows(self) -> list[Row]:
        """All rows."""
        return list(self.stream())

    def stream(self) -> Iterator[Row]:
        """All rows, once, one after the other."""
        for number, values in self._rest:
            if len(values) != len(self.columns):
                raise InputError(
                    f"{self.path} line {number}: {len(values)} columns, expected "
                    f"{len(self.columns)} ({', '.join(self.found)}); in TSV tabs separate columns "
                    "and nothing is quoted"
                )
            yield number, self._filled(number, values) if None in values else values

    def _filled(self, number: int, values: list[Any]) -> list[str]:
        """Values of a row that lacks some: empty cells, unless a column is lacking that we read."""
        for name, ours, value in zip(self.found, self.columns, values, strict=True):
            if value is None and ours in OTHER_NAMES:
                where = f"{self.path} line {number}"
                raise InputError(f"{where}: no {name!r}, which the first line has")
        return ["" if value is None else value for value in values]

    def __getitem__(self, column: str) -> list[str]:
        """The values of one of our columns."""
        place = self.columns.index(column)
        return [values[place] for _, values in self.rows]

    def fault(self, row: int, column: str, what: str) -> InputError:
        """What is wrong with a cell, to be raised."""
        return InputError(f"{self.path} line {self.rows[row][0]}, column {column}: {what}")

    def texts(self, column: str) -> tuple[str, ...]:
        """The values of a column of texts."""
        return tuple(self.stream_texts(column, self.rows))

    def stream_texts(self, column: str, rows: Iterable[Row]) -> Iterator[str]:
        """The same, one after the other, of rows such as those of `stream`."""
        place = self.columns.index(column)
        title = self.columns.index("title") if self.titled and column == "text" else None
        for number, values in rows:
            text = values[place] if title is None else f"{values[title]} {values[place]}".strip()
            if not text.strip():
                where = f"{self.path} line {number}, column {column}"
                expected = "expected a text, so fill it, drop the row or name another column"
                raise InputError(f"{where}: empty, or bytes, a list or an object; {expected}")
            yield text

    def numbers(self, column: str) -> list[float]:
        """The values of a column of finite numbers."""
        found = []
        for row, text in enumerate(self[column]):
            try:
                found.append(float(text))
            except ValueError:
                found.append(math.nan)
            if not math.isfinite(found[-1]):
                raise self.fault(row, column, f"{text!r} is not a finite number")
        return found


def column_names(given: Sequence[str]) -> dict[str, str]:
    """Our column → the file's, from `name=column` as typed on the command line."""
    named = dict(pair.partition("=")[::2] for pair in given)
    for name, column in named.items():
        if not column or name not in OTHER_NAMES:
            form = (
                "expected NAME=COLUMN, COLUMN as in the file and NAME one of "
                f"{', '.join(OTHER_NAMES)}"
            )
            raise InputError(f"columns {name}={column}: {form}")
    return named


def _known(path: Path, header: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """The header with our names in place of the file's: named ones first, then ours, then common
    other ones.
    """
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(
            f"{path} line 1: the column {repeated!r} occurs twice; expected every column once"
        )
    ours: dict[str, str] = {}  # The file's column → our name
    for name, column in named.items():
        if column not in header:
            raise InputError(
                f"{path} line 1: no column {column!r} for {name}: it has {', '.join(header)}"
            )
        ours[column] = name
    plain = {column: re.sub("[ _-]", "", column.lower()) for column in reversed(header)}
    first_of = {spelling: column for column, spelling in plain.items()}
    for name, others in OTHER_NAMES.items():
        candidates = [name if name in header else None, *map(first_of.get, (name, *others))]
        found = next(
            (column for column in candidates if column is not None and column not in ours),
            None,
        )
        if found is not None and name not in ours.values():
            ours[found] = name
    return [
        ours.get(column, f"({column})" if column in ours.values() else column) for column in header
    ]
