"""The stacked losses add up to what is drawn, also where one of them is a gain; both readouts are told apart."""

import numpy as np
import pandas as pd
import pytest

from repro.report import claims_wang, figures
from repro.report.style import PALETTE
from repro.types import InputError

ENCODER = {128: 0.0, 32: -0.02, 8: 0.05}
POOLER = {128: -0.01, 32: 0.04, 8: 0.03}


def losses(kinds=("live",), networks=("a", "b:1"), seeds=1):
    rows = []
    for kind in kinds:
        for network in networks:
            for dim in ENCODER:
                parts = {
                    "encoder_loss": ENCODER[dim],
                    "pooler_loss": POOLER[dim],
                    "total_loss": ENCODER[dim] + POOLER[dim],
                }
                for metric, value in parts.items():
                    for seed in range(seeds):
                        rows.append(
                            {
                                "kind": kind,
                                "network": network,
                                "dim": dim,
                                "metric": metric,
                                "seed": seed,
                                "value": value,
                                "ci_low": value - 0.01,
                                "ci_high": value + 0.01,
                            }
                        )
    return pd.DataFrame(rows)


def readouts(kinds=("recorded", "live"), networks=("a", "b", "c")):
    return pd.DataFrame(
        [
            {
                "kind": kind,
                "network": network,
                "readout": readout,
                "dim": dim,
                "value": 0.5 + dim / 1000,
                "ci_low": 0.4,
                "ci_high": 0.7,
            }
            for kind in kinds
            for network in networks
            for readout in ("encoder", "pooler")
            for dim in (8, 32, 128)
        ]
    )


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


def test_kinds_have_panels_of_their_own_and_are_named():
    figure = figures.draw_decomposition(losses(("recorded", "live")))
    shown = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert shown == ["a (recorded)", "b:1 (recorded)", "a (live)", "b:1 (live)"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["encoder loss", "pooler loss", "total loss"]
    assert "recorded a" in figure.alt and "live b:1" in figure.alt


def test_printed_losses_are_hollow_and_have_no_whiskers():
    axes = figures.draw_decomposition(claims_wang.printed_losses().assign(kind="paper")).axes[0]
    assert {bar.get_facecolor()[3] for bar in axes.patches} == {0}
    assert not axes.collections
    dims = [text.get_text() for text in axes.get_xticklabels()]
    gain = axes.patches[dims.index("512")]
    assert gain.get_y() + gain.get_height() == pytest.approx(-0.36)


def test_seeds_are_averaged():
    once, thrice = (figures.draw_decomposition(losses(seeds=n)).axes[0] for n in (1, 3))
    np.testing.assert_allclose(bars_of(once), bars_of(thrice), atol=1e-9)


def test_both_readouts_of_every_network_and_kind():
    figure = figures.draw_readouts(readouts())
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == ["a", "b", "c"]
    for axes in shown:
        curves = [line for line in axes.get_lines() if len(line.get_xdata()) == 3]
        assert [line.get_color() for line in curves] == [PALETTE[0], PALETTE[0], PALETTE[1], PALETTE[1]]
        assert len({line.get_marker() for line in curves}) == 2
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["encoder's output", "pooler's output", "recorded", "live"]


def test_networks_of_different_dims_have_axes_of_their_own():
    few = readouts(networks=("a",))
    figure = figures.draw_readouts(pd.concat([few, readouts(networks=("b",)).assign(dim=lambda f: 3 * f["dim"])]))
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["24", "96", "384"]


def test_the_same_frame_is_the_same_file():
    for draw, frame in ((figures.draw_decomposition, losses()), (figures.draw_readouts, readouts())):
        assert draw(frame).svg() == draw(frame).svg()


@pytest.mark.parametrize(
    ("draw", "match"),
    [
        (lambda: figures.draw_decomposition(losses().iloc[:0]), "Nothing to show"),
        (lambda: figures.draw_decomposition(losses()[lambda f: f["metric"] != "pooler_loss"]), "lacks pooler_loss"),
        (lambda: figures.draw_decomposition(losses().assign(metric="spearman")), "Nothing to show"),
        (lambda: figures.draw_readouts(readouts().assign(value=np.nan)), "Nothing to show"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, match):
    assert match in draw().alt


def test_a_missing_column_is_an_input_error():
    with pytest.raises(InputError, match="network"):
        figures.draw_decomposition(losses().drop(columns="network"))
