import importlib.util
import re

import pytest

from repro.paths import project_root

PAGE = """<html><nav><p class="caption-text">Part</p><ul><li class="current">here</li></ul></nav><article>
<h1>A finding &amp; more<a href="#x">#</a></h1>
<details><p>folded</p></details><p>First <a href="x.html">words</a>.</p>
<div class="cell"><p>printed</p><img src="../_images/a.svg" alt="a &lt; b"/></div>
<p>What to see.</p></article></html>"""


@pytest.fixture
def deck():
    spec = importlib.util.spec_from_file_location("deck", project_root() / "book" / "_ext" / "deck.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_slide_holds_title_finding_figure_and_caption_and_needs_no_other_file(deck, tmp_path):
    for folder in ("book", "_images"):
        (tmp_path / folder).mkdir()
    (tmp_path / "_images" / "a.svg").write_text('<svg viewBox="0 0 10 9"></svg>')
    (tmp_path / "book" / "one.html").write_text(PAGE)
    (tmp_path / "book" / "two.html").write_text("<article><h1>Words</h1><p>No figure.</p></article>")
    deck.write(tmp_path, ["book/one", "book/gone", "book/two"], "Title")
    text = (tmp_path / "deck.html").read_text()
    one, two = re.findall(r"<section.*?</section>", text, re.DOTALL)
    assert 'class="tall"' in one and "<span>Part</span><h2>A finding &amp; more</h2>" in one
    assert "<p>First words.</p>" in one and "<figcaption>What to see.</figcaption>" in one and "1 of 2" in one
    assert 'alt="a &lt; b"' in one and "folded" not in text and "printed" not in one
    assert "<p>No figure.</p>" in two and "<figure>" not in two
    named = re.findall(r'(?:src|href)="([^"#]{0,14})', text)
    assert set(named) == {"book/one.html", "book/two.html", "data:image/svg"}


def test_a_page_without_a_part_or_with_a_wide_figure(deck, tmp_path):
    (tmp_path / "w.svg").write_text('<svg viewBox="0 0 10 5"></svg>')
    page = tmp_path / "w.html"
    page.write_text('<article><h1>W</h1><img src="w.svg"/><div><p>Later.</p></div></article>')
    made = deck.slide(page, "w", 1, 1)
    assert 'class="wide"' in made and "<figcaption></figcaption>" in made and "<p>Later.</p>" in made
