"""Sphinx extension: a figure that a cell drew is described by the title written in its own file.

Without it the alternative text of such an image is its file name, a hash, which a screen reader spells out.
"""

import re
from html import unescape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

TITLE = re.compile(r"<dc:title>([^<]+)</dc:title>")


def describe(app: Sphinx, doctree: nodes.document) -> None:
    """Give every drawn image without a description its title."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir, image["uri"])
        if image["uri"].endswith(".svg") and not image.get("alt") and path.is_file():
            found = TITLE.search(path.read_text(encoding="utf-8"))
            if found:
                image["alt"] = unescape(found[1]).strip()


def setup(app: Sphinx) -> dict[str, bool]:
    """Read the titles after the images have been collected."""
    app.connect("doctree-read", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
