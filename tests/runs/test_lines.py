"""A suite of tasks: every interval is that of the number it stands beside, from resamples that all
lines share.
"""

from dataclasses import replace

import numpy as np
import pytest

from repro.evaluation.shared import shared_weights, spearman_with
from repro.evaluation.stats import RESAMPLES, Score, bootstrap_mean, percentiles
from repro.methods import MAJORITY
from repro.runs import engine, scorers
from repro.runs import lines as suite
from repro.sets import LabelledTexts, ScoredPairs, all_texts
from repro.store import Store
from repro.types import InputError

SIDES = [tuple(f"{side}{i}" for i in range(40)) for side in "ab"]

TASKS = {}
for seed, name in enumerate(("one", "two", "three")):
    scores, subsets = np.random.default_rng(seed).uniform(0, 5, 40), np.repeat(["x", "y"], 20)
    TASKS[name] = suite.Task(
        name,
        {"test": ScoredPairs(name, "made", "test", *SIDES, scores, subsets)},
    )

rng = np.random.default_rng(7)
INDEX, X = {text: i for i, text in enumerate(SIDES[0] + SIDES[1])}, rng.standard_normal((80, 6))
TABLES = [suite.TextTable(INDEX, X + 0.3 * rng.standard_normal(X.shape)) for _ in range(2)]
LINES = [suite.Line(name, 6, table) for name, table in zip("AB", TABLES, strict=True)]


def rows_of(tasks, seed=3, scorer=scorers.similarity, **options):
    options = {
        "contrasts": [lambda a, b: (a.method, b.method) == ("A", "B")],
        "average": True,
        **options,
    }
    shared = {"experiment": "e", "data_source": "made", "seed": seed}
    return engine.score_rows(LINES, tasks, scorer, **shared, **options)


def interval(rows, method, dataset):
    (row,) = rows[(rows["method"] == method) & (rows["dataset"] == dataset)].to_dict("records")
    return row["value"], row["ci_low"], row["ci_high"]


@pytest.mark.parametrize("seed", [0, 3])
def test_averages_and_leads_have_the_intervals_of_averaged_and_of_shared_resamples(seed):
    found = []  # (tasks, lines) scores and (tasks, resamples, lines) draws by hand
    weights = shared_weights({name: task.judged for name, task in TASKS.items()}, seed=seed)
    for name, test in ((name, task.judged) for name, task in TASKS.items()):
        cosines = [scorers.cosines_of(line.table, test) for line in LINES]
        found.append(spearman_with(weights[name], cosines, test.scores))
    values, draws = (
        np.stack([drawn.value for drawn in found]),
        np.stack([drawn.draws for drawn in found]),
    )
    rows = rows_of(TASKS, seed)
    for k, line in enumerate(LINES):
        expected = percentiles(values[:, k].mean(), draws[:, :, k].mean(0))
        assert interval(rows, line.method, "Avg.") == pytest.approx(
            (expected.value, expected.low, expected.high)
        )
    judged = {name: len(task.judged) for name, task in TASKS.items()}
    assert dict(zip(rows["dataset"], rows["n_judged"], strict=True)) == {
        **judged,
        "Avg.": sum(judged.values()),
    }
    # Three tasks on unrelated scores: their mean is surer than any of them, by about √3
    low, high = interval(rows, "A", "Avg.")[1:]
    widths = [np.subtract(*interval(rows, "A", name)[:0:-1]) for name in TASKS]
    assert high - low == pytest.approx(np.mean(widths) / 3**0.5, rel=0.25)
    for i, name in enumerate(TASKS):
        expected = percentiles(values[i, 0] - values[i, 1], draws[i, :, 0] - draws[i, :, 1])
        assert interval(rows, "A − B", name) == pytest.approx(
            (expected.value, expected.low, expected.high)
        )


def test_the_bootstrap_turns_with_the_seed():
    labels = LabelledTexts("sorted", "made", "test", SIDES[0], np.repeat(["x", "y"], 20))
    right = np.random.default_rng(1).random((2, 40)) < 0.7

    def classify(table, name, splits):
        items = right[int(table is TABLES[1])]
        return Score("accuracy", float(items.mean()), np.nan, np.nan, 40, items, 0.5)

    sorted_one = {"sorted": suite.Task("sorted", {"test": labels})}
    for tasks, scorer in ((TASKS, scorers.similarity), (sorted_one, scorers.accuracy(classify))):
        first, again, other = (rows_of(tasks, s, scorer)["ci_low"] for s in (3, 3, 4))
        assert first.equals(again) and not first.equals(other)


def test_a_task_without_weights_of_a_suite_is_resampled_by_its_own_seed():
    texts = LabelledTexts("sorted", "made", "test", SIDES[0], np.repeat(["x", "y"], 20))
    right = np.random.default_rng(1).random(40) < 0.7

    def classify(table, name, splits):
        return Score("accuracy", float(right.mean()), np.nan, np.nan, 40, right, 0.5)

    sorted_one = suite.Task("sorted", {"test": texts})
    for task, scorer in (
        (TASKS["one"], scorers.similarity),
        (sorted_one, scorers.accuracy(classify)),
    ):
        assert task.weights is None
        draws = [next(scorer(LINES, task, seed)).scores.draws for seed in (0, 4, 4)]
        np.testing.assert_array_equal(draws[1], draws[2])
        assert not np.array_equal(draws[0], draws[1])


