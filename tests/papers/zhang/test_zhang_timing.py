"""Table 1: what is timed, and how often, as the page itself does it."""

import numpy as np

from shown_code import on_page


def test_slow_methods_have_fewer_rounds_and_the_first_does_not_count():
    shown, clock, fits = on_page("zhang_table1_timing", "one_round", "measure"), [0.0], {"quick": 0, "slow": 0}
    shown["perf_counter"] = lambda: clock[0]

    class Counting:
        """A reducer that counts its rounds and tells the clock how long they take."""

        def __init__(self, name, seconds):
            self.name, self.seconds = name, seconds

        def fit(self, X):
            fits[self.name] += 1
            clock[0] += self.seconds

        def transform(self, X):
            clock[0] += 0.25

    makers = {("quick", "ours"): lambda: Counting("quick", 0.125), ("slow", "ours"): lambda: Counting("slow", 2.0)}
    rows = shown["measure"](makers, 4, np.zeros((3, 5)), np.zeros((3, 5)), 5, 2)
    assert fits == {"quick": 6, "slow": 3}
    assert [(r["method"], r["metric"], r["value"], r["seconds"]) for r in rows] == [
        ("quick", "fit_seconds", 0.125, 0.625),
        ("quick", "transform_seconds", 0.25, 1.25),
        ("slow", "fit_seconds", 2.0, 4.0),
        ("slow", "transform_seconds", 0.25, 0.5),
    ]
    assert all(r["ci_low"] == r["value"] == r["ci_high"] and r["dim"] == 4 for r in rows)
