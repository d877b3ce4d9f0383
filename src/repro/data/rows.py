"""Rows of a user's table, whatever its form, by our names for its columns: every fault names file, line and column.

A column is known by our name in any case (`Score`), by a common other name (`text_a`), or as `columns` names it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from repro.data.forms import read_form
from repro.data.spec import NOTHING
from repro.types import InputError

OTHER_NAMES = {
    "sentence1": ("text1", "texta", "sentencea", "question1", "premise"),
    "sentence2": ("text2", "textb", "sentenceb", "question2", "hypothesis"),
    "score": ("similarity", "similarityscore", "relatednessscore"),
    "label": ("class", "category"),
    "text": ("sentence",),
    "split": (),
    "subset": (),
    "row1": (),
    "row2": (),
    "query": (),
    "document": (),
    "relevance": (),
}
"""Our column → what else it is often called, without case, spaces, hyphens and underscores."""


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


def read_rows(
    path: Path, columns: tuple[str, ...], named: Mapping[str, str] = NOTHING
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, {column: value}) of a table that has at least `columns`, by our names.

    Args:
        path: The table, in any form of `repro.data.forms`.
        columns: Ours that it must have.
        named: Our column → the file's, where it goes by a name of its own.

    Raises:
        InputError: for a missing column or a row with another number of values than the table has columns.
    """
    found, rows = read_form(path)
    header = _known(path, found, named)
    missing = [column for column in columns if column not in header]
    if missing:
        raise InputError(
            f"{path} line 1: the header has columns {', '.join(found)} but lacks {', '.join(missing)}; "
            f"expected at least {', '.join(columns)}; name another column by --columns {missing[0]}=COLUMN"
        )
    for number, values in rows:
        if len(values) != len(header):
            raise InputError(
                f"{path} line {number}: {len(values)} columns, expected {len(header)} ({', '.join(found)}); "
                "in TSV tabs separate columns and nothing is quoted"
            )
        yield number, dict(zip(header, values, strict=True))


def read_header(path: Path, named: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
    """The columns of a table, by our names where they are known.

    Raises:
        InputError: if the file is empty or a column occurs twice.
    """
    return _known(path, read_form(path)[0], named)


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
