import html.parser
import re

import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from markdown_it import MarkdownIt

from repro.report.figures import Drawing, NothingToDraw, drawing
from repro.report.judge import OUTCOMES, Measurement
from repro.report.page import badge
from repro.report.scorecard import verdict_frame, verdict_table
from repro.report.tables import comparison, show, to_myst
from repro.rows import make_rows


class Balance(html.parser.HTMLParser):
    """Collects tags and fails on one that is closed without having been opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def classes(self):
        return [name for _, attributes in self.seen for name in attributes.get("class", "").split()]


def checked(text):
    parsed = Balance(text)
    assert parsed.open == []
    return parsed


FRAME = pd.DataFrame({"method": ["a | b", "<c>"], "dim": pd.array([8, None], dtype="Int64"), "paper": [79.615, np.nan]})


def test_markdown_has_one_row_per_row_and_escapes_its_bars():
    lines = to_myst(FRAME).splitlines()
    assert len(lines) == 4 and lines[1] == "| :--- | ---: | ---: |"
    parsed = MarkdownIt("commonmark").enable("table").render(to_myst(FRAME))
    assert parsed.count("<tr>") == 3 and len(re.findall("<t[hd][ >]", parsed)) == 9
    assert "a | b" in parsed and "–" in lines[3]


def test_numbers_have_two_decimals_and_the_kind_is_a_pill():
    shown = show(FRAME, caption="Table & more")
    parsed = checked(shown._repr_html_())
    assert "table-box" in parsed.classes() and "kind-paper" in parsed.classes()
    assert re.search(r"79\.6[12]<", shown.html) and "&lt;c&gt;" in shown.html and "Table &amp; more" in shown.html
    assert "–" in shown.html and "nan" not in shown.html.lower() and "<NA>" not in shown.html
    assert shown._repr_markdown_().startswith("Table & more")


def test_a_comparison_shows_spread_seeds_and_intervals():
    table = pd.DataFrame(
        {
            "method": ["x", "y"],
            "paper": [79.6, 78.0],
            "recorded": [71.0, 70.0],
            "recorded_sd": [1.0, np.nan],
            "seeds": [3, 1],
            "live": [60.0, np.nan],
            "live_low": [58.0, np.nan],
            "live_high": [62.0, np.nan],
            "gap": [-19.6, np.nan],
        }
    )
    shown = comparison(table)
    parsed = checked(shown.html)
    assert {"kind-paper", "kind-recorded", "kind-live"} <= set(parsed.classes())
    for text in ("71.00 ± 1.00 (3 seeds)", "70.00 (1 seed)", "60.00 [58.00, 62.00]", "–"):
        assert text in shown.html and text in shown.markdown


@pytest.mark.parametrize("source", ["local", "hub", "microworld"])
def test_the_badge_names_the_source_first(source):
    rows = make_rows(
        [{"value": 0.5, "seed": s} for s in (0, 1)],
        data_source=source,
        backbone="repro-tiny",
        n_train=500,
        profile="embedded",
        commit="abc123",
    )
    shown = badge(rows)
    parsed = checked(shown._repr_html_())
    assert f"source-{source}" in parsed.classes()
    for text in (source, "repro-tiny", "0, 1", "abc123", "500"):
        assert text in shown.html and text in shown._repr_markdown_()


def test_verdicts_carry_their_pill_kind_and_meaning():
    measurements = [
        Measurement("WANG-T1-1", "effect", 2.0, 1.0, 3.0, what="gain"),
        Measurement("WANG-T1-2", "effect", 0.5, -1.0, 2.0, what="gain", paper=1.17),
        Measurement("WANG-T1-3", "effect", 0.5, float("nan"), float("nan"), what="mean gain", network="repro-tiny"),
    ]
    frame = pd.concat([verdict_frame("recorded", measurements), verdict_frame("live", measurements)])
    shown = verdict_table(frame, {"WANG-T1-1": "Step 1 never hurts."})
    classes = set(checked(shown.html).classes())
    assert {"verdict-holds-here", "verdict-cannot-tell", "kind-recorded", "kind-live", "verdict-legend"} <= classes
    assert "Step 1 never hurts." in shown.html and "too wide to tell" in shown.markdown
    assert "mean gain – 1 of at least 3 seeds" in shown.markdown and "repro-tiny, 1 seed " in shown.markdown
    assert "nan" not in shown.markdown


@pytest.mark.parametrize("empty", [pd.DataFrame(), FRAME.iloc[:0]])
def test_a_table_without_a_line_says_so_in_its_place(empty):
    shown = show(empty, caption="gain <by> dim")
    assert shown.markdown == "Nothing to show under these parameters: gain <by> dim."
    assert "gain &lt;by&gt; dim" in shown.html and "<table" not in shown.html


def test_a_figure_without_a_point_says_so_in_its_place():
    @drawing
    def draw() -> Drawing:
        raise NothingToDraw("no size was tried")

    bundle, _ = DisplayFormatter().format(draw())
    assert bundle["text/markdown"] == "Nothing to show under these parameters: no size was tried."
    assert not set(bundle) & {"image/png", "image/svg+xml"}


def test_the_style_sheet_knows_every_class():
    from repro.paths import project_root

    style = (project_root() / "book" / "_static" / "custom.css").read_text(encoding="utf-8")
    names = ["table-box", "badge-line", "verdict-legend", "number"]
    names += [f"kind-{kind}" for kind in ("paper", "recorded", "live")]
    names += [f"source-{source}" for source in ("local", "hub", "microworld")]
    names += [f"verdict-{outcome.replace(' ', '-')}" for outcome in OUTCOMES]
    assert [name for name in names if not re.search(rf"\.{name}\b", style)] == []
    variables = set(re.findall(r"var\((--repro-[a-z-]+)\)", style))
    light, dark = re.findall(r"(?::root|html\[data-theme=\"dark\"\]) \{(.*?)\}", style, flags=re.DOTALL)[:2]
    assert all(f"{name}:" in light and f"{name}:" in dark for name in variables)
