"""PROP-T-1 and its table: from made-up rows to the verdict they deserve; the figures draw what they are given."""

import numpy as np
import pandas as pd
import pytest

from repro.report import claims_proposal, figures_theory
from repro.report.compare import of_kind, verdict_frame
from repro.rows import make_rows

DIMS = (4, 8, 16, 32, 64, 128)


def measured(**values):
    """Rows of one seed; every metric is a function of the dim's rank."""
    rows = [
        {"metric": metric, "dim": dim, "value": float(f(i))}
        for metric, f in values.items()
        for i, dim in enumerate(DIMS)
    ]
    return make_rows(rows, experiment="x", seed=0, data_source="microworld")


def verdicts(rows):
    found = claims_proposal.alignment_uniformity(rows)
    assert {m.claim_id for m in found} == {"PROP-T-1"} and len(verdict_frame("live", found)) == len(found)
    return {m.what.split()[3]: m.verdict for m in found}


def falling(i):
    return -i


def flat(i):
    return (0.0, 1.0, 0.5, 0.4, 1.1, 0.1)[i]


def test_the_loss_must_fall_and_alignment_may_go_either_way():
    for alignment in (falling, lambda i: i):
        rows = measured(info_nce=falling, uniformity=falling, alignment=alignment)
        assert verdicts(rows) == dict.fromkeys(("info_nce", "uniformity", "alignment"), "reproduced")


def test_a_rising_loss_contradicts_and_a_flat_line_tells_nothing():
    found = verdicts(measured(info_nce=lambda i: i, uniformity=flat, alignment=flat))
    assert found == {"info_nce": "not reproduced", "uniformity": "within noise", "alignment": "within noise"}


def test_two_dims_show_no_trend():
    rows = measured(info_nce=falling)
    assert claims_proposal.alignment_uniformity(rows[rows["dim"] < 10]) == []


def test_table_and_misses():
    rows = measured(
        info_nce=lambda i: 2.0,
        expected_info_nce=lambda i: 1.0,
        expected_info_nce_filled=lambda i: 2.5,
        uniformity_dim=lambda i: i + 1,
    )
    table = claims_proposal.geometry_table(rows)
    assert list(table["dim"]) == sorted(DIMS, reverse=True) and list(table["dims filled"]) == [6, 5, 4, 3, 2, 1]
    misses = claims_proposal.misses(rows)
    assert misses == {"expected, all dims filled": pytest.approx(2.0), "expected, dims filled": pytest.approx(1.25)}


def curves():
    rows = []
    for setting in ("τ = 0.05, B = 64", "τ = 0.5, B = 64"):
        for dim in DIMS:
            loss = 10.0 / dim**2 if "0.05" in setting else 3.0 - dim / 100
            rows += [
                {"method": "expected", "setting": setting, "dim": dim, "value": loss},
                {"method": "endless batch", "setting": setting, "dim": dim, "value": loss - 0.1},
                {
                    "method": "Monte Carlo",
                    "setting": setting,
                    "dim": dim,
                    "value": loss,
                    "ci_low": loss / 2,
                    "ci_high": loss * 2,
                },
            ]
    return make_rows(rows, metric="info_nce")


def test_a_wide_range_is_logarithmic_and_a_negative_limit_is_left_out():
    figure = figures_theory.draw_info_nce(curves())
    first, second = figure.axes
    assert first.get_yscale() == "log" and second.get_yscale() == "linear"
    dotted = [line for line in first.get_lines() if len(line.get_ydata()) and line.get_color() == "#b5679a"]
    assert all((np.asarray(line.get_ydata()) > 0).all() for line in dotted)
    assert "Monte Carlo" in figure.alt and "<svg" in figure.svg()


def test_measured_and_theory_lines_are_drawn_where_they_belong():
    rows = of_kind("live", measured(alignment=falling, uniformity=falling, uniformity_limit=lambda i: -i - 1))
    first, second = figures_theory.draw_geometry(rows).axes
    assert [len(line.get_xdata()) for line in first.get_lines()] == [6, 0, 0]
    assert [len(line.get_xdata()) for line in second.get_lines()] == [6, 6, 0]


def test_nothing_to_draw_is_said():
    for draw in (figures_theory.draw_info_nce, figures_theory.draw_geometry):
        assert "Nothing to show" in draw(pd.DataFrame()).alt
