"""Turns, tries and warm-up by a clock that is moved by hand; ratios beside scipy's interval of a
mean.
"""

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp

from repro.evaluation import clock
from repro.evaluation.clock import in_turns, ratio_of
from repro.types import InputError


@pytest.fixture
def now(monkeypatch):
    """The seconds that the processor's clock shows."""
    shown = [0.0]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(clock, "process_time", lambda: shown[0])
    return shown


def test_works_take_turns_prepared_anew_and_the_first_round_is_dropped(now):
    order, taken = [], {"a": 1.0, "b": 20.0, "c": 300.0}

    def work(name):
        def prepare():
            order.append(name)
            now[0] += 1e6  # Of no account

            def run():
                now[0] += taken[name] * order.count(name)  # Longer in every round

            return run

        return prepare

    found = in_turns({name: work(name) for name in taken}, 3)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc", "each round starts one later"
    for name, seconds in taken.items():
        assert found[name].tolist() == [2 * seconds, 3 * seconds, 4 * seconds]


def test_of_several_tries_in_a_round_the_fastest_counts(now):
    took = iter([9, 9, 9, 5, 4, 6, 1, 3, 2])

    def run():
        now[0] += next(took)

    assert in_turns({"a": lambda: run}, 2, tries=3)["a"].tolist() == [4, 1]
    for wrong in ({"repeats": 0}, {"repeats": 1, "tries": 0}):
        with pytest.raises(InputError, match="is 0"):
            in_turns({"a": lambda: run}, **wrong)


def test_a_ratio_is_the_geometric_mean_of_rounds_with_students_interval():
    a, b = np.exp(np.random.default_rng(0).normal(size=(2, 7)))
    found, logs = ratio_of(a, b), np.log(a / b)
    ends = ttest_1samp(logs, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(np.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx((np.exp(ends.low), np.exp(ends.high)))
    turned = ratio_of(b, a)
    assert (turned.low, turned.high) == pytest.approx((1 / found.high, 1 / found.low))
    alone = ratio_of(a[:1], b[:1])
    assert alone.value == pytest.approx(a[0] / b[0]) and np.isnan([alone.low, alone.high]).all()
