"""PROP-E-1 and PROP-Q-1 from made-up rows: who is ahead, what a smaller size costs, and the verdicts they deserve."""

import pandas as pd
import pytest

from repro.methods import BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.report import claims_proposal, figures_proposal
from repro.report.compare import verdict_frame
from repro.rows import make_rows

FULL = 48
SCORES = {TRAINED_PROJECTION: 0.75, "PCA": 0.7, "GRP": 0.6, BEST_REDUCED: 0.7, TWO_STEP_PROJECTION: 0.79}


def made(lead=0.05, half=0.005, seeds=(0, 1, 2), loss=0.0, dims=(8, 16, 24)):
    """Rows of three seeds in which training leads by `lead`, and every size loses `loss`."""
    rows = []
    for seed in seeds:
        for dataset, metric in (("stsb", "spearman"), ("hotpotqa", "ndcg@10")):
            at = {"seed": seed, "dataset": dataset, "metric": metric, "setting": ""}
            wobble = 0.001 * seed
            rows.append({**at, "method": FULL_SIZE, "dim": FULL, "value": 0.8 + wobble})
            for dim in dims:
                for method, value in SCORES.items():
                    setting = "PCA, chosen on stsb dev" if method == BEST_REDUCED else ""
                    rows.append({**at, "method": method, "dim": dim, "value": value + wobble, "setting": setting})
                ends = {
                    f"{TRAINED_PROJECTION} − {BEST_REDUCED}": lead + wobble,
                    f"{TRAINED_PROJECTION} − PCA": lead + wobble,
                    f"{TRAINED_PROJECTION} − GRP": lead + 0.02,
                    f"{TRAINED_PROJECTION} − {FULL_SIZE}": -loss,
                    f"{TWO_STEP_PROJECTION} − {FULL_SIZE}": -loss,
                }
                rows += [
                    {
                        **at,
                        "method": method,
                        "dim": dim,
                        "metric": f"{metric}_lead",
                        "value": value,
                        "ci_low": value - half,
                        "ci_high": value + half,
                    }
                    for method, value in ends.items()
                ]
    return make_rows(rows, backbone="b", experiment="x")


@pytest.mark.parametrize(
    ("lead", "half", "expected"),
    [(0.05, 0.005, "reproduced"), (-0.05, 0.005, "not reproduced"), (0.01, 0.05, "within noise")],
)
def test_the_open_question_is_answered_by_the_interval(lead, half, expected):
    found = claims_proposal.trained_or_reduced(made(lead, half))
    assert [m.what.split(":")[0] for m in found] == ["b, stsb, dim 8", "b, stsb, dim 16", "b, stsb, dim 24"], (
        "similarity alone"
    )
    assert {m.verdict for m in found} == {expected}
    assert set(verdict_frame("live", found)["claim_id"]) == {"PROP-E-1"}


def test_to_be_ahead_is_to_be_ahead_of_all_and_behind_is_behind_one():
    rows = made(0.05)
    for method, value in (("PCA", 0.05), ("GRP", 0.02)):
        own = rows["method"] == f"{TRAINED_PROJECTION} − {method}"
        rows.loc[own, ["value", "ci_low", "ci_high"]] = [value, value - 0.04, value + 0.04]
    least = claims_proposal.least_leads(rows)["stsb"][8]
    assert (least.over, least.ahead) == ("GRP", "open") and least.value == pytest.approx(2)
    assert least.low == pytest.approx(-2, abs=0.01), "one reduction that may be ahead leaves it open"
    assert least.high == pytest.approx(2 + 4 * 2.2414 / 1.96, abs=0.01), "widened for two reductions"
    rows.loc[own, ["value", "ci_low", "ci_high"]] = [-0.06, -0.10, -0.02]
    assert claims_proposal.least_leads(rows)["stsb"][8].ahead == "reduction", "one that is surely ahead settles it"


def test_one_seed_carries_assumed_noise():
    (first, *_) = claims_proposal.trained_or_reduced(made(0.015, 0.001, seeds=(0,)))
    assert first.verdict == "within noise" and first.value - first.low == pytest.approx(1.96, abs=0.05)
    assert claims_proposal.trained_or_reduced(made(0.03, 0.001, seeds=(0,)))[0].verdict == "reproduced"


def test_sizes_are_judged_as_shares_of_the_full_one():
    found = claims_proposal.size_kept(made(loss=0.001))
    assert [(m.what.split(":")[0], m.verdict) for m in found] == [
        (f"b, stsb, dim {dim} of 48", "reproduced") for dim in (16, 24, 8)
    ]
    assert "two-step" in found[-1].what and "trained projection" in found[0].what
    assert {m.verdict for m in claims_proposal.size_kept(made(loss=0.05))} == {"not reproduced"}
    without = claims_proposal.size_kept(made(dims=(4,)))
    assert not without, "less than a sixth of the full size"


def test_tables_say_the_choice_and_who_is_ahead():
    table = claims_proposal.sign_table(made(0.05)).set_index(["task", "dim"])
    assert table.loc[("stsb", 8), "dev's choice"] == "PCA" and table.loc[("stsb", 8), "ahead"] == "training"
    assert table.loc[("hotpotqa", 24), "lead over the closest"].startswith("5.10 [") and set(table["closest"]) == {
        "PCA"
    }
    assert table.loc[("stsb", 8), "over dev's choice"].startswith("5.10 [")
    assert set(claims_proposal.sign_table(made(-0.05))["ahead"]) == {"reduction"}
    assert set(claims_proposal.sign_table(made(0.0))["ahead"]) == {"open"}
    scores = claims_proposal.scores_table(made()).set_index(["task", "dim"])
    assert scores.loc[("stsb", FULL), FULL_SIZE] == pytest.approx(80.1), "mean over seeds"
    assert scores.loc[("hotpotqa", 8), "GRP"] == pytest.approx(60.1)
    assert list(scores.columns)[1:4] == [FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION]


def test_recorded_rows_sorted_by_name_come_in_the_order_of_live_ones():
    rows = made()
    shuffled = rows.sort_values(["dataset", "method"], ignore_index=True)
    for table in (claims_proposal.scores_table, claims_proposal.sign_table):
        pd.testing.assert_frame_equal(table(shuffled), table(rows))
    labels = [
        [text.get_text() for text in figures_proposal.draw_train_or_reduce(frame).legends[0].get_texts()]
        for frame in (rows, shuffled)
    ]
    assert labels[0] == labels[1]


def test_a_panel_per_task_and_a_line_per_method():
    figure = figures_proposal.draw_train_or_reduce(made())
    assert [a.get_title(loc="left") for a in figure.axes] == [
        "live: stsb, Spearman × 100",
        "live: hotpotqa, nDCG@10 × 100",
    ]
    heights = [line.get_ydata()[0] for line in figure.axes[0].get_lines()]
    assert len(heights) == 5, "four methods and the full size; the best reduction is one of them"
    assert 80.1 in [pytest.approx(h) for h in heights]
    assert "Nothing to show" in figures_proposal.draw_train_or_reduce(made().iloc[:0]).alt
