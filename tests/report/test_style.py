"""What screenshots showed once and must not come back."""

import pandas as pd
import pytest

from repro.report import figures, interactive
from repro.report.compare import join_kinds, paper_values
from repro.report.style import KIND_STYLE, KINDS, new_figure


@pytest.fixture(scope="module")
def rows():
    printed = paper_values("wang2023", "table1")
    return join_kinds(printed, printed, printed[printed["dim"] <= 128])


def test_legends_cover_no_panel_and_no_axis_label(rows):
    stages = list(dict.fromkeys(rows["method"]))
    scores = rows[rows["metric"] == "spearman"]
    tasks = pd.concat([scores[scores["method"] == stages[0]].assign(dataset=name) for name in ("stsb", "trec", "cr")])
    for figure in (figures.draw_curves_by_dim(scores, series="method"), figures.draw_curves_by_dim(tasks)):
        figure.draw_without_rendering()
        (legend,) = [found.get_window_extent() for found in figure.legends]
        for axes in (axes for axes in figure.axes if axes.get_visible()):
            assert not legend.overlaps(axes.get_window_extent())
            if axes.get_xlabel():
                assert not legend.overlaps(axes.xaxis.label.get_window_extent())


def test_charts_give_every_kind_the_width_it_has_in_figures(rows):
    chart = interactive.chart_curves_by_dim(rows[rows["metric"] == "spearman"], series="method").to_dict()
    (scale,) = [
        layer["encoding"]["strokeWidth"]["scale"] for layer in chart["layer"] if "strokeWidth" in layer["encoding"]
    ]
    # Without the type, Vega takes the list for the two ends of a range, and the live line comes out thinnest.
    assert scale["type"] == "ordinal"
    widths = dict(zip(scale["domain"], scale["range"], strict=True))
    assert widths == {kind: KIND_STYLE[kind]["linewidth"] for kind in KINDS}


def test_a_figure_without_a_description_can_be_shown():
    figure, _ = new_figure()
    assert figure._repr_svg_().startswith("<?xml") and figure._repr_png_().startswith(b"\x89PNG")
