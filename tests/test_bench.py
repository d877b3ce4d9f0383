"""Benchmarks compare equal results; how fast they are is no matter of tests."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delenv("REPRO_DATA", raising=False)


@pytest.mark.parametrize("name", ["senteval", "step_two", "grid"])
def test_ours_and_the_peer_give_equal_results(name):
    from bench import benchmark

    row = benchmark(name)(True)
    assert row.equal, row.checked
    assert row.ours_s > 0 and row.peer_s > 0


def test_every_reducer_gives_what_its_peer_gives():
    from bench import benchmark

    rows = benchmark("reducers")(True)
    named = "PCA GRP Isomap LLE LLE LLE truncated truncated KPCA LLE"
    assert " ".join(row.work.split()[0] for row in rows) == named
    assert all(row.equal and row.ours_s > 0 and row.peer_s > 0 for row in rows), [row.checked for row in rows]


def test_the_targets_of_a_step_are_the_exact_ones_within_the_tolerance():
    from bench import benchmark

    rows = benchmark("compress")(True)
    assert [row.work.split(", ")[1] for row in rows] == ["4 layers × 768", "2 layers × 384", "2 layers × 384"]
    assert all(row.equal and row.ours_s > 0 and row.peer_s > 0 for row in rows), [row.checked for row in rows]
    assert rows[0].threads == 1 and rows[0].goal == 4 and rows[0].shares["gap"] <= 2e-3


def test_the_loss_over_sorted_pairs_is_that_over_all_pairs():
    from bench import benchmark

    rows = benchmark("angle")(True)
    assert [row.work.split(", ")[2] for row in rows] == ["two labels", "26 grades"]
    assert all(row.equal for row in rows), [row.checked for row in rows]


def row(equal):
    from bench import BenchRow

    return BenchRow("work", "peer", 2, 1.0, 3.0, equal, "gap 0", {"dim": 4}, {"matmul_share": 0.5}, "a note")


def test_the_table_and_what_is_recorded(monkeypatch, capsys, tmp_path):
    from bench import __main__ as command

    from repro import rows

    monkeypatch.setattr(command, "benchmark", lambda name: lambda quick: row(True))
    monkeypatch.setattr(rows, "results_folder", lambda: tmp_path)
    assert command.main(["grid", "--quick", "--record", "--threads", "1"]) == 0
    assert "| 3.00×   | 1.000  | 3.000  | yes: gap 0" in capsys.readouterr().out
    frame = rows.read_rows(tmp_path / "bench.parquet")
    assert frame.set_index("metric").value.to_dict() == {"ratio": 3.0, "matmul_share": 0.5}
    assert set(frame.setting) == {"peer; threads 1"} and set(frame.profile) == {"quick"}


def test_a_benchmark_of_several_rows_names_those_that_are_unequal(monkeypatch, capsys):
    from bench import __main__ as command

    monkeypatch.setattr(command, "benchmark", lambda name: lambda quick: [row(True), row(False)])
    assert command.main(["reducers", "--threads", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("3.00×") == 2 and "NOT EQUAL: work:" in captured.err


def test_unequal_results_end_with_an_error_and_are_not_recorded(monkeypatch, capsys, tmp_path):
    from bench import __main__ as command

    from repro import rows

    monkeypatch.setattr(command, "benchmark", lambda name: lambda quick: row(False))
    monkeypatch.setattr(rows, "results_folder", lambda: tmp_path)
    assert command.main(["grid", "--record", "--threads", "1"]) == 1
    assert "NOT EQUAL: grid" in capsys.readouterr().err
    assert not list(tmp_path.glob("*"))


def test_an_unknown_name_is_refused(capsys):
    from bench.__main__ import main

    with pytest.raises(SystemExit, match="2"):
        main(["nosuch"])
    assert "there are encode, sts_sweep" in capsys.readouterr().err
