"""Sphinx extension: the pages that `deck` of the configuration names as slides in one file,
`deck.html`.

A slide has a page's title, first paragraph and first figure, with the paragraph that follows the
figure as caption: what the build executed and rendered. Of a long paragraph the first sentences
stand on it, the others below, as notes that open; so does a caption for which no room is left. A
first sentence that is too long for a slide is warned of. Of a figure of several panels a slide
shows the one that the figure's file holds for it, its view `slide`; a file that holds none is
warned of. A page that comes with a question has a slide before its own that only asks. Figures are
inside the file, so that it can be sent and shown without a network.

Nothing is warned of a page that the build was told to leave (`repro book --only`): its slide is of
what an earlier build made of it, or of what it says before it is executed.
"""

import base64
import os
import re
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

LOGGER = getLogger(__name__)
OUTSIDE = ".admonition, details, summary, figcaption, .cell_output .badge-line"
MOST_WORDS = 25  # on a slide, as whole sentences
EXHIBIT = re.compile(r"((?:Figure|Table)s? \d+(?: and \d+)?): ")
SKIPPED = "REPRO_SKIPPED"  # Where a build names, line by line, the pages that it left as they were
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
FOR_SLIDES = re.compile(rb'<svg id="of-slide" x="\d+"([^>]*)>(.*?)<view id="slide"', re.DOTALL)
PANEL = re.compile(rb'<g id="(?:slide-)?axes_\d+"')
ALONE = b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"%b>%b'
STYLE = """
:root { color-scheme: light dark; }
:root { --text: #1d2329; --quiet: #56606d; --ground: #fff; --line: #d9dee5; }
@media screen and (prefers-color-scheme: dark) {
  :root { --text: #e8ebef; --quiet: #aab3bf; --ground: #14181e; --line: #3a424d; }
  img { filter: brightness(1.22); }
}
* { box-sizing: border-box; }
html { scroll-snap-type: y proximity; }
body { margin: 0; background: var(--ground); color: var(--text); }
body { font: clamp(0.9rem, 1.25vw, 1.3rem)/1.45 system-ui, sans-serif; }
section { min-height: 100vh; padding: 3vh 5vw 2vh; scroll-snap-align: start; }
section { display: flex; flex-direction: column; gap: 1.4vh; }
h2 { font-size: 1.75em; line-height: 1.15; margin: 0; }
header > span { color: var(--quiet); font-size: 0.8em; }
p, figure { margin: 0; overflow-wrap: anywhere; }
figure { flex: 1; min-height: 0; display: flex; flex-direction: column; justify-content: center; }
img { display: block; width: 100%; height: 56vh; object-fit: contain; }
figcaption, footer { color: var(--quiet); font-size: 0.8em; }
footer { border-top: 1px solid var(--line); padding-top: 0.6vh; }
footer { display: flex; justify-content: space-between; }
a { color: inherit; }
.notes { color: var(--quiet); font-size: 0.8em; }
.asks { justify-content: center; text-align: center; font-size: 1.6em; }
@media (min-width: 701px), print {
  .tall { display: grid; grid-template: auto 1fr auto / 2fr 3fr; column-gap: 2vw; }
  .tall header, .tall footer { grid-column: 1 / -1; }
  .tall { grid-template-rows: auto auto 1fr auto; }
  .tall figure { grid-area: 2 / 2 / 4 / 3; }
  .tall .notes { grid-area: 3 / 1; }
}
.tall img { height: 72vh; }
@media (max-width: 700px) { img, .tall img { height: auto; } section { padding: 1.2rem; } }
@page { size: A4 landscape; margin: 8mm; }
@media print {
  body { font-size: 11pt; }
  section { min-height: 0; height: 190mm; padding: 0; break-after: page; }
  img { height: 115mm; }
  .tall img { height: 140mm; }
}
"""
SCRIPT = """
const slides = [...document.querySelectorAll("section")];
const on = ["ArrowRight", "ArrowDown", "PageDown", " "], back = ["ArrowLeft", "ArrowUp", "PageUp"];
addEventListener("keydown", event => {
  const step = on.includes(event.key) ? 1
    : back.includes(event.key) ? -1 : {Home: -99, End: 99}[event.key];
  if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const now = slides.findLastIndex(slide => slide.getBoundingClientRect().top < innerHeight / 2);
  slides[Math.max(0, Math.min(slides.length - 1, now + step))].scrollIntoView();
});
"""


def words(tag: Tag | None) -> str:
    """The text of a tag as HTML without links; formulas stay."""
    for link in tag.select("a") if tag else ():
        link.unwrap() if link.get_text() not in ("#", "¶") else link.decompose()
    return tag.decode_contents().strip() if tag else ""


def said_and_noted(paragraph: str) -> tuple[str, str]:
    """The first sentences of a paragraph, as many as a slide has room for, and the others."""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z<(])", " ".join(paragraph.split()))
    kept = 1
    while kept < len(sentences) and length(" ".join(sentences[: kept + 1])) <= MOST_WORDS:
        kept += 1
    return " ".join(sentences[:kept]), " ".join(sentences[kept:])


