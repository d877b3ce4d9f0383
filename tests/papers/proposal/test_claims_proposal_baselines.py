"""The table of rivals from made-up rows: costs, the front, printed differences; names that do not lie on each other."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import BASELINES, PRINTED_BASELINES
from repro.report import claims_proposal, figures_proposal
from repro.rows import make_rows

MADE = {
    "n-gram TF-IDF": (10_000, 0.5, 100.0),
    "GloVe": (50, 0.4, 10.0),
    "SBERT": (128, 0.6, 1_000.0),
    "SimCSE": (128, 0.62, 1_100.0),
    "all-MiniLM-L6-v2": (384, 0.8, 10_000.0),
}


def made(lead=0.2, half=0.01):
    """Rows of five methods; SBERT leads GloVe by `lead`."""
    rows = []
    for method, (dim, score, seconds) in MADE.items():
        at = {"method": method, "dim": dim}
        for dataset, bonus in (("stsb", 0.0), ("sickr", 0.02)):
            value = score + bonus
            rows.append(
                {
                    **at,
                    "dataset": dataset,
                    "metric": "spearman",
                    "value": value,
                    "ci_low": value - 0.05,
                    "ci_high": value + 0.05,
                }
            )
        rows.append({**at, "metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3})
        rows.append({**at, "dataset": "stsb", "metric": "encode_seconds", "setting": "1 thread", "value": seconds})
    rows.append({"method": "n-gram TF-IDF", "metric": "gb_per_million", "setting": "sparse", "value": 0.1})
    rows.append(
        {
            "method": "SBERT − GloVe",
            "dataset": "stsb",
            "metric": "spearman_lead",
            "value": lead,
            "ci_low": lead - half,
            "ci_high": lead + half,
        }
    )
    return make_rows(rows, seed=0, experiment="x")


def test_the_table_has_every_method_and_says_what_is_missing():
    missing = pd.DataFrame([{"method": "fastText", "missing": "no file crawl.bin: give it as `fasttext`"}])
    table = claims_proposal.baseline_table(made(), missing).set_index("method")
    assert list(table.index) == ["n-gram TF-IDF", "GloVe", "fastText", "SBERT", "SimCSE", "all-MiniLM-L6-v2"]
    assert table.loc["n-gram TF-IDF", "GB per million"] == "40 dense, 0.1 sparse"
    assert table.loc["GloVe", "stsb"] == "40.00 [35.00, 45.00]" and table.loc["GloVe", "dims"] == 50
    assert table.loc["all-MiniLM-L6-v2", "seconds per million"] == "10,000"
    assert table.loc["fastText"].isna().all(), "no number is made up"
    known = claims_proposal.lines_table({"SBERT": "ours", "GloVe": "GloVe 6B 50d"}, missing).set_index("method")
    assert list(known.index) == ["GloVe", "fastText", "SBERT"]
    assert known.loc["fastText", "what it is here"].startswith("not here: no file crawl.bin")


def test_a_stand_in_is_called_by_its_own_name_in_tables_and_figures():
    rows = made()
    rows.loc[rows["method"].isin(["SBERT", "SimCSE"]), "backbone"] = "repro-tiny"
    named = {"n-gram TF-IDF", "GloVe", "repro-tiny after NLI", "repro-tiny after SimCSE", "all-MiniLM-L6-v2"}
    assert set(claims_proposal.baseline_table(rows, pd.DataFrame(columns=["method"]))["method"]) == named
    assert "repro-tiny after SimCSE" in claims_proposal.front_table(rows)["on the front"][0]
    assert claims_proposal.printed_differences(rows)["difference"].tolist() == ["repro-tiny after NLI − GloVe"]
    assert {text.get_text() for text in figures_proposal.draw_baselines(rows).axes[0].texts} == named


def test_the_front_is_what_nothing_cheaper_beats():
    rows = made()
    assert claims_proposal.front(rows) == ["n-gram TF-IDF", "SimCSE", "all-MiniLM-L6-v2"], "sparse counts"
    table = claims_proposal.front_table(rows).set_index("of")["on the front"]
    assert table["GB per million"] == "n-gram TF-IDF, SimCSE, all-MiniLM-L6-v2"
    seconds = claims_proposal.front(rows, "encode_seconds")
    assert seconds == ["GloVe", "n-gram TF-IDF", "SBERT", "SimCSE", "all-MiniLM-L6-v2"]


def test_printed_scores_are_the_papers():
    printed = claims_proposal.printed_baselines(("stsb", "sickr"))
    assert len(printed) == 2 * len(PRINTED_BASELINES) and set(printed["method"]) < set(BASELINES.values())
    values = printed.set_index(["method", "dataset"])["value"]
    assert values["GloVe", "stsb"] == pytest.approx(0.5802) and values["SimCSE", "sickr"] == pytest.approx(0.6856)


@pytest.mark.parametrize(
    ("lead", "expected"), [(0.19, "reproduced"), (0.05, "direction only"), (-0.1, "not reproduced")]
)
def test_printed_differences_are_judged_by_sign_and_size(lead, expected):
    (line,) = claims_proposal.printed_differences(made(lead)).itertuples()
    assert (line.difference, line.dataset) == ("SBERT − GloVe", "stsb")
    assert line.paper == pytest.approx(77.03 - 58.02) and line.verdict == expected
    assert claims_proposal.printed_differences(made().query("metric != 'spearman_lead'")).empty


def test_names_are_moved_apart_in_their_order():
    assert figures_proposal.apart([1.0, 5.0, 9.0], 2.0).tolist() == [1.0, 5.0, 9.0], "far enough as they are"
    heights = [3.0, 0.0, 3.1, 3.2, 9.0]
    moved = figures_proposal.apart(heights, 1.0)
    assert np.diff(np.sort(moved)).min() >= 1.0 - 1e-9
    assert np.argsort(moved).tolist() == np.argsort(heights).tolist()
    assert moved[[0, 2, 3]].mean() == pytest.approx(3.1) and moved[1] == 0.0


def test_the_figure_shows_sparse_and_dense_and_every_name():
    figure = figures_proposal.draw_baselines(made(), kind="recorded")
    memory, cost = figure.axes
    assert memory.get_title(loc="left") == "recorded: mean Spearman × 100 of stsb, sickr"
    spots = [tuple(line.get_xdata()) for line in memory.get_lines() if line.get_linestyle() == "None"]
    assert (0.1, 40.0) in spots and (0.2,) in spots
    for panel in (memory, cost):
        assert {text.get_text() for text in panel.texts} == set(MADE)
        assert panel.get_xscale() == "log"
    assert "GloVe" in figure.alt
