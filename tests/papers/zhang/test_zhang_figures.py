"""Figures of Zhang et al.: what is drawn where, and what is refused."""

import pandas as pd
import pytest

from repro.methods import FULL_SIZE, MAJORITY
from repro.papers.zhang import tables


@pytest.fixture
def frame():
    whole = {"setting": "", "method": FULL_SIZE, "value": 0.8}
    lines = [{**whole, "backbone": e, "dim": d} for e, d in (("a", 64), ("b", 32))]
    for encoder, full in (("a", 64), ("b", 32)):
        for setting in ("inductive", "transductive", "inductive, kernel=poly"):
            for method, offset in (("PCA", 0.0), ("KPCA", -0.1)):
                lines += [
                    {"backbone": encoder, "setting": setting, "method": method, "dim": full // k, "value": 0.7 + offset}
                    for k in (8, 4, 2)
                ]
    return pd.DataFrame([*lines, {"method": MAJORITY, "value": 0.5}]).assign(metric="accuracy")


def test_a_panel_per_encoder_and_setting(frame):
    figure = tables.draw_reduced(frame)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["inductive", "transductive"] * 2
    first = figure.axes[0]
    assert first.get_ylabel() == "a"
    heights = [line.get_ydata()[0] for line in first.get_lines()]
    assert 80.0 in heights, "full size"
    assert 50.0 in heights, "the floor"
    assert [line.get_xdata()[0] for line in first.get_lines()].count(32.0) == 1, "half of 64 dims"
    band = first.patches[0].get_extents().transformed(first.transData.inverted())
    assert (band.y0, band.y1) == (pytest.approx(79.2), pytest.approx(80.0)), "one per cent of 80, not one point"
    curves = [line for line in first.get_lines() if len(line.get_xdata()) == 3]
    assert len(curves) == 2, "other forms of a method are not drawn"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["PCA", "KPCA", "live"]
    assert "half the dimensions" in figure.alt


def test_methods_keep_their_colours_and_kinds_their_lines(frame):
    alone = tables.draw_reduced(frame[frame["method"].isin(["KPCA", FULL_SIZE])], "recorded")
    both = tables.draw_reduced(frame)
    curve = next(line for line in alone.axes[0].get_lines() if len(line.get_xdata()) == 3)
    second = [line for line in both.axes[0].get_lines() if len(line.get_xdata()) == 3][1]
    assert curve.get_color() == second.get_color()
    assert curve.get_linewidth() < second.get_linewidth()


def test_what_cannot_be_drawn_is_said(frame):
    lacking = frame[~((frame["backbone"] == "b") & (frame["method"] == FULL_SIZE))]
    assert "'b' has no score at full size" in tables.draw_reduced(lacking).alt
    assert "Nothing to show" in tables.draw_reduced(frame[frame["method"] == FULL_SIZE]).alt
    assert "no ratios" in tables.draw_seconds(pd.DataFrame()).alt


def test_seconds_have_a_panel_per_operation():
    kinds = (("paper", 18.0), ("live", 2.0))
    lines = [(m, o, "scikit-learn", k, v) for o in ("training", "inference") for k, v in kinds for m in ("PCA", "KPCA")]
    columns = ["method", "operation", "reducers", "kind", "value"]
    figure = tables.draw_seconds(pd.DataFrame(lines, columns=columns))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["training", "inference"]
    for axes in figure.axes:
        assert axes.get_xscale() == "log"
        printed, live = axes.get_lines()[:2]
        assert printed.get_markerfacecolor() == "none"
        assert list(printed.get_xdata()) == [18.0, 18.0]
        assert list(live.get_xdata()) == [2.0, 2.0]
        assert printed.get_ydata()[0] != live.get_ydata()[0], "beside each other"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["paper", "live, scikit-learn"]
    assert figure.svg() == figure.svg()


def test_a_panel_in_which_nothing_was_fitted_is_left_empty(frame):
    nothing = (frame["backbone"] == "a") & (frame["setting"] == "transductive")
    assert nothing.any()
    figure = tables.draw_reduced(frame[~nothing])
    assert len(figure.axes) == 4
