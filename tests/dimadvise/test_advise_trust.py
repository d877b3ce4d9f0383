"""What an answer is worth: bounds hold as often as they say, known answers are found, errors are
told.
"""

import json
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, binomtest, spearmanr, t

from deployment import advised
from dimadvise.bounds import (
    NoShareError,
    mean_influence,
    share_bounds,
    smallest_sufficient,
    spearman_influence,
    unchanged_bounds,
)
from dimadvise.evidence import Classes, Pairs
from dimadvise.folds import Folds
from dimadvise.measured import (
    ASSET,
    CALIBRATED,
    SPECTRUM,
    read_measured,
)
from dimadvise.transform import halvings
from dimadvise.vectors import in_memory
from made_rows import made_curves
from repro.evaluation.sts import sts_spearman
from repro.reducers import make_reducer
from repro.results import recorded_rows
from repro.types import InputError
from shown_code import on_page

EACH = np.arange(1000)[:, None]  # Every item rests on a row of its own


def test_bounds_of_a_known_retention_hold_as_often_as_they_say():
    # Cosines and grades are Gaussian with known correlations, so each size's true share is known
    def true(correlation):
        return 6 / np.pi * np.arcsin(correlation / 2)

    rng, sizes, correlations = np.random.default_rng(0), [8, 6, 4, 2], [0.8, 0.79, 0.74, 0.6]
    truth = np.array([true(c) / true(0.8) for c in correlations])
    held, bold, too_small = [], [], 0
    for _ in range(400):
        grades, shared = rng.normal(size=(2, 100))
        cosines = [
            c * grades
            + np.sqrt(1 - c**2)
            * (0.9 * shared + np.sqrt(1 - 0.81) * rng.normal(size=100) if k else shared)
            for k, c in enumerate(correlations)
        ]
        found = spearman_influence(np.stack(cosines), grades)
        low, less = (share_bounds(found, EACH[:100], confidence=c).low for c in (0.95, 0.8))
        held.append(low[1:] <= truth[1:])
        bold.append(less[1:] <= truth[1:])
        answer = smallest_sufficient(sizes, low.tolist(), 0.9)
        too_small += answer is not None and truth[sizes.index(answer)] < 0.9
    assert np.mean(held, axis=0).min() >= 0.93
    assert np.mean(bold) < 0.92, "a bound that claims less is seen to hold less often"
    assert too_small / 400 <= 0.05


def test_influence_is_the_derivative_by_the_weight_of_an_item():
    rng = np.random.default_rng(0)
    x, gold = np.round(rng.normal(size=(2, 40)), 1)  # With ties
    found = spearman_influence(x[None], gold)
    assert found.scores[0] == pytest.approx(
        spearmanr(x, gold)[0]
    ) and found.values.sum() == pytest.approx(0, abs=1e-9)
    many = np.repeat(np.arange(40), 100)
    for item in (0, 7, 31):
        more = np.append(many, item)
        change = spearmanr(x[more], gold[more])[0] - found.scores[0]
        assert found.values[0, item] == pytest.approx(change * len(more), abs=2e-3)


@pytest.mark.parametrize(("kept", "won"), [(0.93, 0.15), (0.999, 0.0)])
def test_bounds_of_a_known_accuracy_hold_where_few_items_change_too(kept, won):
    rng, held, loose, truth = np.random.default_rng(1), 0, 0, (0.8 * kept + 0.2 * won) / 0.8
    for _ in range(400):
        right = rng.random(300) < 0.8
        both = np.stack([right, np.where(right, rng.random(300) < kept, rng.random(300) < won)])
        low = share_bounds(mean_influence(both), EACH[:300], confidence=0.95).low[1]
        loose += low <= truth
        held += min(low, unchanged_bounds(both, confidence=0.95)[1]) <= truth
    assert held / 400 >= 0.93 and (loose / 400 >= 0.93) == (kept < 0.99), (
        "no variance of zero proves a thing"
    )


