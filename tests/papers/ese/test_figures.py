"""Figures and shared tables of ESE's pages: what stands where, in which look, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import AVERAGE, ESE, MRL, RAW
from repro.papers.ese import figures
from repro.report.figures import PALETTE
from repro.rows import make_rows
from repro.types import InputError


@pytest.fixture
def frame():
    cells = [(i, m, layer, dim) for i, m in enumerate((RAW, MRL, ESE)) for layer in range(4) for dim in (8, 64)]
    values = [(m, layer, dim, 0.2 + 0.1 * i + 0.05 * layer + dim / 1000) for i, m, layer, dim in cells]
    made = pd.DataFrame(values, columns=["method", "layer", "dim", "value"])
    return made.assign(ci_low=lambda f: f["value"] - 0.02, ci_high=lambda f: f["value"] + 0.02)


def test_every_line_keeps_its_colour(frame):
    figure = figures.by_method(frame[frame["layer"] == 1].assign(kind="live"), panel="layer")
    assert [line.get_color() for line in figure.axes[0].get_lines()] == [PALETTE[0], PALETTE[2], PALETTE[3]]


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
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["last layer", "≺ Avg."] and len(shallow.collections[0].get_segments()) >= 1
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


def test_a_chart_without_raw_has_no_leads_and_an_empty_one_is_refused(frame):
    (cells,) = figures.chart_depth(frame[frame["method"] == MRL]).to_dict()["datasets"].values()
    assert {cell["lead"] for cell in cells} == {None}
    with pytest.raises(InputError, match="no rows"):
        figures.chart_depth(frame.iloc[:0])


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


def test_joint_maps_tell_full_from_cut_by_marker_and_filling():
    full = np.random.default_rng(0).normal(size=(12, 2))
    figure = figures.draw_joint_maps({name: (full, full + 1) for name in "abc"}, dim=16, full=128)
    assert len(figure.axes) == 4 and not figure.axes[3].get_visible()
    dots, squares = figure.axes[1].get_lines()
    assert dots.get_marker() != squares.get_marker() and squares.get_markerfacecolor() == "none"
    assert len(figure.axes[0].collections[0].get_segments()) == 12, "a line joins the two dots of a sentence"
    assert "first 16" in figure.alt and "no map" in figures.draw_joint_maps({}, dim=1, full=2).alt


def test_tables_of_differences_and_ranks():
    at = {"method": "embeddings − default", "metric": "spearman_lead", "dataset": AVERAGE, "layer": 2}
    rows = [{**at, "dim": dim, "value": -0.02, "ci_low": -0.03, "ci_high": -0.01} for dim in (16, 64)]
    rank = {"method": "E4", "layer": 1, "dim": 8, "setting": "RAW, per sentence"}
    rows += [{**rank, "metric": "numerical_rank", "value": 4, "ci_low": 3, "ci_high": 5}]
    rows += [{**rank, "metric": "second_share", "value": 0.01}]
    rows = make_rows(rows, backbone="net", seed=0)
    table = figures.difference_table(rows, {"embeddings": "default", "max-k": "default"}, "live")
    assert list(table.columns) == ["variant", "against", "place", "live, 64 dims", "live, 16 dims"]
    assert table["live, 64 dims"].tolist() == ["-2.00 [-3.00, -1.00]"], "max-k was not compared with the default"
    assert figures.difference_table(rows, {"a": "b"}, "live").empty
    ranks = figures.rank_table(rows)
    assert ranks.loc[0, ["rank, median", "smallest", "largest", "second by first"]].tolist() == [4, 3, 5, "1.0e-02"]
