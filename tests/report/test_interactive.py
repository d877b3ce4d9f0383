"""Interactive charts: no network, a path relative to the page, and a figure for whoever runs no scripts."""

import hashlib
import re

import altair as alt
import pandas as pd
import pytest

from repro import paths
from repro.report import interactive
from repro.report.figures import curves
from repro.types import InputError

VEGA = paths.project_root() / "book" / "_static" / "vega"


@pytest.fixture
def frame():
    rows = [
        {"kind": kind, "method": method, "dim": dim, "value": 0.5 + dim / 1000, "ci_low": 0.4, "ci_high": 0.9}
        for kind in ("paper", "live")
        for method in ("a", "b</script>")
        for dim in (8, 64)
    ]
    return pd.DataFrame(rows)


def chart_of(frame):
    return alt.Chart(frame).mark_line().encode(x="dim:Q", y="value:Q", color="method:N")


@pytest.fixture
def shown(frame):
    still = curves(frame, color="method")
    return interactive.show(chart_of(frame), fallback=still, hint="Point.")


def test_scripts_are_found_beside_the_page_and_nothing_else_is_fetched(shown):
    html = shown._repr_html_()
    assert "_static/vega/" in html
    for name in re.findall(r'load\("([^"]+)"\)', html):
        assert (VEGA / name).is_file()
    addresses = set(re.findall(r"https?://[^\s\"'\\]+", html))
    assert addresses == {shown.spec["$schema"]}  # names the dialect; nothing loads it


def test_the_static_figure_is_there_without_scripts(shown):
    html = shown._repr_html_()
    still = html[html.index("chart-still") : html.index("chart-hint")]
    assert 'src="data:image/svg+xml;base64,' in still and "display:none" not in still


def test_a_chart_that_needs_the_network_is_refused(frame):
    still = curves(frame, color="method")
    with pytest.raises(InputError, match="network"):
        interactive.show(alt.Chart("https://example.org/a.json").mark_point(), fallback=still, hint="Point.")


def test_too_many_rows_are_refused(frame):
    still = curves(frame, color="method")
    many = pd.DataFrame({"x": range(interactive.MAX_ROWS + 1)})
    with pytest.raises(InputError, match="rows"):
        interactive.show(alt.Chart(many).mark_point().encode(x="x:Q"), fallback=still, hint="Point.")


def test_vendored_scripts_are_the_published_ones_and_fit_altair():
    notes = (VEGA / "README.md").read_text(encoding="utf-8")
    for script in sorted(VEGA.glob("*.js")):
        assert hashlib.sha256(script.read_bytes()).hexdigest() in notes
        assert script.stat().st_size < 1_000_000
    assert alt.VEGALITE_VERSION in notes
