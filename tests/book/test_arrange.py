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
    assert "<picture" not in document.astext(), "three figures of one panel"
    hero = document[document.index(opening) + 1]
    assert "hero" in hero["classes"] and images[0] in hero.children


def test_a_figure_of_many_panels_becomes_a_picture_with_a_view_for_phones(tmp_path):
    document, (figure, _), (narrow, _) = new_document("book/toy"), new_figure(), new_figure(2)
    figure.alt, figure.narrow = "many panels", narrow
    (tmp_path / "many.svg").write_text(figure.svg(), encoding="utf-8")
    document += nodes.image(uri="many.svg")
    app = SimpleNamespace(srcdir=tmp_path, env=SimpleNamespace(docname="book/toy"))
    arrange.arrange(app, document)
    before, after = (raw.astext() for raw in document.findall(nodes.raw))
    assert before == '<picture style="--narrow: 460.8 / 259.2">' and after == "</picture>"
    context = {"body": f'{before}<img alt="" src="../_images/1.svg">{after}<img src="2.svg">'}
    arrange.stack(app, "book/toy", "page.html", context, None)
    source = '<source media="(max-width: 600px)" srcset="../_images/1.svg#narrow">'
    assert (
        context["body"].replace(source, "")
        == f'{before}<img alt="" src="../_images/1.svg">{after}<img src="2.svg">'
    )
    assert context["body"].startswith(before + source)


def test_a_list_of_claims_leads_to_what_its_words_mean_and_a_table_does_not(tmp_path):
    document = new_document("notebooks/toy")
    heads = "".join(f"<th>{name}</th>" for name in ("verdict", "numbers", "value", "unit"))
    cells = "<tr><td>up</td><td>live</td><td>1</td><td>points</td></tr>"
    measured = f'<div class="table-box"><table><tr>{heads}</tr>{cells}</table></div>'
    html = f'<div class="claims"><p>one</p>{measured}<p>two</p>{measured}</div>'
    claims = nodes.raw("", html, format="html")
    rows = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
    table = nodes.raw("", f'<div class="table-box">{rows}</div>', format="html")
    document += [nodes.container("", claims), nodes.container("", table)]
    app = SimpleNamespace(srcdir=tmp_path, env=SimpleNamespace(docname="notebooks/toy"))
    arrange.arrange(app, document)
    (link,) = document.findall(nodes.reference)
    assert link["refuri"] == "../book/reading.html#intervals"
    assert link.parent.parent is claims.parent
    assert link.parent.parent.index(link.parent) == 1
    assert claims.astext().count('<td data-label="value">1</td>') == 2
    assert claims.astext().count('<div class="table-box stacks">') == 2
    reading = project_root() / "book" / "reading.md"
    assert "\n## Intervals\n" in reading.read_text(encoding="utf-8")


def test_each_cell_of_a_written_table_names_its_column():
    heads = (
        '<tr class="row-odd"><th class="head"><p>of <em>it</em></p></th><th><p>kept</p></th></tr>'
    )
    row = '<tr class="row-even"><td><p>PCA</p></td><td><p>half</p></td></tr>'
    other = '<div class="table-box"><table><tr><td>computed</td></tr></table></div>'
    body = f'<table class="colwidths-auto table">{heads}{row}</table>{other}'
    context = {"body": body}
    arrange.stack(None, "book/toy", "page.html", context, None)
    named = '<td data-label="of it"><p>PCA</p></td><td data-label="kept"><p>half</p></td>'
    assert named in context["body"]
    assert context["body"].endswith(other)
    assert (
        context["body"].replace(' data-label="of it"', "").replace(' data-label="kept"', "") == body
    )
