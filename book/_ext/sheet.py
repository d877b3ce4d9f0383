"""Sphinx extension: the exercises as two files to hand out, `sheet.html` that only asks and
`sheet_answers.html` with a hint, the code and the answer to each.

Both are cut from the page that `exercises` of the configuration names, as the build executed and
rendered it: what the page shows at once is the question, what it folds is the answer. Each file
stands alone, so that it can be sent, and prints on A4. An address that ends in names,
`sheet.html#F1,B2`, shows and prints these alone.
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

SHEET, ANSWERS = "sheet.html", "sheet_answers.html"
OTHER = {SHEET: "The questions", ANSWERS: "The answers"}
CHOOSE = """
Names at the end of the address choose among the exercises, for the screen and for paper:
<code>#F1,B2</code>.
"""
NAME = re.compile(r"(\w+)\. ")
GOAL = "You learn"  # How the sentence begins that says what an exercise is for, and gives it away
STYLE = """
:root { color-scheme: light dark; --text: #1d2329; --quiet: #56606d; --line: #d9dee5; }
:root { --ground: #fff; --code: #f4f6f8; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e8ebef; --quiet: #aab3bf; --line: #3a424d; --ground: #14181e; --code: #1e242c; }
}
* { box-sizing: border-box; }
body { background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 0 auto; padding: 1.5rem 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.15rem; margin: 1.6rem 0 0; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 0; }
h4 { font-size: 0.8rem; margin: 0.6rem 0 0; color: var(--quiet); }
p { margin: 0.3rem 0; }
pre { background: var(--code); padding: 0.5rem; margin: 0.3rem 0; font-size: 0.8rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: 0.9em; }
div.math, math[display="block"] { overflow-x: auto; }
h1 + p, .screen { color: var(--quiet); font-size: 0.85rem; }
a { color: inherit; }
.whose { display: flex; gap: 1rem; margin-top: 1rem; }
.whose span { flex: 1; border-bottom: 1px solid currentColor; }
@page { size: A4; margin: 18mm 16mm; }
@media print {
  body { font-size: 10.5pt; max-width: none; padding: 0; }
  .screen { display: none; }
  h2, h3, h4 { break-after: avoid; }
  article.question { break-inside: avoid; padding-bottom: 8mm; }
}
"""
SCRIPT = """
const shown = () => {
  const articles = [...document.querySelectorAll("article")];
  const named = decodeURIComponent(location.hash.slice(1)).split(",");
  const asked = articles.filter(article => named.includes(article.id));
  articles.forEach(article => { article.hidden = asked.length > 0 && !asked.includes(article); });
  document.querySelectorAll("section").forEach(part => {
    part.hidden = !part.querySelector("article:not([hidden])");
  });
};
addEventListener("hashchange", shown);
shown();
"""


class Exercise(NamedTuple):
    """One exercise, its pieces as HTML."""

    name: str
    title: str
    question: str
    answer: str


class Part(NamedTuple):
    """The exercises of one part of the book."""

    title: str
    exercises: list[Exercise]


def parts(article: Tag) -> list[Part]:
    """What a rendered page of exercises holds: a heading of the third level is an exercise."""
    found = []
    for section in article.select("section:has(> h2)"):
        own = section.select(":scope > section:has(> h3)")
        found.append(Part(section.h2.get_text(), [exercise(each) for each in own]))
    return found


def exercise(section: Tag) -> Exercise:
    """One exercise: what the page folds belongs to its answer, and so does what it is for."""
    heading = section.h3.extract()
    title = heading.get_text()
    name = NAME.match(title)
    goals = [goal.extract() for goal in section.select("em") if goal.get_text().startswith(GOAL)]
    folds = [piece for piece in section.find_all(recursive=False) if piece.select("summary")]
    hints = section.select(":scope > .dropdown")
    answer = [f"<p>{goal}</p>" for goal in goals]
    for fold in (*hints, *folds):
        answer.append(opened(fold.extract()))
    question = section.decode_contents()
    return Exercise(name[1] if name else section["id"], title, question, "".join(answer))


def opened(fold: Tag) -> str:
    """What a fold holds, below the words that stand on it."""
    summary = fold.select_one("summary") or fold.select_one(".admonition-title")
    on_it = summary.extract()
    closed = on_it.select_one(".collapsed") or on_it
    heading = closed.get_text().replace("(show)", "").strip()
    return f"<h4>{escape(heading)}</h4>{fold.decode_contents()}"


def plain(article: Tag) -> None:
    """Take away what leads elsewhere: a sheet is sent without the book."""
    for link in article.select("a"):
        link.decompose() if link.get_text() in ("#", "¶") else link.unwrap()
    for fold in article.select("details"):
        fold.name = "div"


def write(html: Path, page: str, title: str, language: str = "en") -> None:
    """Write both files beside the pages, if the page of exercises is rendered."""
    source = html / f"{page}.html"
    if not source.is_file():
        return
    article = BeautifulSoup(source.read_text(encoding="utf-8"), "html.parser").find("article")
    plain(article)
    start = article.select_one("section:has(> h1) > .cell pre")
    begun = f"<h4>What the code begins with</h4>{start}" if start else ""
    every_part = parts(article)
    asked = "".join(body_of(part, "question") for part in every_part)
    told = begun + "".join(body_of(part, "answer") for part in every_part)
    whose = '<p class="whose">Name <span></span> Date <span></span></p>'
    sheet = file_of("Exercises", title, whose + asked, other=ANSWERS, language=language)
    answers = file_of("Exercises: answers", title, told, other=SHEET, language=language)
    (html / SHEET).write_text(sheet, encoding="utf-8")
    (html / ANSWERS).write_text(answers, encoding="utf-8")


def body_of(part: Part, kind: str) -> str:
    """The questions of one part, or its answers."""
    told = [
        f'<article id="{own.name}" class="{kind}"><h3>{escape(own.title)}</h3>'
        f"{getattr(own, kind)}</article>"
        for own in part.exercises
    ]
    return f"<section><h2>{escape(part.title)}</h2>{''.join(told)}</section>"


def file_of(heading: str, book: str, body: str, *, other: str, language: str) -> str:
    """A file that stands alone; `other` is the one that goes with it."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(heading)}: {escape(book)}</title><style>{STYLE}</style>"
    )
    leads = f'<p class="screen"><a href="{other}">{OTHER[other]}</a>. {CHOOSE}</p>'
    return (
        f'<!doctype html><html lang="{language}"><head>{head}</head><body><main>'
        f"<h1>{escape(heading)}</h1><p>{escape(book)}</p>{leads}{body}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the sheets once all pages are rendered."""
    if error is None and app.builder.format == "html":
        write(Path(app.outdir), app.config.exercises, app.config.html_title or app.config.project)


def setup(app: Sphinx) -> dict[str, bool]:
    """Take the page from the configuration."""
    app.add_config_value("exercises", "", "env", str)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
