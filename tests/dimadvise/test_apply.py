import json

import numpy as np
import pytest

from deployment import DIM, D, deployed, rows
from dimadvise import apply as applying
from dimadvise import deploy
from dimadvise.apply import MANIFEST, apply
from dimadvise.vectors import open_vectors
from repro.types import InputError


@pytest.fixture
def case(tmp_path):
    """Vectors, an advice of int8 codes, and where the output goes."""
    X = rows(1000, seed=5)
    np.save(tmp_path / "X.npy", X)
    made = deployed(level="int8")
    deploy.write(tmp_path / "advice", made)
    return X, made, (tmp_path / "X.npy", tmp_path / "advice", tmp_path / "out")


def test_shards_hold_every_row_in_order(case):
    X, made, paths = case
    apply(*paths, rows_per_shard=300)
    shards = sorted(paths[2].glob("*.npy"))
    assert [len(np.load(shard)) for shard in shards] == [300, 300, 300, 100]
    np.testing.assert_array_equal(np.concatenate([np.load(shard) for shard in shards]), made.codes(X))
    assert json.loads((paths[2] / MANIFEST).read_text())["rows"] == 1000


def test_floats_can_be_read_again_as_vectors(case):
    X, made, (vectors, advice, output) = case
    apply(vectors, advice, output, level="float16", rows_per_shard=400)
    again = open_vectors(output)
    assert (again.shape, again.kind) == ((1000, DIM), "float16")
    np.testing.assert_allclose(again.take(np.arange(1000)), made.vectors(X), atol=1e-3)


def test_a_killed_run_goes_on_where_it_was(case, monkeypatch, capsys):
    _, _, paths = case
    whole = paths[2].with_name("whole")
    apply(*paths[:2], whole, rows_per_shard=300)
    written, writing = [], applying._write_shard

    def killed_at_the_third(deployment, source, path, start, stop):
        if len(written) == 2:
            path.write_bytes(b"half")
            raise KeyboardInterrupt
        written.append(start)
        return writing(deployment, source, path, start, stop)

    monkeypatch.setattr(applying, "_write_shard", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        apply(*paths, rows_per_shard=300)
    monkeypatch.setattr(applying, "_write_shard", lambda *a: written.append(a[3]) or writing(*a))
    apply(*paths, rows_per_shard=300)
    assert written == [0, 300, 600, 900] and "2 of 4 shards are there" in capsys.readouterr().out
    names = [path.name for path in sorted(whole.iterdir())]
    assert names == [path.name for path in sorted(paths[2].iterdir())]
    (paths[2] / names[-2]).unlink()  # a shard that was named in the manifest but never got its name is made
    apply(*paths, rows_per_shard=300)
    assert all((whole / name).read_bytes() == (paths[2] / name).read_bytes() for name in names)


def test_nothing_that_is_not_ours_is_overwritten(case):
    _, _, paths = case
    output = paths[2]
    output.mkdir()
    (output / "part-00000.npy").write_text("mine")
    with pytest.raises(InputError, match=r"part-00000.npy is not ours"):
        apply(*paths)
    assert (output / "part-00000.npy").read_text() == "mine"
    (output / "part-00000.npy").unlink()
    apply(*paths)
    (output / "part-00000.npy").write_text("changed")
    with pytest.raises(InputError, match="has changed since it was written: remove it"):
        apply(*paths)
    (output / MANIFEST).write_text("[]")
    with pytest.raises(InputError, match="nothing is overwritten"):
        apply(*paths)


def test_another_run_in_the_same_folder_is_refused(case):
    X, _, (vectors, advice, output) = case
    apply(vectors, advice, output)
    with pytest.raises(InputError, match="differs in rows_per_shard"):
        apply(vectors, advice, output, rows_per_shard=10)
    np.save(vectors, X + 1)
    with pytest.raises(InputError, match="differs in input"):
        apply(vectors, advice, output)
    deploy.write(advice, deployed(level="int4"))
    with pytest.raises(InputError, match="differs in level, input, advice"):
        apply(vectors, advice, output)


def test_arguments_that_do_not_fit_are_named(case):
    X, _, (vectors, advice, output) = case
    np.save(vectors, X[:, 1:])
    with pytest.raises(InputError, match=f"has {D - 1} numbers a row, .* was advised on {D}"):
        apply(vectors, advice, output)
    np.save(vectors, X)
    with pytest.raises(InputError, match="expected int8, which was advised, or float32 or float16"):
        apply(vectors, advice, output, level="int4")
    with pytest.raises(InputError, match="is the input: expected another folder"):
        apply(advice, advice, advice)
    with pytest.raises(InputError, match="rows_per_shard is 0"):
        apply(vectors, advice, output, rows_per_shard=0)
    X[700, 3] = np.nan
    np.save(vectors, X)
    with pytest.raises(InputError, match="row 700"):
        apply(vectors, advice, output)
    assert not list(output.glob("*.npy*"))


def test_two_processes_do_not_write_the_same_folder(case, monkeypatch):
    _, _, paths = case

    def meanwhile(*_):
        with pytest.raises(InputError, match="written by another process"):
            apply(*paths)

    monkeypatch.setattr(applying, "_write_shards", meanwhile)
    apply(*paths)
