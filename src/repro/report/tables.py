"""Tables: printed, recorded and live numbers side by side, never mixed, in HTML and Markdown that
say their kind.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from repro.evaluation.of_rows import over_runs
from repro.methods import shown as shown_name
from repro.report.kinds import KINDS, title_of
from repro.report.outcomes import OUTCOMES

MISSING = "–"
BOUND = r"(?:[≤≥] |up to ±)[-−]?[\d.]+"
UNIT = " (?:GB|%|s|ms)"
NUMBER = re.compile(
    rf"–|[-−]?[\d.,]+(e-\d+|, {BOUND}|{UNIT})?( ± [\d.]+)?( \[[^]]*\]| \(\d+ seeds?\))?"
)
"""What reads as a number: with its bound, unit, spread, interval or seeds, but not as the start of
a sentence.
"""
INTERVAL = re.compile(rf"{BOUND}|± [\d.]+|\[[^]]*\]|\(\d+ seeds?\)")
"""What stands beside a number, on one line: its bound, its spread, its interval, how many seeds it
has.
"""
RIGHT = ' class="number"'
BESIDE_NUMBERS = ' class="number words"'  # A few words in a column of numbers, such as "all"
OF_DATASETS = ("dataset", "task")  # Columns that name datasets
NO_BREAK = "\N{NO-BREAK SPACE}"
BRACKET = re.compile(r"\([^()]{1,16}\)")  # Short enough to stay on one line
PROSE = 40  # Characters from which a cell is read as a sentence and given room


def between(value: float, low: float, high: float) -> str:
    """A number with its interval, where it has one."""
    if pd.isna(value):
        return MISSING
    return (f"{value:.2f}" if pd.isna(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]").replace(
        "-",
        "−",
    )


def intervals(low: pd.Series, high: pd.Series) -> list[str]:
    """Intervals in words, for pointing at."""
    return [
        MISSING if pd.isna(a) else f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)
    ]


def mean(cell: pd.DataFrame) -> float:
    """Mean over seeds, ×100."""
    return 100 * float(cell["value"].mean())


def interval(cell: pd.DataFrame) -> str:
    """Mean over seeds, ×100, with its 95 % interval (`over_runs`)."""
    e = over_runs(cell)
    return between(100 * e.value, 100 * e.low, 100 * e.high)


def spread(cell: pd.DataFrame) -> str:
    """Mean ± standard deviation over seeds or draws, ×100."""
    values = 100 * cell["value"]
    return f"{values.mean():.2f}" + (f" ± {values.std():.2f}" if len(values) > 1 else "")


def wide(
    rows: pd.DataFrame,
    lines: Sequence[str],
    across: str,
    cell: Callable[[pd.DataFrame], Any] = mean,
    *,
    orders: Mapping[str, Sequence[Any]] | None = None,
    names: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """A line per value of `lines`, a column per value of `across`; in a cell, what is to be said of
    its rows.

    `orders` are of the values of a column, others come last; without one, numbers ascend, and all
    else is in order of appearance. `names` are other headings.
    """
    orders, names = orders or {}, names or {}
    if rows.empty:
        return pd.DataFrame(columns=[names.get(line, line) for line in lines])
    keys = [*lines, across]
    numeric = {key: pd.api.types.is_numeric_dtype(rows[key]) for key in keys}
    text_keys = [key for key in keys if not numeric[key]]
    rows = rows.assign(**{key: rows[key].fillna("") for key in text_keys})
    groups = rows.groupby(keys, sort=False, dropna=False)
    table = pd.Series({key: cell(group) for key, group in groups}).unstack()
    table.index.names = list(lines)

    def place(values: pd.Index) -> pd.Index:
        name = values.name
        if name not in orders and numeric[name]:
            return values
        in_order = [*orders.get(name, ()), *dict.fromkeys(rows[name])]
        return pd.Index([in_order.index(value) for value in values])

    table.columns.name = across
    table = table.sort_index(key=place).sort_index(axis=1, key=place)
    table.columns = [names.get(str(c), str(c)) for c in table.columns]
    return table.reset_index().rename(columns=names)


@dataclass(frozen=True)
class Shown:
    """A piece of a page, as HTML for the browser and as Markdown for print."""

    html: str
    markdown: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html, "text/markdown": self.markdown}


def nothing(title: str) -> Shown:
    """What stands in place of a table or a figure that the reader's parameters leave empty: its
    title, or why.
    """
    sentence = f"Nothing to show under these parameters{': ' if title else ''}{title.rstrip('.')}."
    return Shown(f'<p class="nothing">{escape(sentence)}</p>', sentence)


def to_myst(frame: pd.DataFrame, *, digits: int = 2) -> str:
    """A Markdown table; a missing value is an en dash, numbers align right."""
    numeric = [pd.api.types.is_numeric_dtype(frame[column]) for column in frame]
    lines = [map(str, frame), ("---:" if n else ":---" for n in numeric)]
    for row in frame.itertuples(index=False):
        lines.append(_text(value, digits).replace("|", "\\|").replace("\n", " ") for value in row)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def show(
    frame: pd.DataFrame,
    *,
    digits: int = 2,
    caption: str = "",
    labels: Mapping[str, str] | None = None,
) -> Shown:
    """A frame as a table in its own scrolling box; columns named `paper`, `recorded` or `live`
    carry a pill, and datasets are called as the documents call them.

    `digits` are the decimals of numbers that are not whole, `labels` other headings for some
    columns.
    """
    if frame.empty:
        return nothing(caption)
    titles = [title_of((labels or {}).get(column, column)) for column in frame]
    for column in OF_DATASETS:
        if column in frame:
            frame = frame.assign(**{column: frame[column].map(title_of, na_action="ignore")})
    rows = [
        [_cell(c, v, digits) for c, v in zip(frame, row, strict=True)]
        for row in frame.itertuples(index=False)
    ]
    right = [
        any(RIGHT in cell for cell in column if MISSING not in cell)
        for column in zip(*rows, strict=True)
    ]
    head = "".join(
        f"<th{RIGHT * n}>{pill(c, t)}</th>" for c, t, n in zip(frame, titles, right, strict=True)
    )
    rows = [[_aligned(cell, n) for cell, n in zip(row, right, strict=True)] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    html = f'<div class="table-box">{table}</div>'
    plain = to_myst(frame.set_axis(titles, axis=1), digits=digits)
    return Shown(html, f"{caption}\n\n{plain}" if caption else plain)


def comparison(table: pd.DataFrame, *, caption: str = "") -> Shown:
    """What `side_by_side` gives, for the reader: recorded with its spread and seeds, live with its
    interval.
    """
    shown = table.drop(columns=["recorded_sd", "seeds", "live_low", "live_high"])
    several = [
        f" ± {sd:.2f} ({int(n)} seeds)" if n > 1 else " (1 seed)" if n == 1 else ""
        for sd, n in zip(table["recorded_sd"], table["seeds"], strict=True)
    ]
    shown["recorded"] = [
        _text(v, 2) + said for v, said in zip(table["recorded"], several, strict=True)
    ]
    shown["live"] = list(map(between, table["live"], table["live_low"], table["live_high"]))
    return show(shown, caption=caption, labels={"gap": "live − paper"})


def _cell(column: Any, value: Any, digits: int) -> str:
    outcome, bracket, reason = str(value).partition(" (")
    if outcome in OUTCOMES:
        return f"<td>{verdict_pill(outcome)}{escape(bracket + reason)}</td>"
    if column == "numbers" and value in KINDS:
        return f"<td>{pill(value, value)}</td>"
    text = escape(_text(value, digits))
    if isinstance(value, int | float) or NUMBER.fullmatch(text):
        whole = INTERVAL.sub(r"<span>\g<0></span>", text.replace("-", "−"))
        return f"<td{RIGHT}>{whole}</td>"
    if len(text) > PROSE:
        return f'<td class="prose">{text}</td>'
    return f"<td>{BRACKET.sub(lambda said: said[0].replace(' ', NO_BREAK), text)}</td>"


def _aligned(cell: str, of_numbers: bool) -> str:
    """A cell that stands as the others of its column do; a sentence and a pill stay at the left."""
    if of_numbers and cell.startswith("<td>") and not cell.startswith("<td><span"):
        return cell.replace("<td>", f"<td{BESIDE_NUMBERS}>", 1)
    return cell


def pill(column: Any, title: str) -> str:
    """A heading that says its kind of number, in its colour."""
    return (
        f'<span class="kind-{column}">{escape(title)}</span>' if column in KINDS else escape(title)
    )


def verdict_pill(outcome: str) -> str:
    """A verdict in its colour."""
    return f'<span class="verdict-{outcome.replace(" ", "-")}">{escape(outcome)}</span>'


def _text(value: Any, digits: int) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    return f"{value:.{digits}f}" if pd.api.types.is_float(value) else str(value)


def names(*frames: pd.DataFrame) -> dict[str, str]:
    """Every method of some rows by what readers are shown; of two networks under one method, both
    are named.

    A method of no one network, such as the majority class, keeps its name.
    """
    shown_by_method: dict[str, list[str]] = {}
    for frame in frames:
        methods = (
            frame[["method", "backbone", "data_source"]].dropna(subset="method").drop_duplicates()
        )
        for method, backbone, source in methods.itertuples(index=False):
            generated = str(source) == "microworld"
            shown = (
                method
                if pd.isna(backbone)
                else shown_name(str(method), str(backbone), generated=generated)
            )
            shown_by_method.setdefault(str(method), []).append(shown)
    return {
        method: "; ".join(dict.fromkeys(shown_names))
        for method, shown_names in shown_by_method.items()
    }
