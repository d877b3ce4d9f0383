"""Figure 6's experiment: what is timed and how often, that shallow reads stop, and what ratios are made of."""

import numpy as np
import pytest

from repro import data
from repro.config import TrainConfig
from repro.data.sampling import take
from repro.evaluation import sts_spearman
from repro.methods import ESE, MRL, RAW
from repro.papers.ese import efficiency
from repro.papers.ese.lines import raw_line
from repro.runs import clock
from repro.store import Store
from repro.types import InputError


@pytest.fixture(scope="module")
def pool():
    return list(take(data.load("stsb", source="microworld"), 40).texts1)


def test_works_take_turns_and_the_first_round_does_not_count(monkeypatch):
    now, order = [0.0], []
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(clock, name, lambda: now[0])

    def work(name, seconds):
        now[0] += 100  # preparing is not timed

        def run():
            order.append(name)
            now[0] += seconds * (10 if len(order) <= 2 else 1)

        return run

    found = clock.in_turns({"a": lambda: work("a", 1.0), "b": lambda: work("b", 0.25)}, 3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    np.testing.assert_allclose(found["a"], [1.0] * 3)
    np.testing.assert_allclose(found["b"], [0.25] * 3)
    for bad in ({"repeats": 0}, {"repeats": 1, "tries": 0}):
        with pytest.raises(InputError, match="is 0: expected at least 1"):
            clock.in_turns({}, **bad)


def test_the_fastest_try_of_a_round_counts(monkeypatch):
    now, taken = [0.0], iter([9.0, 9.0, 3.0, 2.0, 4.0, 5.0])
    for name in ("perf_counter", "process_time"):
        monkeypatch.setattr(clock, name, lambda: now[0])

    def run():
        now[0] += next(taken)

    np.testing.assert_allclose(clock.in_turns({"a": lambda: run}, 2, tries=2)["a"], [2.0, 4.0])


def test_every_depth_and_size_of_every_line_is_timed(untrained_lines, pool):
    pytest.importorskip("faiss", reason="the extra eval brings it")
    timed = efficiency.time_lines(untrained_lines, pool[:5], pool, Store(), stored=200, dims=[4, 8], repeats=2)
    assert set(timed.encode) == {(i, layer) for i in range(3) for layer in (1, 2)}
    assert set(timed.search) == {(i, dim) for i in range(3) for dim in (4, 8, 32)} and timed.last == 2
    assert all(
        len(seconds) == 2 and (seconds > 0).all() for part in (timed.encode, timed.search) for seconds in part.values()
    )
    rows = efficiency.timing_rows(timed, texts=5, stored=200, experiment="e", seed=0)
    encode = rows[rows["metric"] == "encode_seconds"]
    assert len(encode) == 6 and ((encode["ci_low"] <= encode["value"]) & (encode["value"] <= encode["ci_high"])).all()
    total = rows[(rows["metric"] == "total_seconds") & (rows["method"] == MRL) & (rows["dim"] == 8)].iloc[0]
    assert total["value"] == pytest.approx(np.median(timed.encode[1, 2] + timed.search[1, 8])) and total["layer"] == 2
    ratios = rows[rows["metric"] == "encode_ratio"]
    assert set(ratios["method"]) == {f"{MRL} / {RAW}", f"{ESE} / {RAW}", f"{ESE} / {MRL}"} and len(ratios) == 6
    search = rows[rows["metric"] == "search_ratio"]
    assert len(search) == 3 * (3 + 1) and search["setting"].str.endswith("mean over sizes").sum() == 3
    assert (rows.loc[rows["metric"] == "size_ratio", "dim"] == 4).all()


def test_lines_of_other_shapes_and_empty_texts_are_refused(untrained_lines, pool):
    with pytest.raises(InputError, match="0 texts and 40 stored ones"):
        efficiency.time_lines(untrained_lines, [], pool, Store(), stored=10)
    shallow = raw_line(TrainConfig(backbone="repro-tiny", source="microworld"))
    with pytest.raises(InputError, match="time networks of one shape together"):
        efficiency.time_lines([untrained_lines[0], shallow], pool[:2], pool, Store(), stored=10)


def test_a_ratio_is_made_within_rounds():
    slow = np.array([1.0, 2.0, 4.0])  # the machine got busier, for both alike
    found = clock.ratio_of(1.5 * slow, slow)
    assert found.value == found.low == found.high == pytest.approx(1.5)
    noisy = clock.ratio_of(np.array([1.0, 2.0, 1.5, 1.2]), np.array([1.1, 1.6, 1.6, 1.0]))
    back = clock.ratio_of(np.array([1.1, 1.6, 1.6, 1.0]), np.array([1.0, 2.0, 1.5, 1.2]))
    assert noisy.low < noisy.value < noisy.high and back.high == pytest.approx(1 / noisy.low)
    alone = clock.ratio_of(np.array([2.0]), np.array([1.0]))
    assert alone.value == 2 and np.isnan(alone.low) and np.isnan(alone.high)


def test_stored_vectors_are_near_theirs_but_never_equal():
    X = np.random.default_rng(0).normal(size=(7, 16)).astype(np.float32)
    rows = efficiency.repeated(X, 100)
    assert rows.shape == (100, 16) and len(np.unique(rows, axis=0)) == 100
    away = np.linalg.norm(rows - np.resize(X, (100, 16)), axis=1) / np.linalg.norm(np.resize(X, (100, 16)), axis=1)
    assert away.min() > 0.003 and away.max() < 0.025
    np.testing.assert_array_equal(rows, efficiency.repeated(X, 100))
    with pytest.raises(InputError, match="stored is 0"):
        efficiency.repeated(X, 0)


def test_a_shallow_read_runs_no_later_block(untrained_lines, pool):
    assert efficiency.blocks_run(untrained_lines[0], pool[:1]) == {1: 1, 2: 2}


def test_quality_is_spearman_at_every_layer(untrained_lines):
    pairs = take(data.load("stsb", source="microworld"), 60)
    rows = efficiency.quality_rows(untrained_lines[:2], pairs, Store(), seed=0, progress=False)
    assert len(rows) == 4 and set(rows["layer"]) == {1, 2} and set(rows["dim"]) == {32}
    X1, X2 = (untrained_lines[1].encoder().encode(texts, layer=1) for texts in (pairs.texts1, pairs.texts2))
    own = rows[(rows["method"] == MRL) & (rows["layer"] == 1)].iloc[0]
    assert own["value"] == pytest.approx(sts_spearman(X1, X2, pairs.scores), abs=1e-6)
    assert own["ci_low"] < own["value"] < own["ci_high"]