def test_rows_say_how_many_resamples_there_are_and_how_an_encoder_was_trained_and_is_read():
    told = {"pooling": "mean", "learning_rate": 1e-5, "max_length": 32, "config": "c"}
    lines = [replace(LINES[0], read=told), LINES[1]]
    shared = {"experiment": "e", "data_source": "made", "seed": 0}
    versus = [lambda a, b: a.method == "A"]
    rows = engine.score_rows(lines, TASKS, scorers.similarity, contrasts=versus, **shared)
    assert (rows["resamples"] == RESAMPLES).all()
    own = rows[rows["method"] == "A"]
    assert own[list(told)].drop_duplicates().to_dict("records") == [told]
    assert rows[rows["method"] == "B"][list(told)].isna().all(axis=None)


def test_an_average_of_tasks_that_share_all_items_is_no_surer_than_one_of_them():
    same = {name: replace(TASKS["one"], name=name) for name in ("one", "two", "three")}
    rows = rows_of(same)
    low, high = interval(rows, "A", "Avg.")[1:]
    of_one = np.subtract(*interval(rows, "A", "one")[:0:-1])
    assert high - low == pytest.approx(of_one, rel=1e-9)


def test_how_much_wider_shared_items_make_an_average_is_told_for_lines_and_leads():
    pairs = TASKS["one"].pairs
    sets = {f"{n}": suite.Task(f"{n}", {"test": pairs.keep(range(40 - n, 40))}) for n in (29, 40)}
    widths = engine.widths_of_average(LINES, sets, 0).set_index("line")
    assert set(widths.index) == {"A", "B", "B − A"}
    wider = widths["one weight per pair, times as wide"]
    assert (wider > 1.1).all(), "29 pairs stand in both sets"
    np.testing.assert_allclose(
        wider * widths["each set by itself"], widths["one weight per pair"], rtol=1e-12
    )
    clusters = widths["sentence clusters, times as wide"]
    assert clusters.to_numpy() == pytest.approx(wider.to_numpy(), rel=0.3), "no sentence is shared"


def test_means_of_outcomes_have_a_bootstrap_of_each_and_of_each_difference():
    items = np.random.default_rng(0).random((2, 30))
    means = scorers.Means(items, seed=5)
    assert means[1].columns == bootstrap_mean(items[1], seed=5).columns
    assert (means[0] - means[1]).columns == bootstrap_mean(items[0] - items[1], seed=5).columns


def test_a_labelled_task_is_probed_once_and_has_a_floor(tmp_path, monkeypatch):
    task = suite.Task(
        "sorted",
        {"all": LabelledTexts("sorted", "made", "all", SIDES[0], np.repeat(["x", "y"], 20))},
    )
    rows = rows_of({"sorted": task}, scorer=scorers.by_kind(Store(tmp_path)), average=False)
    floor = rows[rows["method"] == MAJORITY]
    assert floor["value"].tolist() == [0.5] and set(rows["metric"]) == {"accuracy", "accuracy_lead"}
    monkeypatch.setattr("repro.runs.scorers.score_classification", None)
    again = rows_of({"sorted": task}, scorer=scorers.by_kind(Store(tmp_path)), average=False)
    assert again["value"].equals(rows["value"])


def test_a_whole_task_has_all_rows_of_all_splits_judged(tmp_path):
    task = suite.load_tasks(["mrpc"], "microworld", probe_rows=40, whole=True)["mrpc"]
    texts = dict.fromkeys(all_texts(list(task.values())))
    index = {text: i for i, text in enumerate(texts)}
    table = suite.TextTable(index, np.random.default_rng(0).random((len(texts), 3)))
    (judged,) = scorers.by_kind(Store(tmp_path))([suite.Line("A", 3, table)], task, 0)
    assert judged.scores[0].columns["n_judged"] == sum(map(len, task.values())) == 80


def test_a_suite_keeps_so_many_drawn_pairs_of_each_split_and_so_many_rows_of_other_sets():
    tasks = suite.load_tasks(["stsb", "mrpc"], "microworld", pairs=30, probe_rows=40)
    assert {split: len(rows) for split, rows in tasks["stsb"].items()} == {"dev": 30, "test": 30}
    assert {len(rows) for rows in tasks["mrpc"].values()} == {40}
    whole = suite.load_tasks(["stsb"], "microworld")["stsb"]
    assert len(whole["test"]) > 30
    kept = tasks["stsb"]["test"].texts1
    assert set(kept) <= set(whole["test"].texts1) and kept != whole["test"].texts1[:30]


def test_a_split_that_a_set_does_not_have_is_the_users_mistake_and_may_be_asked_for():
    task = TASKS["one"]
    assert (
        "test" in task
        and "train" not in task
        and task.get("train") is None
        and task.get("test") is task["test"]
    )
    with pytest.raises(InputError, match="'one' has no split 'train': it has test"):
        task["train"]
