"""Interactive charts that work from a file, without a network: Altair specifications and one
vendored copy of Vega.

A chart becomes its specification, a static figure, and a few lines of script, which finds
`_static/vega/` beside the page's own style sheet. Wherever that fails, as in a notebook outside the
book or with scripts switched off, the static figure is what the reader sees.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import altair as alt
import pandas as pd

from repro.paths import ASSETS
from repro.report.figures import GREY, PALETTE, Drawing
from repro.report.tables import Shown
from repro.types import InputError

TEXT = {"labelColor": GREY, "titleColor": GREY}
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "view": {"stroke": None},
    "axis": TEXT
    | {"domainColor": GREY, "tickColor": GREY, "gridColor": GREY, "gridOpacity": 0.22}
    | {"labelFontSize": 13, "titleFontSize": 14, "titleFontWeight": "normal"},
    "legend": TEXT
    | {
        "orient": "bottom",
        "labelFontSize": 13,
        "labelLimit": 260,
        "columns": 1,
        "symbolStrokeWidth": 2,
    }
    | {"layout": {"bottom": {"direction": "vertical", "anchor": "start"}}},
    "title": {"color": GREY, "fontSize": 14},
    "header": TEXT,
    "range": {"category": list(PALETTE)},
}
alt.theme.register("book", enable=False)(lambda: alt.theme.ThemeConfig(config=CONFIG))
SCRIPT = (ASSETS / "chart.js").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Interactive:
    """A chart for the browser with a static figure beneath it."""

    spec: dict[str, Any]
    fallback: Drawing
    hint: str  # What the reader can do with it

    def _repr_html_(self) -> str:
        text = script_json(self.spec)
        name = "chart-" + hashlib.sha256(text.encode()).hexdigest()[:12]
        # A notebook that is not trusted loses script, image and `hidden`: what it shows then is the
        # last line.
        return (
            f'<div class="chart" id="{name}"><div class="chart-live"></div>'
            f'<div class="chart-still" data-caption="{escape(self.fallback.caption)}">'
            f"{self.fallback.img()}</div>"
            f'<p class="chart-hint" style="display:none">{escape(self.hint)}</p>'
            f'<script type="application/json">{text}</script>'
            f"<script>{SCRIPT.replace('__ID__', name)}</script>"
            "<p hidden>Trust this notebook to see its figure.</p></div>"
        )


def script_json(data: Any) -> str:
    """Data as JSON that may stand inside a script element, whatever texts it holds.

    A browser ends the element at `</script`, and after `<!--<script` it takes the rest of the page
    into it.
    """
    # Outside of texts JSON has no "<", and inside of them \u003c is the same character.
    return json.dumps(data, sort_keys=True).replace("<", "\\u003c")


def show(chart: Any, *, fallback: Drawing, hint: str) -> Interactive:
    """An Altair chart, with the static figure that stands in for it where scripts do not run.

    The hint, what the reader can do with it, is shown where they do. A plain chart is as wide as
    the page.
    """
    if isinstance(chart, alt.Chart | alt.LayerChart) and chart.width is alt.Undefined:
        chart = chart.properties(width="container")
    with alt.theme.enable("book"):
        spec = chart.to_dict()  # Altair itself refuses more rows than a page can carry
    if remote := re.search(r'"url": "((?:http|//)[^"]*)"', json.dumps(spec)):
        raise InputError(
            f"the chart reads {remote[1]}: put its data into the frame, the book works without a "
            "network"
        )
    return Interactive(spec, fallback, hint)


def widget(script: str, data: Any, fallback: Shown) -> Shown:
    """A script of the assets that puts controls into its box and reads the data; without scripts,
    what stands still.
    """
    text = script_json(data)
    code = (ASSETS / f"{script}.js").read_text(encoding="utf-8")
    html = f'<script type="application/json">{text}</script><script>{code}</script>'
    return Shown(
        f'<div class="{script}">{html}<noscript>{fallback.html}</noscript></div>',
        fallback.markdown,
    )


def heat_map(
    cells: pd.DataFrame,
    *,
    x: alt.X,
    y: alt.Y,
    title: str,
    tooltip: Sequence[Any] = (),
    outlined: pd.DataFrame | None = None,
    choice: alt.Parameter | None = None,
) -> alt.LayerChart:
    """A cell for every x and y, its `value` written in it, and on pointing its `interval` and more.

    `outlined` are some of the cells. All cells share one scale of colours, whichever a `choice`
    shows.
    """
    number = alt.Tooltip("value:Q", title=title, format=".2f")
    base = alt.Chart(cells).encode(
        x=x,
        y=y,
        tooltip=[x.shorthand, y.shorthand, number, "interval:N", *tooltip],
    )
    base = base if choice is None else base.transform_filter(choice)
    low, high = float(cells["value"].min()), float(cells["value"].max())
    color = alt.Color("value:Q", title=title, scale=alt.Scale(scheme="cividis", domain=[low, high]))
    layers = [base.mark_rect().encode(color=color)]
    if outlined is not None:
        layers.append(
            base.mark_rect(filled=False, strokeWidth=3, stroke=PALETTE[1]).properties(data=outlined)
        )
    # Cividis runs from dark to light: white letters on its lower half, black on its upper half
    ink = alt.condition(
        f"datum.value < {(low + high) / 2:.3f}",
        alt.value("white"),
        alt.value("black"),
    )
    layers.append(
        base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".1f"), color=ink)
    )
    chart = alt.layer(*layers).properties(
        height=60 + 36 * cells[y.shorthand.split(":")[0]].nunique()
    )
    return chart if choice is None else chart.add_params(choice)
