import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployment import DIM, D, deployed, rows
from dimadvise import apply as applying
from dimadvise import deploy
from dimadvise.apply import MANIFEST, apply
from dimadvise.source import Source
from dimadvise.vectors import open_vectors
from repro.manifests import sealed, sha256
from repro.stamps import unchanged
from repro.types import InputError

TICK = 0.05  # Seconds, longer than one of the clock of files


@pytest.fixture
def case(tmp_path):
    """Vectors, an advice of int8 codes, and where the output goes."""
    X = rows(1000, seed=5)
    np.save(tmp_path / "X.npy", X)
    made = deployed(level="int8")
    deploy.write(tmp_path / "advice", made)
    return X, made, (tmp_path / "X.npy", tmp_path / "advice", tmp_path / "out")


def test_shards_hold_every_row_in_order(case, capsys):
    X, made, paths = case
    apply(*paths, rows_per_shard=300)
    shards = sorted(paths[2].glob("*.npy"))
    assert "1,000 rows of X.npy in 4 shards" in capsys.readouterr().out
    assert [len(np.load(shard)) for shard in shards] == [300, 300, 300, 100]
    sizes = [shard.stat().st_size - np.load(shard).nbytes for shard in shards]
    assert len(set(sizes)) == 1 and sizes[0] < 200, "a header, and nothing behind the rows"
    np.testing.assert_array_equal(
        np.concatenate([np.load(shard) for shard in shards]),
        made.codes(X),
    )
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
    written, writing = [], applying._write_codes

    def killed_at_the_third(deployment, source, path, shard):
        if len(written) == 2:
            path.write_bytes(b"half")
            raise KeyboardInterrupt
        written.append(shard.start)
        return writing(deployment, source, path, shard)

    monkeypatch.setattr(applying, "_write_codes", killed_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        apply(*paths, rows_per_shard=300)
    monkeypatch.setattr(
        applying, "_write_codes", lambda *a: written.append(a[3].start) or writing(*a)
    )
    apply(*paths, rows_per_shard=300)
    assert written == [0, 300, 600, 900] and "2 of 4 shards are there" in capsys.readouterr().out
    names = [path.name for path in sorted(whole.iterdir())]
    assert names == [path.name for path in sorted(paths[2].iterdir())]
    # A shard that was named in the manifest but never got its name is made
    (paths[2] / names[-2]).unlink()
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
    _, _, (vectors, advice, output) = case
    apply(vectors, advice, output)
    with pytest.raises(InputError, match="differs in rows_per_shard"):
        apply(vectors, advice, output, rows_per_shard=10)
    deploy.write(advice, deployed(level="int4"))
    with pytest.raises(InputError, match="differs in level, advice"):
        apply(vectors, advice, output)


def test_an_advice_by_which_the_same_map_is_compared_otherwise_is_another_run(case):
    _, made, (vectors, advice, output) = case
    apply(vectors, advice, output)
    deploy.write(advice, replace(made, similarity="ip"))
    with pytest.raises(InputError, match="differs in compared"):
        apply(vectors, advice, output)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def made_anew(vectors, advice, output):
    """What a run into an empty folder writes."""
    fresh = output.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    apply(vectors, advice, fresh, rows_per_shard=300)
    return contents(fresh)


def saved_unnoticed(path, X):
    """Write over a file as `X`, and set its times back."""
    before = path.stat()
    np.save(path, X)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns


PROBED = set(np.linspace(0, 999, 64).astype(int).tolist())
# Of 1,000 rows in shards of 300: which row is edited, and which shards have to be made again
EDITS = {
    "the first row": (0, [0]),
    "a row between evenly spaced ones": (5, [0]),
    "the last row of a shard": (299, [0]),
    "the first row of the next": (300, [1]),
    "the last row": (999, [3]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_row_edited_in_place_has_its_shard_made_again_and_no_other(case, monkeypatch, edit):
    X, _, paths = case
    row, again = EDITS[edit]
    assert 5 not in PROBED
    apply(*paths, rows_per_shard=300)
    X[row] += 0.5
    saved_unnoticed(paths[0], X)
    made, writing = [], applying._write_codes
    monkeypatch.setattr(
        applying, "_write_codes", lambda *a: made.append(a[3].start // 300) or writing(*a)
    )
    apply(*paths, rows_per_shard=300)
    assert made == again
    assert contents(paths[2]) == made_anew(*paths)


@pytest.mark.parametrize("rows", [1000, 300, 299, 301, 1, 1001, 1200, 1201, 1900])
def test_a_store_that_was_embedded_anew_cut_or_has_grown_ends_as_one_made_of_it_alone(case, rows):
    X, _, paths = case
    longer = np.concatenate([X, rows_of(900)])
    # The same rows as far as they go, or all others
    for new in (longer[:rows], rows_of(1900)[:rows]):
        apply(*paths, rows_per_shard=300)
        np.save(paths[0], new)
        apply(*paths, rows_per_shard=300)
        assert contents(paths[2]) == made_anew(*paths)
        names = json.loads((paths[2] / MANIFEST).read_text())["shards"]
        assert sorted(names) == sorted(contents(paths[2]))
        np.save(paths[0], X)


def rows_of(n):
    return rows(n, seed=77)


def test_of_a_store_that_has_grown_whole_shards_are_not_made_again(case, monkeypatch, capsys):
    X, _, paths = case
    apply(*paths, rows_per_shard=300)
    np.save(paths[0], np.concatenate([X, rows_of(500)]))
    made, writing = [], applying._write_codes
    monkeypatch.setattr(
        applying, "_write_codes", lambda *a: made.append((a[3].start, a[3].stop)) or writing(*a)
    )
    apply(*paths, rows_per_shard=300)
    assert (
        made == [(900, 1200), (1200, 1500)] and "3 of 5 shards are there" in capsys.readouterr().out
    )


def test_at_no_time_does_a_folder_hold_shards_of_old_rows_beside_shards_of_new_ones(
    case,
    monkeypatch,
):
    X, made, paths = case
    apply(*paths, rows_per_shard=300)
    X += 1
    np.save(paths[0], X)
    writing = applying._write_codes
    for killed_at in (0, 300, 600):

        def killed(deployment, source, path, shard, killed_at=killed_at):
            if shard.start == killed_at:
                raise KeyboardInterrupt
            return writing(deployment, source, path, shard)

        monkeypatch.setattr(applying, "_write_codes", killed)
        with pytest.raises(KeyboardInterrupt):
            apply(*paths, rows_per_shard=300)
        there = [np.load(path) for path in sorted(paths[2].glob("*.npy"))]
        assert len(there) == killed_at // 300
        assert not there or (np.concatenate(there) == made.codes(X[:killed_at])).all()
    monkeypatch.setattr(applying, "_write_codes", writing)
    X[450] += 1  # And edited once more after it was stopped
    saved_unnoticed(paths[0], X)
    apply(*paths, rows_per_shard=300)
    assert contents(paths[2]) == made_anew(*paths)


def test_what_another_process_writes_through_a_map_while_it_is_read_is_noticed():
    """It had written before, so that the page is dirty and its file's time stands still."""
    # Beside this file, for file systems in memory, as `/tmp` may be, note no such time
    with TemporaryDirectory(dir=Path(__file__).parent) as folder:
        path = Path(folder) / "X.npy"
        np.save(path, rows(300))
        writer = np.lib.format.open_memmap(path, "r+")
        writer[:] += 1
        source = Source.opened(path, "")
        time.sleep(TICK)
        writer[100:] += 1
        with pytest.raises(InputError, match="was written to while it was read"):
            source.check_unchanged()
        with pytest.raises(InputError, match="was written to while it was read"), unchanged(path):
            time.sleep(TICK)
            writer[100:] += 1


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_store_that_is_written_to_while_it_is_read_gives_no_shard_of_both(
    case,
    monkeypatch,
    seconds,
):
    X, _, paths = case
    coding, blocks = deploy.Deployment.codes, []

    def edited_at_the_third_block(self, block):
        blocks.append(len(block))
        if len(blocks) == 3:
            np.save(paths[0], X + 1)
            os.utime(paths[0], (time.time() + seconds, time.time() + seconds))
        return coding(self, block)

    monkeypatch.setattr(deploy.Deployment, "codes", edited_at_the_third_block)
    with pytest.raises(InputError, match="was written to while it was read"):
        apply(*paths, rows_per_shard=300)
    there = sorted(paths[2].glob("part-*"))
    assert [path.name for path in there] == ["part-00000.npy", "part-00001.npy"]
    monkeypatch.setattr(deploy.Deployment, "codes", coding)
    apply(*paths, rows_per_shard=300)
    assert contents(paths[2]) == made_anew(*paths)


def test_shards_of_another_store_are_not_replaced_but_a_store_may_move(case):
    X, _, (vectors, advice, output) = case
    apply(vectors, advice, output, rows_per_shard=300)
    before = contents(output)
    np.save(vectors.with_name("other.npy"), X + 1)
    with pytest.raises(
        InputError,
        match=r"holds shards of .*X\.npy, and 4 of its files would be replaced",
    ):
        apply(vectors.with_name("other.npy"), advice, output, rows_per_shard=300)
    assert contents(output) == before
    vectors = vectors.rename(vectors.with_name("moved.npy"))
    apply(vectors, advice, output, rows_per_shard=300)
    assert contents(output) == before


@pytest.mark.parametrize(
    "name",
    ["part-00000.npy", "part-00003.npy", "part-00017.npy", "part-00001.ids.parquet"],
)
def test_a_foreign_file_of_a_shards_name_is_refused_before_anything_is_written(case, name):
    X, _, paths = case
    output = paths[2]
    output.mkdir()
    (output / name).write_text("mine")
    with pytest.raises(InputError, match="is not ours: nothing is overwritten"):
        apply(*paths, rows_per_shard=300)
    assert contents(output) == {name: b"mine"}
    (output / name).rename(output / "elsewhere")
    apply(*paths, rows_per_shard=300)
    np.save(paths[0], X + 1)
    (output / "part-00002.npy").write_text("mine")  # In the place of one that is made again
    before = contents(output)
    with pytest.raises(InputError, match=r"part-00002\.npy has changed since it was written"):
        apply(*paths, rows_per_shard=300)
    assert contents(output) == before


def resealed(note, **changed):
    return json.dumps(
        sealed({key: value for key, value in (note | changed).items() if key != "seal"})
    )


def test_a_manifest_that_does_not_prove_what_is_ours_lets_nothing_be_removed(case, tmp_path):
    X, _, paths = case
    output, outside = paths[2], tmp_path / "thesis.npy"
    apply(*paths, rows_per_shard=300)
    np.save(paths[0], X + 1)  # So that all shards would be removed
    before, note = contents(output), json.loads((output / MANIFEST).read_text())
    outside.write_text("mine")
    entry = note["shards"]["part-00000.npy"]
    leading_out = {"x": entry | {"files": {"../thesis.npy": sha256(outside)}}}
    for content in (
        "",
        "[]",
        "[" * 100_000,
        json.dumps(note | {"rows": 7}),
        json.dumps({key: value for key, value in note.items() if key != "seal"}),
        resealed(note, shards=leading_out),
        resealed(note, shards={"x": entry | {"files": {"vectors.json": "0"}}}),
        resealed(note, shards={"x": entry | {"input": {}}}),
        resealed(note, shards={"x": 7}),
        resealed(note, shards=[]),
        resealed(note, input="X.npy"),
    ):
        (output / MANIFEST).write_text(content)
        with pytest.raises(InputError, match=r"is not ours .*nothing is overwritten"):
            apply(*paths, rows_per_shard=300)
        assert contents(output) == before and outside.read_text() == "mine", content
    (output / MANIFEST).write_text(resealed(note, format=1))
    with pytest.raises(InputError, match="differs in format"):
        apply(*paths, rows_per_shard=300)
    assert contents(output) == before


def named_rows(path, X, ids):
    table = pa.table({"id": ids, "v": X.tolist()})
    pq.write_table(table, path, row_group_size=170)


@pytest.mark.parametrize("names", [list(range(5000, 6000)), [f"doc {i}" for i in range(1000)]])
def test_ids_are_carried_and_a_shard_whose_ids_change_is_made_again(case, names):
    X, made, (_, advice, output) = case
    vectors = output.with_name("X.parquet")
    named_rows(vectors, X, names)
    apply(vectors, advice, output, rows_per_shard=300)

    def carried():
        files = sorted(output.glob("part-*.ids.parquet"))
        return [pq.read_table(file)["id"].to_pylist() for file in files]

    assert carried() == [names[start : start + 300] for start in (0, 300, 600, 900)]
    codes = [np.load(path) for path in sorted(output.glob("*.npy"))]
    np.testing.assert_array_equal(np.concatenate(codes), made.codes(X))
    names[450] = names[451]
    named_rows(vectors, X, names)
    (output / "part-00003.ids.parquet").unlink()  # And one whose ids are gone is made whole
    apply(vectors, advice, output, rows_per_shard=300)
    assert [name for part in carried() for name in part] == names
    named_rows(vectors, X, names)
    table = pq.read_table(vectors).drop_columns(["id"])
    pq.write_table(table, vectors)
    apply(vectors, advice, output, rows_per_shard=300)
    assert not carried() and len(contents(output)) == 4, (
        "rows that lost their names have no ids beside them"
    )


def test_ids_of_several_kinds_are_carried_as_texts(case):
    X, _, (_, advice, output) = case
    vectors = output.with_name("X.jsonl")
    names = [1, "b", None, 2**63]
    records = [{"id": name, "v": row} for name, row in zip(names, X.tolist(), strict=False)]
    vectors.write_text("".join(json.dumps(record) + "\n" for record in records))
    apply(vectors, advice, output)
    ids = pq.read_table(output / "part-00000.ids.parquet")["id"].to_pylist()
    assert ids == ["1", "b", None, str(2**63)]


def test_codes_written_beside_ids_can_be_read_again_as_vectors(case):
    X, made, (_, advice, output) = case
    vectors = output.with_name("X.parquet")
    named_rows(vectors, X, list(range(1000)))
    apply(vectors, advice, output, level="float32", rows_per_shard=300)
    again = open_vectors(output)
    assert again.shape == (1000, DIM)
    np.testing.assert_allclose(again.take(np.arange(1000)), made.vectors(X), atol=1e-6)


def test_rows_of_which_float16_keeps_nothing_are_told_and_never_written_as_zeros(case):
    X, _, (vectors, advice, output) = case
    deploy.write(advice, deployed("svd", similarity="ip"))
    small = X.copy()
    small[700] *= 1e-10
    np.save(vectors, small)
    with pytest.raises(InputError, match="of which float16 keeps nothing"):
        apply(vectors, advice, output, level="float16", rows_per_shard=300)
    small[700] = 0  # A zero is a zero
    np.save(vectors, small)
    apply(vectors, advice, output, level="float16", rows_per_shard=300)
    assert not np.load(output / "part-00002.npy")[100].any()


def test_arguments_that_do_not_fit_are_named(case):
    X, _, (vectors, advice, output) = case
    for other in (X[:, 1:], np.hstack([X, X[:, :1]])):
        np.save(vectors, other)
        said = f"has {other.shape[1]} numbers a row, .* was advised on {D}"
        with pytest.raises(InputError, match=said):
            apply(vectors, advice, output)
        assert not output.exists()
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
        return 1

    monkeypatch.setattr(applying, "_write_shards", meanwhile)
    apply(*paths)


def test_the_map_lies_beside_the_shards_and_is_taken_for_no_vectors(case):
    X, made, (vectors, advice, output) = case
    apply(vectors, advice, output, level="float32")
    other = deployed(level="int4")
    shutil.rmtree(advice)
    deploy.write(advice, other)
    kept = deploy.read(output)
    np.testing.assert_array_equal(kept.codes(X), made.codes(X))
    assert open_vectors(output).shape == (1000, DIM)
    with pytest.raises(InputError, match="differs in advice"):
        apply(vectors, advice, output, level="float32")
    (output / deploy.NOTE).write_text("{}")
    shutil.rmtree(advice)
    deploy.write(advice, made)
    with pytest.raises(InputError, match=r"is not the file of .*advice: nothing is overwritten"):
        apply(vectors, advice, output, level="float32")


@pytest.mark.parametrize("name", [MANIFEST, deploy.NOTE, deploy.WEIGHTS])
def test_a_pipe_in_an_output_is_refused_and_not_waited_for(case, name, pipe):
    _, _, (vectors, advice, output) = case
    apply(vectors, advice, output)
    pipe(output / name)
    with pytest.raises(InputError, match=rf"{name} .*is a pipe or a device"):
        apply(vectors, advice, output)


def test_vectors_of_another_column_replace_none(case, tmp_path):
    X, _, (_, advice, output) = case
    table = tmp_path / "X.parquet"
    columns = {name: pa.array(list(rows)) for name, rows in (("a", X), ("b", X + 1))}
    pq.write_table(pa.table(columns), table)
    apply(table, advice, output, column="a")
    before = (output / "part-00000.npy").read_bytes()
    with pytest.raises(InputError, match="differs in column: give another output"):
        apply(table, advice, output, column="b")
    assert (output / "part-00000.npy").read_bytes() == before


def lines_with(path, X, ids):
    """JSON lines of vectors, each with the id as it is spelt in JSON."""
    rows_of_json = (
        f'{{"id": {name}, "v": {row.tolist()}}}\n' for name, row in zip(ids, X, strict=True)
    )
    path.write_text("".join(rows_of_json))


def test_ids_of_64_bits_are_carried_with_and_without_a_sign(case, tmp_path):
    X, _, (_, advice, _) = case
    for name, ids in (
        ("signed", [-(2**63), 2**63 - 1, -4_000_000_000_000_000_001, None]),
        ("unsigned", [None, 2**64 - 1, 0, 12]),
    ):
        spelt = ["null" if value is None else str(value) for value in ids]
        lines_with(tmp_path / f"{name}.jsonl", X[:4], spelt)
        apply(tmp_path / f"{name}.jsonl", advice, tmp_path / name)
        written = pq.read_table(tmp_path / name / "part-00000.ids.parquet")["id"].to_pylist()
        assert written == ids


def test_ids_that_begin_in_a_later_row_are_carried_or_it_is_said_that_none_are(
    case, tmp_path, capsys
):
    X, _, (_, advice, _) = case
    plain = [f'{{"v": {row.tolist()}, "of": {{"id": 0}}}}\n' for row in X[:3]]
    for name, spelt, written in (("read", '"n3"', ["n3"]), ("left", "[3]", None)):
        last = f'{{"v": {X[3].tolist()}, "Id" : {spelt}}}\n'
        (tmp_path / f"{name}.jsonl").write_text("".join([*plain, last]))
        apply(tmp_path / f"{name}.jsonl", advice, tmp_path / name)
        ids = tmp_path / name / "part-00000.ids.parquet"
        assert ids.exists() == (written is not None)
        assert ("no ids are written: 'Id' of" in capsys.readouterr().out) == (written is None)
        if written is not None:
            assert pq.read_table(ids)["id"].to_pylist() == [None, None, None, *written]


def test_a_wrong_number_of_ids_is_told_and_no_file_is_named_that_was_left_aside(
    case, tmp_path, capsys
):
    X, _, (_, advice, _) = case
    np.savez(tmp_path / "short.npz", v=X, ids=np.arange(len(X) - 1))
    apply(tmp_path / "short.npz", advice, tmp_path / "short")
    assert "'ids' of" in (told := capsys.readouterr().out)
    assert "does not hold a whole number or a text for each row" in told
    folder = tmp_path / "folder"
    folder.mkdir()
    parquet_of_ids = pa.table({"id": list(range(len(X) - 1))})
    pq.write_table(parquet_of_ids, folder / "ids.parquet")
    np.save(folder / "part-1.npy", X)
    apply(folder, advice, tmp_path / "out")
    assert f"{len(X):,} rows of part-1.npy in 1 shard" in capsys.readouterr().out


def test_a_column_of_what_has_none_is_refused(case):
    _, _, (vectors, advice, output) = case
    with pytest.raises(InputError, match=r"--column zzz: .*X\.npy has no columns by name"):
        apply(vectors, advice, output, column="zzz")
    assert not output.exists()


def test_ids_that_name_no_row_are_refused_with_theirs(case, tmp_path):
    X, _, (_, advice, output) = case
    for wrong in ("1.5", '"\\ud83d"', "[1]", "1" + 30 * "0"):
        lines_with(tmp_path / "X.jsonl", X[:3], ["1", wrong, "3"])
        with pytest.raises(InputError, match=r"row 1 has .* under 'id': expected"):
            apply(tmp_path / "X.jsonl", advice, output)


def test_ids_of_a_dictionary_are_carried_and_of_others_it_is_said_that_none_are(
    case, tmp_path, capsys
):
    X, _, (_, advice, _) = case
    names = pa.array([f"n{i % 3}" for i in range(len(X))])
    named_rows(tmp_path / "coded.parquet", X, names.dictionary_encode())
    apply(tmp_path / "coded.parquet", advice, tmp_path / "coded")
    written = pq.read_table(tmp_path / "coded" / "part-00000.ids.parquet")["id"].to_pylist()
    assert written == names.to_pylist() and "no ids are written" not in capsys.readouterr().out
    raw = pa.array([i.to_bytes(16, "big") for i in range(len(X))], pa.binary(16))
    named_rows(tmp_path / "raw.parquet", X, raw)
    np.savez(tmp_path / "raw.npz", v=X, id=np.array([{i} for i in range(len(X))], object))
    for ending in ("parquet", "npz"):
        apply(tmp_path / f"raw.{ending}", advice, tmp_path / ending)
        assert "no ids are written: 'id' of" in capsys.readouterr().out


def test_shards_stand_in_the_order_of_their_numbers_whatever_digits_they_have(tmp_path):
    for name, value in (("part-2", 2), ("part-10", 10), ("part-²", 0), ("part-02", 1)):
        np.save(tmp_path / f"{name}.npy", np.full((1, 4), value, np.float32))
    (tmp_path / "part-².npy").unlink()
    assert open_vectors(tmp_path).take(np.arange(3))[:, 0].tolist() == [1, 2, 10]
    np.save(tmp_path / "²1.npy", np.zeros((1, 4), np.float32))
    assert open_vectors(tmp_path).shape == (4, 4)


def test_vectors_are_read_through_a_link_of_another_name(case, monkeypatch):
    _, _, (vectors, advice, output) = case
    link = vectors.with_name("current.npy")
    link.symlink_to(vectors.name)
    apply(link, advice, output, rows_per_shard=300)
    assert len(list(output.glob("*.npy"))) == 4

    other = vectors.with_name("Y.npy")
    shutil.copy2(vectors, other)  # Of the same length and time
    writing = applying._write_codes

    def turned(*given):
        link.unlink()
        link.symlink_to(other.name)
        return writing(*given)

    monkeypatch.setattr(applying, "_write_codes", turned)
    with pytest.raises(InputError, match="was written to while it was read"):
        apply(link, advice, output.with_name("turned"))
