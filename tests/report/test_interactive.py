"""Interactive charts: no network, a path relative to the page, and a figure for whoever runs no
scripts.
"""

import hashlib
import json
import re
import subprocess
from html import unescape
from itertools import product

import altair as alt
import numpy as np
import pandas as pd
import pytest

import browser
from repro import paths
from repro.report import interactive
from repro.report.curves import curves
from repro.report.tables import Shown
from repro.types import InputError

VEGA = paths.project_root() / "book" / "_static" / "vega"
HOSTILE = "b</script><!--<script>"  # Ends a script element; or takes the rest of the page into it
ROWS = [("live", method, dim, 0.5 + dim / 1000) for method in ("a", HOSTILE) for dim in (8, 64)]
DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
FRAME = pd.DataFrame(ROWS, columns=["kind", "method", "dim", "value"])


def test_scripts_are_found_beside_the_page_and_no_chart_needs_the_network():
    chart = alt.Chart(FRAME).mark_line().encode(x="dim:Q", y="value:Q", color="method:N")
    shown = interactive.show(chart, fallback=curves(FRAME, color="method"), hint="Point.")
    html = shown._repr_html_()
    assert "_static/vega/" in html and html.count("</script>") == 2, (
        "a text of the frame ends no script"
    )
    assert all((VEGA / name).is_file() for name in re.findall(r'load\("([^"]+)"\)', html))
    addresses = set(re.findall(r"https?://[^\s\"'\\]+", html))
    assert addresses == {shown.spec["$schema"]}  # Names the dialect; nothing loads it
    still = html[html.index("chart-still") : html.index("chart-hint")]
    assert 'src="data:image/svg+xml;base64,' in still and "display:none" not in still
    told = interactive.show(
        chart, fallback=curves(FRAME, color="method").sees("It <rises>."), hint=""
    )
    assert 'data-caption="It &lt;rises&gt;."' in told._repr_html_()
    with pytest.raises(InputError, match="network"):
        interactive.show(
            alt.Chart("https://example.org/a.json").mark_point(),
            fallback=None,
            hint="Point.",
        )


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


# The explorer: what a reader chooses and is told


NEIGHBOURS, KEEP = "ten neighbours kept", [0.95, 0.98]
SIZES = {"small": (8, 16, 40, 64), "large": (16, 64, 100, 256)}
NAMES = ("encoder", "use", "reducer", "code")
KINDS = list(product(SIZES, ("similarity", NEIGHBOURS), ("pca", "cut"), ("int8", "int4")))


def recorded_ways():
    """Every way but neighbours of int4; a bound fails where that of a smaller size passes."""
    rng, found = np.random.default_rng(0), []
    for kind in KINDS:
        named = dict(zip(NAMES, kind, strict=True))
        if (named["use"], named["code"]) == (NEIGHBOURS, "int4"):
            continue
        shares = np.sort(rng.uniform(0.9, 1.01, 4))
        bounds = shares - rng.uniform(0.002, 0.03, 4)
        bounds[1] = max(bounds[1], 0.99)
        for dim, share, low in zip(SIZES[kind[0]], shares, bounds, strict=True):
            size = dim if named["code"] == "int8" else dim // 2
            found.append({**named, "dim": dim, "bytes": size, "share": share, "low": low})
    return [found[i] for i in rng.permutation(len(found))]


WAYS = recorded_ways()
STEPS = [{**dict(zip(NAMES, KINDS[0], strict=True)), "dim": 0, "millions": 10}]
STEPS += [
    {"encoder": encoder, "use": use, "reducer": reducer, "code": code, "dim": place}
    for encoder, use, reducer, code in KINDS
    for place in range(4)
    if use != NEIGHBOURS
]
STEPS += [{"millions": 2.5}, {"use": NEIGHBOURS}, {"encoder": "small"}, {"millions": 0.5}]
STEPS += [{"dim": 2}, {"encoder": "large"}]  # Of 16 and 64 the latter is nearer to 40
EXPLORE = """
const box = document.querySelector(".explorer"), told = [];
const control = name => box.querySelector(`[name=${name}]`);
for (const step of STEPS) {
  for (const [name, value] of Object.entries(step)) {
    control(name).value = value;
    control(name).dispatchEvent(new Event("input"));
  }
  const chosen = {}, said = {}, svg = box.querySelector("svg");
  for (const name of NAMES) chosen[name] = control(name).value;
  const words = [...box.querySelector(".explorer-said").children].map(e => e.textContent);
  for (let i = 0; i < words.length; i += 2) said[words[i]] = words[i + 1];
  told.push({chosen, said, dim: Number(box.querySelector("output").textContent),
    codes: [...control("code").options].map(option => option.value),
    paths: [...svg.querySelectorAll("path")].map(path => path.getAttribute("d")),
    mark: ["cx", "cy"].map(name => Number(svg.querySelector("circle").getAttribute(name)))});
}
const pre = document.body.appendChild(document.createElement("pre"));
Object.assign(pre, {id: "told", textContent: JSON.stringify(told)});
"""


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """What the explorer shows after each step, by a browser."""
    folder = tmp_path_factory.mktemp("explorer")
    shown = interactive.widget("explorer", {"ways": WAYS, "keep": KEEP}, Shown("", ""))
    given = f"const STEPS = {json.dumps(STEPS)}, NAMES = {json.dumps(NAMES)};"
    head = "<!doctype html><meta charset=utf-8><body>"
    page = folder / "explorer.html"
    page.write_text(f"{head}{shown.html}<script>{given}{EXPLORE}</script>", encoding="utf-8")
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom")
    command = [browser.browser(), *options, f"--user-data-dir={folder}/profile", page.as_uri()]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(unescape(re.search(r'<pre id="told">(.*?)</pre>', said, re.DOTALL)[1]))


