"""What is asked of pages in a browser finds the faults that were put into one, and none in another."""

import pytest

import browser

STYLE = "html[data-theme=dark] {background: #111; color: #eee} a {color: inherit}"
HEAD = f"<!doctype html><html lang=en><head><title>A page</title><style>{STYLE}</style></head>"
GOOD = '<main><h1 id="top">A page</h1><p><a href="#top">Up</a></p></main>'
BAD = """<main><h1>A page</h1><a href="#lost">Where to</a><input type="text"><p style="color: #bbb">Pale by day.</p>
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
