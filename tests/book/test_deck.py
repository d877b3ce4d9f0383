import re
from base64 import b64decode
from xml.etree.ElementTree import fromstring

from repro.book import builder
from repro.paths import project_root
from repro.report.figures import new_figure

PAGE = """<nav><p class="caption-text">Part</p><ul><li class="current">here</li></ul></nav><article>
<h1>A finding &amp; more<a href="#x">#</a></h1><details><p>folded</p></details><p>First <a href="x.html">words</a>.</p>
<div class="cell"><p>printed</p><img src="../a.svg" alt="a &lt; b"/></div><p>What to see.</p></article>"""  # noqa: E501


def test_a_slide_has_title_finding_figure_and_caption_and_no_other_file(
    write,
    tmp_path,
    monkeypatch,
):
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import deck

    write("a.svg", '<svg viewBox="0 0 10 9"></svg>')
    write("book/one.html", PAGE)
    write("book/two.html", "<article><h1>Figure 2: words</h1><p>No figure.</p></article>")
    long = " ".join(f"Sentence {i} has <b>five</b> words." for i in range(9))
    write("book/long.html", f"<article><h1>Long</h1><p>{long}</p></article>")
    deck.write(tmp_path, ["book/long", {"book/two": "How many?", "book/gone": "Who?"}], "Title")
    noted, asks, answers = re.findall(
        r"<section.*?</section>", (tmp_path / "deck.html").read_text(), re.DOTALL
    )
    shown, notes = noted.split('<details class="notes">')
    assert shown.count("Sentence") == 5 and notes.count("Sentence") == 4, "25 words stand on it"
    assert "<p>How many?</p>" in asks and "No figure" not in asks and "2 of" not in asks
    assert "<span> · Figure 2</span><h2>Words</h2>" in answers
    assert "2 of 2" in answers and "Who?" not in noted + asks + answers
    deck.write(tmp_path, ["book/one", "book/gone", "book/two"], "Title")
    text = (tmp_path / "deck.html").read_text()
    one, two = re.findall(r"<section.*?</section>", text, re.DOTALL)
    assert (
        'class="tall"' in one
        and "<span>Part</span><h2>A finding &amp; more</h2>" in one
        and "1 of 2" in one
    )
    assert (
        "<p>First words.</p>" in one
        and "<figcaption>What to see.</figcaption>" in one
        and 'alt="a &lt; b"' in one
    )
    assert (
        "folded" not in text
        and "printed" not in text
        and "<p>No figure.</p>" in two
        and "<figure>" not in two
    )
    caption = " ".join(["word"] * 24)
    write("book/one.html", PAGE.replace("What to see", caption))
    deck.write(tmp_path, ["book/one"], "Title")
    (crowded,) = re.findall(
        "<section.*?</section>", (tmp_path / "deck.html").read_text(), re.DOTALL
    )
    shown, notes = crowded.split('<details class="notes">')
    assert caption not in shown and caption in notes
    assert {*re.findall(r'(?:src|href)="([^"]{0,14})', text)} == {
        "book/one.html",
        "book/two.html",
        "data:image/svg",
    }


def test_a_slide_shows_the_one_panel_that_its_figure_holds_for_it(write, tmp_path, monkeypatch):
    """A figure of several panels without one is warned of, which a build counts as a fault."""
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import deck

    whole, _ = new_figure(1, 2, height=5.0)
    panel, _ = new_figure(height=3.0)
    warned = []
    monkeypatch.setattr(deck.LOGGER, "warning", warned.append)
    write("a.svg", whole.svg())
    write("book/one.html", PAGE)
    deck.write(tmp_path, ["book/one"], "Title")
    (said,) = warned
    assert said.startswith("the slide of book/one has 2 panels: give its figure")
    write("a.svg", whole.on_slides(panel).svg())
    deck.write(tmp_path, ["book/one"], "Title")
    assert warned == [said], "one panel is no fault"
    (held,) = re.findall(
        r'src="data:image/svg\+xml;base64,([^"]+)"', (tmp_path / "deck.html").read_text()
    )
    shown = fromstring(b64decode(held))
    assert shown.tag.endswith("svg") and shown.get("viewBox") == "0 0 460.8 216"
    assert [group.get("id") for group in shown.iter() if "axes" in group.get("id", "")] == [
        "slide-axes_1"
    ]


def test_nothing_is_warned_of_a_page_that_the_build_left_as_it_was(write, tmp_path, monkeypatch):
    """Of the pages that `--only` does not name, an old figure or no figure is there."""
    monkeypatch.syspath_prepend(project_root() / "book" / "_ext")
    import deck

    warned = []
    monkeypatch.setattr(deck.LOGGER, "warning", warned.append)
    panels, _ = new_figure(1, 2, height=5.0)
    write("a.svg", panels.svg())
    names = ["notebooks/left", "notebooks/left_too", "notebooks/made"]
    for name in names:
        write(f"{name}.html", PAGE.replace("First", " ".join(["word"] * 30)))
    monkeypatch.setenv(builder.SKIPPED, "\n".join(names[:2]))
    deck.write(tmp_path, names, "Title")
    assert [said.split()[3] for said in warned] == ["notebooks/made"] * 2
    assert (tmp_path / "deck.html").read_text().count("<section") == 3
    monkeypatch.delenv(builder.SKIPPED)
    deck.write(tmp_path, names, "Title")
    assert len(warned) == 8
