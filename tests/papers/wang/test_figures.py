"""Stacked losses of Figure 3 add up to what is drawn, also where one is a gain."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

ENCODER = {128: 0.0, 32: -0.02, 8: 0.05}
POOLER = {128: -0.01, 32: 0.04, 8: 0.03}


@pytest.fixture
def losses():
    rows = []
    for network, dim in product(("a", "b:1"), ENCODER):
        parts = {"encoder_loss": ENCODER[dim], "pooler_loss": POOLER[dim], "total_loss": ENCODER[dim] + POOLER[dim]}
        at = {"kind": "live", "network": network, "dim": dim}
        rows += [
            {**at, "metric": metric, "value": value, "ci_low": value - 0.01, "ci_high": value + 0.01}
            for metric, value in parts.items()
        ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def draw_decomposition(page_functions):
    return page_functions("wang_figure3_loss_decomposition")["draw_decomposition"]


def bars_of(axes):
    """(bottom, top) of every bar, encoder's and pooler's, in points; from narrow to wide dims."""
    spans = [tuple(sorted((bar.get_y(), bar.get_y() + bar.get_height()))) for bar in axes.patches]
    return spans[: len(ENCODER)], spans[len(ENCODER) :]


def test_parts_of_one_sign_are_stacked_a_gain_hangs_below_zero_and_the_sum_has_its_interval(losses, draw_decomposition):
    axes = draw_decomposition(losses).axes[0]
    encoder, pooler = bars_of(axes)
    assert encoder == [pytest.approx(span) for span in ((0, 5), (-2, 0), (0, 0))]
    assert pooler == [pytest.approx(span) for span in ((5, 8), (0, 4), (-1, 0))]
    (diamonds,) = [line for line in axes.get_lines() if line.get_marker() == "D"]
    np.testing.assert_allclose(diamonds.get_ydata(), [8, 2, -1])
    whiskers = axes.collections[0].get_segments()
    assert [(low[1], high[1]) for low, high in whiskers] == [pytest.approx(x) for x in ((7, 9), (1, 3), (-2, 0))]
    losses.loc[losses["metric"] != "total_loss", "value"] = -0.02
    encoder, pooler = bars_of(draw_decomposition(losses).axes[0])
    assert encoder == [pytest.approx((-2, 0))] * 3 and pooler == [pytest.approx((-4, -2))] * 3


def test_printed_losses_are_hollow(losses, draw_decomposition):
    axes = draw_decomposition(losses.assign(kind="paper").drop(columns=["ci_low", "ci_high"])).axes[0]
    assert {bar.get_facecolor()[3] for bar in axes.patches} == {0} and not axes.collections
    assert "Nothing to show" in draw_decomposition(losses.iloc[:0]).alt
