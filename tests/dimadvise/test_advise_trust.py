"""What an answer is worth: bounds hold as often as they say, known answers are found, errors are told."""

import json

import numpy as np
import pytest

from dimadvise.advice import advise, default_dims
from dimadvise.evidence import Pairs
from dimadvise.measured import ASSET, CALIBRATED, EXPERIMENT, SPECTRUM, measured_from, read_measured, write_measured
from repro.evaluation.retention import retention, smallest_sufficient
from repro.evaluation.stats import mean_draws, spearman_draws
from repro.evaluation.sts import sts_spearman
from repro.reducers import make_reducer
from repro.rows import recorded_rows
from repro.types import InputError
from shown_code import on_page


def test_bounds_of_a_known_retention_hold_as_often_as_they_say():
    # cosines and grades are Gaussian with known correlations, so each size's true share is known
    def true(correlation):
        return 6 / np.pi * np.arcsin(correlation / 2)

    rng, sizes, correlations = np.random.default_rng(0), [8, 6, 4, 2], [0.8, 0.79, 0.74, 0.6]
    truth = np.array([true(c) / true(0.8) for c in correlations])
    held, bold, too_small = [], [], 0
    for trial in range(300):
        grades, shared = rng.normal(size=(2, 200))
        cosines = [
            c * grades + np.sqrt(1 - c**2) * (0.9 * shared + np.sqrt(1 - 0.81) * rng.normal(size=200) if k else shared)
            for k, c in enumerate(correlations)
        ]
        values, draws = spearman_draws(cosines, grades, resamples=300, seed=trial)
        low = retention(values, draws, reference=0).low
        held.append(low[1:] <= truth[1:])
        bold.append(retention(values, draws, reference=0, confidence=0.8).low[1:] <= truth[1:])
        answer = smallest_sufficient(sizes, low.tolist(), 0.95)
        too_small += answer is not None and truth[sizes.index(answer)] < 0.95
    assert np.mean(held) >= 0.93 and np.mean(held, axis=0).min() >= 0.93
    assert np.mean(bold) < 0.9, "a bound that claims less is seen to hold less often"
    assert too_small / 300 <= 0.05


def test_bounds_of_a_known_accuracy_hold():
    rng, held, truth = np.random.default_rng(1), 0, (0.8 * 0.93 + 0.2 * 0.15) / 0.8
    for trial in range(400):
        right = rng.random(400) < 0.8
        less = np.where(right, rng.random(400) < 0.93, rng.random(400) < 0.15)
        values, draws = mean_draws([right, less], resamples=300, seed=trial)
        held += retention(values, draws, reference=0).low[1] <= truth
    assert held / 400 >= 0.93


@pytest.mark.parametrize(("factors", "seed"), [(4, 0), (5, 0), (6, 1)])
def test_the_answer_in_a_world_of_known_dimension_is_within_one_step(factors, seed):
    # what is needed is read off ten times as many pairs; grades are noisy, so that the full size does not score 1
    drawn = on_page("beyond_microworld", "draw_pairs", values=6, seed=seed)["draw_pairs"]
    (_, few, ideal), (_, many, every) = drawn(factors, 500), drawn(factors, 4000)
    rng = np.random.default_rng(seed)
    dims = default_dims(ideal[0].shape[1])
    grades = many.scores + 0.3 * rng.normal(size=4000)
    reducer = make_reducer("pca", dims[0]).fit(np.concatenate(every))
    sides = [reducer.transform(side) for side in every]
    scores = [sts_spearman(*(reducer.prefix(side, dim) for side in sides), grades) for dim in dims]
    needed = smallest_sufficient(dims, [score / sts_spearman(*every, grades) for score in scores], 0.95)
    evidence = Pairs(np.arange(500), np.arange(500, 1000), few.scores + 0.3 * rng.normal(size=500))
    found = advise({None: np.concatenate(ideal)}, evidence=evidence, retain=0.95, methods=("pca",))
    assert needed is not None and found.answer is not None
    assert abs(dims.index(found.answer.dim) - dims.index(needed)) <= 1


def test_shipped_errors_are_those_of_the_recorded_rows():
    shipped = json.loads(ASSET.read_text(encoding="utf-8"))
    assert len(shipped["encoders"]) >= 2 and len(shipped["tasks"]) >= 6 and shipped["commit"]
    rows = recorded_rows(EXPERIMENT)
    if len(rows):  # an installed package has no results/
        assert shipped == measured_from(rows)


def test_what_ships_is_written_from_rows(tmp_path, made_curves):
    rows = made_curves()
    path = write_measured(tmp_path / "error.json", rows)
    found = read_measured(path)
    assert found.encoders == ("a", "b") and found.tasks == ("t0", "t1", "t2") and found.data_source == "made"
    error = found.error_of("pca", SPECTRUM, 0.9)
    assert error is not None and error.cases == 6 and error.log2_median == 0 and error.target_met == 1
    assert found.rules["pca"] in (SPECTRUM, CALIBRATED)
    for known in found.errors:
        nearest = [found.error_of(known.reducer, known.rule, known.target + aside) for aside in (-0.004, 0.004)]
        assert nearest == [known, known]
    where, pca, grp, _ = found.statement(["pca", "grp"], 0.9)
    assert "2 encoders and 3 tasks" in where and f"factor of {2**error.log2_median:.1f} in the median" in pca
    assert grp == "grp: how far predictions are off was not measured."
    assert found.expected("grp", np.array([0.5]), np.array([0.1])) == pytest.approx([0.5])
    with pytest.raises(InputError, match="record proposal_choosing_dim"):
        measured_from(rows[rows["backbone"] == "a"])
    path.write_text("{}")
    read_measured.cache_clear()
    with pytest.raises(InputError, match="install the package again"):
        read_measured(path)