def test_items_that_do_not_change_prove_no_more_than_their_number():
    unchanged = np.ones((2, 500))
    assert unchanged_bounds(unchanged, confidence=0.975)[1] == pytest.approx(
        1 - 3.7 / 500,
        abs=1e-4,
    )
    unchanged[1, 0] = 0  # Clopper and Pearson's bound of one in 500
    most = binomtest(1, 500).proportion_ci(0.9).high
    assert unchanged_bounds(unchanged, confidence=0.95)[1] == pytest.approx(1 - most)
    rows = np.arange(500)
    classes, folds = Classes(rows, rows.astype(str)), Folds(rows, rows % 5, rows // 10)
    _, repeated = classes.bounds(np.ones((2, 500)), folds, confidence=0.975)
    assert repeated.low[1] == pytest.approx(1 - 3.6 / 50, abs=2e-3), "fifty texts, ten times each"


@pytest.mark.parametrize("lost", [1, 2, 5, 19])
def test_few_items_that_got_worse_prove_what_clopper_and_pearson_say(lost):
    outcomes = np.ones((2, 400))
    outcomes[1, :lost] = 0
    most = binomtest(lost, 400).proportion_ci(0.9).high  # Of two sides, so 95 % on one
    assert unchanged_bounds(outcomes, confidence=0.95)[1] == pytest.approx(1 - most)
    outcomes[1, -40:] = 0.25  # Too many got worse for their number to prove anything
    assert unchanged_bounds(outcomes, confidence=0.95)[1] == np.inf


def test_gains_count_as_they_were_seen_and_shares_are_of_the_reference():
    outcomes = np.zeros((2, 500))
    outcomes[0, :300] = 1
    outcomes[1, 4:306] = 1  # Four of 300 are lost, six gained
    most = binomtest(4, 500).proportion_ci(0.9).high
    found = unchanged_bounds(outcomes, confidence=0.95)[1]
    assert found == pytest.approx(1 - (most - 6 / 500) / (300 / 500))


@pytest.mark.parametrize(("deviations", "said"), [(1.9, True), (2.05, False)])
def test_a_share_of_what_may_be_zero_is_refused_by_the_95_percent_interval(deviations, said):
    values = np.random.default_rng(0).normal(size=200)
    values = (values - values.mean()) / values.std(ddof=1)
    found = mean_influence((values + deviations / np.sqrt(200))[None])
    if said:
        with pytest.raises(NoShareError, match="a share of what may be zero says nothing"):
            share_bounds(found, EACH[:200], confidence=0.95)
    else:
        assert share_bounds(found, EACH[:200], confidence=0.95).share == 1


def test_from_twenty_items_that_got_worse_on_variances_speak():
    outcomes = np.ones((3, 400))
    outcomes[1, :19], outcomes[2, :20] = 0.5, 0.5
    bounds = unchanged_bounds(outcomes, confidence=0.95)
    assert bounds[1] < 1 - 9.5 / 400 and bounds[2] == np.inf


def test_bounds_of_some_items_that_got_worse_hold_and_by_their_variance_alone_would_not():
    n, truth, held, loose = 200, 0.96, 0.0, 0.0  # Eight items turn wrong on average
    for lost in range(30):
        right = np.ones((2, n))
        right[1, :lost] = 0
        low = share_bounds(mean_influence(right), EACH[:n], confidence=0.95).low[1]
        chance = binom.pmf(lost, n, 1 - truth)
        loose += chance * (low <= truth)
        held += chance * (min(low, unchanged_bounds(right, confidence=0.95)[1]) <= truth)
    assert held >= 0.95 > 0.92 > loose


def some_scores(n, seed=5):
    """Scores of a reference and of two others on the same n items, with their influence values."""
    rng = np.random.default_rng(seed)
    full = 5 + rng.normal(size=n)
    return mean_influence(np.stack([full, 0.95 * full, 0.9 * full + 0.3 * rng.normal(size=n)]))


def test_wider_deviations_are_those_of_influence_values_as_many_times_as_large():
    found = some_scores(80)
    wide = found._replace(values=3 * found.values)
    given = {"links": EACH[:80], "confidence": 0.95}
    widened = share_bounds(found, **given, wider=3).low
    np.testing.assert_allclose(widened, share_bounds(wide, **given).low)
    assert (widened < share_bounds(found, **given).low)[1:].all()


def test_what_a_classifier_learnt_varies_by_a_quarter_of_what_its_items_do():
    rng = np.random.default_rng(0)
    # So many turn wrong that their number proves nothing
    right = np.stack([rng.random(300) < share for share in (0.9, 0.7)])
    evidence = Classes(np.arange(300), np.repeat(["a", "b"], 150))
    folds = evidence.folds(in_memory(rng.normal(size=(300, 2))), seed=0)
    _, kept = evidence.bounds(right, folds, confidence=0.95)
    by_items = share_bounds(mean_influence(right), EACH[:300], confidence=0.95, wider=1.25**0.5)
    np.testing.assert_allclose(kept.low[1], by_items.low[1])


def test_an_item_of_one_row_twice_rests_on_one_row():
    found = some_scores(200)
    once = share_bounds(found, EACH[:200], confidence=0.95)
    twice = share_bounds(found, EACH[:200].repeat(2, axis=1), confidence=0.95)
    np.testing.assert_array_equal(twice.low, once.low)


def test_at_the_bound_the_difference_is_as_large_as_its_deviation_over_items_that_share_rows():
    """Of items i and j that share a row, and of every item with itself, the products count once."""
    pairs = [(i, j) for i in range(12) for j in range(i + 1) if i == j or (i + j) % 3]
    links = np.array(pairs)
    n, rows = len(links), np.random.default_rng(7).normal(size=12)
    full = 9 + rows[links].sum(1)
    found = mean_influence(np.stack([full, 0.9 * full + 2 * rows[links[:, 0]]]))
    low = share_bounds(found, links, confidence=0.95).low[1]
    shared = np.array([[len({*a} & {*b}) for b in links] for a in links], float)
    np.fill_diagonal(shared, 1)
    apart = found.values[1] - low * found.values[0]
    deviation = np.sqrt(apart @ shared @ apart / (n * (n - 1)))
    reach = t.ppf(1 - 0.05 / (1 + 100 / n), n - 1)
    assert found.scores[1] - low * found.scores[0] == pytest.approx(reach * deviation)


def test_pairs_that_share_rows_are_no_independent_items():
    rng, links = np.random.default_rng(2), np.stack(np.triu_indices(30, 1), axis=1)
    held = dict.fromkeys(("shared", "each"), 0)
    for _ in range(300):
        a, b = rng.normal(size=(2, 30))
        full = 5 + a[links].sum(axis=1)
        found = mean_influence(np.stack([full, 0.9 * full + b[links].sum(axis=1)]))
        for name, rows in (("shared", links), ("each", EACH[: len(links)])):
            held[name] += share_bounds(found, rows, confidence=0.95).low[1] <= 0.9
    assert held["shared"] / 300 >= 0.93 > 0.8 > held["each"] / 300


def test_the_whole_advice_holds_on_a_population_and_would_not_if_maps_had_seen_it(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from bench import advisor_coverage

    from dimadvise.unseen import Shortened

    monkeypatch.setattr(advisor_coverage, "FRESH", 5000)
    population = advisor_coverage.made("pairs", dim=24, points=600)

    def held():
        return advisor_coverage.coverage(population, 40, 60, [12, 6, 3])

    found = held()
    assert found.held.mean() >= 0.93 and found.claims >= 0.93 and found.answers > 0
    monkeypatch.setattr(
        Shortened,
        "__call__",
        lambda own, rows, split=(): own.transform.apply(own.vectors.take(rows)),
    )
    assert held().held[3:].mean() < found.held[3:].mean() - 0.04, (
        "principal components of the judged rows flatter"
    )


@pytest.mark.parametrize(("factors", "seed"), [(4, 0), (5, 0), (6, 1)])
def test_the_answer_in_a_world_of_known_dimension_is_within_one_step(factors, seed):
    # What is needed is read off ten times as many pairs; grades are noisy, so that the full size
    # does not score 1
    drawn = on_page("beyond_microworld", "draw_pairs", values=6, seed=seed)["draw_pairs"]
    (_, few, ideal), (_, many, every) = drawn(factors, 500), drawn(factors, 4000)
    rng = np.random.default_rng(seed)
    dims = [round(size) for size in halvings(ideal[0].shape[1], Pairs.parts)]
    grades = many.scores + 0.3 * rng.normal(size=4000)
    reducer = make_reducer("pca", dims[0]).fit(np.concatenate(every))
    sides = [reducer.transform(side) for side in every]
    scores = [sts_spearman(*(reducer.prefix(side, dim) for side in sides), grades) for dim in dims]
    needed = smallest_sufficient(
        dims,
        [score / sts_spearman(*every, grades) for score in scores],
        0.95,
    )
    evidence = Pairs(np.arange(500), np.arange(500, 1000), few.scores + 0.3 * rng.normal(size=500))
    found = advised({None: np.concatenate(ideal)}, evidence=evidence, retain=0.95, methods=("pca",))
    assert needed is not None and found.answer is not None
    assert abs(dims.index(found.answer.dim) - dims.index(needed)) <= 2


@pytest.fixture
def writer(monkeypatch):
    """What writes the numbers that ship; a bench, which is no part of the package."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return import_module("bench.measured")


def test_shipped_errors_are_those_of_the_recorded_rows(writer):
    shipped = json.loads(ASSET.read_text(encoding="utf-8"))
    assert len(shipped["encoders"]) >= 2 and len(shipped["tasks"]) >= 6 and shipped["commit"]
    rows = recorded_rows(writer.EXPERIMENT)
    if len(rows):  # An installed package has no results/
        grown = writer.growth_from(recorded_rows(writer.GROWTH))
        assert shipped == {**writer.measured_from(rows), "growth": grown}
        assert grown["judged"] == 10 * grown["fitted"] and 0 < grown["rms"] < grown["largest"]


def test_what_ships_is_written_from_rows(tmp_path, writer):
    rows = made_curves()
    path = writer.write_measured(tmp_path / "error.json", rows)
    found = read_measured(path)
    assert (
        found.encoders == ("a", "b")
        and found.tasks == ("t0", "t1", "t2")
        and found.data_source == "made"
    )
    error = found.error_of("pca", SPECTRUM, 0.9)
    assert (
        error is not None and error.cases == 6 and error.log2_median == 0 and error.target_met == 1
    )
    assert found.rules["pca"] in (SPECTRUM, CALIBRATED)
    for known in found.errors:
        nearest = [
            found.error_of(known.reducer, known.rule, known.target + aside)
            for aside in (-0.004, 0.004)
        ]
        assert nearest == [known, known]
    where, pca, grp, _ = found.statement(["pca", "grp"], 0.9)
    assert (
        "2 encoders and 3 tasks" in where
        and f"factor of {2**error.log2_median:.1f} in the median" in pca
    )
    assert grp == "grp: how far predictions are off was not measured."
    assert found.expected("grp", np.array([0.5]), np.array([0.1])) == pytest.approx([0.5])
    with pytest.raises(InputError, match="record proposal_choosing_dim"):
        writer.measured_from(rows[rows["backbone"] == "a"])
    path.write_text("{}")
    read_measured.cache_clear()
    with pytest.raises(InputError, match="install the package again"):
        read_measured(path)
