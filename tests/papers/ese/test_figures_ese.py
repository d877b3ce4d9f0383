"""Figures of ESE's pages: what is drawn where, in which look, and what is refused."""

import pandas as pd
import pytest

from repro.methods import ESE, MRL, RAW
from repro.report import charts_ese, figures_ese, figures_ese_grid, interactive
from repro.report.style import PALETTE
from repro.types import InputError


@pytest.fixture
def frame():
    return pd.DataFrame(
        [
            {
                "backbone": "net",
                "method": method,
                "layer": layer,
                "dim": dim,
                "ci_low": value - 0.02,
                "ci_high": value + 0.02,
                "value": value,
                "kind": "live",
            }
            for i, method in enumerate((RAW, MRL, ESE))
            for layer in range(4)
            for dim in (8, 64)
            for value in [0.2 + 0.1 * i + 0.05 * layer + dim / 1000]
        ]
    )


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_depth_has_a_panel_per_network_and_a_line_per_method(frame):
    full = frame[frame["dim"] == 64]
    both = pd.concat([full, full[full["method"] == RAW].assign(backbone="deep")])
    figure = figures_ese.draw_by_depth(both, threshold={"net": 30.0})
    assert titles(figure) == ["net", "deep"]
    net, deep = figure.axes
    curves = [line for line in net.get_lines() if len(line.get_xdata()) == 4]
    assert len(curves) == 3 and not net.collections, "no bands where lines share a panel"
    assert list(curves[0].get_xdata()) == [0, 1, 2, 3]
    assert 30.0 in [line.get_ydata()[0] for line in net.get_lines()]
    assert len(deep.collections) == 1, "one line has its band"
    assert 30.0 not in [line.get_ydata()[0] for line in deep.get_lines()]
    assert legend(figure) == [RAW, MRL, ESE] and "against the layer" in figure.alt
    assert figure.svg() == figure.svg()


def test_kinds_keep_their_lines(frame):
    full = frame[(frame["dim"] == 64) & (frame["method"] == ESE)]
    figure = figures_ese.draw_by_depth(pd.concat([full, full.assign(kind="recorded")]))
    recorded, live = figure.axes[0].get_lines()
    assert recorded.get_linewidth() < live.get_linewidth()
    assert recorded.get_color() == live.get_color() == PALETTE[3], "ESE's place among the lines"
    assert legend(figure) == [ESE, "recorded", "live"]


def test_size_has_a_panel_per_layer_without_the_embedding_output(frame):
    figure = figures_ese.draw_by_size(frame)
    assert titles(figure) == ["layer 1", "layer 2", "layer 3"]
    halves = figures_ese.draw_by_size(frame, layers=[1, 3], kind="recorded")
    assert titles(halves) == ["layer 1", "layer 3"] and "(recorded)" in halves._supylabel.get_text()
    assert [line.get_color() for line in halves.axes[0].get_lines()] == [PALETTE[0], PALETTE[2], PALETTE[3]]
    alone = figures_ese.draw_by_size(frame[frame["method"] == MRL])
    assert alone.axes[0].get_lines()[0].get_color() == PALETTE[2] and alone.axes[0].collections


def test_what_cannot_be_drawn_is_said(frame):
    assert "no row of layers [7]" in figures_ese.draw_by_size(frame, layers=[7]).alt
    deep = pd.concat([frame.assign(layer=frame["layer"] + 4 * i) for i in range(4)])
    with pytest.raises(InputError, match="15 layers do not fit"):
        figures_ese.draw_by_size(deep)
    for draw in (figures_ese.draw_by_size, figures_ese_grid.draw_depth_grids):
        with pytest.raises(InputError, match="'SBERT'"):
            draw(frame.replace({ESE: "SBERT"}))
    assert "Nothing to show" in figures_ese.draw_by_depth(frame.iloc[:0]).alt


