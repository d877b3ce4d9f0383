"""Sphinx extension for a book that opens from a file, without a network.

Formulas: the usual renderer loads MathJax from a content network in the reader's browser. Here they become
MathML while the book is built; every current browser draws MathML itself.

Live cells: Jupyter Book always loads sphinx-thebe, which declares its remote script twice on each page, an error
in the browser's console. The book has no live cells, so it is silenced.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


def _mathml(node: nodes.Element, *, block: bool) -> str:
    """Convert one formula; one that cannot be converted is shown as written and reported."""
    source = node.astext()
    if block and "\\\\" in source and "\\begin{" not in source:
        source = f"\\begin{{aligned}}{source}\\end{{aligned}}"
    try:
        return str(tex2mathml(source, as_block=block))
    except MathError as error:
        LOGGER.warning("formula cannot be converted to MathML (%s): %s", error, source, location=node)
        return f"<code>{nodes.Text(source).astext()}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula, with its number and anchor if it has them."""
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Permalink to this equation")
        self.body.append("</span>")
    self.body.append(_mathml(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def silence_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect everything sphinx-thebe listens for, once all extensions are set up."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name `mathml`."""
    app.connect("config-inited", silence_thebe, priority=900)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
