"""Figures of ESE's pages: what is drawn where, in which look, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import CONTROL, ESE, MRL, RAW
from repro.papers.ese import figures
from repro.papers.ese.compression import Joint
from repro.papers.ese.lines import Line
from repro.report import interactive
from repro.report.style import PALETTE
from repro.types import InputError


@pytest.fixture
def frame():
    cells = [(i, m, layer, dim) for i, m in enumerate((RAW, MRL, ESE)) for layer in range(4) for dim in (8, 64)]
    rows = [
        {"backbone": "net", "method": m, "layer": layer, "dim": dim, "value": 0.2 + 0.1 * i + 0.05 * layer + dim / 1000}
        for i, m, layer, dim in cells
    ]
    return pd.DataFrame(rows).assign(ci_low=lambda f: f["value"] - 0.02, ci_high=lambda f: f["value"] + 0.02)


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_depth_has_a_panel_per_network_and_a_line_per_method(frame):
    full = frame[frame["dim"] == 64]
    both = pd.concat([full, full[full["method"] == RAW].assign(backbone="deep")])
    figure = figures.draw_by_depth(both, {"net": 30.0}, "live")
    assert titles(figure) == ["net", "deep"]
    net, deep = figure.axes
    curves = [line for line in net.get_lines() if len(line.get_xdata()) == 4]
    assert len(curves) == 3 and list(curves[0].get_xdata()) == [0, 1, 2, 3]
    assert 30.0 in [line.get_ydata()[0] for line in net.get_lines()]
    assert 30.0 not in [line.get_ydata()[0] for line in deep.get_lines()]
    assert {RAW, MRL, ESE, "to be passed"} <= set(legend(figure)) and "against layer" in figure.alt
    assert figure.svg() == figure.svg()
    assert "Nothing to show" in figures.draw_by_depth(frame.iloc[:0], {}, "live").alt


def test_size_has_a_panel_per_layer_without_the_embedding_output(frame):
    assert titles(figures.draw_by_size(frame, "live")) == ["layer 1", "layer 2", "layer 3"]
    halves = figures.draw_by_size(frame, "recorded", layers=[1, 3])
    assert titles(halves) == ["layer 1", "layer 3"] and "(recorded)" in halves._supylabel.get_text()
    colours = [line.get_color() for line in halves.axes[0].get_lines()]
    assert colours == [PALETTE[0], PALETTE[2], PALETTE[3]], "every line keeps its colour"
    with pytest.raises(InputError, match="'SBERT'"):
        figures.draw_by_size(frame.replace({ESE: "SBERT"}), "live")


def test_the_sweep_of_sizes_stands_beside_the_baselines():
    cells = [(p, m, k) for p in ("last layer", "≺ Avg.") for m in (ESE, RAW, MRL) for k in (4, 16)]
    rows = [{"place": p, "method": m, "dim": k, "value": 0.3 if m == ESE else 0.2} for p, m, k in cells]
    figure = figures.draw_compression_sizes(pd.DataFrame(rows), "live")
    assert titles(figure) == ["last layer", "≺ Avg."] and {RAW, MRL, ESE} <= set(legend(figure))
    assert sorted(line.get_ydata()[0] for line in figure.axes[0].get_lines()) == pytest.approx([20, 20, 30])


def test_differences_have_their_intervals_around_zero():
    lines = [("a", "last layer", 0.02), ("b", "last layer", -0.03), ("a", "≺ Avg.", 0.01)]
    rows = [{"variant": v, "place": p, "value": x, "ci_low": x - 0.01, "ci_high": x + 0.01} for v, p, x in lines]
    figure = figures.draw_differences(pd.DataFrame(rows), xlabel="less default, points", kind="live")
    last, shallow = figure.axes
    assert [label.get_text() for label in last.get_yticklabels()] == ["a", "b"]
    (points,) = [line for line in last.get_lines() if line.get_linestyle() == "None"]
    assert list(points.get_xdata()) == pytest.approx([2.0, -3.0])
    segments = last.collections[0].get_segments()
    assert [round(x, 6) for x in segments[0][:, 0]] == [1.0, 3.0]
    assert titles(figure) == ["last layer", "≺ Avg."] and len(shallow.collections[0].get_segments()) >= 1
    assert last.yaxis_inverted(), "the first on top"


def test_the_chart_holds_every_cell_with_its_interval_and_lead(frame):
    chart = figures.chart_depth(frame)
    spec = chart.to_dict()
    (cells,) = spec["datasets"].values()
    assert len(cells) == len(frame)
    at = {(c["method"], c["layer"], c["dim"]): c for c in cells}
    assert at[ESE, 3, 64]["value"] == pytest.approx(61.4) and at[ESE, 3, 64]["lead"] == pytest.approx(20.0)
    assert at[ESE, 3, 64]["interval"] == "59.40 to 63.40" and at[RAW, 0, 8]["lead"] == 0
    (choice,) = spec["params"]
    assert choice["bind"]["options"] == [RAW, MRL, ESE] and choice["value"] == [{"method": ESE}]
    for layer in spec["layer"]:
        assert layer["encoding"]["y"]["sort"] == "descending"
    html = interactive.show(chart, fallback=figures.draw_by_size(frame, "live"), hint="Choose.")._repr_html_()
    assert "Choose." in html and "data:image/svg+xml" in html


def test_a_chart_without_raw_has_no_leads_and_an_empty_one_is_refused(frame):
    (cells,) = figures.chart_depth(frame[frame["method"] == MRL]).to_dict()["datasets"].values()
    assert {cell["lead"] for cell in cells} == {None}
    with pytest.raises(InputError, match="no rows"):
        figures.chart_depth(frame.iloc[:0])


def test_found_has_a_line_of_panels_per_metric_and_a_column_per_layer():
    metrics, lines = ("answer_in_context", "recall@10", "hit@1"), (RAW, CONTROL, MRL, ESE)
    cells = [(m, k, i, d) for m in metrics for k in (1, 2) for i in range(4) for d in (8, 32, 128)]
    rows = [
        {"metric": m, "layer": k, "method": lines[i], "dim": d, "value": 0.1 * k + 0.01 * i} for m, k, i, d in cells
    ]
    figure = figures.draw_found(pd.DataFrame(rows), "live", metrics[:2], {"recall@10": 0.02})
    assert titles(figure)[:2] == ["layer 1", "layer 2"] and len(figure.axes) == 4
    drawn = figure.axes[0].get_lines()
    assert len(drawn) == 4 and len(figure.axes[2].get_lines()) == 5, "chance, where it is known"
    np.testing.assert_allclose(drawn[3].get_ydata(), [13, 13, 13])


def test_depth_cost_names_the_layers():
    nets = [("tiny", RAW), ("tiny", ESE), ("deep", RAW)]
    rows = [
        {"backbone": b, "method": m, "layer": k, "ms": 10.0 * k, "spearman": 50 + k} for b, m in nets for k in (1, 2, 3)
    ]
    figure = figures.draw_depth_cost(pd.DataFrame(rows), "live")
    tiny, deep = figure.axes
    assert [t.get_text() for t in tiny.texts] == ["1", "2", "3"]
    assert PALETTE[3] in {line.get_color() for line in tiny.get_lines()}, "a line keeps its colour"
    assert deep.get_title(loc="left") == "deep" and "milliseconds" in figure.alt
    assert "Nothing to show" in figures.draw_depth_cost(pd.DataFrame(rows)[:0], "live").alt


def test_size_cost_draws_both_times_of_every_line_in_milliseconds():
    metrics = ("total_seconds", "search_seconds", "encode_seconds")
    rows = [
        {"metric": m, "method": o, "dim": d, "value": 0.01 * d} for m in metrics for o in (RAW, ESE) for d in (8, 32)
    ]
    figure = figures.draw_size_cost(pd.DataFrame(rows).assign(backbone="tiny"), "live")
    assert len(figure.axes) == 2 and list(figure.axes[0].get_lines()[0].get_ydata()) == pytest.approx([80, 320])


def test_joint_maps_tell_full_from_cut_by_marker_and_filling():
    full = np.random.default_rng(0).normal(size=(12, 2))
    line = Line(ESE, "net", None, lambda: None, "id")
    maps = [Joint(line, form, 0, full, full + np.array([i, 0])) for i, form in enumerate("abc")]
    figure = figures.draw_joint_maps(maps, dim=16, full=128)
    assert len(figure.axes) == 4 and not figure.axes[3].get_visible()
    dots, squares = figure.axes[1].get_lines()
    assert dots.get_marker() != squares.get_marker() and squares.get_markerfacecolor() == "none"
    assert figure.axes[2].get_title(loc="left") == "ESE, c: 2.0"
    assert len(figure.axes[0].collections[0].get_segments()) == 12, "a line joins the two dots of a sentence"
    assert "first 16" in figure.alt and "no map" in figures.draw_joint_maps([], dim=1, full=2).alt
