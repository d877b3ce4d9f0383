"""Interactive charts: no network, a path relative to the page, and a figure for whoever runs no scripts."""

import hashlib
import json
import re

import altair as alt
import pandas as pd
import pytest

from repro import paths
from repro.report import interactive
from repro.report.figures import curves
from repro.report.tables import Shown
from repro.types import InputError

VEGA = paths.project_root() / "book" / "_static" / "vega"
HOSTILE = "b</script><!--<script>"  # ends a script element; or takes the rest of the page into it
ROWS = [("live", method, dim, 0.5 + dim / 1000) for method in ("a", HOSTILE) for dim in (8, 64)]
DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
FRAME = pd.DataFrame(ROWS, columns=["kind", "method", "dim", "value"])


def test_scripts_are_found_beside_the_page_and_no_chart_needs_the_network():
    chart = alt.Chart(FRAME).mark_line().encode(x="dim:Q", y="value:Q", color="method:N")
    shown = interactive.show(chart, fallback=curves(FRAME, color="method"), hint="Point.")
    html = shown._repr_html_()
    assert "_static/vega/" in html and html.count("</script>") == 2, "a text of the frame ends no script"
    assert all((VEGA / name).is_file() for name in re.findall(r'load\("([^"]+)"\)', html))
    addresses = set(re.findall(r"https?://[^\s\"'\\]+", html))
    assert addresses == {shown.spec["$schema"]}  # names the dialect; nothing loads it
    still = html[html.index("chart-still") : html.index("chart-hint")]
    assert 'src="data:image/svg+xml;base64,' in still and "display:none" not in still
    with pytest.raises(InputError, match="network"):
        interactive.show(alt.Chart("https://example.org/a.json").mark_point(), fallback=None, hint="Point.")


def test_vendored_scripts_are_the_published_ones_and_fit_altair():
    notes = (VEGA / "README.md").read_text(encoding="utf-8")
    for script in sorted(VEGA.glob("*.js")):
        assert hashlib.sha256(script.read_bytes()).hexdigest() in notes
        assert script.stat().st_size < 1_000_000
    assert alt.VEGALITE_VERSION in notes


def test_a_script_of_ours_has_its_data_beside_it_and_a_table_without_scripts():
    shown = interactive.widget("explorer", {"ways": ["a"]}, Shown("<b>still</b>", "still"))
    assert json.loads(DATA.search(shown.html)[1]) == {"ways": ["a"]}
    assert "<noscript><b>still</b></noscript>" in shown.html and shown.markdown == "still"
    assert "http" not in shown.html


def test_no_text_of_the_data_is_markup_to_a_browser_and_every_one_arrives_as_it_was():
    chart = alt.Chart(FRAME).mark_line().encode(x="dim:Q", y="value:Q", color="method:N")
    drawn = interactive.show(chart, fallback=curves(FRAME, color="method"), hint="Point.")
    controls = interactive.widget("explorer", {HOSTILE: [HOSTILE]}, Shown("", ""))
    for html, data in ((drawn._repr_html_(), drawn.spec), (controls.html, {HOSTILE: [HOSTILE]})):
        text = DATA.search(html)[1]
        assert "<" not in text and json.loads(text) == data
