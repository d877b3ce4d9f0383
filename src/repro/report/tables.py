"""Tables: from tidy rows to lines and columns, and these to HTML and Markdown whose number columns say their kind."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from repro.report.compare import KINDS
from repro.report.networks import networks_line
from repro.report.verdict import MEANING, OUTCOMES

MISSING = "–"
NUMBER = re.compile(r"–|[-−]?[\d.,]+( ± [\d.]+)?( \[[^]]*\]| \(\d+ seeds?\))?")
"""what reads as a number: with its spread, interval or seeds, but not as the start of a sentence"""
PROSE = 40
"""characters from which a cell is read as a sentence and given room"""


# From rows to a table


def between(value: float, low: float, high: float) -> str:
    """A number with its interval, where it has one."""
    if pd.isna(value):
        return MISSING
    return f"{value:.2f}" if pd.isna(low) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def mean(cell: pd.DataFrame) -> float:
    """Mean over seeds, ×100."""
    return 100 * float(cell["value"].mean())


def interval(cell: pd.DataFrame) -> str:
    """Mean over seeds, ×100, with the mean 95 % interval over items."""
    value, low, high = (100 * float(cell[column].mean()) for column in ("value", "ci_low", "ci_high"))
    return between(value, low, high)


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
    """A line per value of `lines`, a column per value of `across`.

    Args:
        rows: tidy rows, selected with `query`.
        lines: columns that name a line.
        across: the column whose values become columns.
        cell: what is written of the rows of one cell.
        orders: by column, the order of its values; others come last. Without one, order of appearance; numbers ascend.
        names: other headings.
    """
    orders, names = orders or {}, names or {}
    if rows.empty:
        return pd.DataFrame(columns=[names.get(line, line) for line in lines])
    keys = [*lines, across]
    rows = rows.assign(**{key: rows[key].fillna("") for key in keys if not pd.api.types.is_numeric_dtype(rows[key])})
    table = pd.Series({key: cell(part) for key, part in rows.groupby(keys, sort=False, dropna=False)}).unstack()
    table.index.names = list(lines)

    def place(values: pd.Index) -> pd.Index:
        name = values.name
        if name not in orders and pd.api.types.is_numeric_dtype(rows[name]):
            return values
        known = [*orders.get(name, ()), *dict.fromkeys(rows[name])]
        return pd.Index([known.index(value) for value in values])

    table.columns.name = across
    table = table.sort_index(key=place).sort_index(axis=1, key=place)
    table.columns = [names.get(str(c), str(c)) for c in table.columns]
    return table.reset_index().rename(columns=names)


def over_seeds(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row for the seeds of everything that shares `by`: the mean of value, ci_low and ci_high, in the old order."""
    numbers = [name for name in ("value", "ci_low", "ci_high") if name in rows]
    return rows.groupby(list(by), sort=False, dropna=False)[numbers].mean().reset_index()


# From a table to a page


@dataclass(frozen=True)
class Shown:
    """A piece of a page, as HTML for the browser and as Markdown for print."""

    html: str
    markdown: str

    def _repr_html_(self) -> str:
        return self.html

    def _repr_markdown_(self) -> str:
        return self.markdown


def nothing(wanted: str) -> Shown:
    """What stands in place of a table or a figure that the reader's parameters leave empty: its title, or why."""
    said = f"Nothing to show under these parameters{': ' if wanted else ''}{wanted.rstrip('.')}."
    return Shown(f'<p class="nothing">{escape(said)}</p>', said)


def to_myst(frame: pd.DataFrame, *, digits: int = 2) -> str:
    """A Markdown table; a missing value is an en dash, numbers align right."""
    numeric = [pd.api.types.is_numeric_dtype(frame[column]) for column in frame]
    lines = [_line(str(c) for c in frame), _line("---:" if n else ":---" for n in numeric)]
    for row in frame.itertuples(index=False):
        lines.append(_line(_text(value, digits).replace("|", "\\|").replace("\n", " ") for value in row))
    return "\n".join(lines)


