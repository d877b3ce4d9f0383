"""Tables and figures of what can be retrieved: from made-up rows."""

import pandas as pd

from repro.report import claims_proposal, figures_limits
from repro.rows import make_rows


def made():
    rows = []
    for n in (4, 8):
        for dim in (2, 3, 4, 8):
            enough = dim >= (3 if n == 4 else 4)
            at = {"setting": f"{n} documents", "dim": dim}
            rows += [
                {**at, "method": "most possible", "metric": "sets_realised", "value": 1.0 if enough else 0.5},
                {**at, "method": "gradient descent", "metric": "sets_realised", "value": 1.0 if enough else 0.4},
                {**at, "method": "gradient descent", "metric": "margin", "value": dim / 40 if enough else -0.1},
            ]
        curve = {"setting": f"{n} documents", "dim": 4, "method": "curve"}
        rows += [{**curve, "metric": "sets_realised", "value": 1.0}, {**curve, "metric": "margin", "value": 1 / n**4}]
    return make_rows(rows, experiment="x")


def test_smallest_dims_by_every_standard():
    table = claims_proposal.limit_table(made(), 0.15).set_index("documents")
    assert list(table["most possible"]) == list(table["gradient descent"]) == [3, 4]
    assert list(table["with a margin of 0.15"]) == [8, 8] and table.loc[8, "margin of the curve, 4 dims"] == "0.00024"
    assert claims_proposal.limit_table(made(), 0.9)["with a margin of 0.9"].isna().all()


def encoders():
    values = {"sets_realised": 0.25, "recall@2": 0.5, "margin": -0.1}
    rows = [{"method": "m", "dim": d, "metric": k, "value": v} for d in (4, 16) for k, v in values.items()]
    return make_rows(rows, experiment="x")


def test_encoder_table():
    table = claims_proposal.encoder_table(encoders())
    assert list(table["dim"]) == [4, 16] and list(table["sets realised, %"]) == [25, 25]
    assert list(table["recall@2, %"]) == [50, 50] and list(table["margin"]) == [-0.1, -0.1]


def test_figures():
    shares, margins = figures_limits.draw_free_limits(made()).axes
    assert [len(line.get_xdata()) for line in shares.get_lines()] == [4] * 4
    assert [text.get_text() for text in margins.texts] == ["4 dims", "8 dims"], "three dims have one margin only"
    figure = figures_limits.draw_encoder_limits(encoders(), chance=0.2)
    assert list(figure.axes[1].get_lines()[-1].get_ydata()) == [20, 20]
    assert "Nothing to show" in figures_limits.draw_encoder_limits(pd.DataFrame(), 0.1).alt
