"""Figures of the tables, the grid and the ablations: what is drawn, where, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from repro.report import figures
from repro.report.compare import paper_values
from repro.types import InputError

STAGES = ("end", "one", "two")


def stages(kinds=("paper", "live"), gains=True):
    rows = [
        {"kind": kind, "method": stage, "dataset": "stsb", "dim": dim, **cells}
        for kind in kinds
        for i, stage in enumerate(STAGES)
        for dim in (8, 64, 768)
        for cells in (
            {"metric": "spearman", "value": 0.5 + 0.03 * np.log2(dim) + 0.02 * i},
            {"metric": "spearman_gain", "value": 0.02, "ci_low": 0.01, "ci_high": 0.04},
        )
        if cells["metric"] == "spearman" or (gains and i)
    ]
    return pd.DataFrame(rows)


def legend_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.draw_two_step(stages().iloc[:0], stages=STAGES),
        lambda: figures.draw_two_step(stages().assign(method="m"), stages=STAGES),
        lambda: figures.draw_grid(pd.DataFrame()),
    ],
)
def test_where_nothing_is_to_be_drawn_the_page_says_so(draw):
    assert draw()._repr_markdown_().startswith("Nothing to show under these parameters")


def test_two_step_has_a_row_per_kind_and_names_stages_and_steps():
    figure = figures.draw_two_step(stages(), stages=STAGES)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "paper: score × 100",
        "gain, points",
        "live: score × 100",
        "gain, points",
    ]
    assert legend_of(figure) == ["end to end", "after step 1", "after step 2", "gain of step 1", "gain of step 2"]


@pytest.mark.parametrize("given", [True, False])
def test_gains_are_those_given_or_else_the_differences(given):
    right = figures.draw_two_step(stages(("live",), gains=given), stages=STAGES).axes[1]
    assert [bar.get_height() for bar in right.patches] == pytest.approx([2.0] * 6)
    assert bool(right.collections) is given  # whiskers only where an interval is known


def test_two_step_reads_the_printed_table():
    printed = paper_values("wang2023", "table1").assign(kind="paper")
    figure = figures.draw_two_step(printed, stages=list(dict.fromkeys(printed["method"])))
    assert len(figure.axes[0].get_lines()) == 3
    assert max(bar.get_height() for bar in figure.axes[1].patches) == pytest.approx(8.55)


def test_bars_stand_above_their_dim_when_a_kind_has_fewer_dims():
    few = stages(("live",))
    figure = figures.draw_two_step(pd.concat([stages(("paper",)), few[few["dim"] != 8]]), stages=STAGES)
    bars = [bar for bar in figure.axes[3].patches if np.isfinite(bar.get_height())]
    assert {round(bar.get_x() + bar.get_width() / 2) for bar in bars} == {1, 2}


def test_grid_writes_every_score_and_outlines_the_best():
    matrix = pd.DataFrame([[0.5, 0.6], [0.7, 0.55]], index=[8, 64], columns=[8, 64])
    axes = figures.draw_grid(matrix, chosen=[(8, 8)]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["50.0", "60.0", "70.0", "55.0"]
    assert len(axes.patches) == 3  # the best encoder of each of two poolers, and the chosen pair
    with pytest.raises(InputError, match="not in the grid"):
        figures.draw_grid(matrix, chosen=[(16, 8)])


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
