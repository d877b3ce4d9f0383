import errno
import json
import os
import stat

import numpy as np
import pytest
from filelock import Timeout

from repro.locks import locked
from repro.types import InputError
from repro.writing import replacing, replacing_folder, writable_file, write_text

DEAD = 999_999_999  # No process has that number


def test_replacing_is_all_or_nothing(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with replacing(path) as partial:
        partial.write_text("one")
        assert not path.exists()
    with pytest.raises(RuntimeError), replacing(path) as partial:
        partial.write_text("two")
        raise RuntimeError
    with pytest.raises(InputError, match="is full"), replacing(path) as partial:
        partial.write_text("three")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_has_the_mode_of_new_files_whatever_wrote_it(mask, tmp_path):
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "weights") as partial:
            partial.touch(0o600)  # As safetensors leaves what it writes
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "weights").stat().st_mode) == 0o666 & ~mask


def test_what_is_private_stays_so_when_it_is_written_anew(tmp_path):
    file, folder = tmp_path / "X.txt", tmp_path / "model"
    write_text(file, "2")
    file.chmod(0o600)
    folder.mkdir(0o700)
    write_text(file, "3")
    with replacing_folder(folder) as partial:
        (partial / "file").write_text("whole")
    assert file.read_text() == "3" and (folder / "file").exists()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, folder)] == [0o600, 0o700]


def test_replacing_a_folder_is_all_or_nothing(tmp_path, half_written):
    path = tmp_path / "new" / "folder"
    for error, raised in (
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, "No space left on device"), InputError),
    ):
        with pytest.raises(raised), replacing_folder(path) as partial:
            (partial / "file").write_text("half")
            raise error
        assert list(path.parent.iterdir()) == []
    left = half_written(path, DEAD, folder=True)
    mine = path.with_name(f"folder.{DEAD}.partial")
    mine.mkdir()
    with replacing_folder(path) as partial:
        (partial / "file").write_text("whole")
        assert not path.exists()
    assert (path / "file").read_text() == "whole" and not left.exists()
    assert sorted(path.parent.iterdir()) == [path, mine]
    with pytest.raises(OSError, match="not empty"), replacing_folder(path) as partial:
        (partial / "file").write_text("another")
    assert (path / "file").read_text() == "whole"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_regular_file_is_never_renamed_over(make, tmp_path):
    path = tmp_path / "out.npy"
    make(path)
    before = os.lstat(path)
    said = r"out.npy is (a folder|no regular file): give the name of a file"
    with pytest.raises(InputError, match=said), replacing(path) as partial:
        partial.write_text("new")
    assert os.lstat(path) == before and list(tmp_path.iterdir()) == [path]


def test_a_name_that_is_too_long_for_a_partial_one_is_refused_before_the_work(tmp_path):
    longest = tmp_path / ("é" * 108)
    writable_file(longest)
    with replacing(longest) as partial:
        partial.write_text("new")
    for length in (217, 255, 256, 300):
        with pytest.raises(InputError, match=f"has {length} bytes: expected at most 216"):
            writable_file(tmp_path / ("a" * length))


def test_a_full_disk_is_told_with_what_would_change_it(tmp_path, repro_home):
    for place, way_out in (
        (tmp_path / "X.npy", "name an output on another"),
        (repro_home / "things" / "X.npy", "set REPRO_HOME to another disk"),
    ):
        told = rf"is full .*: free some space or {way_out}"
        with pytest.raises(InputError, match=told), replacing(place):
            raise OSError(errno.ENOSPC, "No space left on device")


def test_a_link_is_followed_and_stays_one(tmp_path):
    target = tmp_path / "deep" / "target.txt"
    (tmp_path / "link").symlink_to(tmp_path / "second")
    (tmp_path / "second").symlink_to("deep/target.txt")
    with replacing(tmp_path / "link") as partial:
        partial.write_text("new")
    assert (
        target.read_text() == "new"
        and (tmp_path / "link").is_symlink()
        and (tmp_path / "second").is_symlink()
    )
    assert list(target.parent.iterdir()) == [target]


def test_what_a_dead_process_left_goes_with_the_next_write_and_nothing_else(tmp_path, half_written):
    rows = tmp_path / "rows"
    kept = [half_written(rows, os.getppid()), half_written(tmp_path / "rows.txt", DEAD)]
    kept.append(half_written(rows, DEAD, machine="0123abcd"))
    half_written(rows, DEAD)
    with replacing(rows) as partial:
        assert sorted(tmp_path.iterdir()) == sorted(kept)
        partial.write_text("whole")
    assert sorted(tmp_path.iterdir()) == sorted([rows, *kept])


