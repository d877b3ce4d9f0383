import hashlib
from unittest.mock import DEFAULT, Mock

import numpy as np
import pandas as pd
import pytest

from repro import rows
from repro.rows import COLUMNS, KEY, make_rows, read_rows, record
from repro.types import InputError


def some(value=0.5, **shared):
    options = {"experiment": "wang_table1", "metric": "spearman", "seed": 0, "profile": "embedded", **shared}
    return make_rows([{"dim": 8, "value": value}, {"dim": 16, "value": value + 0.1, "ci_low": 0.1}], **options)


def test_every_row_has_the_schema_and_its_provenance_whatever_is_there():
    frame = some()
    assert tuple(frame.columns) == COLUMNS and frame["dim"].tolist() == [8, 16]
    assert frame[["hardware", "commit", "versions", "created", "device"]].notna().all(axis=None)
    assert frame["hardware"].str.contains("cores").all() and frame["versions"].str.contains("numpy").all()
    assert (frame["peak_mb"] > 10).all() and frame["created"].str.endswith("+00:00").all()
    assert frame["layer"].isna().all() and frame["ci_low"].isna().tolist() == [True, False]
    for values in ([], [{"value": 1}], [{"value": 0.5, "layer": 3, "dim": np.int64(8), "readout": "pooler"}]):
        assert make_rows(values, experiment="e").dtypes.equals(frame.dtypes)
    with pytest.raises(InputError, match="unknown row column 'dimension': the schema has experiment, paper_table"):
        make_rows([{"dimension": 8}])


def test_recording_replaces_the_same_key_and_keeps_the_others(tmp_path):
    (path,) = record(some(0.1), tmp_path)
    assert path == tmp_path / "wang_table1.parquet"
    record(some(0.7, seed=1), tmp_path)
    record(some(0.4), tmp_path)
    frame = read_rows(path)
    assert len(frame) == 4
    assert not frame.duplicated(list(KEY)).any()
    value = frame.set_index(["seed", "dim"])["value"]
    assert value.to_dict() == pytest.approx({(0, 8): 0.4, (0, 16): 0.5, (1, 8): 0.7, (1, 16): 0.8})
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".lock"} == {"wang_table1.parquet", "SHA256SUMS"}
    # columns outside the key, such as the hardware, do not make another number
    record(some(0.9).assign(hardware="another machine"), tmp_path)
    assert len(read_rows(path)) == 4
    record(some(0.9, n_judged=100), tmp_path)
    with pytest.raises(InputError, match="judged on more items"):
        record(some(0.2, n_judged=99), tmp_path)
    record(some(backbone="BAAI/bge-base-en-v1.5"), tmp_path)
    record(some(backbone=str(tmp_path / "my-network")), tmp_path)
    assert read_rows(path)["backbone"].dropna().tolist() == ["BAAI/bge-base-en-v1.5"] * 2 + ["my-network"] * 2
    with pytest.raises(InputError, match="leads outside"):
        record(some(experiment="../../evil"), tmp_path)


def test_rows_of_another_configuration_stand_beside_and_give_way_to_none(tmp_path):
    record(some(0.1), tmp_path)
    (path,) = record(some(0.2, config="a" * 16, learning_rate=3e-5), tmp_path)  # the old ones say of no configuration
    assert read_rows(path)["config"].tolist() == ["a" * 16] * 2
    record(some(0.3, config="b" * 16), tmp_path)
    record(some(0.4, config="a" * 16), tmp_path)
    frame = read_rows(path).set_index([read_rows(path)["config"].str[0], "dim"])["value"]
    assert frame.to_dict() == pytest.approx({("a", 8): 0.4, ("a", 16): 0.5, ("b", 8): 0.3, ("b", 16): 0.4})


def test_what_settings_say_in_words_is_said_in_columns():
    settings = ["2,000 bytes", "neighbours = 30", "test, select_by=encoder", "candidates=3", "", None]
    frame = rows.parsed(make_rows([{"setting": s, "method": "PCA − GRP" if s == "" else "PCA"} for s in settings]))
    assert frame["bytes"].dropna().tolist() == [2000] and frame["neighbours"].dropna().tolist() == [30]
    assert frame["select_by"].dropna().tolist() == ["encoder"] and frame["split"].dropna().tolist() == ["test"]
    assert frame["k"].dropna().tolist() == [3]
    assert frame[["winner", "rival"]].dropna().to_numpy().tolist() == [["PCA", "GRP"]]


def test_a_digest_may_stand_twice_as_git_merges_it_but_a_file_without_one_is_refused(tmp_path):
    (path,) = record(some(), tmp_path)
    sums = tmp_path / "SHA256SUMS"
    line = sums.read_text()
    assert line == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  wang_table1.parquet\n"
    sums.write_text(f"{'0' * 64}  wang_table1.parquet\n{line}")
    assert len(read_rows(path)) == 2
    path.rename(tmp_path / "ese_table1.parquet")
    with pytest.raises(InputError, match="run `sha256sum"):
        read_rows(tmp_path / "ese_table1.parquet")


def test_the_recorded_rows_are_whole():
    folder = rows.results_folder()
    files = sorted(folder.glob("*.parquet"))
    assert [line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()] == [p.name for p in files]
    assert all(len(read_rows(path)) for path in files)


def test_what_is_not_a_file_of_rows(tmp_path):
    with pytest.raises(InputError, match="no rows at"):
        read_rows(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("not parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_rows(tmp_path / "text.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="lacks the column 'experiment': it is not a file of rows"):
        read_rows(tmp_path / "other.parquet")


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_while_recording_leaves_rows_that_are_read(writes, tmp_path, monkeypatch):
    (path,) = record(some(0.1), tmp_path)
    write = Mock(wraps=rows._write_digests, side_effect=[*[DEFAULT] * writes, KeyboardInterrupt])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rows, "_write_digests", write)
        record(some(0.5), tmp_path)
    assert read_rows(path)["value"].iloc[0] == (0.5 if writes else 0.1)
    record(some(0.7), tmp_path)
    assert read_rows(path)["value"].iloc[0] == 0.7
