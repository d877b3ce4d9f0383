"""The interactive heat map: every pair with its numbers, the best of each pooler outlined."""

import pandas as pd
import pytest

from repro.papers.wang.figures import draw_grid
from repro.report import interactive
from repro.types import InputError

SCORE = {
    (64, 64): 0.70,
    (16, 64): 0.60,
    (8, 64): 0.50,
    (64, 16): 0.55,
    (16, 16): 0.50,
    (8, 16): 0.56,
    (64, 8): 0.40,
    (16, 8): 0.35,
    (8, 8): 0.30,
}


@pytest.fixture
def frame():
    return pd.DataFrame(
        [
            {"encoder": i, "dim": j, "value": value, "ci_low": value - 0.1, "ci_high": value + 0.1}
            for (i, j), value in SCORE.items()
        ]
    )


def rows_of(spec):
    cells, best = sorted(spec["datasets"].values(), key=len, reverse=True)
    return {(row["encoder"], row["dim"]): row for row in cells}, {(row["encoder"], row["dim"]) for row in best}


def test_every_pair_has_score_interval_and_gain(frame):
    cells, best = rows_of(interactive.chart_grid(frame).to_dict())
    assert {pair: row["value"] for pair, row in cells.items()} == {p: pytest.approx(100 * v) for p, v in SCORE.items()}
    assert cells[64, 16]["gain"] == pytest.approx(5.0) and cells[16, 16]["gain"] == 0
    assert cells[8, 8]["interval"] == "20.00 to 40.00"
    assert best == {(64, 64), (8, 16), (64, 8)}


def test_wide_dims_come_first_as_in_the_static_figure(frame):
    for layer in interactive.chart_grid(frame).to_dict()["layer"]:
        assert layer["encoding"]["x"]["sort"] == layer["encoding"]["y"]["sort"] == [64, 16, 8]


def test_it_is_shown_with_the_static_figure_and_its_own_hint(frame):
    still = draw_grid(frame.pivot(index="encoder", columns="dim", values="value"))
    html = interactive.show(interactive.chart_grid(frame), fallback=still, hint="Point <here>.")._repr_html_()
    assert "Point &lt;here&gt;." in html and "data:image/svg+xml" in html
    usual = interactive.show(interactive.chart_grid(frame), fallback=still)._repr_html_()
    assert interactive.HINT in usual


def test_seeds_are_averaged_and_a_grid_without_diagonal_has_no_gain(frame):
    shifted = frame.assign(value=frame["value"] + 0.02)
    cells, _ = rows_of(interactive.chart_grid(pd.concat([frame, shifted])).to_dict())
    assert cells[64, 64]["value"] == pytest.approx(71)
    off = frame[frame["encoder"] != frame["dim"]]
    cells, _ = rows_of(interactive.chart_grid(off).to_dict())
    assert cells[64, 16]["gain"] is None


def test_an_empty_frame_is_refused(frame):
    with pytest.raises(InputError, match="no rows"):
        interactive.chart_grid(frame.iloc[:0])
    with pytest.raises(InputError, match="encoder"):
        interactive.chart_grid(frame.drop(columns="encoder"))
