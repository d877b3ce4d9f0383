"""Rows: one number each, with everything a reader needs to judge it (method-rows in the book): also
where and when it was computed.

Values are fractions or correlations; tables show them ×100. A row never says whether it is
`recorded` or `live`: that is where it is kept, `results/` or the store.
"""

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from repro.provenance import provenance
from repro.types import InputError

Row: TypeAlias = dict[str, Any]
"""Some columns of a row, by name."""
NAMES = (
    "experiment",
    "paper_table",
    "method",
    "backbone",
    "readout",
    "layer",
    "dim",
    "dataset",
    "setting",
    "metric",
    "seed",
    "profile",
    "data_source",
    "n_train",
)
ORIGIN = ("device", "hardware", "seconds", "peak_mb", "commit", "versions", "created")
"""Where and when a number was computed."""
SCHEMA = (*NAMES[:10], "value", "ci_low", "ci_high", *NAMES[10:], *ORIGIN)
"""Columns that every file of rows has."""
IDENTITY = (
    "config",
    "pooling",
    "learning_rate",
    "dropout",
    "batch_size",
    "max_length",
    "n_judged",
    "resamples",
    "text",
    "neighbours",
    "views",
    "select_by",
    "command",
)
"""What else makes two runs different, and what runs one again; missing in files recorded before
these columns.
"""
COLUMNS = (*SCHEMA, *IDENTITY)
# Columns that name a number; a second number with the same key replaces the first
KEY = (*NAMES, "config")
TEXT_FORMS = dict.fromkeys(("local", "hub"), "senteval")
"""The form of a benchmark's texts by where they come from, unless a row says another."""
KINDS = {
    **dict.fromkeys(COLUMNS, "string"),
    **dict.fromkeys(
        ("value", "ci_low", "ci_high", "seconds", "peak_mb", "learning_rate", "dropout"),
        "float64",
    ),
    **dict.fromkeys(
        ("layer", "dim", "seed", "n_train", "batch_size", "max_length", "n_judged"),
        "Int64",
    ),
    **dict.fromkeys(("neighbours", "views", "resamples"), "Int64"),
}
"""What a column holds, also where all of it is missing."""
SPELLED = {"string": "text", "float64": "numbers", "Int64": "whole numbers"}
"""Kinds in words."""
PARSED = (
    (r"(?P<winner>.+) − (?P<rival>.+)", "method", "string"),
    (r"(?P<split>test|dev)\b.*", "setting", "string"),
    (r"(?P<protocol>inductive|transductive|wiki)\b.*", "setting", "string"),
    (r".*\bselect_by=(?P<select_by>\w+).*", "setting", "string"),
    (r".*\bneighbours = (?P<neighbours>\d+).*", "setting", "Int64"),
    (r"candidates=(?P<k>\d+)", "setting", "Int64"),
    (r"against (?P<against>\d+) dims", "setting", "Int64"),
    (r".*?(?P<bytes>[\d,]+) bytes.*", "setting", "Int64"),
    (r"τ = (?P<temperature>[\d.]+), B = .*", "setting", "Float64"),
    (r"τ = .*, B = (?P<batch>[\d,]+)", "setting", "Int64"),
)
"""What `method` and `setting` say in words: pattern of the whole text, column that holds it, kind
of what it names.
"""


def make_rows(values: Iterable[Mapping[str, Any]], **shared: Any) -> pd.DataFrame:
    """A frame with every column of the schema: what each row says, then what all share, then where
    it is computed.

    Of a network's folder only the name is kept.
    """
    stamp = {**provenance(), **shared}
    rows = [{**stamp, **row} for row in values]
    unknown = sorted({name for row in rows for name in row} - set(COLUMNS))
    if unknown:
        raise InputError(f"unknown row column {unknown[0]!r}: the schema has {', '.join(COLUMNS)}")
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).astype(KINDS)
    names = frame["backbone"].map(
        lambda name: Path(name).name if Path(name).is_absolute() else name, "ignore"
    )
    texts = frame["text"].fillna(frame["data_source"].map(TEXT_FORMS))
    return frame.assign(backbone=names.astype("string"), text=texts.astype("string"))


def without_origin(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without the half of their columns that says how a number came about: no claim asks
    for it, and what is left is picked in half the time.
    """
    return rows.drop(columns=[*ORIGIN, *IDENTITY], errors="ignore").copy()


def only(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows whose columns have these values."""
    return rows[reduce(and_, (rows[column] == value for column, value in where.items()))]


def ordered(rows: pd.DataFrame, column: str, order: Iterable[Any]) -> pd.DataFrame:
    """The rows by where the value of a column stands in an order; others come last, and equal ones
    as they came.
    """
    place = {value: number for number, value in enumerate(order)}
    return rows.sort_values(
        column,
        key=lambda values: values.map(place).fillna(len(place)),
        kind="stable",
        ignore_index=True,
    )


def parsed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what their methods and settings say in words as columns, filled in only where
    they are empty.
    """
    new_columns = {}
    factorized = {column: pd.factorize(rows[column]) for column in ("method", "setting")}
    for pattern, column, kind in PARSED:
        codes, texts = factorized[column]  # Many rows say the same
        matched = [re.fullmatch(pattern, text) for text in texts]
        for name in re.compile(pattern).groupindex:
            words = pd.Series([match and match[name] for match in matched], dtype="string")
            if kind != "string":
                words = pd.to_numeric(words.str.replace(",", "")).astype(kind)
            values = pd.Series(words.array.take(codes, allow_fill=True), rows.index)
            new_columns[name] = rows[name].fillna(values) if name in rows else values
    return rows.assign(**new_columns)
