"""What a user's own tables say of the rows of a matrix: graded pairs, labels, relevant documents.

Tables count rows from 0; label i is of row i.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dimadvise.columns import naming
from dimadvise.evidence import Classes, Pairs, Rows, Search
from dimadvise.vectors import Vectors
from repro.data.forms import ENDINGS, ending
from repro.data.lines import filled_lines
from repro.data.table import Table
from repro.types import InputError

MISSING = ("None", "nan", "NaT", "<NA>", "--")
"""How Python, numpy, pandas and a masked array spell what is not there."""


def graded(table: Table, n: int) -> Pairs:
    """Graded pairs of n rows."""
    grades = np.array(table.numbers("score"))
    first, second = _rows(table, "row1", n), _rows(table, "row2", n)
    if len(first) and (first == second).all():
        raise InputError(
            f"{table.path} pairs each row with itself, whose cosine is 1 in any size: expected "
            "pairs of two rows"
        )
    return Pairs(first, second, grades)


def classed(labels: Path | Sequence[str], columns: Mapping[str, str], X: Vectors) -> Classes:
    """A label for each row."""
    where, names = "labels", list[str]()
    if isinstance(labels, str | Path):
        where = str(labels)
        labels, names = _labels(Path(labels), columns)
    classes = _filled(labels, where)
    n = X.shape[0]
    if len(classes) != n:
        raise InputError(
            f"{where} has {len(classes)} labels, {X.name} has {n} rows: expected one for each row"
        )
    _check_order(names, X, where)
    return Classes(np.arange(n), np.array(classes))


def _filled(labels: Any, where: str) -> list[str]:
    """Labels as texts; one that is missing is no class, and is refused."""
    shape = np.shape(np.asarray(labels, object))
    if len(shape) != 1:
        raise InputError(f"{where} has shape {shape}: expected one label for each row, in a list")
    classes = [str(label) for label in labels]
    for row, label in enumerate(labels):
        if not isinstance(label, str) and classes[row] in MISSING:
            raise InputError(f"{where}: row {row} has none ({label}): fill it, or drop the row")
    return classes


def _check_order(names: Sequence[str], X: Vectors, where: str) -> None:
    """Refuse labels whose table names the rows as their vectors do, but in another order; or counts
    them in another order, where vectors have no names.

    Names that the vectors do not know at all are others', and tell nothing of the order.
    """
    ids = [str(name) for name in X.ids(0, X.shape[0])] if names else []
    ids = ids or _counted(names)
    id_set = set(ids)
    for row, (name, expected) in enumerate(zip(names, ids, strict=False)):
        if name != expected and name in id_set:
            raise InputError(
                f"{where} names row {row} {name!r}, {X.name} names it {expected!r}: bring the "
                "labels into the order of the vectors, for label i is of row i"
            )


def _counted(names: Sequence[str]) -> list[str]:
    """Whole numbers without a gap in ascending order; none where names are others."""
    numbers = sorted(int(name) for name in names if name.isdecimal())
    first = numbers[0] if numbers else 0
    if numbers != list(range(first, first + len(names))):
        return []
    return [str(number) for number in numbers]


def _labels(path: Path, columns: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """One label per row, from a table with such a column or from lines of text; and what a column
    of the table names the rows, if one does.
    """
    if ending(path) in ENDINGS and "label" in (table := Table(path, columns)).columns:
        labels = [label.strip() for label in table.texts("label")]
        named_by = naming(table.columns) or ("row" if "row" in table.columns else "")
        return labels, table[named_by] if named_by else []
    if path.suffix.lower() == ".npy":
        raise InputError(
            f"{path}: labels are read from a table or a text, np.savetxt('labels.txt', "
            f"np.load('{path}'), '%s')"
        )
    return [line.strip() for line in filled_lines(path)], []


def judged(table: Table, queries: int, documents: int) -> Search:
    """Relevant documents of queries, whose rows stand behind those of the documents."""
    judged: dict[int, dict[int, float]] = {}
    cells = (
        _rows(table, "query", queries),
        _rows(table, "document", documents),
        table.numbers("relevance"),
    )
    for query, document, relevance in zip(*cells, strict=True):
        if judged.setdefault(int(query), {}).setdefault(int(document), relevance) != relevance:
            raise InputError(
                f"{table.path}: query {query} has document {document} twice, with different "
                "relevance"
            )
    return Search(np.arange(documents, documents + queries), np.arange(documents), judged)


def _rows(table: Table, column: str, n: int) -> Rows:
    """Row numbers below n, from one column of a table."""
    row_numbers = []
    for (line, _), text in zip(table.rows, table[column], strict=True):
        try:
            row_numbers.append(int(text))
        except ValueError:
            raise InputError(
                f"{table.path} line {line}: {text!r} is no row number: expected 0 to {n - 1}, the "
                "place of the row in its file; ids are not looked up"
            ) from None
        if not 0 <= row_numbers[-1] < n:
            raise InputError(
                f"{table.path} line {line}: row {row_numbers[-1]}: expected 0 to {n - 1}"
            )
    return np.array(row_numbers, np.int64)
