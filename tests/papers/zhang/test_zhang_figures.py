"""What Zhang's figures draw and refuse; and what Table 1 times, and how often, as the page itself does it."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import FULL_SIZE, MAJORITY
from repro.papers.zhang import tables
from shown_code import on_page

BOTH = ["inductive", "transductive"]


@pytest.fixture
def frame():
    lines = [{"method": MAJORITY, "value": 0.5}]
    for encoder, full in (("a", 64), ("b", 32)):
        lines.append({"backbone": encoder, "dim": full, "setting": "", "method": FULL_SIZE, "value": 0.8})
        for setting in (*BOTH, "inductive, kernel=poly"):
            at = {"backbone": encoder, "setting": setting}
            for method, value in (("PCA", 0.7), ("KPCA", 0.6)):
                lines += [{**at, "method": method, "dim": full // k, "value": value} for k in (8, 4, 2)]
    return pd.DataFrame(lines).assign(metric="accuracy")


def test_a_panel_per_encoder_and_setting(frame):
    figure = tables.draw_reduced(frame)
    assert [axes.get_title(loc="left") for axes in figure.axes] == BOTH * 2
    first = figure.axes[0]
    assert first.get_ylabel() == "a"
    heights = [line.get_ydata()[0] for line in first.get_lines()]
    assert 80.0 in heights and 50.0 in heights, "full size, and the majority class"
    assert [line.get_xdata()[0] for line in first.get_lines()].count(32.0) == 1, "half of 64 dims"
    band = first.patches[0].get_extents().transformed(first.transData.inverted())
    assert (band.y0, band.y1) == (pytest.approx(79.2), pytest.approx(80.0)), "one per cent of 80, not one point"
    curves = [line for line in first.get_lines() if len(line.get_xdata()) == 3]
    assert len(curves) == 2, "other forms of a method are not drawn"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["PCA", "KPCA", "live"]
    empty = (frame["backbone"] == "a") & (frame["setting"] == "transductive")
    assert len(tables.draw_reduced(frame[~empty]).axes) == 4, "where nothing was fitted a panel is left empty"


def test_what_cannot_be_drawn_is_said(frame):
    lacking = frame[~((frame["backbone"] == "b") & (frame["method"] == FULL_SIZE))]
    assert "'b' has no score at full size" in tables.draw_reduced(lacking).alt
    assert "Nothing to show" in tables.draw_reduced(frame[frame["method"] == FULL_SIZE]).alt


def test_slow_methods_have_fewer_rounds_and_the_first_does_not_count():
    shown, clock, fits = on_page("zhang_table1_timing", "one_round", "measure"), [0.0], {"quick": 0, "slow": 0}
    shown["perf_counter"] = lambda: clock[0]

    class Counting:
        """A reducer that counts its rounds and tells the clock how long they take."""

        def __init__(self, name, seconds):
            self.name, self.seconds = name, seconds

        def fit(self, X):
            fits[self.name] += 1
            clock[0] += self.seconds

        def transform(self, X):
            clock[0] += 0.25

    makers = {("quick", "ours"): lambda: Counting("quick", 0.125), ("slow", "ours"): lambda: Counting("slow", 2.0)}
    rows = shown["measure"](makers, 4, np.zeros((3, 5)), np.zeros((3, 5)), 5, 2)
    assert fits == {"quick": 6, "slow": 3}
    assert [(r["method"], r["metric"], r["value"], r["seconds"]) for r in rows] == [
        ("quick", "fit_seconds", 0.125, 0.625),
        ("quick", "transform_seconds", 0.25, 1.25),
        ("slow", "fit_seconds", 2.0, 4.0),
        ("slow", "transform_seconds", 0.25, 0.5),
    ]
    assert all(r["ci_low"] == r["value"] == r["ci_high"] and r["dim"] == 4 for r in rows)