def line_of(chosen):
    """The sizes of a choice, ascending."""
    own = [way for way in WAYS if all(way[name] == chosen[name] for name in NAMES)]
    return sorted(own, key=lambda way: way["dim"])


def expected_words(chosen, dim, millions):
    """What rows say of a choice."""
    line, full = line_of(chosen), max(SIZES[chosen["encoder"]])
    own = next(way for way in line if way["dim"] == dim)
    near = [way for way in line_of({**chosen, "use": NEIGHBOURS}) if way["dim"] == dim]

    def size(count):
        return f"{float(f'{count * millions / 1000:.3g}'):g} GB"

    def first(target):
        failing = max((way["dim"] for way in line if way["low"] < target), default=0)
        passing = [way["dim"] for way in line if way["dim"] > failing]
        return min(passing, default="none")

    def kept(way, what):
        return f"{100 * way['share']:.1f} % of {what}, for sure {100 * way['low']:.1f} %"

    vectors = f"{size(own['bytes'])} of vectors ({own['bytes']} bytes each)"
    both = f"{vectors} and {size(128)} of index: {size(own['bytes'] + 128)}"
    sure = f"First size that is sure to keep, up to {line[-1]['dim']}"
    score = {} if chosen["use"] == NEIGHBOURS else {"Score kept": kept(own, "the full size")}
    return score | {
        "Neighbours kept": kept(near[0], "ten") if near else "not recorded",
        "Memory": f"{both}; float32 × {full}: {size(4 * full + 128)}",
        sure: "; ".join(f"{100 * t:g} %: {first(t)}" for t in KEEP),
    }


needs_chromium = pytest.mark.skipif(browser.browser() is None, reason="no Chromium here")


@needs_chromium
def test_the_explorer_tells_of_every_choice_what_its_rows_say(explored):
    millions = asked = None
    for step, told in zip(STEPS, explored, strict=True):
        chosen, dims = told["chosen"], SIZES[told["chosen"]["encoder"]]
        millions = step.get("millions", millions)
        asked = dims[step["dim"]] if "dim" in step else asked
        nearest = min(dims, key=lambda dim: abs(np.log(dim / asked)))
        assert told["dim"] == nearest, "of another encoder the size that is nearest in proportion"
        assert told["said"] == expected_words(chosen, told["dim"], millions)
        assert all(chosen[name] == step[name] for name in NAMES if name in step)
        assert ("int4" in told["codes"]) == (chosen["use"] != NEIGHBOURS), "what is recorded"


@needs_chromium
def test_the_explorer_draws_shares_and_bounds_on_one_scale_over_the_logarithm_of_sizes(explored):
    told = next(each for each in explored if each["chosen"]["encoder"] == "large")
    line = line_of(told["chosen"])
    points = [np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", d), float) for d in told["paths"]]
    goal, share, low = points
    across = np.log2([way["dim"] / 16 for way in line]) / np.log2(256 / 16)
    np.testing.assert_allclose(share[:, 0], 30 + 250 * across, atol=0.06)
    np.testing.assert_array_equal(low[:, 0], share[:, 0])
    shares, bounds = (np.array([way[name] for way in line]) for name in ("share", "low"))
    slope, start = np.polyfit([*shares, *bounds], [*share[:, 1], *low[:, 1]], 1)
    assert slope < 0, "more is higher"
    np.testing.assert_allclose(share[:, 1], start + slope * shares, atol=0.06)
    np.testing.assert_allclose(low[:, 1], start + slope * bounds, atol=0.06)
    assert goal[0, 1] == pytest.approx(start + slope * KEEP[0], abs=0.06)
    place = [way["dim"] for way in line].index(told["dim"])
    assert told["mark"] == pytest.approx(share[place], abs=0.06)
