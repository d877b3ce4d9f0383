"""The advisor on trial: rules are judged on cases they have not seen, and the right one has no
error.
"""

from functools import partial
from itertools import product

import numpy as np
import pytest

from dimadvise.measured import FEATURES, Calibration, features
from made_rows import made_curves
from repro import data
from repro.models import SentenceEncoder
from repro.papers.proposal import choosing
from repro.papers.proposal.cases import Case, cases_of, retention_rows
from repro.papers.proposal.choosing import (
    ALL,
    BLIND,
    HALF,
    KNEE,
    LABELS,
    LOOKING,
    SPECTRUM,
    TASK,
    UNSEEN,
    fit_calibration,
)
from repro.runs.encoders import Named
from repro.store import Store
from repro.types import InputError


def errors_of(rows, setting, metric):
    whole = rows[
        (rows["dataset"] == "all") & (rows["setting"] == setting) & (rows["metric"] == metric)
    ]
    return whole.set_index("method")["value"]


def test_calibration_finds_the_coefficients_and_keeps_their_sign():
    rng = np.random.default_rng(0)
    predicted, neighbours = rng.random((2, 200))
    truth = np.array([0.2, 0.0, 0.1, 0.3])
    share = 1 - features(predicted, neighbours) @ truth
    found = fit_calibration(predicted, neighbours, share)
    assert found.coefficients == pytest.approx(truth, abs=1e-9)
    assert found(np.ones(1), np.ones(1)) == 1.0, "nothing is lost where nothing changes"
    against = fit_calibration(predicted, neighbours, 1 + 0.1 * (1 - predicted))
    assert against.coefficients == (0.0,) * len(FEATURES), (
        "losing similarity never counts as a gain"
    )
    assert Calibration((9.0, 0, 0, 0))(np.zeros(1), np.zeros(1)) == 0.0
    with pytest.raises(InputError, match="3 measured shares"):
        fit_calibration(predicted[:3], neighbours[:3], share[:3])


def test_a_rule_that_knows_has_no_error_and_blind_ones_have():
    rows = made_curves()
    setting = f"pca, {TASK}, keep 0.9"
    own = rows[(rows["metric"] == "answer") & (rows["setting"] == setting)]
    wide = own.pivot_table(index=["backbone", "dataset"], columns="method", values="value")
    assert (wide[LABELS] == wide[KNEE]).all() and (wide[LABELS] == wide[SPECTRUM]).all(), (
        "bounds are tight here"
    )
    median, met = (
        errors_of(rows, setting, f"{name}") for name in ("log2_error_median", "target_met_share")
    )
    assert set(median.index) == {*LOOKING, *BLIND}
    assert median[SPECTRUM] == 0 and met[SPECTRUM] == met[ALL] == 1
    assert errors_of(rows, setting, "log2_error_worst")[HALF] > 0
    assert errors_of(rows, f"pca, {TASK}", "curve_error_mean")[SPECTRUM] == 0
    assert errors_of(made_curves(off=0.05), setting, "target_met_share")[SPECTRUM] < 1


def test_tuned_rules_never_see_what_they_are_judged_by():
    cases = cases_of(made_curves())
    for case, left in product(cases, (TASK, UNSEEN)):
        learnt = choosing.others(case, cases, left)
        assert learnt and all(c.task != case.task and c.reducer == case.reducer for c in learnt)
        assert left == TASK or all(c.encoder != case.encoder for c in learnt)


def test_answers_are_sizes_and_the_full_one_keeps_all():
    dims, share, low = (
        np.array([64, 32, 16]),
        np.array([0.97, 1.01, 0.99]),
        np.array([0.9, 0.98, 0.95]),
    )
    predicted, neighbours = np.array([1.0, 0.99, 0.9]), np.array([0.8, 0.7, 0.6])
    case = Case("e", "t", "pca", 64, 5.0, dims, share, low, predicted, neighbours)
    assert case.reach(case.low, 0.98) == 64, "the walk ends at its first failure"
    assert case.reach(case.predicted, 0.98) == 32 and case.kept(32) == 1.01
    assert case.kept(64) == 1.0, "leaving everything as it is, not a reducer at full size"
    assert (case.at_least(20), case.at_least(3), case.at_least(100)) == (32, 16, 64)


def test_one_task_judges_no_rule_and_says_so(capsys):
    rows = made_curves()
    assert choosing.rule_rows(rows[rows["dataset"] == "t1"], [0.9], experiment="x").empty
    assert "so none is judged" in capsys.readouterr().err


def test_curves_of_an_encoder_on_generated_tasks():
    store = Store()
    kept = {"stsb": ("test", 100), "cr": ("all", 100), "hotpotqa": (None, 30)}
    tasks = {
        name: data.take(data.load(name, source="microworld", split=s), n)
        for name, (s, n) in kept.items()
    }
    encoder = Named(
        "repro-tiny",
        partial(SentenceEncoder.load, "repro-tiny", pooling="mean"),
        "mean of states",
    )
    for name, task in tasks.items():
        rows = retention_rows(
            encoder,
            name,
            task,
            store,
            reducers=["pca", "truncate"],
            experiment="x",
        )
        assert {"participation_ratio", "items"} <= set(rows["metric"])
        full = rows[(rows["method"] == "truncate") & (rows["dim"] == 128)].set_index("metric")[
            "value"
        ]
        assert full[["share_kept", "predicted", "neighbours_kept"]].tolist() == pytest.approx(
            [1.0, 1.0, 1.0]
        )
    wiki = data.load("wiki", source="microworld", limit=50)
    with pytest.raises(InputError, match="wiki has neither scores nor labels"):
        retention_rows(encoder, "wiki", wiki, store, reducers=["pca"])
