"""Figures and shared tables of ESE's pages: what stands where, and in which look."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import AVERAGE, ESE, MRL, RAW
from repro.papers.ese.differences import difference_table, draw_differences, rank_table
from repro.report.figures import PALETTE
from repro.rows import make_rows


def test_differences_have_their_intervals_around_zero():
    lines = [("a", "last layer", 0.02), ("b", "last layer", -0.03), ("a", "≺ Avg.", 0.01)]
    rows = [{"variant": v, "place": p, "value": x, "ci_low": x - 0.01, "ci_high": x + 0.01} for v, p, x in lines]
    figure = draw_differences(pd.DataFrame(rows), xlabel="less default, points", kind="live")
    last = figure.axes[0]
    assert [label.get_text() for label in last.get_yticklabels()] == ["a", "b"] and last.yaxis_inverted()
    (points,) = [line for line in last.get_lines() if line.get_linestyle() == "None"]
    assert list(points.get_xdata()) == pytest.approx([2.0, -3.0])
    segments = last.collections[0].get_segments()
    assert [round(x, 6) for x in segments[0][:, 0]] == [1.0, 3.0]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["last layer", "≺ Avg."]


@pytest.mark.parametrize("methods", [(RAW, MRL, ESE), (MRL,)])
def test_the_chart_holds_every_cell_with_its_interval_and_lead(methods, page_functions):
    cells = [(i, m, k, dim) for i, m in enumerate(methods) for k in range(4) for dim in (8, 64)]
    values = [(m, k, dim, 0.2 + 0.1 * i + 0.05 * k + dim / 1000) for i, m, k, dim in cells]
    frame = pd.DataFrame(values, columns=["method", "layer", "dim", "value"])
    frame = frame.assign(ci_low=frame["value"] - 0.02, ci_high=frame["value"] + 0.02)
    spec = page_functions("ese_figure3_depth_by_dim")["chart_by_size"](frame).to_dict()
    (cells,) = spec["datasets"].values()
    at, (choice,) = {(c["method"], c["layer"], c["dim"]): c for c in cells}, spec["params"]
    assert len(cells) == len(frame) and choice["bind"]["options"] == list(methods)
    assert choice["value"] == [{"method": methods[-1]}]
    if RAW in methods:
        assert at[ESE, 3, 64]["value"] == pytest.approx(61.4) and at[ESE, 3, 64]["lead"] == pytest.approx(20.0)
        assert at[ESE, 3, 64]["interval"] == "59.40 to 63.40" and at[RAW, 0, 8]["lead"] == 0
    else:
        assert {cell["lead"] for cell in cells} == {None}


def test_depth_cost_names_the_layers(page_functions):
    nets = [("tiny", RAW), ("tiny", ESE), ("deep", RAW)]
    rows = [
        {"backbone": b, "method": m, "layer": k, "ms": 10.0 * k, "spearman": 50 + k} for b, m in nets for k in (1, 2, 3)
    ]
    figure = page_functions("ese_figure6_efficiency")["draw_depth_cost"](pd.DataFrame(rows), "live")
    tiny, deep = figure.axes
    assert [t.get_text() for t in tiny.texts] == ["1", "2", "3"]
    assert PALETTE[3] in {line.get_color() for line in tiny.get_lines()}, "a line keeps its colour"
    assert deep.get_title(loc="left") == "deep" and "milliseconds" in figure.alt


def test_maps_tell_full_from_cut_by_marker_and_filling(page_functions):
    full = np.random.default_rng(0).normal(size=(12, 2))
    draw_maps = page_functions("ese_figure7_compression", full=128, prefix=16)["draw_maps"]
    figure = draw_maps({name: (full, full + 1) for name in "abc"})
    assert len(figure.axes) == 4 and not figure.axes[3].get_visible()
    *between, dots, squares = figure.axes[1].get_lines()
    assert dots.get_marker() != squares.get_marker() and squares.get_markerfacecolor() == "none"
    assert len(between) == 12, "a line joins the two dots of a sentence"
    assert [list(end) for end in zip(*between[3].get_data(), strict=True)] == [list(full[3]), list(full[3] + 1)]


def test_tables_of_differences_and_ranks():
    at = {"method": "embeddings − default", "metric": "spearman_lead", "dataset": AVERAGE, "layer": 2}
    rows = [{**at, "dim": dim, "value": -0.02, "ci_low": -0.03, "ci_high": -0.01} for dim in (16, 64)]
    rank = {"method": "E4", "layer": 1, "dim": 8, "setting": "RAW, per sentence"}
    rows += [{**rank, "metric": "numerical_rank", "value": 4, "ci_low": 3, "ci_high": 5}]
    rows += [{**rank, "metric": "second_share", "value": 0.01}]
    rows = make_rows(rows, backbone="net", seed=0)
    table = difference_table(rows, {"embeddings": "default", "max-k": "default"}, "live")
    assert list(table.columns) == ["variant", "against", "place", "live, 64 dims", "live, 16 dims"]
    assert table["live, 64 dims"].tolist() == ["-2.00 [-3.00, -1.00]"], "max-k was not compared with the default"
    assert difference_table(rows, {"a": "b"}, "live").empty
    ranks = rank_table(rows)
    assert ranks.loc[0, ["rank, median", "smallest", "largest", "second by first"]].tolist() == [4, 3, 5, "1.0e-02"]
