"""From rows to the points of a figure: one per kind, series and dim, with seeds averaged and a band around them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from repro.report.style import KINDS, NothingToDraw
from repro.types import InputError, one_of

POINT = ("value", "low", "high")


def points(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Means of the rows that share kind and `by`, ×100, in the order of first appearance.

    Several rows of one point are several seeds: the band is their mean ± one standard deviation. A single row
    brings its own interval, if it has one; else `low` and `high` are NaN.

    Args:
        frame: rows with `kind`, `value`, the columns of `by`, and perhaps `ci_low` and `ci_high`.
        by: columns that name a point; `dim` is made a plain int.

    Raises:
        InputError: if a column is missing, or a kind is unknown.
    """
    frame = checked(frame, ("kind", *by, "value")).dropna(subset=["value", *by])
    if frame.empty:
        raise NothingToDraw(f"every row lacks a value or one of {', '.join(by)}")
    keys = ["kind", *by]
    for bound in ("ci_low", "ci_high"):
        if bound not in frame:
            frame[bound] = float("nan")
    grouped = frame.groupby(keys, sort=False, observed=True)
    found = grouped.agg(
        value=("value", "mean"),
        n=("value", "size"),
        sd=("value", "std"),
        low=("ci_low", "first"),
        high=("ci_high", "first"),
    ).reset_index()
    several = found["n"] > 1
    found["low"] = found["low"].where(~several, found["value"] - found["sd"])
    found["high"] = found["high"].where(~several, found["value"] + found["sd"])
    if "dim" in by:
        found["dim"] = found["dim"].astype(int)
    found[list(POINT)] = found[list(POINT)].astype("float64") * 100
    return found[[*keys, *POINT, "n"]]


def over_seeds(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row for the seeds of everything that shares `by`: the mean of value, ci_low and ci_high, in the old order.

    Args:
        rows: with `value`, the columns of `by` (empty ones count as equal), and perhaps ci_low and ci_high.
        by: columns that tell rows of one seed apart.
    """
    numbers = [name for name in ("value", "ci_low", "ci_high") if name in rows]
    return rows.groupby(list(by), sort=False, dropna=False)[numbers].mean().reset_index()


def in_order(lines: Sequence[Mapping[str, object]], by: str | list[str], **order: Any) -> pd.DataFrame:
    """Lines as a table sorted by some columns; without a line, a table without columns, which has no order."""
    table = pd.DataFrame(lines)
    return table.sort_values(by, ignore_index=True, kind="stable", **order) if len(table) else table


def checked(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A copy of a frame that has rows, the columns asked for and known kinds.

    Raises:
        InputError: if it has not.
    """
    if frame.empty:
        raise NothingToDraw("the frame has no rows")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(f"the frame lacks the column {missing[0]!r}: figures need {', '.join(columns)}")
    if "kind" in columns:
        for kind in frame["kind"].unique():
            one_of(str(kind), KINDS, "kind of number")
    return frame.copy()


def kinds_of(frame: pd.DataFrame) -> list[str]:
    """The kinds present, in their fixed order."""
    return [kind for kind in KINDS if kind in set(frame["kind"])]