def show(frame: pd.DataFrame, *, digits: int = 2, caption: str = "", labels: Mapping[str, str] | None = None) -> Shown:
    """A frame as a table in its own scrolling box; columns named `paper`, `recorded` or `live` carry a pill.

    `digits` are the decimals of numbers that are not whole, `labels` other headings for some columns.
    """
    if frame.empty:
        return nothing(caption)
    titles = [str((labels or {}).get(column, column)) for column in frame]
    head = "".join(f"<th>{_pill(c, t)}</th>" for c, t in zip(frame, titles, strict=True))
    body = "".join(
        f"<tr>{''.join(_cell(column, value, digits) for column, value in zip(frame, row, strict=True))}</tr>"
        for row in frame.itertuples(index=False)
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    html = f'<div class="table-box"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    plain = to_myst(frame.set_axis(titles, axis=1), digits=digits)
    return Shown(html, f"{caption}\n\n{plain}" if caption else plain)


def comparison(table: pd.DataFrame, *, caption: str = "") -> Shown:
    """What `side_by_side` gives, for the reader: recorded with its spread and seeds, live with its interval."""
    shown = table.drop(columns=["recorded_sd", "seeds", "live_low", "live_high"], errors="ignore").copy()
    if "recorded_sd" in table:
        shown["recorded"] = [
            MISSING
            if pd.isna(v)
            else f"{v:.2f}" + (f" ± {sd:.2f} ({int(n)} seeds)" if n > 1 else " (1 seed)" if n == 1 else "")
            for v, sd, n in zip(table["recorded"], table["recorded_sd"], table["seeds"], strict=True)
        ]
    shown["live"] = list(map(between, table["live"], table["live_low"], table["live_high"]))
    return show(shown, caption=caption, labels={"gap": "live − paper"})


SOURCES = {
    "microworld": "generated sentences with known meaning, in place of the benchmarks",
    "local": "the real benchmarks, from files",
    "hub": "the real benchmarks, downloaded",
}
"""data sources, for the reader"""


def badge(rows: pd.DataFrame, kind: str = "live") -> Shown:
    """Where the live (or recorded) numbers of a page come from: data source first, in a colour of its own.

    A second line says which networks stand where the paper had which, and what they are worth at full size.
    """
    if rows.empty:
        recorded, live = "no long run of this experiment is recorded yet", "none can be computed under these parameters"
        none = recorded if kind == "recorded" else live
        return Shown(f'<div class="badge-line">{_pill(kind, kind)} {none}</div>', f"{kind} numbers: {none}")
    columns = {"n_train": "training sentences"} | {name: name for name in ("seed", "profile", "hardware", "commit")}
    source, *said = (
        (title, ", ".join(map(str, rows[column].dropna().unique())) or "unknown")
        for column, title in {"data_source": "data", "backbone": "backbone", **columns}.items()
    )
    meaning = SOURCES.get(source[1], source[1])
    listed = " · ".join(f"<span>{escape(name)}: <b>{escape(value)}</b></span>" for name, value in said)
    html = (
        f'<div class="badge-line">{_pill(kind, kind)} '
        f'<span class="source-badge source-{escape(source[1])}">data: {escape(source[1])}</span> '
        f"<span>{escape(meaning)}</span> · {listed}</div>"
    )
    plain = "; ".join(f"{name} {value}" for name, value in said)
    networks = networks_line(rows)
    html += f'<div class="badge-line">{escape(networks)}</div>' if networks else ""
    again = "\n".join(rows["command"].dropna().unique()) if kind == "recorded" else ""
    html += f"<details><summary>Run it again</summary><pre>{escape(again)}</pre></details>" if again else ""
    return Shown(html, f"{kind} numbers, **data: {source[1]}** ({meaning}); {plain}{networks and '. ' + networks}")


def verdict_table(verdicts: pd.DataFrame, statements: Mapping[str, str] | None = None) -> Shown:
    """Claims with what was measured, its interval and the computed verdict; the rules' meaning below."""
    if verdicts.empty:
        return nothing("no claim can be judged from these rows")
    v = verdicts
    exact = v["low"] == v["high"]
    shown = pd.DataFrame({"claim": v["claim_id"], "verdict": v["verdict"]})
    if statements:  # a claim judged at many dims is written out once
        shown["statement"] = v["claim_id"].map(statements).fillna("").mask(v["claim_id"].duplicated(), "")
    shown["measured"] = v["what"].where(v["why"] == "", v["what"] + " – " + v["why"])
    seeds = v["seeds"].astype(str) + " seed" + v["seeds"].map(lambda n: "" if n == 1 else "s")
    shown["network"] = (v["network"] + ", " + seeds).where(v["network"] != "", MISSING)
    shown["numbers"] = v["kind"]
    shown["printed"] = [between(value, float("nan"), float("nan")) for value in v["paper"].astype(float)]
    shown["value"] = list(map(between, v["value"], v["low"].mask(exact), v["high"]))
    table = show(shown)
    present = [outcome for outcome in OUTCOMES if outcome in set(v["verdict"])]
    legend = "".join(f"<li>{_verdict_pill(o)} {escape(MEANING[o])}</li>" for o in present)
    plain = "\n".join(f"- {o}: {MEANING[o]}" for o in present)
    return Shown(f'{table.html}<ul class="verdict-legend">{legend}</ul>', f"{table.markdown}\n\n{plain}")


def _cell(column: Any, value: Any, digits: int) -> str:
    if isinstance(value, str) and value in OUTCOMES:
        return f"<td>{_verdict_pill(value)}</td>"
    if column == "numbers" and value in KINDS:
        return f"<td>{_pill(value, value)}</td>"
    text = escape(_text(value, digits))
    number = isinstance(value, int | float) or NUMBER.fullmatch(text) is not None
    if number:
        return f'<td class="number">{text}</td>'
    return f'<td class="prose">{text}</td>' if len(text) > PROSE else f"<td>{text}</td>"


def _pill(column: Any, title: str) -> str:
    return f'<span class="kind-{column}">{escape(title)}</span>' if column in KINDS else escape(title)


def _verdict_pill(outcome: str) -> str:
    return f'<span class="verdict-{outcome.replace(" ", "-")}">{escape(outcome)}</span>'


def _text(value: Any, digits: int) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and pd.isna(value)):
        return MISSING
    if isinstance(value, float) or (hasattr(value, "dtype") and value.dtype.kind == "f"):
        return f"{value:.{digits}f}"
    return str(value)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
