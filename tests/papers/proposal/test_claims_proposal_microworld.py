"""Expectations on worlds of known dimension: from made-up rows to their verdicts, the table and the figures."""

import numpy as np
import pandas as pd
import pytest

from repro.report import claims_proposal, figures_microworld
from repro.rows import make_rows

WORLDS = (3, 4, 5, 6, 8)


def made(estimate=lambda f: 2.0 * f, knee=lambda f: 8.0, worlds=WORLDS):
    rows = []
    for f in worlds:
        at = {"setting": f"{f} factors"}
        rows += [
            {**at, "method": "known", "metric": "participation_ratio", "value": 4.0 * f},
            {**at, "method": "known", "metric": "dimension_99", "value": 5.0 * f},
            {**at, "method": "known", "metric": "effective_rank", "value": 10.0 * f},
            {**at, "method": "m", "metric": "effective_rank", "value": 20.0 * f},
            {**at, "method": "m", "metric": "participation_ratio", "value": estimate(f)},
            {**at, "method": "m", "metric": "knee", "value": knee(f)},
            {**at, "method": "m", "metric": "spearman", "value": 0.5},
        ]
        rows += [
            {**at, "method": "m", "metric": "share_kept", "dim": dim, "value": 0.9, "ci_low": 0.8} for dim in (4, 16)
        ]
    return make_rows(rows, experiment="x", seed=0)


def test_growth_is_judged_and_a_constant_knee_is_not():
    table = claims_proposal.known_dimension(made())
    assert list(table["estimate"]) == ["effective rank", "participation ratio"]
    assert list(table["verdict"]) == ["reproduced"] * 2
    assert list(table["estimate / known"]) == pytest.approx([2.0, 0.5]), "each against its own truth"
    falling = claims_proposal.known_dimension(made(lambda f: -f)).set_index("estimate")["verdict"]
    assert falling["participation ratio"] == "not reproduced"
    both = claims_proposal.known_dimension(made(knee=lambda f: 8.0 + (f == 5))).set_index("estimate")["verdict"]
    assert both["knee"] == "within noise"
    assert claims_proposal.known_dimension(made(worlds=(3, 4))).empty, "two worlds make no trend"


def test_table_has_a_line_per_world_and_embedding():
    table = claims_proposal.world_table(made())
    assert len(table) == 2 * len(WORLDS)
    line = table[(table["world"] == "8 factors") & (table["embedding"] == "m")].iloc[0]
    assert line["knee"] == 8 and line["Spearman × 100"] == pytest.approx(50)


def test_figures_draw_every_world_and_the_known_line():
    figure = figures_microworld.draw_intrinsic(made())
    first = figure.axes[0]
    assert list(first.get_lines()[1].get_ydata()) == [4.0 * f for f in WORLDS] and first.get_title(loc="left")
    kept = figures_microworld.draw_share_kept(made(), 0.95)
    assert len(kept.axes) == 1 and len(kept.axes[0].get_lines()) == len(WORLDS) + 1
    assert "5 factors" in kept.alt
    rows = made()
    assert "Nothing to show" in figures_microworld.draw_share_kept(rows[rows["metric"] == "knee"], 0.95).alt


def test_seeds_are_averaged_before_anything_is_judged_or_drawn():
    rows = made()
    several = pd.concat([rows.assign(seed=0), rows.assign(seed=1)], ignore_index=True)
    pd.testing.assert_frame_equal(claims_proposal.known_dimension(several), claims_proposal.known_dimension(rows))
    for draw in (figures_microworld.draw_intrinsic, lambda f: figures_microworld.draw_share_kept(f, 0.95)):
        one, two = (
            [np.asarray(line.get_ydata(), float) for panel in draw(f).axes for line in panel.get_lines()]
            for f in (rows, several)
        )
        assert len(one) == len(two) > 3
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
