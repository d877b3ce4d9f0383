"""What is asked of pages in a browser finds the faults that were put into one, and none in
another.
"""

from copy import deepcopy

import pytest

import browser
import explorer
from repro.report import figures
from repro.report.figures import new_figure

STYLE = "html[data-theme=dark] {background: #111; color: #eee} a {color: inherit}"
HEAD = f"<!doctype html><html lang=en><head><title>A page</title><style>{STYLE}</style></head>"
GOOD = '<main><h1 id="top">A page</h1><p><a href="#top">Up</a></p></main>'
BAD = """<main><h1>A page</h1><a href="#lost">Where to</a><input type="text">
<p style="color: #bbb">Pale by day.</p>
<details><summary>More</summary><p style="color: #222">Dark by night.</p></details>
<pre style="width: 90px; overflow: auto">a line that is longer than its box</pre></main>"""


@pytest.mark.skipif(browser.browser() is None, reason="no browser is installed")
def test_faults_of_a_page_are_named_and_a_sound_one_has_none(tmp_path):
    pages = [tmp_path / "bad.html", tmp_path / "good.html"]
    for page, body in zip(pages, (BAD, GOOD), strict=True):
        page.write_text(f"{HEAD}<body>{body}", encoding="utf-8")
    faults = browser.broken(browser.measured(tmp_path, pages))
    assert faults == [
        "bad.html (wide): cut off: tables 0, code 1",
        "bad.html (wide): light: label at input",
        "bad.html (wide): light: color-contrast at main > p",
        "bad.html (wide): dark: color-contrast at details > p",
        "bad.html (wide): no anchor #lost",
        "bad.html (narrow): cut off: tables 0, code 1",
        "bad.html (narrow): no anchor #lost",
    ]


@pytest.mark.skipif(browser.browser() is None, reason="no browser is installed")
def test_a_figure_whose_letters_are_too_small_on_a_phone_is_named(tmp_path):
    """One that was drawn so, one that is shown so, one that is so in its view for phones."""
    with figures.styled():
        (fine, _), (tiny, (panel,)), (many, _) = (new_figure() for _ in range(3))
        panel.set_title("tiny", fontsize=figures.SMALLEST - 1)
    many.narrow = tiny
    shown = {"fine": (fine, ""), "half": (fine, "width: 50%"), "tiny": (tiny, "")}
    body = ""
    for name, (figure, style) in shown.items():
        (tmp_path / f"{name}.svg").write_text(figure.svg(), encoding="utf-8")
        body += f'<figure><img src="{name}.svg" style="{style}" alt="{name}"></figure>'
    (tmp_path / "many.svg").write_text(many.svg(), encoding="utf-8")
    body += '<figure><picture><source media="(max-width: 600px)" srcset="many.svg#narrow">'
    body += '<img src="many.svg" alt="many" style="aspect-ratio: 16 / 9"></picture></figure>'
    body += '<svg viewBox="0 0 800 300" role="img"><text y="99" font-size="16">small</text></svg>'
    style = "<style>body, figure {margin: 0} img {width: 100%}</style>"
    page = tmp_path / "page.html"
    page.write_text(f"{HEAD}{style}<body><main><h1>A page</h1>{body}</main>", encoding="utf-8")
    faults = browser.broken(browser.measured(tmp_path, [page]))
    small = [fault.removeprefix("page.html (narrow): ") for fault in faults if "px" in fault]
    assert [fault.split(":")[0] for fault in small] == [
        "half.svg",
        "tiny.svg",
        "many.svg#narrow",
        "a drawing in the text",
    ]
    assert small[1].endswith("letters of 8.5 px: tiny") and small[3].endswith("px: small")


def test_an_interval_that_no_table_has_is_named(tmp_path):
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    page.write_text(
        "It is <b>1.0</b> behind (95 % interval\n0.4 to 1.6), and 2.0 (1.1 to 2.9). From 5 to 4 (5 "
        "to 4).",
        "utf-8",
    )
    other.write_text(
        "<table><td>−1.02 [−1.64, −0.43]</td></table><script>[1.1, 2.9]</script>",
        "utf-8",
    )
    (fault,) = browser.unshown([page], [other])
    assert fault.startswith("page.html: no table has") and fault.endswith("(1.1 to 2.9)'")
    other.write_text("[0.4, 1.6] and [1.14, 2.86]", "utf-8")
    assert not browser.unshown([page], [other])


@pytest.mark.skipif(browser.browser() is None, reason="no browser is installed")
def test_the_explorer_shows_in_every_state_what_its_table_says():
    walk = explorer.walk(explorer.made_ways(), explorer.KEEP, explorer.MILLIONS, thorough=True)
    assert len(walk.steps) > 600
    assert walk.faults(browser.answer_of(walk.body())) == []


def test_the_first_word_that_the_explorer_has_wrong_is_told():
    walk = explorer.walk(explorer.made_ways(), explorer.KEEP)
    looks = deepcopy(walk.wanted)
    assert walk.faults(looks) == []
    looks[3]["said"][0][1] = looks[5]["goal"] = "wrong"
    (fault,) = walk.faults(looks)
    term = walk.wanted[3]["said"][0][0]
    assert fault.startswith(f"the explorer after {walk.steps[2]}: said is [['{term}', 'wrong'],")
    times = len(walk.wanted)
    assert walk.faults(deepcopy(walk.wanted)[:-1]) == [
        f"the explorer was seen {times - 1} times, not {times}"
    ]


@pytest.mark.skipif(browser.browser() is None, reason="no browser is installed")
def test_the_explorer_starts_at_the_fewest_bytes_that_are_sure():
    way = {"encoder": "one", "use": "search", "reducer": "PCA", "code": "int8", "share": 0.99}
    sizes = ((48, 0.97), (24, 0.96), (12, 0.94))
    ways = [{**way, "dim": dim, "bytes": dim, "low": low} for dim, low in sizes]
    walk = explorer.walk(ways, (0.95,))
    assert walk.wanted[0]["dimensions"][0] == "24"
    assert walk.faults(browser.answer_of(walk.body())) == []
