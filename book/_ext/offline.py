"""Sphinx extension for a book that opens from a file, without a network; and what its parts get
wrong, mended.

Formulas: the usual renderer loads MathJax from a content network in the reader's browser. Here they
become MathML while the book is built; every current browser draws MathML itself. None breaks it
into lines: of several formulas on a line each may go to a line of its own, where a screen is
narrow.

Live cells: Jupyter Book always loads sphinx-thebe, which declares its remote script twice on each
page, an error in the browser's console, and a style that is not there. The book has no live cells,
so it is silenced.

Pages are read and written by two processes: two extensions of Jupyter Book's that do not say
whether they bear that are spoken for. They number sections, which these pages have not, and write
LaTeX. Without Jupyter Book they are not there.

The bibliography is a list: its entries say so, or what reads the page aloud would be told of an
empty list. Folds are announced by the words on them.
"""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>[(\[{|‖])")
"""A function before what has no bracket: browsers write `ln n` as one word."""
WITH_A_SPACE = '<mo rspace="0.17em">&ApplyFunction;</mo>'


def _mathml(source: str, node: nodes.Element, *, block: bool) -> str:
    """Convert one formula of a node; one that cannot be converted is shown as written and
    reported.
    """
    if block and "\\\\" in source and "\\begin{" not in source:
        source = f"\\begin{{aligned}}{source}\\end{{aligned}}"
    try:
        return APPLIED.sub(WITH_A_SPACE, str(tex2mathml(source, as_block=block)))
    except MathError as error:
        LOGGER.warning(
            "formula cannot be converted to MathML (%s): %s",
            error,
            source,
            location=node,
        )
        return f"<code>{escape(source)}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(_mathml(node.astext(), node, block=False))
    raise nodes.SkipNode


def formulas_of(source: str) -> list[str]:
    """The formulas that stand beside each other, parted by the widest space; lines that the source
    breaks itself are one.
    """
    whole = "\\\\" in source or "\\begin{" in source
    return [source] if whole else source.split("\\qquad")


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number and anchor if it has them."""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Permalink to this equation")
        self.body.append("</span>")
    parts = [_mathml(part, node, block=True) for part in formulas_of(node.astext())]
    drawn = parts[0] if len(parts) == 1 else f'<div class="formulas">{"".join(parts)}</div>'
    self.body.append(f"{drawn}</div>\n")
    raise nodes.SkipNode


def silence_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect everything sphinx-thebe listens for, once all extensions are set up."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def allow_two_processes(app: Sphinx, config: Config) -> None:
    """Say of the extensions that are silent about it that they may run in two processes."""
    for name in ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex"):
        if name in app.extensions:
            app.extensions[name].parallel_read_safe = True


def mend_page(
    app: Sphinx,
    name: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Make a list's items of the entries of the bibliography, let folds be called what stands on
    them, and ask for no style that is not there.
    """
    body = context.get("body", "").replace('role="doc-biblioentry"', 'role="listitem"')
    context["body"] = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    styles = context.get("css_files", [])
    context["css_files"] = [style for style in styles if "sphinx-thebe" not in str(style.filename)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.connect("config-inited", silence_thebe, priority=900)
    app.connect("config-inited", allow_two_processes)
    app.connect("html-page-context", mend_page, priority=900)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
