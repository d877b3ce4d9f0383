"""Table 1: what is timed, how often, and that depth is compared at equal size."""

import numpy as np
import pytest

from repro import data
from repro.methods import ZHANG_METHODS
from repro.papers.zhang import timing
from repro.papers.zhang.seconds import DEEP, OURS, PEER, SHALLOW
from repro.papers.zhang.tasks import load_task
from repro.runs.embeddings import TextTable
from repro.store import Store
from repro.types import InputError

SHARED = {"experiment": "e", "seed": 0}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((60, 12)).astype(np.float32)


class Counting:
    """A reducer that counts its rounds and tells the clock how long they take."""

    fits = 0

    def __init__(self, clock, seconds):
        self.clock, self.seconds = clock, seconds

    def fit(self, X):
        type(self).fits += 1
        self.clock[0] += self.seconds

    def transform(self, X):
        self.clock[0] += 0.25


def test_slow_methods_have_fewer_rounds_and_the_first_does_not_count(monkeypatch, X):
    clock = [0.0]
    monkeypatch.setattr(timing, "perf_counter", lambda: clock[0])
    quick, slow = type("Quick", (Counting,), {}), type("Slow", (Counting,), {})
    makers = {"quick": lambda: quick(clock, 0.125), "slow": lambda: slow(clock, 2.0)}
    found = timing.measure(makers, X, X, repeats=5, slow_repeats=2)
    assert (quick.fits, slow.fits) == (6, 3)
    assert found["quick"][0] == [0.125] * 5
    assert found["slow"][0] == [2.0] * 2
    assert found["slow"][1] == [0.25] * 2
    with pytest.raises(InputError, match="repeats is 0"):
        timing.measure(makers, X, X, repeats=0, slow_repeats=2)


def test_every_method_is_timed_beside_scikit_learn(X):
    rows = timing.timing_rows(X, X[:20], dim=4, repeats=3, slow_repeats=2, n_train=len(X), **SHARED)
    keys = set(zip(rows["method"], rows["setting"], rows["metric"], strict=True))
    for what in ("fit_seconds", "transform_seconds"):
        assert {m for m, s, k in keys if s == OURS and k == what} == set(ZHANG_METHODS)
        assert {m for m, s, k in keys if s == PEER and k == what} == set(ZHANG_METHODS) - {"Autoencoder"}
    assert (rows["value"] > 0).all()
    assert ((rows["ci_low"] <= rows["value"]) & (rows["value"] <= rows["ci_high"])).all()
    assert (rows["seconds"] >= 3 * rows["ci_low"]).all()
    with pytest.raises(InputError, match="dim is 12: expected 1 to 11"):
        timing.timing_rows(X, X, dim=12, **SHARED)


def test_depth_is_compared_at_equal_size(tmp_path):
    task = load_task("stsb", "microworld", rows=40)
    texts = list(dict.fromkeys(t for part in task.splits.values() for t in data.texts_of(part)))
    table = TextTable(
        {t: i for i, t in enumerate(texts)},
        np.random.default_rng(1).standard_normal((len(texts), 16)).astype(np.float32),
    )
    store = Store(tmp_path / "depth")
    rows = timing.depth_rows(table, task, [2, 4], store, timed_dim=2, repeats=1, **SHARED)
    leads = rows[rows["metric"] == "spearman_lead"]
    assert set(leads["method"]) == {f"{DEEP} − {SHALLOW}"}
    assert list(leads["dim"]) == [2, 4]
    scores = rows[rows["metric"] == "spearman"].set_index(["method", "dim"])["value"]
    for r in leads.itertuples():
        assert r.value == pytest.approx(scores[DEEP, r.dim] - scores[SHALLOW, r.dim], abs=1e-12)
    timed = rows[rows["metric"] == "fit_seconds"]
    assert set(timed["method"]) == {DEEP, SHALLOW}
    assert set(timed["dim"]) == {2}
    assert timing.inner_size(384, 96) == 192
