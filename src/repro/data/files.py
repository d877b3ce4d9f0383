"""Files of a user's own: lines of text, tables in TSV, CSV, JSON lines or parquet, word vectors;
gzipped or not.

A folder that the package `datasets` saved to disk is a table too, with a column of its splits.
Every fault names file, line and column. TSV has no quoting: a tab always ends a column and a line
feed always ends a row, so a text may hold bare quotes. CSV is quoted as spreadsheets and pandas do;
commas, semicolons or tabs separate. An empty cell is an empty string. A column is known by our name
in any case (`Score`), by a common other name (`text_a`), or as its reader names it.
"""

import csv
import gzip
import logging
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from repro.paths import inside
from repro.reading import fields_once, is_out_of_memory, parse_json, read_json, regular_file
from repro.sets import WordVectors
from repro.types import InputError

log = logging.getLogger(__name__)
LONGEST = 2**24
"""Bytes in a line, at most: far beyond any text, and small beside what a few kB of gzip can unpack
to.
"""
NOTHING: Mapping[str, str] = MappingProxyType({})
Row: TypeAlias = tuple[int, list[str]]
"""Its number, which is the line where it starts (in parquet and Arrow: the row, from 1), and its
values.
"""
RawRow: TypeAlias = tuple[int, list[Any]]
"""The same as a form gives it: None where the row has nothing by that name."""
ENDINGS = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
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
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end); a byte order mark at the start is not part
    of the text.
    """
    if path.exists():
        regular_file(path)
    if not path.is_file():
        raise InputError(
            f"no file {path}: check the path, or set REPRO_DATA to the folder that "
            "holds the benchmarks"
        )
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
                if len(line) > LONGEST:
                    limit = f"{LONGEST >> 20} MiB"
                    raise InputError(
                        f"{path} line {number} is longer than {limit}: "
                        "expected one text or row a line"
                    )
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column, byte = error.object[: error.start].count(b"\t") + 1, error.object[error.start]
        where = f"{path} line {number}, column {column}"
        raise InputError(
            f"{where}: byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        ) from None
    except (EOFError, zlib.error) as error:
        cut = f"{path} ends in the middle of its gzip stream after line {number}"
        raise InputError(f"{cut} ({error}): copy the file again") from None
    except gzip.BadGzipFile as error:
        raise InputError(
            f"{path} is named .gz but is not gzip ({error}): compress it or drop the ending"
        ) from None


def filled_lines(path: Path) -> Iterator[str]:
    """The lines of a file of which line i is row i, one after the other; blank lines at its end are
    not rows.
    """
    blank = 0
    for number, line in read_lines(path):
        if not line.strip():
            blank = blank or number
        elif blank:
            raise InputError(
                f"{path} line {blank} is blank: expected a text or label on every line, "
                "for line i is row i; fill "
                "it, or delete such lines (`grep .`) together with what belongs to them elsewhere"
            )
        else:
            yield line


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
        form = saved_folder if path.is_dir() else _FORMS.get(ending(path), _tsv)
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
                f"{', '.join(missing)}; "
                f"expected at least {', '.join(needed)}; name another column by --columns "
                f"{missing[0]}=COLUMN"
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
                    f"{len(self.columns)} "
                    f"({', '.join(self.found)}); in TSV tabs separate columns and nothing is quoted"
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
                wanted = "expected a text, so fill it, drop the row or name another column"
                raise InputError(f"{where}: empty, or bytes, a list or an object; {wanted}")
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


def ending(path: Path) -> str:
    """The ending that says what form a file has, `.gz` aside."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _known(path: Path, header: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """The header with our names in place of the file's: named ones first, then ours, then common
    other ones.
    """
    repeated = next((name for name in header if header.count(name) > 1), None)
    if repeated is not None:
        raise InputError(
            f"{path} line 1: the column {repeated!r} occurs twice; expected every column once"
        )
    ours: dict[str, str] = {}  # the file's column → our name
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


def _json_lines(path: Path) -> Iterator[RawRow]:
    names: list[str] = []
    for number, line in read_lines(path):
        if not line.strip():
            continue
        wanted = "expected one JSON object on each line"
        where = f"{path} line {number}"
        record = parse_json(line, where, wanted, object_pairs_hook=fields_once)
        if not isinstance(record, dict):
            raise InputError(f"{where} is {line[:40]!r}: {wanted}")
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
            f"{folder} is a folder without {STATE} or {SPLITS}: give a file, or a "
            "folder that `save_to_disk` of the "
            "package datasets wrote"
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
                    batch.validate(full=True)  # offsets are trusted afterwards
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


_FORMS = {
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


# word vectors: GloVe's plain form, and word2vec's and fastText's (.vec), which start with a header


def read_vectors(path: Path, *, name: str = "vectors") -> WordVectors:
    """Read a word and its numbers from each line; a word that comes twice keeps its first vector,
    with a warning.

    Raises:
        InputError: for a line with another number of numbers or none that is finite, and for a file
            that is cut off.
    """
    wanted = "expected a word and its numbers on every line"
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        raise InputError(f"{path} is empty: {wanted}")
    header = re.fullmatch(r"\s*(\d+)\s+(\d+)\s*", first[1])
    promised, dim = map(int, header.groups()) if header else (0, 0)
    rows: dict[str, np.ndarray] = {}
    read = 0
    for number, line in lines if header else chain([first], lines):
        word, vector = _entry(f"{path} line {number}", line, dim)
        dim = len(vector)  # the first line settles the size if nothing else has
        read += 1
        rows.setdefault(word, vector)
    if read < promised:
        raise InputError(
            f"{path} ends after {read} of the {promised} words its first line states: copy it again"
        )
    if not rows:
        raise InputError(f"{path} has a header and no words: {wanted}")
    if read > len(rows):
        log.warning(
            "%s: %d words come more than once, the first vector is kept",
            path,
            read - len(rows),
        )
    return WordVectors(name, "local", tuple(rows), np.stack(list(rows.values())))


def _entry(where: str, line: str, dim: int) -> tuple[str, np.ndarray]:
    """A word and its vector; a size of 0 is not known yet."""
    word, *values = line.rstrip(" ").split(" ")
    dim = dim or max(1, len(values))
    # glove.840B has words such as `. . .`
    while len(values) > dim and not NUMBER.fullmatch(values[0]):
        word = f"{word} {values.pop(0)}"
    if len(values) != dim:
        raise InputError(f"{where}: {len(values)} numbers for {word!r}, expected {dim}")
    try:
        vector = np.array(values, dtype=np.float32)
    except ValueError as error:
        raise InputError(f"{where}: {error}; expected a word and its numbers") from None
    if not np.isfinite(vector).all():
        raise InputError(
            f"{where}: {word!r} has a number that is not finite; repair or drop the line"
        )
    return word, vector
