"""The advisor's report: one HTML file with its figures inside, for a browser, light or dark."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

import pandas as pd

from repro.report.style import GREY, WIDTH, Drawing, add_legend, dim_axis, look, new_figure, series_handles, styled
from repro.types import InputError

PAGE = (files("dimadvise") / "report.html").read_text(encoding="utf-8")


@styled()
def draw_advice(frame: pd.DataFrame, *, retain: float, labelled: bool) -> Drawing:
    """Share of the score kept against size, with lower bounds; without labels the share that is expected.

    Args:
        frame: a row per candidate with line, dim, share, low, expected, neighbours (fractions).
        retain: the share asked for, drawn as a line.
        labelled: whether shares were measured.

    Raises:
        InputError: if there is nothing to draw.
    """
    if frame.empty:
        raise InputError("nothing to draw: no size was tried")
    names = list(dict.fromkeys(frame["line"]))
    figure, axes = new_figure(1, 2, height=3.7)
    left, right = axes
    for position, name in enumerate(names):
        part, style = frame[frame["line"] == name].sort_values("dim"), look(position)
        left.plot(part["dim"], 100 * part["share" if labelled else "expected"], **style)
        if labelled:
            low, share = 100 * part["low"], 100 * part["share"]
            left.fill_between(part["dim"], low, share, color=style["color"], alpha=0.2, linewidth=0)
        right.plot(part["dim"], 100 * part["neighbours"], **style)
    left.set_ylim(bottom=max(left.get_ylim()[0], 0))  # a share below nothing is as bad as nothing
    left.axhline(100 * retain, color=GREY, linestyle=":", linewidth=1.2)
    left.set_title("score kept, %" if labelled else "score kept, expected, %", loc="left")
    right.set_title("neighbours kept, %", loc="left")
    for panel in axes:
        dim_axis(panel, sorted(set(frame["dim"])), room=WIDTH / 2 - 0.7)
    add_legend(figure, series_handles(names))
    kept = "share of the score kept, with its lower bound," if labelled else "share of a score expected to be kept"
    figure.alt = f"{kept} and share of nearest neighbours kept, against dimensions, for {', '.join(names)}"
    return figure


def advice_page(
    *,
    title: str,
    answer: str,
    paragraphs: Sequence[str],
    figure: Drawing,
    tables: Mapping[str, pd.DataFrame],
    footer: str,
) -> str:
    """The report as HTML.

    Args:
        title: heading of the page.
        answer: the answer in one sentence.
        paragraphs: what else has to be said.
        figure: the curves.
        tables: by caption; numbers are shown as they are.
        footer: where the numbers come from.
    """
    parts = [
        f'<p class="answer">{escape(answer)}</p>',
        *(f"<p>{escape(text)}</p>" for text in paragraphs),
        f'<div class="scroll">{figure.img()}</div>',
    ]
    for caption, table in tables.items():
        html = table.to_html(index=False, border=0, escape=True, na_rep="–")
        parts.append(f'<h2>{escape(caption)}</h2><div class="scroll">{html}</div>')
    return PAGE.format(title=escape(title), body="\n".join(parts), footer=escape(footer))
