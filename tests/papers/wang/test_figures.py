"""Stacked losses add up to what is drawn, also where one is a gain; stages and pairs show every number."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from repro.methods import STAGES
from repro.papers.wang import figures
from repro.report.tables import join_kinds, paper_values

ENCODER = {128: 0.0, 32: -0.02, 8: 0.05}
POOLER = {128: -0.01, 32: 0.04, 8: 0.03}


def losses(kinds=("live",), networks=("a", "b:1"), seeds=1):
    rows = []
    for kind, network, dim, seed in product(kinds, networks, ENCODER, range(seeds)):
        at = {"kind": kind, "network": network, "dim": dim, "seed": seed}
        parts = {"encoder_loss": ENCODER[dim], "pooler_loss": POOLER[dim], "total_loss": ENCODER[dim] + POOLER[dim]}
        rows += [
            {**at, "metric": metric, "value": value, "ci_low": value - 0.01, "ci_high": value + 0.01}
            for metric, value in parts.items()
        ]
    return pd.DataFrame(rows)


def bars_of(axes):
    """(bottom, top) of every bar, encoder's and pooler's, in points; from narrow to wide dims."""
    spans = [tuple(sorted((bar.get_y(), bar.get_y() + bar.get_height()))) for bar in axes.patches]
    return spans[: len(ENCODER)], spans[len(ENCODER) :]


def test_parts_of_one_sign_are_stacked_and_a_gain_hangs_below_zero():
    encoder, pooler = bars_of(figures.draw_decomposition(losses()).axes[0])
    assert encoder == [pytest.approx(span) for span in ((0, 5), (-2, 0), (0, 0))]
    assert pooler == [pytest.approx(span) for span in ((5, 8), (0, 4), (-1, 0))]


def test_two_gains_are_stacked_downwards():
    both = losses(networks=("a",))
    both.loc[both["metric"] != "total_loss", "value"] = -0.02
    encoder, pooler = bars_of(figures.draw_decomposition(both).axes[0])
    assert encoder == [pytest.approx((-2, 0))] * 3 and pooler == [pytest.approx((-4, -2))] * 3


def test_the_total_is_the_sum_with_its_interval():
    axes = figures.draw_decomposition(losses()).axes[0]
    (diamonds,) = [line for line in axes.get_lines() if line.get_marker() == "D"]
    np.testing.assert_allclose(diamonds.get_ydata(), [8, 2, -1])
    whiskers = axes.collections[0].get_segments()
    assert [(low[1], high[1]) for low, high in whiskers] == [pytest.approx(x) for x in ((7, 9), (1, 3), (-2, 0))]


def test_printed_losses_are_hollow_and_have_no_whiskers():
    axes = figures.draw_decomposition(losses(("paper",)).drop(columns=["ci_low", "ci_high"])).axes[0]
    assert {bar.get_facecolor()[3] for bar in axes.patches} == {0}
    assert not axes.collections


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: figures.draw_decomposition(losses().iloc[:0]), "Nothing to show"),
        (lambda: figures.draw_decomposition(losses()[lambda f: f["metric"] != "pooler_loss"]), "lacks a part"),
        (lambda: figures.draw_decomposition(losses().assign(metric="spearman")), "Nothing to show"),
        (lambda: figures.draw_grid(pd.DataFrame()), "Nothing to show"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, match):
    assert match in draw().alt


def test_stages_have_a_column_per_kind_and_gains_below_their_scores():
    printed = paper_values("wang2023", "table1")
    figure = figures.draw_stages(join_kinds(printed, printed, printed[printed["dim"] <= 128]))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["paper", "recorded", "live"] * 2
    scores, gains = figure.axes[0], figure.axes[3]
    assert len([line for line in scores.get_lines() if len(line.get_xdata()) > 2]) == len(STAGES)
    assert max(max(line.get_ydata()) for line in gains.get_lines()) == pytest.approx(8.55)
    figure.draw_without_rendering()
    (legend,) = [found.get_window_extent() for found in figure.legends]
    assert not any(legend.overlaps(axes.get_window_extent()) for axes in figure.axes)


def test_grid_writes_every_score_and_outlines_the_best():
    matrix = pd.DataFrame([[0.5, 0.6], [0.7, 0.55]], index=[8, 64], columns=[8, 64])
    axes = figures.draw_grid(matrix, chosen=[(8, 8)]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["50.0", "60.0", "70.0", "55.0"]
    assert len(axes.patches) == 3  # the best encoder of each of two poolers, and the chosen pair
