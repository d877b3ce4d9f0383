"""Tables, sentences and figure of equal bytes: from made-up rows."""

import pandas as pd
import pytest

from repro.report import claims_proposal, figures_quantisation
from repro.rows import make_rows

DIMS = {"float32": 4, "int8": 16, "binary": 128}


def made(lead=0.05, half=0.02):
    """One encoder, 16 bytes: int8 is best by first columns, binary beats all by PCA in retrieval alone."""
    rows = [
        {"method": "full size", "setting": "", "dim": 128, "metric": metric, "value": 0.8}
        for metric in ("spearman", "ndcg@10", "neighbours_kept")
    ]
    values = {"float32": 0.4, "int8": 0.6, "binary": 0.5}
    for reducer, more in (("first columns", 0.1), ("PCA", 0.0)):
        for level, base in values.items():
            for metric in ("spearman", "ndcg@10", "neighbours_kept"):
                special = 0.3 if (metric, level, reducer) == ("ndcg@10", "binary", "PCA") else 0
                at = {"method": level, "setting": f"{reducer}, 16 bytes", "dim": DIMS[level]}
                rows.append({**at, "metric": metric, "value": base + more + special})
        at = {"method": "int8 − float32", "setting": f"{reducer}, 16 bytes", "metric": "spearman_lead"}
        rows.append({**at, "value": lead, "ci_low": lead - half, "ci_high": lead + half})
    worse = {"method": "binary − int8", "setting": "PCA, 16 bytes", "metric": "spearman_lead"}
    rows.append({**worse, "value": -0.1, "ci_low": -0.15, "ci_high": -0.05})
    for method, value in (("binary, queries too", 0.3), ("binary, then float", 0.9)):
        at = {"method": method, "setting": "PCA, 16 bytes", "dim": 128, "metric": "neighbours_kept"}
        rows.append({**at, "value": value})
    return make_rows(rows, experiment="x", backbone="b")


def test_best_ways_name_level_size_reducer_and_share():
    table = claims_proposal.best_ways(made())
    assert table["bytes"].tolist() == [16]
    assert table["STS-B, Spearman"].tolist() == ["int8 × 16, first columns: 88 %"]
    assert table["retrieval, nDCG@10"].tolist() == ["binary × 128, PCA: 100 %"]
    doubled = pd.concat([made(), made().assign(backbone="c")])  # frames keep their old row numbers
    assert claims_proposal.best_ways(doubled)["encoder"].tolist() == ["b", "c"]


def test_wins_are_counted_among_levels_searched_alike():
    counts = claims_proposal.wins(made()).set_index("level")["best"]
    assert counts["int8"] == 2 and counts["binary"] == 1 and counts["float32"] == 0


@pytest.mark.parametrize(("lead", "counts"), [(0.05, (2, 0, 0)), (0.01, (0, 2, 0)), (-0.05, (0, 0, 2))])
def test_better_is_said_where_the_interval_leaves_out_zero(lead, counts):
    table = claims_proposal.equal_bytes(made(lead)).set_index(["fewer bits", "more bits"])
    line = table.loc[("int8", "float32")]
    assert (line["fewer bits better"], line["cannot be told"], line["more bits better"]) == counts
    assert line["median difference, points"] == pytest.approx(100 * lead)
    assert table.loc[("binary", "int8"), "more bits better"] == 1


def test_sentences_say_what_the_tables_say():
    assert list(claims_proposal.sentences(made(), "recorded")) == [
        "recorded: best way to spend a budget, in 3 cases of encoder, score and bytes: int8 2, binary 1.",
        "recorded: int8 against float32 at equal bytes: better in 2 of 2, worse in 0, not to be told in 0.",
    ]


def test_reducer_table_sets_reducers_side_by_side():
    table = claims_proposal.reducer_table(made(), 16).set_index("level")
    assert list(table.index) == ["float32 × 4", "int8 × 16", "binary × 128"]
    assert table.loc["binary × 128", "retrieval, nDCG@10"] == "60.0 / 80.0"
    one = made()[lambda rows: (rows["setting"] != "PCA, 16 bytes") | (rows["method"] != "binary")]
    assert claims_proposal.reducer_table(one, 16).set_index("level").loc["binary × 128"].iloc[1] == "60.0 / –"
    assert claims_proposal.reducer_table(made(), 17).empty


def test_time_table():
    rows = []
    for method, dim, setting in (("float32", 4, "16 bytes"), ("float32", 128, "full size")):
        at = {"method": method, "dim": dim, "setting": f"{setting}, 20,000 vectors"}
        rows.append({**at, "metric": "search_seconds", "value": dim / 1e5})
        rows.append({**at, "metric": "search_ratio", "value": dim / 128, "ci_low": dim / 256, "ci_high": dim / 64})
    table = claims_proposal.time_table(make_rows(rows, experiment="x"))
    assert table["at"].tolist() == ["full size", "16 bytes"] and table["ms a query"].tolist() == [1.28, 0.04]
    assert table["× float32, full size"].tolist()[1] == "0.03 [0.02, 0.06]"


def test_the_figure_draws_a_line_per_level():
    figure = figures_quantisation.draw_bytes(made())
    assert len(figure.axes) == 4 and "b: similarity" in figure.alt
    spearman, _, neighbours, bits = figure.axes
    assert [float(line.get_ydata()[0]) for line in spearman.lines[:3]] == pytest.approx([50, 70, 60])
    assert len(neighbours.lines) == 3 and len(bits.lines) == 3
    assert figure.svg() == figures_quantisation.draw_bytes(made()).svg()
    assert "no rows" in figures_quantisation.draw_bytes(make_rows([])).alt
