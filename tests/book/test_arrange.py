"""A figure's own file gives its caption, the description, and what stands for it, the title."""

import sys
from types import SimpleNamespace

from docutils import nodes
from docutils.utils import new_document

from repro.paths import project_root
from repro.report.figures import new_figure

sys.path.insert(0, str(project_root() / "book" / "_ext"))
import arrange


def test_captions_say_what_to_see_and_the_recorded_figure_is_lifted(tmp_path):
    document = new_document("notebooks/toy")
    opening = nodes.paragraph("", "What we found.")
    document += [opening, nodes.paragraph("", "More.")]
    for name, alt, caption in (
        ("live", "curves; numbers: live", "Up & down."),
        ("past", "curves; numbers: recorded", "It falls below half."),
        ("plain", "bars of nothing else", ""),
    ):
        figure, _ = new_figure()
        figure.alt = alt
        (tmp_path / f"{name}.svg").write_text(figure.sees(caption).svg(), encoding="utf-8")
        document += nodes.image(uri=f"{name}.svg")
    app = SimpleNamespace(srcdir=tmp_path, env=SimpleNamespace(docname="notebooks/toy"))
    arrange.arrange(app, document)
    captions = [caption.astext() for caption in document.findall(nodes.caption)]
    assert captions == ["It falls below half.", "Up & down.", "Bars of nothing else"]
    images = list(document.findall(nodes.image))
    assert images[0]["alt"] == "curves; numbers: recorded"
    hero = document[document.index(opening) + 1]
    assert "hero" in hero["classes"] and images[0] in hero.children