def test_the_sweep_of_sizes_stands_beside_the_baselines():
    frame = pd.DataFrame(
        [
            {"place": place, "dim": k, "value": 0.3, "kind": "live"}
            for place in ("last layer", "≺ Avg.")
            for k in (4, 16)
        ]
    )
    baselines = {("last layer", RAW): 20.0, ("last layer", MRL): 25.0, ("≺ Avg.", RAW): 10.0}
    figure = figures_ese.draw_compression_sizes(frame, baselines=baselines)
    assert titles(figure) == ["last layer", "≺ Avg."]
    last, shallow = ([line.get_ydata()[0] for line in axes.get_lines()] for axes in figure.axes)
    assert last == [pytest.approx(30.0), 20.0, 25.0] and shallow == [pytest.approx(30.0), 10.0]
    assert legend(figure) == [ESE, RAW, MRL, "live"]


def test_differences_have_their_intervals_around_zero():
    lines = [("a", "last layer", 0.02), ("b", "last layer", -0.03), ("a", "≺ Avg.", 0.01)]
    frame = pd.DataFrame(
        [{"variant": v, "place": p, "value": x, "ci_low": x - 0.01, "ci_high": x + 0.01} for v, p, x in lines]
    )
    figure = figures_ese.draw_differences(frame, xlabel="less default, points")
    last, shallow = figure.axes
    assert [label.get_text() for label in last.get_yticklabels()] == ["a", "b"]
    (points,) = [line for line in last.get_lines() if line.get_linestyle() == "None"]
    assert list(points.get_xdata()) == pytest.approx([2.0, -3.0])
    segments = last.collections[0].get_segments()
    assert [round(x, 6) for x in segments[0][:, 0]] == [1.0, 3.0]
    assert titles(figure) == ["last layer", "≺ Avg."] and len(shallow.collections[0].get_segments()) >= 1
    assert last.yaxis_inverted(), "the first on top"


def test_heat_maps_share_one_scale_with_the_deepest_layer_on_top(frame):
    figure = figures_ese_grid.draw_depth_grids(frame[~((frame["method"] == RAW) & (frame["layer"] == 0))])
    assert titles(figure)[:3] == [RAW, MRL, ESE]
    images = [axes.images[0] for axes in figure.axes[:3]]
    assert len({image.get_clim() for image in images}) == 1
    assert images[2].get_array()[0, 1] == pytest.approx(100 * (0.4 + 0.15 + 0.064)), "layer 3, 64 dims"
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("") == 2, "cells without a score stay empty"
    assert "by layer and size" in figure.alt


def test_the_chart_holds_every_cell_with_its_interval_and_lead(frame):
    chart = charts_ese.chart_depth(frame)
    spec = chart.to_dict()
    (cells,) = spec["datasets"].values()
    assert len(cells) == len(frame)
    at = {(c["method"], c["layer"], c["dim"]): c for c in cells}
    assert at[ESE, 3, 64]["value"] == pytest.approx(61.4) and at[ESE, 3, 64]["lead"] == pytest.approx(20.0)
    assert at[ESE, 3, 64]["interval"] == "59.40 to 63.40" and at[RAW, 0, 8]["lead"] == 0
    (choice,) = spec["params"]
    assert choice["bind"]["options"] == [RAW, MRL, ESE]
    assert choice["value"] == [{"method": ESE}]
    for layer in spec["layer"]:
        assert layer["encoding"]["y"]["sort"] == "descending"
    html = interactive.show(chart, fallback=figures_ese_grid.draw_depth_grids(frame), hint="Choose.")._repr_html_()
    assert "Choose." in html and "data:image/svg+xml" in html


def test_a_chart_without_raw_has_no_leads_and_an_empty_one_is_refused(frame):
    (cells,) = charts_ese.chart_depth(frame[frame["method"] == MRL]).to_dict()["datasets"].values()
    assert {cell["lead"] for cell in cells} == {None}
    with pytest.raises(InputError, match="no rows"):
        charts_ese.chart_depth(frame.iloc[:0])