def length(text: str) -> int:
    """How many words a reader sees; a formula is one."""
    seen = re.sub(r"<math.*?</math>", " formula ", text, flags=re.DOTALL)
    return len(re.sub("<[^>]*>", "", seen).split())


def question(asked: str, number: int) -> str:
    """A slide that only asks, before the one that answers."""
    return f'<section id="question-{number}" class="asks"><p>{escape(asked)}</p></section>'


def warn(name: str, fault: str) -> None:
    """Tell a fault of a page's slide, if the build brought the page up to date."""
    if name not in os.environ.get(SKIPPED, "").splitlines():
        LOGGER.warning(f"the slide of {name} has {fault}")


def one_panel(drawn: bytes, name: str) -> bytes:
    """What a slide shows of a figure's file: its view of one panel, if it has one, else all."""
    held = FOR_SLIDES.search(drawn)
    shown = ALONE % held.groups() if held else drawn
    if (panels := len(PANEL.findall(shown))) > 1:
        warn(
            name,
            f"{panels} panels: give its figure the one that bears out the page's first sentence, "
            "with `on_slides`",
        )
    return shown


def slide(page: Path, name: str, number: int, count: int) -> str:
    """One page as a slide; without a figure if it has none."""
    whole = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    article, here = whole.find("article"), whole.select_one("nav li.current")
    part = here.find_previous(class_="caption-text") if here else None
    outside = {id(tag) for part in article.select(OUTSIDE) for tag in (part, *part.find_all(True))}
    tags = {
        kind: [tag for tag in article.find_all(kind) if id(tag) not in outside]
        for kind in ("p", "img")
    }
    said, image = (next(iter(tags[kind]), None) for kind in ("p", "img"))
    text, notes = said_and_noted(words(said))
    if length(text) > MOST_WORDS:
        warn(
            name,
            f"{length(text)} words, more than {MOST_WORDS}: shorten the page's first sentence",
        )
    drawn = shape = ""
    if image:
        path = (page.parent / image["src"]).resolve()
        content = one_panel(path.read_bytes(), name)
        size = re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', content[:4000])
        shape = "tall" if size and float(size[2]) > 0.7 * float(size[1]) else "wide"
        data = base64.b64encode(content).decode()
        below = (image.find_parent(class_="cell") or image).find_next_sibling()
        caption = words(below) if below and below.name == "p" else ""
        if length(text) + length(caption) > MOST_WORDS:
            caption, notes = "", f"{notes} {caption}".strip()
        source = f"data:{KINDS[path.suffix]};base64,{data}"
        drawn = f'<figure><img src="{source}" alt="{escape(image.get("alt", ""))}">'
        drawn += f"<figcaption>{caption}</figcaption></figure>"
    foot = (
        f'<footer><a href="{escape(name)}.html">{escape(name)}</a><span>{number} '
        f"of {count}</span></footer>"
    )
    noted = f'<details class="notes"><summary>Notes</summary>{notes}</details>' if notes else ""
    place, title = words(part), words(article.h1)
    if exhibit := EXHIBIT.match(title):  # A paper's number, beside the paper's name
        place, title = f"{place} · {exhibit[1]}", title[exhibit.end() :]
    title = title[:1].upper() + title[1:]
    head = f"<header><span>{place}</span><h2>{title}</h2></header>"
    return (
        f'<section id="slide-{number}" '
        f'class="{shape}">{head}<p>{text}</p>{drawn}{noted}{foot}</section>'
    )


def write(html: Path, listed: list[str | dict[str, str]], title: str, language: str = "en") -> None:
    """Write `deck.html` beside the pages: names, or names with a question; one that is not rendered
    has no slide.
    """
    named: dict[str, str] = {}
    for entry in listed:
        named |= {entry: ""} if isinstance(entry, str) else entry
    named = {name: asked for name, asked in named.items() if (html / f"{name}.html").is_file()}
    slides = []
    for number, (name, asked) in enumerate(named.items(), 1):
        slides += [question(asked, number)] if asked else []
        slides.append(slide(html / f"{name}.html", name, number, len(named)))
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    head += f"<title>{escape(title)}</title><style>{STYLE}</style>"
    text = (
        "<!doctype html><html "
        f'lang="{language}"><head>{head}</head><body><main>{"".join(slides)}</main>'
    )
    (html / "deck.html").write_text(
        f"{text}<script>{SCRIPT}</script></body></html>\n",
        encoding="utf-8",
    )


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the deck once all pages are rendered."""
    if error is None and app.builder.format == "html":
        write(Path(app.outdir), app.config.deck, app.config.html_title or app.config.project)


def setup(app: Sphinx) -> dict[str, bool]:
    """Take the pages from the configuration."""
    app.add_config_value("deck", [], "env", list)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
