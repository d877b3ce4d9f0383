"""Interactive charts that work from a file, without a network: Altair specifications and one vendored copy of Vega.

A chart becomes its specification, a static figure, and a few lines of script. The script looks for
`_static/vega/` beside the page's own style sheet, so that it works in any folder of the book, and loads the
three files once per page, only where there is a chart. Wherever that fails, as in a notebook outside the
book or with scripts switched off, the static figure is what the reader sees.
"""

import hashlib
import json
from dataclasses import dataclass
from html import escape
from typing import Any

import altair as alt
import pandas as pd

from repro.report.curves import checked, points
from repro.report.style import GREY, PALETTE, Drawing, look
from repro.types import InputError

MAX_ROWS = 5_000
"""Rows a page can carry for one chart: they are written into the page."""
HINT = "Point at the chart for the numbers; click an entry of the legend to single it out."
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": GREY,
        "titleColor": GREY,
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GREY,
        "gridOpacity": 0.22,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelColor": GREY,
        "titleColor": GREY,
        "orient": "bottom",
        "labelFontSize": 12,
        "labelLimit": 260,
        "columns": 1,
        "symbolStrokeWidth": 2,
        "layout": {"bottom": {"direction": "vertical", "anchor": "start"}},
    },
    "title": {"color": GREY, "fontSize": 13},
    "header": {"labelColor": GREY, "titleColor": GREY},
    "range": {"category": list(PALETTE)},
}
ALTAIR_LOOK = {"view": {"continuousWidth": 300, "continuousHeight": 300}}
# logLevel 1 keeps errors and drops the note that the vendored compiler writes specifications for a newer Vega.
# An AMD loader would make the three files register themselves instead of running: `define` is hidden meanwhile.
_SCRIPT = """
(function () {
  var here = document.currentScript;
  var box = here ? here.closest(".chart") : document.getElementById("__ID__");
  var styled = document.querySelector('link[href*="_static/"], script[src*="_static/"]');
  if (!box || !styled) return;
  var base = (styled.href || styled.src).replace(/_static\\/.*$/, "_static/vega/");
  function load(name) {
    return new Promise(function (done, failed) {
      var tag = document.createElement("script");
      tag.src = base + name; tag.onload = done; tag.onerror = failed;
      document.head.appendChild(tag);
    });
  }
  if (!window.reproVega) {
    var define = window.define; window.define = undefined;
    window.reproVega = load("vega.min.js")
      .then(function () { return load("vega-lite.min.js"); })
      .then(function () { return load("vega-embed.min.js"); })
      .finally(function () { window.define = define; });
  }
  window.reproVega.then(function () {
    var spec = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    return vegaEmbed(box.querySelector(".chart-live"), spec, {actions: false, renderer: "svg", logLevel: 1});
  }).then(function () {
    box.querySelector(".chart-still").style.display = "none";
    box.querySelector(".chart-hint").style.display = "";
  }).catch(function () { box.querySelector(".chart-live").style.display = "none"; });
})();
"""


@dataclass(frozen=True)
class Interactive:
    """A chart for the browser with a static figure beneath it."""

    spec: dict[str, Any]
    fallback: Drawing
    hint: str
    """what the reader can do with it"""

    def _repr_html_(self) -> str:
        # "</" would end the script element early if a text held it; "<\\/" is the same JSON.
        text = json.dumps(self.spec, sort_keys=True).replace("</", "<\\/")
        name = "chart-" + hashlib.sha256(text.encode()).hexdigest()[:12]
        # A notebook that is not trusted loses script, image and `hidden`: what it shows then is the last line.
        return (
            f'<div class="chart" id="{name}"><div class="chart-live"></div>'
            f'<div class="chart-still">{self.fallback.img()}</div>'
            f'<p class="chart-hint" style="display:none">{escape(self.hint)}</p>'
            f'<script type="application/json">{text}</script><script>{_SCRIPT.replace("__ID__", name)}</script>'
            "<p hidden>Trust this notebook to see its figure.</p></div>"
        )


