"""A suite of tasks: every interval is that of the number it stands beside, from resamples that all lines share."""

import numpy as np
import pytest

from repro.evaluation.protocol import Score
from repro.evaluation.stats import percentiles, spearman_draws
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender, suite_rows
from repro.runs.sweep import cosines_of
from repro.sets import LabelledTexts, ScoredPairs
from repro.store import Store

SIDES = [tuple(f"{side}{i}" for i in range(40)) for side in "ab"]


def pairs(name, seed):
    scores = np.random.default_rng(seed).uniform(0, 5, 40)
    return ScoredPairs(name, "made", "test", *SIDES, scores, np.repeat(["x", "y"], 20))


TASKS = {name: {"test": pairs(name, i)} for i, name in enumerate(("one", "two", "three"))}


@pytest.fixture
def lines():
    rng = np.random.default_rng(7)
    index = {text: i for i, text in enumerate(SIDES[0] + SIDES[1])}
    X = rng.standard_normal((80, 6))
    tables = [TextTable(index, X + 0.3 * rng.standard_normal(X.shape)) for _ in range(2)]
    return [Contender(name, 6, "encoder", "", table) for name, table in zip(("A", "B"), tables, strict=True)]


def rows_of(lines, tasks, tmp_path, seed=3, **options):
    options = {"rivals": lambda lines: [(0, 1)], "average": True, **options}
    return suite_rows(
        lines, tasks, Store(tmp_path), progress=False, experiment="e", data_source="made", seed=seed, **options
    )


def interval(rows, method, dataset):
    (row,) = rows[(rows["method"] == method) & (rows["dataset"] == dataset)].to_dict("records")
    return row["value"], row["ci_low"], row["ci_high"]


def draws_of(lines, seed):
    """Scores and resamples of each task by hand: (tasks, lines) and (tasks, resamples, lines)."""
    found = [
        spearman_draws([cosines_of(line.table, test) for line in lines], test.scores, subsets=test.subsets, seed=seed)
        for test in (splits["test"] for splits in TASKS.values())
    ]
    return (np.stack(part) for part in zip(*found, strict=True))


@pytest.mark.parametrize("seed", [0, 3])
def test_an_average_has_the_interval_of_the_averaged_resamples(lines, tmp_path, seed):
    values, draws = draws_of(lines, seed)
    rows = rows_of(lines, TASKS, tmp_path, seed)
    for k, line in enumerate(lines):
        expected = percentiles(values[:, k].mean(), draws[:, :, k].mean(0))
        assert interval(rows, line.method, "Avg.") == pytest.approx((expected.value, expected.low, expected.high))
    # three tasks on unrelated scores: their mean is surer than any of them, by about √3
    low, high = interval(rows, "A", "Avg.")[1:]
    widths = [np.subtract(*interval(rows, "A", name)[:0:-1]) for name in TASKS]
    assert high - low == pytest.approx(np.mean(widths) / 3**0.5, rel=0.25)


def test_a_lead_is_read_on_shared_resamples(lines, tmp_path):
    values, draws = draws_of(lines, 3)
    rows = rows_of(lines, TASKS, tmp_path)
    for i, name in enumerate(TASKS):
        expected = percentiles(values[i, 0] - values[i, 1], draws[i, :, 0] - draws[i, :, 1])
        assert interval(rows, "A − B", name) == pytest.approx((expected.value, expected.low, expected.high))


def test_the_bootstrap_turns_with_the_seed(lines, tmp_path):
    labels = LabelledTexts("sorted", "made", "test", SIDES[0], np.repeat(["x", "y"], 20))
    right = np.random.default_rng(1).random((2, 200)) < 0.7

    def classify(table, name, splits):
        items = right[int(table is lines[1].table)]
        return Score("accuracy", float(items.mean()), np.nan, np.nan, 200, items, 0.5)

    for tasks in (TASKS, {"sorted": {"test": labels}}):
        first, again, other = (rows_of(lines, tasks, tmp_path, s, classify=classify)["ci_low"] for s in (3, 3, 4))
        assert first.equals(again) and not first.equals(other)