def test_a_partial_file_that_we_did_not_write_is_never_removed(tmp_path, half_written):
    film = tmp_path / "film.mkv"
    ours = half_written(film, DEAD)
    ours.unlink()
    ours.mkdir()  # Our name, but we write files
    digit = ours.name[-len("0.partial")]
    wrong = ours.name.removesuffix(f"{digit}.partial") + ("1" if digit == "0" else "0") + ".partial"
    foreign = [f"film.mkv.{DEAD}.partial", "film.mkv.².partial", "film.mkv.partial", wrong]
    foreign.append(f"film.mkv.{'9' * 40}.partial")
    for name in foreign:
        (tmp_path / name).write_text("half a film")
    with replacing(film) as partial:
        partial.write_text("whole")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["film.mkv", ours.name, *foreign])


@pytest.mark.parametrize("number", [None, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS])
def test_a_lock_is_held_by_one_whatever_the_file_system_keeps(number, tmp_path, no_flock, caplog):
    lock, soft = tmp_path / "a.b.lock", tmp_path / "a.b.soft.lock"
    if number is not None:
        no_flock(number)
    for _ in range(2):
        with locked(lock):
            assert soft.exists() == (number is not None)
            with pytest.raises(Timeout), locked(lock, timeout=0):
                pass
    assert not soft.exists()
    assert caplog.text.count("keeps no locks") == (number is not None), "it is said once"


@pytest.mark.parametrize(
    "arguments",
    [
        "encode --encoder none --texts none --output OUT",
        "reduce --method pca --dim 1 --input X.npy --output OUT",
        "evaluate --encoder none --data none --rows OUT",
        "run playground --output OUT",
        "train --output OUT",
        "pretrain --output OUT",
        "advise X.npy --output OUT",
        "export --encoder none --output OUT",
    ],
)
def test_no_verb_works_for_an_output_that_it_would_destroy(arguments, repro, tmp_path, monkeypatch):
    pipe = tmp_path / "out"
    os.mkfifo(pipe)
    np.save(tmp_path / "X.npy", np.eye(3))
    given = arguments.replace("OUT", str(pipe)).replace("X.npy", str(tmp_path / "X.npy")).split()
    out, err = repro(*given, ends=2)
    assert not out and str(pipe) in err
    assert stat.S_ISFIFO(pipe.stat().st_mode)


NO_UTF8 = os.fsdecode(b"caf\xe9")


def test_a_text_that_names_a_file_in_another_encoding_is_written_and_read_again(tmp_path):
    write_text(tmp_path / "note.json", json.dumps({"source": NO_UTF8}, ensure_ascii=False))
    assert json.loads((tmp_path / "note.json").read_text("utf-8")) == {"source": NO_UTF8}


def test_vectors_of_a_name_that_is_no_utf8_are_advised_on(tmp_path, repro):
    np.save(tmp_path / f"{NO_UTF8}.npy", np.random.default_rng(0).normal(size=(120, 4)))
    output = tmp_path / NO_UTF8
    options = ["--methods", "truncate", "--levels", "int8", "--dims", "4", "--output", output]
    repro("advise", tmp_path / f"{NO_UTF8}.npy", *options)
    assert r"caf\udce9" in (output / "report.html").read_text("utf-8")
    repro("advise", tmp_path / f"{NO_UTF8}.npy", *options)  # It knows its own report again.


@pytest.mark.parametrize(
    "verb", ["export --encoder repro-tiny", "pretrain --source microworld --sentences 200"]
)
def test_a_network_is_not_written_where_no_tokenizer_is_read(verb, repro, tmp_path, repro_home):
    _, err = repro(verb, "--output", tmp_path / NO_UTF8, ends=2)
    assert "is no UTF-8: tokenizers open no such folder" in err
    assert not (tmp_path / NO_UTF8).exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("reduce --method pca --dim 1 --output Y.npy --input LONG", "expected at most 255 bytes"),
        ("encode --encoder LONG --texts X.txt --output Y.npy", "expected at most 255 bytes"),
        ("evaluate --encoder repro-tiny --data LONG", "expected at most 255 bytes"),
        ("advise LONG", "expected at most 255 bytes"),
        ("compare LONG", "expected at most 255 bytes"),
    ],
)
def test_what_the_system_refuses_is_told_with_what_would_change_it(
    line, said, repro, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "X.txt").write_text("one text\n")
    _, err = repro(line.replace("LONG", "x" * 300), ends=2)
    assert said in err and "Errno" not in err and "x" * 50 not in err


def test_a_store_of_too_long_a_name_is_told_with_what_would_change_it(repro, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", "x" * 300)
    told = repro("doctor", ends=1).out
    assert "store: " in told and "expected at most 255 bytes" in told