def show(chart: Any, *, fallback: Drawing, hint: str = HINT) -> Interactive:
    """An Altair chart, with the figure that stands in for it where scripts do not run.

    Args:
        chart: any Altair chart; a plain one takes the width of the page.
        fallback: the same content as a static figure.
        hint: what the reader can do with it, shown where scripts run.

    Raises:
        InputError: for a chart that needs the network, or carries too many rows for a page.
    """
    if isinstance(chart, alt.Chart | alt.LayerChart) and chart.width is alt.Undefined:
        chart = chart.properties(width="container")
    try:
        spec = chart.to_dict()
    except alt.MaxRowsError as error:
        raise InputError(f"the chart has more than {MAX_ROWS} rows: thin out or aggregate its data first") from error
    # Altair's own look loses to ours, what the chart itself sets wins.
    given = {key: value for key, value in spec.get("config", {}).items() if value != ALTAIR_LOOK.get(key)}
    spec["config"] = CONFIG | {
        key: CONFIG[key] | value if isinstance(CONFIG.get(key), dict) and isinstance(value, dict) else value
        for key, value in given.items()
    }
    remote = next((str(url) for url in _urls(spec) if str(url).startswith(("http", "//"))), None)
    if remote is not None:
        raise InputError(f"the chart reads {remote}: put its data into the frame, the book works without a network")
    return Interactive(spec, fallback, hint)


def chart_grid(frame: pd.DataFrame, *, label: str = "Spearman × 100") -> Any:
    """Score of every encoder (row) with every pooler (column), numbers on pointing; the best of a pooler outlined.

    Args:
        frame: rows with encoder, dim (of the pooler), value (a fraction), and perhaps ci_low and ci_high; pairs that
            recur, as seeds do, are averaged.
        label: what the score is.

    Raises:
        InputError: if a column is missing.
    """
    found = points(checked(frame, ("encoder", "dim", "value")).assign(kind="live"), ["encoder", "dim"])
    found = found.astype({"encoder": int, "kind": object}).round(3).drop(columns="kind")
    own = found[found["encoder"] == found["dim"]].set_index("dim")["value"]
    found["gain"] = (found["value"] - found["dim"].map(own)).round(3)
    found["interval"] = intervals(found.pop("low"), found.pop("high"))
    middle = (found["value"].min() + found["value"].max()) / 2
    wide_first = sorted({*found["encoder"], *found["dim"]}, reverse=True)
    base = alt.Chart(found).encode(
        x=alt.X("dim:O", title="pooler trained with dim", sort=wide_first, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("encoder:O", title="encoder trained with dim", sort=wide_first),
        tooltip=[
            alt.Tooltip("encoder:O"),
            alt.Tooltip("dim:O", title="pooler"),
            alt.Tooltip("value:Q", title=label, format=".2f"),
            alt.Tooltip("interval:N"),
            alt.Tooltip("gain:Q", title="gain over the pooler's own encoder", format="+.2f"),
        ],
    )
    color = alt.Color("value:Q", title=label, scale=alt.Scale(scheme="cividis"))
    cells = base.mark_rect().encode(color=color)
    best = found.loc[found.groupby("dim")["value"].idxmax()]
    outlines = base.mark_rect(filled=False, stroke=look(1)["color"], strokeWidth=3).properties(data=best)
    # white letters on the dark half of the colours, black on the bright one, as in the static figure
    letters = alt.condition(f"datum.value < {middle:.3f}", alt.value("white"), alt.value("black"))
    numbers = base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".1f"), color=letters)
    return alt.layer(cells, outlines, numbers).properties(height=44 * len(set(found["encoder"])))


def intervals(low: pd.Series, high: pd.Series) -> list[str]:
    """Intervals in words, for pointing at."""
    return ["–" if pd.isna(a) else f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]


def _urls(node: Any) -> list[Any]:
    if isinstance(node, dict):
        here = [value for key, value in node.items() if key == "url" and isinstance(value, str)]
        return here + [url for key, value in node.items() if key != "$schema" for url in _urls(value)]
    return [url for value in node for url in _urls(value)] if isinstance(node, list) else []
