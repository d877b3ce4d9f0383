"""Verdicts as frames: computed once in a build, and left by its pages whole or not at all."""

from dataclasses import replace

import pandas as pd

from made_rows import measured
from repro.papers.recorded import JUDGES
from repro.report.scorecard import scorecard
from repro.report.verdict_frames import recorded_frame, verdict_frame, write_verdicts
from repro.results import recorded_rows


def test_a_damaged_file_of_verdicts_is_left_out_with_a_warning(verdicts, caplog):
    for page in ("page", "flipped"):
        write_verdicts(page, verdict_frame("live", [measured("WANG-T1-1", 3.0)]))
    (verdicts / "garbage.parquet").write_bytes(b"PAR1 and nothing else")
    (verdicts / "empty.parquet").touch()
    words = verdict_frame("live", [measured("WANG-T1-1", 3.0)]).assign(verdict="?", page="words")
    for name, frame in (
        ("other", pd.DataFrame({"a": [1]})),
        ("words", words),
        ("renamed", words.assign(verdict="up")),
    ):
        frame.to_parquet(verdicts / f"{name}.parquet")
    flipped = (verdicts / "flipped.parquet").read_bytes()
    (verdicts / "flipped.parquet").write_bytes(flipped.replace(b"WANG-T1-1", b"WANG-T1-2", 1))
    assert set(scorecard()["live"]) == {"not attempted", "holds here"}
    left_out = ("flipped", "garbage", "empty", "other", "words", "renamed")
    assert all(f"{name}.parquet holds no verdicts" in caplog.text for name in left_out)


def test_verdicts_of_recorded_rows_are_computed_once_in_a_build_and_kept_nowhere_else(
    monkeypatch, tmp_path
):
    home, rows = tmp_path / "home", recorded_rows("sbertlp_table4")
    monkeypatch.setenv("REPRO_HOME", str(home))
    monkeypatch.delenv("REPRO_BOOK", raising=False)
    judge, computed = JUDGES["sbertlp_table4"], []

    def counting(given, *options):
        computed.append((len(given), options))
        return judge.read(given)

    counted = replace(judge, read=counting)
    plain = recorded_frame(counted, rows)
    assert len(plain) and not home.exists()
    monkeypatch.setenv("REPRO_BOOK", "1")
    for _ in range(2):
        pd.testing.assert_frame_equal(recorded_frame(counted, rows), plain, check_exact=True)
    assert computed == [(len(rows), ())] * 2, "once without a build, once in it"
    recorded_frame(counted, rows.iloc[1:])
    recorded_frame(counted.given(None), rows)
    recorded_frame(counted.given(7), rows)
    assert computed[2:] == [(len(rows) - 1, ()), (len(rows), (7,))]
    recorded_frame(lambda given: judge(given), rows.iloc[2:])
    entries = list((home / "verdicts").glob("*/manifest.json"))
    assert len(entries) == 3, "what a page judges by a function of its own is not kept"
