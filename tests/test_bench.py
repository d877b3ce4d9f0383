"""Benchmarks compare equal results; how fast they are is no matter of tests."""

from pathlib import Path

import pytest

from repro import rows

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def checkout(monkeypatch, no_data):
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize("name", ["senteval", "step_two", "grid", "reducers", "compress", "angle"])
def test_ours_and_the_peer_give_equal_results(name):
    from bench import benchmark

    found = benchmark(name)(True)
    found = found if isinstance(found, list) else [found]
    assert all(row.equal and row.ours_s > 0 and row.peer_s > 0 for row in found), [row.checked for row in found]


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The command, with made-up rows in place of benchmarks, recording into a folder of its own."""
    from bench import BenchRow
    from bench import __main__ as command

    def run(line, *equal):
        made = [
            BenchRow("work", "peer", 2, 1.0, 3.0, e, "gap 0", {"dim": 4}, {"matmul_share": 0.5}, "a note")
            for e in equal
        ]
        monkeypatch.setattr(command, "benchmark", lambda name: lambda quick: made if len(made) > 1 else made[0])
        monkeypatch.setattr(rows, "results_folder", lambda: tmp_path)
        return command.main([*line.split(), "--threads", "1"])

    return run


def test_the_table_and_what_is_recorded(bench, capsys, tmp_path):
    assert bench("grid --quick --record", True) == 0
    assert "| 3.00×   | 1.000  | 3.000  | yes: gap 0" in capsys.readouterr().out
    frame = rows.read_rows(tmp_path / "bench.parquet")
    assert frame.set_index("metric").value.to_dict() == {"ratio": 3.0, "matmul_share": 0.5}


def test_unequal_results_end_with_an_error_and_are_not_recorded(bench, capsys, tmp_path):
    assert bench("reducers --record", True, False) == 1
    assert "NOT EQUAL: work:" in capsys.readouterr().err and not list(tmp_path.glob("*"))
