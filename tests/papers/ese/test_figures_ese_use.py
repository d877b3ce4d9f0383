"""Figures of the pages on ESE's use: what is drawn, where, and that nothing is said by colour alone."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from repro.methods import CONTROL, ESE, MRL, RAW
from repro.report import figures_ese_use as figures
from repro.report.style import look

LINES = (RAW, CONTROL, MRL, ESE)


def found():
    entries = [
        {"metric": metric, "layer": layer, "method": method, "dim": dim, "value": 0.1 * layer + 0.01 * i}
        for metric in ("answer_in_context", "recall@10", "hit@1")
        for layer in (1, 2)
        for i, method in enumerate(LINES)
        for dim in (8, 32, 128)
    ]
    return pd.DataFrame(entries)


def test_found_has_a_row_per_metric_and_a_column_per_layer():
    titles = {"answer_in_context": "answer in the first paragraph", "recall@10": "among the first ten"}
    figure = figures.draw_found(found(), titles=titles, chance={"recall@10": 0.02})
    assert len(figure.axes) == 4 and [a.get_title(loc="left") for a in figure.axes[:2]] == [
        "layer 1 (live)",
        "layer 2 (live)",
    ]
    lines = figure.axes[0].get_lines()
    assert len(lines) == 4 and len(figure.axes[2].get_lines()) == 5  # chance, where it is known
    np.testing.assert_allclose(lines[3].get_ydata(), [13, 13, 13])
    assert figure.axes[1].get_ylim()[1] > 23 and "dashed" in figure.alt and ESE in figure.alt
    assert "Nothing to show" in figures.draw_found(found()[:0], titles=titles, chance={}).alt


def test_depth_cost_names_the_layers():
    frame = pd.DataFrame(
        [
            {"backbone": b, "method": m, "layer": layer, "ms": 10.0 * layer, "spearman": 50 + layer}
            for b, m in (("tiny", RAW), ("tiny", ESE), ("deep", RAW))
            for layer in (1, 2, 3)
        ]
    )
    figure = figures.draw_depth_cost(frame)
    tiny, deep = figure.axes
    assert [t.get_text() for t in tiny.texts] == ["1", "2", "3"] and len(tiny.get_lines()) == 2
    assert tiny.get_lines()[1].get_color() == look(LINES.index(ESE))["color"]  # a line keeps its colour
    assert deep.get_title(loc="left") == "deep" and "milliseconds" in figure.alt
    assert "Nothing to show" in figures.draw_depth_cost(frame[:0]).alt


def test_size_cost_draws_both_times_of_every_line():
    frame = pd.DataFrame(
        [
            {
                "backbone": "tiny",
                "method": m,
                "dim": dim,
                "metric": metric,
                "value": 0.01 * dim,
                "ci_low": 0.009 * dim,
                "ci_high": 0.012 * dim,
            }
            for m in LINES
            for dim in (8, 32)
            for metric in ("total_seconds", "search_seconds", "encode_seconds")
        ]
    )
    figure = figures.draw_size_cost(frame)
    assert len(figure.axes) == 2
    for panel in figure.axes:
        assert len(panel.containers) == 4 and panel.get_ylim()[0] == 0
    assert list(figure.axes[0].containers[0].lines[0].get_ydata()) == pytest.approx([80, 320])
    shifts = [c.lines[0].get_xdata()[0] for c in figure.axes[1].containers]
    assert shifts == sorted(shifts) and len(set(shifts)) == 4  # lines that lie on each other stay apart
    assert "Nothing to show" in figures.draw_size_cost(frame[frame["metric"] == "encode_seconds"]).alt


def test_joint_maps_tell_full_from_cut_by_marker_and_filling():
    full = np.random.default_rng(0).normal(size=(12, 2))
    maps = [(name, SimpleNamespace(full=full, cut=full + i, distance=float(i))) for i, name in enumerate("abc")]
    figure = figures.draw_joint_maps(maps, dim=16, full=128)
    assert len(figure.axes) == 4 and not figure.axes[3].get_visible()
    dots, squares = figure.axes[1].get_lines()
    assert dots.get_marker() != squares.get_marker() and squares.get_markerfacecolor() == "none"
    assert figure.axes[2].get_title(loc="left") == "c: 2.0"
    assert len(figure.axes[0].collections[0].get_segments()) == 12  # a line joins the two dots of a sentence
    assert "first 16" in figure.alt and "c 2.0" in figure.alt
    assert "no map" in figures.draw_joint_maps([], dim=1, full=2).alt


@pytest.mark.parametrize("draw", [lambda: figures.draw_found(found(), titles={"hit@1": "hit"}, chance={"hit@1": 0.1})])
def test_the_same_figure_is_the_same_file(draw):
    assert draw().svg() == draw().svg() and draw().png()[:4] == b"\x89PNG"
