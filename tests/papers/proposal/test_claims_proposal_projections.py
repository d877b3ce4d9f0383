"""PROP-T-2 and its tables: from made-up rows to the verdict they deserve; the figures draw what they are given."""

import numpy as np
import pandas as pd
import pytest

from repro.report import claims_proposal, figures_distortion
from repro.report.compare import verdict_frame
from repro.rows import make_rows
from repro.theory import jl_dim

DIMS = (8, 32, 128)


def made(slope=-0.5, draws=3, worst=None, dims=DIMS):
    """Rows of one encoder whose cosine errors fall with a slope that wanders a little from draw to draw."""
    rows = [
        {"method": "full size", "dim": 64, "metric": metric, "value": value, "seed": 0}
        for metric, value in (("spearman", 0.8), ("sentences", 1000.0), ("participation_ratio", 20.0))
    ]
    for draw in range(draws):
        for dim in dims:
            values = {
                "cosine_rms": dim ** (slope + 0.005 * draw),
                "cosine_rms_expected": dim**-0.5,
                "spearman": 0.7 + 0.01 * draw,
                "distortion_worst": (worst or {8: 2.0, 32: 0.4, 128: 0.1})[dim] + 0.01 * draw,
                "distortion_min": 0.1,
                "distortion_low": 0.5,
                "distortion_median": 1.0,
                "distortion_high": 1.5,
                "distortion_max": 2.0,
            }
            rows += [{"method": "GRP", "dim": dim, "metric": m, "value": v, "seed": draw} for m, v in values.items()]
    return make_rows(rows, backbone="b", experiment="x")


def verdict(rows):
    (found,) = claims_proposal.johnson_lindenstrauss(rows)
    assert found.claim_id == "PROP-T-2" and len(verdict_frame("live", [found])) == 1
    return found.verdict


@pytest.mark.parametrize(
    ("slope", "expected"),
    [(-0.5, "reproduced"), (-0.45, "reproduced"), (-0.2, "not reproduced"), (-0.9, "not reproduced")],
)
def test_the_slope_is_judged_by_its_interval_over_draws(slope, expected):
    assert verdict(made(slope)) == expected


def test_a_slope_at_the_edge_is_within_noise_and_one_draw_says_nothing():
    assert verdict(made(-0.4)) == "within noise"
    assert verdict(made(draws=1)) == "not attempted"
    assert claims_proposal.johnson_lindenstrauss(made(dims=(8, 32))) == [], "two dims make no slope"
    assert claims_proposal.slopes(made(draws=1)).item() == pytest.approx(-0.5)


def test_every_draw_must_hold_and_what_was_not_tried_is_missing():
    table = claims_proposal.sufficient_table(made(), [0.1, 0.5]).set_index("ε")
    assert table.loc[0.5, "GRP"] == 32 and table.loc[0.5, "bound"] == jl_dim(1000, 0.5)
    assert pd.isna(table.loc[0.1, "GRP"]), "0.1, but 0.12 in the third draw"
    assert table["PCA"].isna().all() and (table["sentences"] == 1000).all()


def test_scores_of_draws_are_averaged():
    table = claims_proposal.score_table(made()).set_index("dim")
    assert table.loc[8, "GRP"] == "71.00 ± 1.00" and table.loc[64, "full size"] == "80.00"


def test_bands_bounds_and_lines_are_drawn():
    theory = pd.DataFrame({"backbone": "b", "dim": [8, 128], "low": 0.4, "high": 1.6, "eps": [np.nan, 0.9]})
    figure = figures_distortion.draw_distortion(made(), theory)
    (axes,) = figure.axes
    assert len(axes.collections) == 2 and len(axes.get_lines()) == 5
    assert "GRP" in figure.alt and "<svg" in figure.svg()
    errors, scores = figures_distortion.draw_cosine_error(made()).axes
    assert errors.get_ylim()[0] == pytest.approx(128**-0.5 / 8, rel=0.05) and errors.get_yscale() == "log"
    assert list(scores.get_lines()[0].get_ydata()) == pytest.approx([71.0] * 3)
    assert "Nothing to show" in figures_distortion.draw_cosine_error(pd.DataFrame()).alt
