"""Figures of Tables 3 and 4 and of the ablations: what is drawn, where, and what is refused."""

import pandas as pd
import pytest

from repro.report import figures


def frame(kinds, lines=("PCA", "two-step"), dims=(8, 32, 128)):
    return pd.DataFrame(
        [
            {
                "kind": kind,
                "line": line,
                "dim": d,
                "value": 0.3 + 0.1 * k + 0.01 * i + d / 1000,
                "ci_low": 0.3 if kind == "live" else None,
                "ci_high": 0.5 if kind == "live" else None,
            }
            for k, kind in enumerate(kinds)
            for i, line in enumerate(lines)
            for d in dims
        ]
    )


def test_methods_share_a_panel_and_kinds_do_not():
    figure = figures.draw_methods(frame(["paper", "recorded", "live"]), ylabel="Spearman × 100")
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["paper", "recorded", "live"]
    for axes in panels:
        assert len(axes.get_lines()) == 2
    first, last = panels[0].get_lines()[0], panels[2].get_lines()[0]
    assert first.get_color() == last.get_color(), "a method keeps its colour"
    assert first.get_linestyle() != last.get_linestyle(), "a kind keeps its line"
    assert last.get_ydata()[0] == pytest.approx(100 * (0.3 + 0.2 + 0.008))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["PCA", "two-step"]
    assert "PCA" in figure.alt


def test_the_floor_is_drawn_in_our_panels_alone():
    figure = figures.draw_methods(frame(["paper", "live"]), ylabel="accuracy × 100", floor=50.0)
    paper, live = figure.axes
    assert [line.get_ydata()[0] for line in live.get_lines()].count(50.0) == 1
    assert 50.0 not in [line.get_ydata()[0] for line in paper.get_lines()]
    assert "Nothing to show" in figures.draw_methods(frame(["live"]).assign(value=None), ylabel="x").alt


def test_candidates_have_a_panel_per_stage_and_a_curve_per_dim():
    rows = pd.DataFrame(
        [
            {"method": method, "dim": d, "setting": f"candidates={k}", "value": 0.2 + 0.01 * k + d / 1000}
            for method in ("one", "two", "other")
            for d in (8, 64)
            for k in range(3)
        ]
    )
    figure = figures.draw_candidates(rows, names={"one": "after step 1", "two": "after step 2"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["after step 1 (live)", "after step 2 (live)"]
    line = figure.axes[0].get_lines()[1]
    assert line.get_label() == "dim 64"
    assert list(line.get_xdata()) == [0, 1, 2]
    assert line.get_ydata()[2] == pytest.approx(28.4)
    assert (
        "no rows whose setting is candidates=k"
        in figures.draw_candidates(rows.assign(setting="test"), names={"one": "x"}).alt
    )


def test_subspace_curves_stand_beside_chance():
    rows = pd.DataFrame(
        [
            {
                "method": method,
                "metric": "variance_kept",
                "dim": d,
                "value": value * d / 64,
                "setting": f"activation={a}",
            }
            for method, value in (("trained pooler", 0.6), ("PCA", 0.9), ("chance", 0.5))
            for a in ("tanh", "identity")
            for d in (8, 32)
        ]
    )
    figure = figures.draw_subspace(rows, metric="variance_kept", ylabel="kept, %")
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["trained pooler, tanh", "trained pooler, identity", "PCA", "chance"]
    assert (
        "no rows of metric 'subspace_overlap'" in figures.draw_subspace(rows, metric="subspace_overlap", ylabel="x").alt
    )
