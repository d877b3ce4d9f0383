"""Sphinx extension: what a page shows at once, and what it shows on a click.

Open stay two tables that are short, figures with recorded numbers, and what a cell prints in a few
lines. What is folded has one line that says what it is; it is found by a search on the page, and
printed. A list of claims leads on to what its words mean. Figures get numbers and captions: the
description written in their own file, else the title, which is also what a screen reader says; that
of a chart with scripts stands beside its still. A notebook's result comes first: what its first
figure with recorded numbers shows stands below the opening, and a line that leads there where it
was drawn. A figure of many panels has a second view in its file, `narrow`, with two of them
abreast: that is what a phone shows. On a phone the rows of a wide table become blocks, in which
each cell names its column.
"""

import re
from html import escape, unescape
from itertools import filterfalse
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

OPEN_TABLES, OPEN_ROWS, OPEN_LINES = 2, 15, 12
TITLE = re.compile(r"<dc:title>([^<]+)</dc:title>")
DESCRIPTION = re.compile(r"<dc:description>([^<]+)</dc:description>")
CAPTION = re.compile(r"<caption>(.*?)</caption>", re.DOTALL)
VIEW = re.compile(r'<view id="narrow" viewBox="[\d.]+ 0 ([\d.]+) ([\d.]+)"/>')
PICTURE = re.compile(r'(<picture [^>]*>)(\s*<img [^>]*?src="([^"]+)")')
PHONE = "(max-width: 600px)"
WRITTEN = re.compile(r'<table class="(?:[^"]* )?table\b.*?</table>', re.DOTALL)
"""A table that is written on a page, in place of being computed there."""
WITHIN = re.compile(r'<div class="table-box">.*?</table>', re.DOTALL)
"""A computed table with other things around it."""
ALT = re.compile(r'<img class="drawing" alt="([^"]*)"')
TOLD = re.compile(r'class="chart-still" data-caption="([^"]+)"')


def fold(node: nodes.Node, summary: str) -> None:
    """Put a node into a fold that says what it holds."""
    before, after = f'<details class="folded"><summary>{escape(summary)}</summary>', "</details>"
    at, parent = node.parent.index(node), node.parent
    parent[at : at + 1] = [
        nodes.raw("", before, format="html"),
        node,
        nodes.raw("", after, format="html"),
    ]


def hidden(node: nodes.Node | None) -> bool:
    """Whether the page folds the output that a node is part of anyhow."""
    while node is not None:
        if {"tag_hide-output", "tag_hide-cell"} & set(
            getattr(node, "attributes", {}).get("classes", [])
        ):
            return True
        node = node.parent
    return False


def headings(table: str) -> list[str]:
    """The words above each column of a table."""
    heads = re.findall("<th[ >].*?</th>", table, re.DOTALL)
    return [" ".join(re.sub("<[^>]*>", "", head).split()) for head in heads]


def named(row: str, heads: list[str]) -> str:
    """A row whose cells name their columns."""
    labels = iter(heads)
    return re.sub("<td", lambda _: f'<td data-label="{next(labels)}"', row)


def labelled(text: str) -> str:
    """A table whose cells name their columns, for screens on which rows become blocks; one of many
    columns is dense.
    """
    heads = headings(text)
    before, head, *rows = text.split("<tr>")
    rows = [named(row, heads) for row in rows]
    kind = "table-box" + " stacks" * (len(heads) > 3) + " dense" * (len(heads) > 6)
    return "<tr>".join([before.replace("table-box", kind, 1), head, *rows])


def fold_tables(doctree: nodes.document) -> None:
    """Fold long tables, and all but the first two; live ones stay open where no other does."""
    boxes = [
        raw
        for raw in doctree.findall(nodes.raw)
        if raw.astext().startswith('<div class="table-box">')
    ]
    for raw in boxes:
        raw[:] = [nodes.Text(labelled(raw.astext()))]
    left = OPEN_TABLES
    for raw in sorted(filterfalse(hidden, boxes), key=lambda raw: "<caption>live" in raw.astext()):
        text = raw.astext()
        rows, columns = text.count("<tr>") - 1, text.count("</th>")
        if left and rows <= OPEN_ROWS:
            left -= 1
        else:
            said = CAPTION.search(text)
            fold(raw, f"{unescape(said[1]) if said else 'Table'} – {rows} rows × {columns} columns")


