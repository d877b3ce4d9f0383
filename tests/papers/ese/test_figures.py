"""Figures and shared tables of ESE's pages: what stands where, and in which look."""

import pandas as pd
import pytest

from repro.methods import AVERAGE, ESE, MRL, RAW
from repro.papers.ese.differences import difference_table, draw_differences, rank_table
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


def test_the_chart_holds_every_cell_with_its_interval_and_lead(page_functions):
    cells = [(i, m, k, dim) for i, m in enumerate((RAW, MRL, ESE)) for k in range(4) for dim in (8, 64)]
    values = [(m, k, dim, 0.2 + 0.1 * i + 0.05 * k + dim / 1000) for i, m, k, dim in cells]
    frame = pd.DataFrame(values, columns=["method", "layer", "dim", "value"])
    frame = frame.assign(ci_low=frame["value"] - 0.02, ci_high=frame["value"] + 0.02)
    (shown,) = page_functions("ese_figure3_depth_by_dim")["chart_by_size"](frame).to_dict()["datasets"].values()
    at = {(cell["method"], cell["layer"], cell["dim"]): cell for cell in shown}
    assert len(shown) == len(frame) and at[RAW, 0, 8]["lead"] == 0
    assert at[ESE, 3, 64]["value"] == pytest.approx(61.4) and at[ESE, 3, 64]["lead"] == pytest.approx(20.0)
    assert at[ESE, 3, 64]["interval"] == "59.40 to 63.40"


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
