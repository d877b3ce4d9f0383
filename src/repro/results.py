"""Recorded rows: `results/`, a parquet file an experiment; how they are added to and read."""

import io
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pandas as pd

from repro import paths
from repro.checksums import (
    DIGESTS,
    LIST_ANEW,
    NOT_THERE,
    RECORD_ANEW,
    read_digests,
    refuse_missing,
    refuse_unlisted,
    verified,
    write_digests,
)
from repro.locks import locked
from repro.manifests import sha256
from repro.reading import is_out_of_memory
from repro.replacement import check_replaceable
from repro.rows import COLUMNS, KEY, KINDS, SCHEMA, SPELLED, make_rows, parsed
from repro.types import InputError
from repro.writing import replacing


def read_rows(path: Path) -> pd.DataFrame:
    """Read rows from parquet; a file that is missing, damaged, no rows or not as recorded beside it
    is refused.
    """
    if not path.is_file():
        raise InputError(f"no rows at {path}: run the experiment with --record first")
    return _rows_of(path, verified(path))


def _rows_of(path: Path, content: bytes) -> pd.DataFrame:
    """The rows that the bytes of a file hold."""
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except (OSError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        raise InputError(f"{path} cannot be read as parquet ({error}): {RECORD_ANEW}") from error
    missing = [column for column in SCHEMA if column not in frame.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r}: it is not a file of rows")
    frame = frame.reindex(columns=list(COLUMNS))
    other = {column: kind for column, kind in KINDS.items() if frame[column].dtype != kind}
    return frame.assign(
        **{column: _as_kind(frame[column], kind, path) for column, kind in other.items()}
    )


def _as_kind(values: "pd.Series[Any]", kind: str, path: Path) -> "pd.Series[Any]":
    """A column as its kind, if it holds such values or none; no number is made of text, nor text of
    a number.
    """
    values_there = values.dropna()
    is_text = pd.api.types.is_string_dtype(values_there)
    if values_there.empty or (
        is_text == (kind == "string") and not pd.api.types.is_bool_dtype(values_there)
    ):
        try:
            return values.astype(kind)
        except (
            TypeError,
            ValueError,
        ):  # Of halves where whole numbers are expected, and of objects
            pass
    first_value = f"{values_there.tolist()[0]!r} ({values.dtype})"
    fault = f"has {first_value} in the column {values.name!r}: expected {SPELLED[kind]}"
    raise InputError(f"{path} {fault}. Correct the file and {LIST_ANEW}")


def read_recorded(path: Path) -> pd.DataFrame:
    """Recorded rows; refused where no `SHA256SUMS` lies beside the file to vouch for it."""
    refuse_unlisted(path.parent)
    return read_rows(path)


def results_folder() -> Path:
    """Where recorded rows are committed."""
    return paths.project_root() / "results"


def check_recordable(folder: Path | None = None) -> None:
    """Raise an InputError where rows could not be added to `results/`, before hours are spent."""
    folder = folder or results_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        way_out = "record in a checkout that can be written to, or leave out record"
        raise InputError(
            f"nothing can be added to {folder} ({error.strerror}): {way_out}"
        ) from None
    if read_digests(folder) is None:
        refuse_unlisted(folder)


def record(rows: pd.DataFrame, folder: Path | None = None) -> list[Path]:
    """Add rows to `results/<experiment>.parquet`; a row with the same key, judged on no more items,
    is replaced.

    Rows of another configuration stand beside it; one that names no configuration gives way to a
    later one that does. A page's row replaces another number only where the command recorded with
    it gave the same parameters, or smaller amounts. Processes may record side by side. A kill
    leaves rows and digests of before or after, never of both.

    Raises:
        InputError: where a number of all items, of a whole run or of other parameters would give
            way to one of fewer, of a part of it or of these, or where nothing vouches for what is
            recorded; nothing is written.
    """
    folder = folder or results_folder()
    folder.mkdir(parents=True, exist_ok=True)
    # The file stays: whoever waits for a lock holds the file, not its name.
    with locked(folder / f"{DIGESTS}.lock"):
        digests = read_digests(folder)
        if digests is None:
            refuse_unlisted(folder)
            digests = {}
        merged = {}
        for experiment, group in rows.groupby("experiment"):
            path = paths.inside(folder, f"{experiment}.parquet")
            refuse_missing(path, digests)
            recorded = read_recorded(path) if path.is_file() else make_rows([])
            _refuse_more_columns(path)
            check_replaceable(group, recorded, path)
            merged[path] = _merged(group, recorded)
        for path, frame in merged.items():
            with replacing(path) as partial:
                frame.to_parquet(partial, compression="zstd", index=False)
                new = sha256(partial)
                before = digests.get(path.name, {NOT_THERE})
                write_digests(folder, {**digests, path.name: before | {new}})
            digests[path.name] = {new}
            write_digests(folder, digests)
    return list(merged)


def _refuse_more_columns(path: Path) -> None:
    """Refuse to write a file of rows anew in which somebody keeps what no row has: it would be
    lost.
    """
    from pyarrow.parquet import read_schema  # Which nobody needs who only reads rows

    names = read_schema(path).names if path.is_file() else []
    if more := [name for name in names if name not in COLUMNS]:
        fault = f"holds the column {more[0]!r}, which is no row's and would be lost"
        raise InputError(
            f"{path} {fault}. Nothing was recorded: keep it in a file elsewhere, drop it here and "
            f"{LIST_ANEW}"
        )


def _merged(rows: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Known rows and new ones, which replace those of the same key."""
    new = rows[list(COLUMNS)]
    merged = pd.concat([known, new], ignore_index=True) if len(known) else new
    merged = merged.drop_duplicates(list(KEY), keep="last")
    unnamed = merged["config"].isna() & merged.duplicated(list(KEY[:-1]), keep="last")
    return merged[~unnamed].sort_values(list(KEY), ignore_index=True)


def recorded_rows(experiment: str) -> pd.DataFrame:
    """The recorded rows of an experiment with their `parsed` columns; an empty frame where none
    exist.

    Text is held as Python strings: some thirty columns then move as one whenever rows are picked.
    """
    path = results_folder() / f"{experiment}.parquet"
    refuse_missing(path, read_digests(path.parent) or {})
    if not path.is_file():
        return in_one_block(parsed(make_rows([])))
    refuse_unlisted(path.parent)
    return _read_once(path, verified(path)).copy()


@lru_cache(maxsize=8)  # A page and its claims ask for the same few files a hundred times
def _read_once(path: Path, content: bytes) -> pd.DataFrame:
    return in_one_block(parsed(_rows_of(path, content)))


def in_one_block(rows: pd.DataFrame) -> pd.DataFrame:
    """A copy of rows with their text as Python strings."""
    return rows.astype(dict.fromkeys(rows.select_dtypes("string"), object)).copy()