def figures(app: Sphinx, doctree: nodes.document) -> list[tuple[nodes.Element, str, str, str]]:
    """The figures that cells drew, each with what it shows, its caption, and the width by the
    height of its narrow view if it has one.
    """
    found: list[tuple[nodes.Element, str, str, str]] = []
    for node in doctree.findall(lambda n: isinstance(n, nodes.image | nodes.raw)):
        caption = view = None
        if isinstance(node, nodes.raw):
            said, caption = (found.search(node.astext()) for found in (ALT, TOLD))
        else:
            path = Path(app.srcdir, node["uri"])
            own = node["uri"].endswith(".svg") and path.is_file()
            text = path.read_text(encoding="utf-8") if own else ""
            said, caption = TITLE.search(text), DESCRIPTION.search(text)
            view = VIEW.search(text)
        if said and not isinstance(node.parent, nodes.figure):
            shows = unescape(said[1]).strip()
            told = " ".join(unescape(caption[1]).split()) if caption else shows
            found.append((node, shows, told, f"{view[1]} / {view[2]}" if view else ""))
    return found


def arrange(app: Sphinx, doctree: nodes.document) -> None:
    """Caption, number and fold."""
    fold_tables(doctree)
    arrange_claims(doctree)
    for block in list(doctree.findall(nodes.literal_block)):
        lines = block.astext().strip().splitlines()
        if "stream" in block["classes"] and len(lines) > OPEN_LINES and not hidden(block):
            fold(block, f"{lines[0][:60]} … – {len(lines)} lines")
    recorded, shown = False, []
    for number, (drawn, said, caption, narrow) in enumerate(figures(app, doctree)):
        if isinstance(drawn, nodes.image):
            drawn["alt"] = drawn.get("alt") or said
        figure = nodes.figure("", ids=[f"figure-{number}"], align="default")
        drawn.replace_self(figure)
        figure += [drawn, nodes.caption("", caption[:1].upper() + caption[1:])]
        if narrow:
            figure.insert(0, nodes.raw("", f'<picture style="--narrow: {narrow}">', format="html"))
            figure.insert(2, nodes.raw("", "</picture>", format="html"))
        recorded |= "recorded" in said
        if recorded and "live" in said and "recorded" not in said and not hidden(figure):
            fold(figure, f"This build: {said}")
        elif not hidden(figure):
            shown.append((figure, "recorded" in said))
    plays = any('class="playground"' in raw.astext() for raw in doctree.findall(nodes.raw))
    if shown and app.env.docname.startswith("notebooks/") and not plays:
        lift(doctree, max(shown, key=lambda each: each[1])[0])


def arrange_claims(doctree: nodes.document) -> None:
    """Put below every list of claims a line that leads to what its intervals and verdicts mean; the
    cells of its tables name their columns.
    """
    for raw in list(doctree.findall(nodes.raw)):
        if raw.astext().startswith('<div class="claims">'):
            raw[:] = [nodes.Text(WITHIN.sub(lambda table: labelled(table[0]), raw.astext()))]
            words, page = "How to read intervals and verdicts", "../book/reading.html#intervals"
            line = nodes.paragraph("", "", nodes.reference("", words, refuri=page, internal=True))
            line["classes"].append("verdict-legend")
            raw.parent.insert(raw.parent.index(raw) + 1, line)


def lift(doctree: nodes.document, figure: nodes.figure) -> None:
    """Move a figure below the first paragraph of the page, as wide as the column."""
    figure["classes"].append("hero")
    opening = next(iter(doctree.findall(nodes.paragraph)), None)
    if opening is not None:
        to = nodes.reference("", "figure above", refid=figure["ids"][0], internal=True)
        left = nodes.paragraph("", "This draws the ", to, nodes.Text("."))
        figure.parent.replace(figure, left)  # `replace_self` would leave the figure's name behind
        opening.parent.insert(opening.parent.index(opening) + 1, figure)


def stack(app: Sphinx, page: str, template: str, context: dict[str, Any], _: object) -> None:
    """Name the narrow view of each picture, once the page knows where its file will lie, and the
    column of each cell of a written table.
    """
    source = rf'\1<source media="{PHONE}" srcset="\3#narrow">\2'
    body = PICTURE.sub(source, context.get("body", ""))
    context["body"] = WRITTEN.sub(with_named_cells, body)


def with_named_cells(table: re.Match[str]) -> str:
    """A written table whose cells name their columns."""
    heads = headings(table[0])
    return re.sub(r"(?s)<tr.*?</tr>", lambda row: named(row[0], heads), table[0])


def retitled(app: Sphinx, env: BuildEnvironment) -> set[str]:
    """Every page, to be written again, if a title has changed: the list of pages beside each text
    holds all titles.
    """
    now = {page: title.astext() for page, title in env.titles.items()}
    # Kept with what Sphinx has read
    before, env.book_titles = getattr(env, "book_titles", None), now
    return set(now) if before != now else set()


def setup(app: Sphinx) -> dict[str, bool]:
    """Arrange a page after its images have been collected."""
    app.connect("doctree-read", arrange)
    app.connect("env-updated", retitled)
    app.connect("html-page-context", stack)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
