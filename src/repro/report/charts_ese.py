"""The grid of depth and size as an interactive heat map: one line at a time, chosen below it."""

from typing import Any

import altair as alt
import pandas as pd

from repro.methods import ESE, RAW
from repro.report.curves import checked, points
from repro.report.figures_ese import METHODS
from repro.report.interactive import intervals


def chart_depth(frame: pd.DataFrame, *, label: str = "Spearman × 100") -> Any:
    """Score of every layer (row) and size (column) of one line; numbers on pointing, with the lead over RAW.

    All lines share one scale of colours, so that they compare when another is chosen.

    Args:
        frame: rows with method, layer, dim, value (a fraction), and perhaps ci_low and ci_high; of one backbone,
            dataset and kind. Cells that recur, as seeds do, are averaged.
        label: what the score is.

    Raises:
        InputError: if a column is missing.
    """
    found = points(checked(frame, ("method", "layer", "dim", "value")).assign(kind="live"), ["method", "layer", "dim"])
    found = found.astype({"layer": int, "method": object, "kind": object}).round(3).drop(columns="kind")
    untouched = found[found["method"] == RAW].set_index(["layer", "dim"])["value"]
    at = pd.MultiIndex.from_frame(found[["layer", "dim"]])
    found["lead"] = (found["value"] - untouched.reindex(at).to_numpy()).round(3)
    found["interval"] = intervals(found.pop("low"), found.pop("high"))
    names = [method for method in METHODS if method in set(found["method"])]
    lowest, highest = float(found["value"].min()), float(found["value"].max())
    choice = alt.selection_point(
        fields=["method"],
        bind=alt.binding_radio(options=names, name="line: "),
        value=[{"method": ESE if ESE in names else names[-1]}],
    )
    base = (
        alt.Chart(found)
        .transform_filter(choice)
        .encode(
            x=alt.X("dim:O", title="dimensions", sort="ascending", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("layer:O", title="layer", sort="descending"),
            tooltip=[
                alt.Tooltip("method:N", title="line"),
                alt.Tooltip("layer:O"),
                alt.Tooltip("dim:O"),
                alt.Tooltip("value:Q", title=label, format=".2f"),
                alt.Tooltip("interval:N"),
                alt.Tooltip("lead:Q", title="lead over RAW", format="+.2f"),
            ],
        )
    )
    scale = alt.Scale(scheme="cividis", domain=[lowest, highest])
    cells = base.mark_rect().encode(color=alt.Color("value:Q", title=label, scale=scale))
    # white letters on the dark half of the colours, black on the bright one
    letters = alt.condition(f"datum.value < {(lowest + highest) / 2:.3f}", alt.value("white"), alt.value("black"))
    numbers = base.mark_text(fontSize=12).encode(text=alt.Text("value:Q", format=".1f"), color=letters)
    return alt.layer(cells, numbers).add_params(choice).properties(height=60 + 34 * found["layer"].nunique())
