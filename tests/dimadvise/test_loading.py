"""Rows that were applied, read again for the program that loads a store."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployment import D, deployed, rows
from dimadvise import apply as applying
from dimadvise import deploy, loading
from dimadvise.apply import apply
from dimadvise.loading import batches
from repro.types import InputError


@pytest.fixture
def case(tmp_path):
    """Vectors with ids, and the folder of their shards."""
    X, ids = rows(700, seed=5), [f"row {i}" for i in range(700)]
    pq.write_table(pa.table({"id": ids, "vector": list(X)}), tmp_path / "X.parquet")
    deploy.write(tmp_path / "advice", deployed(level="int8"))
    applied(tmp_path, tmp_path / "vectors")
    return X, ids, tmp_path


def applied(folder, output):
    given = folder / "X.parquet", folder / "advice", output
    apply(*given, rows_per_shard=300, column="vector")


@pytest.mark.parametrize("full", [False, True])
def test_all_rows_come_in_order_with_ids_codes_and_what_they_were_made_from(
    case, full, monkeypatch
):
    X, ids, folder = case
    monkeypatch.setattr(loading, "ROWS", 128)
    found = list(batches(folder / "vectors", full=full))
    assert [i for batch in found for i in batch.rows] == list(range(700))
    assert [name for batch in found for name in batch.ids] == ids
    codes = np.concatenate([batch.codes for batch in found])
    np.testing.assert_array_equal(codes, deployed(level="int8").codes(X))
    if full:
        np.testing.assert_array_equal(np.concatenate([batch.full for batch in found]), X)
    else:
        assert [len(batch.codes) for batch in found] == [128, 128, 44, 128, 128, 44, 100]
        assert all(batch.full is None for batch in found)


def test_rows_without_names_are_named_by_their_numbers(tmp_path):
    np.save(tmp_path / "X.npy", rows(50))
    deploy.write(tmp_path / "advice", deployed())
    apply(tmp_path / "X.npy", tmp_path / "advice", tmp_path / "out", rows_per_shard=30)
    found = list(batches(tmp_path / "out"))
    assert [list(batch.rows) for batch in found] == [batch.ids for batch in found]
    assert [batch.ids[0] for batch in found] == [0, 30]


def test_somebody_elses_file_by_the_name_of_ids_names_no_rows(tmp_path):
    """The manifest tells of none."""
    np.save(tmp_path / "X.npy", rows(50))
    deploy.write(tmp_path / "advice", deployed())
    apply(tmp_path / "X.npy", tmp_path / "advice", tmp_path / "out")
    pq.write_table(pa.table({"id": range(500, 550)}), tmp_path / "out/part-00000.ids.parquet")
    (batch,) = batches(tmp_path / "out")
    assert batch.ids == list(range(50))


def test_a_folder_of_something_else_and_a_run_that_was_stopped_are_refused(case, monkeypatch):
    _, _, folder = case
    with pytest.raises(InputError, match="expected a folder that `dimadvise apply` wrote"):
        next(batches(folder))
    writing, written = applying._write_codes, []

    def killed_at_the_second(*given):
        if written:
            raise KeyboardInterrupt
        written.append(given)
        return writing(*given)

    monkeypatch.setattr(applying, "_write_codes", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        applied(folder, folder / "stopped")
    with pytest.raises(InputError, match="stopped holds 300 of 700 rows: give the same"):
        next(batches(folder / "stopped"))


def test_codes_and_vectors_that_have_changed_are_refused_before_a_row_of_them_is_loaded(case):
    X, ids, folder = case
    changed = X.copy()
    changed[400] += 1
    pq.write_table(pa.table({"id": ids, "vector": list(changed)}), folder / "X.parquet")
    assert len(list(batches(folder / "vectors"))) == 3, "codes alone are as they were"
    read = batches(folder / "vectors", full=True)
    assert len(next(read).full) == 300
    with pytest.raises(
        InputError, match=r"X\.parquet has changed since .*part-00001\.npy was made"
    ):
        next(read)
    (folder / "vectors" / "part-00001.npy").write_bytes(b"other")
    with pytest.raises(InputError, match=r"part-00001\.npy is missing or has changed"):
        list(batches(folder / "vectors"))


def test_vectors_are_read_from_where_they_lay(case):
    _, _, folder = case
    (folder / "X.parquet").rename(folder / "Y.parquet")
    with pytest.raises(InputError, match=r"no .*X\.parquet: expected the vectors that were"):
        next(batches(folder / "vectors", full=True))
    assert next(batches(folder / "vectors")).codes.shape[1] < D
