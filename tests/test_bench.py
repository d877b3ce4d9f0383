"""Benchmarks compare equal results; how fast they are is no matter of tests."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name",
    ["senteval", "step_two", "grid", "reducers", "compress", "angle", "promise"],
)
def test_ours_and_the_peer_give_equal_results(name, monkeypatch, no_data):
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from bench import benchmark

    found = benchmark(name)(True)
    found = found if isinstance(found, list) else [found]
    assert all(row.equal and row.ours_s > 0 and row.peer_s > 0 for row in found), [
        row.checked for row in found
    ]
