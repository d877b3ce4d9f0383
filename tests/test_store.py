import errno
import json
import os
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from filelock import FileLock, SoftFileLock
from safetensors import SafetensorError

from repro import manifests, store_mending
from repro.digests import digest
from repro.manifests import MANIFEST, copy_folder, is_sealed, sealed, sha256, sha256_of_large
from repro.seeding import derive_seed
from repro.store import CLOCK, STATE, Store
from repro.store_layout import MARKER
from repro.store_mending import artefacts, is_abandoned, is_proven, partials
from repro.types import InputError
from repro.verbs_doctor import examine

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
DEAD = 999_999_999  # No process has that number


@pytest.fixture
def store(repro_home):
    return Store()


def hello(target, work):
    (target / "file.txt").write_text("hello")
    (target / "deep").mkdir()
    (target / "deep" / "other.bin").write_bytes(b"\0\1")


def test_made_once_then_found(store, repro_home, monkeypatch):
    first = store.get_or_make("things", KEY, hello, config={"dim": 8})
    lock = store.home / "things" / f"{KEY}.lock"
    lock.unlink()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="WORLD_SIZE is 2: "):
        store.get_or_make("things", OTHER, hello)
    second = store.get_or_make("things", KEY, hello)
    assert (first.hit, second.hit) == (False, True)
    assert not lock.exists(), "what is finished is read without a right to write"
    assert first.folder == second.folder == repro_home.resolve() / f"things/{KEY}"
    assert 0 < first.seconds == second.seconds
    notes = json.loads((first.folder / MANIFEST).read_text())
    assert (notes["config"], set(notes["files"])) == (
        {"dim": 8},
        {"file.txt", os.path.join("deep", "other.bin")},
    )
    assert list(artefacts(store)) == [first.folder] and partials(store) == []
    for kind, key in (("things", "abc"), ("work", KEY), ("Things", KEY), ("things", f"../{KEY}")):
        with pytest.raises(InputError, match="is no name of an artefact"):
            store.folder(kind, key)


def test_a_failed_maker_leaves_nothing_but_its_scratch(store):
    def fail(target, work):
        (target / "file.txt").write_text("half")
        (work / STATE).write_text("step 3")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.get_or_make("things", KEY, fail)
    assert list(artefacts(store)) == partials(store) == []

    def go_on(target, work):
        (target / "file.txt").write_text("after " + (work / STATE).read_text())

    made = store.get_or_make("things", KEY, go_on)
    assert (made.folder / "file.txt").read_text() == "after step 3" and not list(
        store.home.glob("work/*")
    )


def test_the_seconds_of_killed_runs_count_up_to_their_last_state(store):
    def killed(target, work):
        """A minute lies between the times of the two files, which are set: no clock ticks here."""
        (work / STATE).write_text("step 3")
        os.utime(work / CLOCK, (1_000, 1_000))
        os.utime(work / STATE, (1_060, 1_060))
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            store.get_or_make("things", KEY, killed)
    made = store.get_or_make("things", KEY, hello)
    assert 120 <= made.seconds < 180
    assert store.get_or_make("things", KEY, hello).seconds == made.seconds
    assert store.get_or_make("things", OTHER, hello).seconds < 60, "another starts from 0"


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6.0).reshape(2, 3),
        {"a": np.eye(2), "b": np.array("word")},
        {"x": [1, "é", None]},
        ["a"],
        {},
    ],
)
def test_a_value_is_computed_once_and_comes_back(value):
    compute, config = Mock(return_value=value), {"of": value, "n": 3}
    for _ in range(2):
        np.testing.assert_equal(
            Store().remember("things", config, compute, code="repro.types"),
            value,
        )
    assert compute.call_count == 1
    Store().remember("things", {**config, "n": 4}, compute, code="repro.types")
    Store().remember("things", config, compute, code="repro.seeding")
    assert compute.call_count == 3


def test_a_mapped_array_stays_on_disk_and_any_other_comes_into_memory(store):
    for mapped in (False, True, False):
        found = store.remember("things", {}, lambda: np.eye(3), code="repro.types", mapped=mapped)
        assert isinstance(found, np.memmap) == mapped
        np.testing.assert_array_equal(found, np.eye(3))


def test_unless_modules_are_named_the_code_is_that_of_what_computes(store):
    seed = partial(derive_seed, 7, "of something")
    for compute, module in ((seed, "repro.seeding"), (partial(digest, 7), "repro.digests")):
        store.remember("things", {"n": 1}, compute)
        assert store.folder("things", digest({"n": 1}, code=(module,))).is_dir()


# Damage, and a full disk


def corrupt(path):
    path.write_bytes(b"X" + path.read_bytes()[1:])


def restate(folder, **changes):
    """Edit what the manifest says; None takes a name away."""
    said = json.loads((folder / MANIFEST).read_text()) | changes
    kept = {name: value for name, value in said.items() if value is not None}
    (folder / MANIFEST).write_text(json.dumps(kept))


def moved_names(store):
    """What lies in `damaged/`, without the times at which it was put there."""
    return sorted(path.name.rsplit("-", 1)[0] for path in (store.home / "damaged").iterdir())


CHANGED = "its manifest has changed, or is another artefact's"


def exchange(folder):
    """As whoever gives an artefact another's name: what it says is sealed, but of another."""
    said = json.loads((folder / MANIFEST).read_text())
    del said["seal"]
    (folder / MANIFEST).write_text(json.dumps(sealed({**said, "key": OTHER})))


def as_a_link(folder):
    """As whoever puts a file of the artefact elsewhere."""
    (folder / "deep" / "other.bin").rename(folder / "deep" / "another.bin")
    (folder / "deep" / "other.bin").symlink_to("another.bin")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda folder: corrupt(folder / "file.txt"), "file.txt has changed since it was written"),
        (lambda folder: (folder / "deep" / "other.bin").unlink(), "other.bin is missing"),
        (lambda folder: (folder / MANIFEST).unlink(), "unreadable manifest"),
        (lambda folder: (folder / MANIFEST).write_text('{"files": {}}'), "unreadable manifest"),
        (lambda folder: (folder / MANIFEST).write_text("[" * 100_000), "nested too deeply"),
        (lambda folder: (folder / MANIFEST).write_text('["kind", "files"]'), "holds a list"),
        (lambda folder: restate(folder, seconds=9.0), CHANGED),
        (lambda folder: restate(folder, seal=None), CHANGED),
        (lambda folder: restate(folder, seal=None, files={}), CHANGED),
        (exchange, CHANGED),
        (as_a_link, "other.bin is missing"),
    ],
)
def test_damage_is_noticed_set_aside_and_mended(store, damage, fault, caplog):
    damage(store.get_or_make("things", KEY, hello).folder)
    again = store.get_or_make("things", KEY, hello)
    assert not again.hit and (again.folder / "file.txt").read_text() == "hello"
    assert fault in caplog.text and "making it anew" in caplog.text
    assert moved_names(store) == [f"things-{KEY}"]
    assert list(artefacts(store)) == [again.folder]


def test_a_value_is_never_read_from_a_file_that_was_put_beside_it(store):
    def value():
        return store.remember("things", {"n": 1}, lambda: np.arange(3), code="repro.types").tolist()

    assert value() == [0, 1, 2]
    (folder,) = artefacts(store)
    put(folder, ".DS_Store", "NOTES.md", "deep/value.npy")
    (folder / "value.json").write_text('"another"')
    (folder / "deep" / "link").symlink_to(folder)
    before = tree(folder)
    assert value() == [0, 1, 2], "what somebody put there is no damage"
    assert [line for line, fault in examine(repair=True) if fault] == []
    assert tree(folder) == before and not (store.home / "damaged").exists()


def test_what_is_kept_may_be_read_by_whom_new_files_may_be(store):
    def closed(target, work):
        hello(target, work)
        (target / "file.txt").chmod(0o600)  # As safetensors leaves what it writes

    folder = store.get_or_make("things", KEY, closed).folder
    (store.home / "usual").touch()
    usual = (store.home / "usual").stat().st_mode
    assert {path.stat().st_mode for path in folder.rglob("*") if path.is_file()} == {usual}


def test_a_note_without_a_seal_is_not_sealed():
    note = sealed({"a": 1, "path": Path("x")})
    assert is_sealed(note)
    for other in ({}, {"a": 1}, {**note, "a": 2}, {**note, "b": None}, {**note, "seal": None}):
        assert not is_sealed(other)


def test_the_doctor_reports_and_repairs(store):
    assert any(line.startswith("store: ") for line in dict(examine())) and not store.home.exists()
    good, bad = store.get_or_make("things", KEY, hello), store.get_or_make("things", OTHER, hello)
    corrupt(bad.folder / "file.txt")

    def faults(**options):
        return [line for line, fault in examine(**options) if fault]

    (line,) = faults()
    assert (
        str(bad.folder) in line
        and "file.txt has changed" in line
        and "repro doctor --repair" in line
    )
    assert bad.folder.exists()
    (line,) = faults(repair=True)
    assert line.endswith("moved aside") and not bad.folder.exists() and good.folder.exists()
    assert faults() == []
    assert any("MB that nothing reads" in line for line, _ in examine())


def test_the_doctor_moves_no_artefact_that_another_process_is_mending(store, monkeypatch):
    folder = store.get_or_make("things", KEY, hello).folder
    corrupt(folder / "file.txt")
    with FileLock(store.home / "things" / f"{KEY}.lock"):
        (line,) = (line for line, fault in examine(repair=True) if fault)
        assert line.endswith("left alone, for another process makes it anew") and folder.exists()

    def mended_meanwhile(folder):
        assert is_proven(folder)
        return bool(store.get_or_make("things", KEY, hello))

    monkeypatch.setattr(store_mending, "is_proven", mended_meanwhile)
    assert list(examine(repair=True))
    assert store.fault(folder) is None, "what was made anew in the meantime stays"


def test_what_the_doctor_may_not_mend_or_read_ends_no_examination(store, half_written, monkeypatch):
    """Stores are shared: a folder, a lock or an artefact may be somebody else's."""
    stuck, bad = (store.get_or_make("things", key, hello).folder for key in (KEY, OTHER))
    closed = store.get_or_make("closed", KEY, hello).folder.parent
    half = half_written(store.home / "things" / ("2" * 16), DEAD, folder=True)
    (store.home / "things" / f"{'2' * 16}.lock").touch()
    for folder in (stuck, bad):
        corrupt(folder / "file.txt")
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    refuse_at(monkeypatch, os, "replace", denied, stuck)
    refuse_at(monkeypatch, Path, "iterdir", denied, closed)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != closed and access(path, mode))
    refuse_at(monkeypatch, store_mending, "locked", denied, half.with_name(f"{'2' * 16}.lock"))
    lines = [line for line, fault in examine(repair=True) if fault]
    assert len(lines) == 4
    assert lines[0] == f"{closed}: may not be read, nothing in it was examined"
    assert lines[1].startswith(str(stuck))
    assert lines[1].endswith("cannot be moved aside (Permission denied)")
    assert lines[2].startswith(str(bad)) and lines[2].endswith("moved aside")
    assert lines[3] == f"{half}: may not be examined or moved (Permission denied)"
    assert stuck.exists() and half.exists() and not bad.exists()
    monkeypatch.setattr(Store, "refusal", Mock(side_effect=denied))
    assert [line for line, fault in examine() if fault] == [
        "store: Permission denied: ask for the right to it, or name another place"
    ]


def refuse_at(monkeypatch, owner, name, error, first):
    """Let a function raise where its first argument is this one."""
    function = getattr(owner, name)

    def refusing(argument, *others, **options):
        if argument is first or (isinstance(argument, Path) and argument == first):
            raise error
        return function(argument, *others, **options)

    monkeypatch.setattr(owner, name, refusing)


def test_the_doctor_moves_what_killed_runs_left_and_no_file_being_written(store, half_written):
    store.claim()
    partial = half_written(store.home / "things" / KEY, os.getppid(), folder=True)
    # Of another machine
    elsewhere = half_written(store.home / "encoders" / OTHER, DEAD, machine="0123abcd", folder=True)
    state = store.home / "work" / f"encoders-{KEY}" / STATE
    alive, dead = (half_written(state, pid) for pid in (os.getppid(), DEAD))
    table = half_written(store.home / "data" / "stsb" / "main-test.parquet", DEAD)
    assert partials(store) == sorted([partial, elsewhere, dead, alive, table])
    with FileLock(store.home / "encoders" / f"{OTHER}.lock"):
        assert list(examine(repair=True))
        assert partial.exists() and elsewhere.exists() and alive.exists()
        assert not dead.exists() and not table.exists()
    (line,) = (line for line, fault in examine(repair=True) if fault and "killed run" in line)
    assert line.startswith(f"{elsewhere}: left by a killed run; moved to ")
    assert partial.exists() and not elsewhere.exists()
    assert moved_names(store) == ["data-stsb", f"encoders-{OTHER}", f"work-encoders-{KEY}"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError(
            "Error while serializing: I/O error: No space left on device (os error 28)"
        ),
        OSError("262144 requested and 1024 written"),  # As np.save says it
    ],
    ids=str,
)
def test_a_full_disk_says_what_to_do_and_loses_nothing(store, error):
    kept = store.get_or_make("things", OTHER, hello)

    def fill(target, work):
        (work / STATE).write_text("step 3")
        raise error

    with pytest.raises(
        InputError,
        match=r"is full \(\d+ MB free\): free some space or set REPRO_HOME",
    ):
        store.get_or_make("things", KEY, fill)
    assert store.get_or_make("things", OTHER, hello).hit
    assert (store.home / "work" / f"things-{KEY}" / STATE).read_text() == "step 3"
    assert list(artefacts(store)) == [kept.folder] and partials(store) == []


# A folder of one's own, in which other things may lie


def put(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"mine: {name}")


def tree(folder):
    """Every path below a folder: what a link points to, what a file holds."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        else:
            found[name] = path.read_bytes() if path.is_file() else ""
    return found


WEB = f"site/web/{MANIFEST}"  # A manifest, two folders down, as web projects have them


@pytest.mark.parametrize(
    "name",
    [
        "film.mkv.partial",
        "thesis/old.partial/draft.txt",
        "notes.txt",
        WEB,
        f"things/{KEY}/draft.txt",
        f"things/{KEY}/{MANIFEST}",
        f"things/{KEY}.txt",
        f"work/encoders-{KEY}x/draft.txt",
        "data/stsb/main-test.parquet.bak",
        MARKER,
    ],
)
def test_a_folder_that_holds_anything_else_is_no_store_and_nothing_in_it_is_touched(name, store):
    put(store.home, name)
    before = tree(store.home)
    with pytest.raises(InputError, match="REPRO_HOME to a folder of its own") as refused:
        store.get_or_make("things", OTHER, hello)
    for words in (str(store.home), f"holds {name.split('/')[0]}", MARKER):
        assert words in str(refused.value)
    assert [line for line, fault in examine(repair=True) if fault and "store: " in line]
    assert tree(store.home) == before


def test_an_empty_folder_and_a_store_from_before_the_marker_become_stores(store, half_written):
    store.home.mkdir()
    first = store.get_or_make("things", KEY, hello)
    assert "REPRO_HOME" in (store.home / MARKER).read_text()
    (store.home / MARKER).unlink()
    put(store.home, f"work/encoders-{KEY}/{STATE}", "data/stsb/main-test.parquet")
    put(store.home, f"damaged/things-{OTHER}-1234567/file")
    half_written(store.home / "things" / OTHER, DEAD, folder=True)
    half_written(store.home / MARKER, os.getppid())  # By a process that adopts it too
    assert store.refusal() == "" and list(artefacts(store)) == [first.folder]
    assert store.get_or_make("things", KEY, hello).hit
    assert not (store.home / MARKER).exists(), "reading marks nothing"
    store.get_or_make("things", OTHER, hello)
    assert (store.home / MARKER).is_file()
    names = sorted(path.name for path in (store.home / "things").iterdir() if path.is_dir())
    assert names == [KEY, OTHER], "what was half made is put away before its key is made"


def test_what_is_no_folder_of_ones_own_is_refused(tmp_path, repro, monkeypatch):
    put(tmp_path, "file", "home/.profile")
    for place in ("file", "file/below", "home"):
        monkeypatch.setenv("REPRO_HOME", str(tmp_path / place))
        said = r"(is not a folder|holds \.profile).*set REPRO_HOME to a folder of its own"
        with pytest.raises(InputError, match=said):
            Store().get_or_make("things", KEY, hello)
        assert [line for line, fault in examine() if fault and "store: " in line]
    assert "BAD store: " in repro("doctor", ends=1).out
    with pytest.raises(InputError, match="/ has no marker of a store"):
        Store(Path("/")).claim()
    assert sorted(tree(tmp_path)) == ["file", "home", "home/.profile"]


def test_what_others_put_into_a_store_is_touched_by_nothing(store):
    store.get_or_make("things", KEY, hello)
    bad = store.get_or_make("things", OTHER, hello).folder
    elsewhere = store.home.parent / "elsewhere"
    put(elsewhere, f"{KEY}.{DEAD}.partial/draft.txt", MANIFEST)
    half = f"{KEY}.{DEAD}.partial"
    for name in ("encoders", f"things/{'0' * 16}", f"things/{half}", f"work/things-{KEY}"):
        (store.home / name).parent.mkdir(exist_ok=True)
        (store.home / name).symlink_to(elsewhere)
    put(store.home, WEB, "film.mkv.partial", f"film.mkv.{DEAD}.partial", f"{half}/draft.txt")
    put(store.home, "thesis/old.partial/draft.txt", f"thesis/{KEY}.partial/draft.txt")
    put(store.home, f"things/{half}.txt", f"things/{'1' * 16}/draft.txt", f"work/{STATE}")
    put(store.home, f"work/things-{OTHER}/notes.txt", f"things/{OTHER}.{DEAD}.partial/draft.txt")
    (store.home / "things" / ("2" * 16)).mkdir()
    (store.home / "things" / ("2" * 16) / MANIFEST).write_text('{"name": "web", "icons": []}')
    (store.home / "thesis" / MANIFEST).write_text("{")
    before = tree(store.home)
    corrupt(bad / "file.txt")
    assert any(fault for _, fault in examine(repair=True))
    assert store.get_or_make("things", KEY, hello).hit
    assert not store.get_or_make("things", OTHER, hello).hit
    after = tree(store.home)
    for name in before:
        if not name.startswith(f"things/{OTHER}/") and name != f"things/{OTHER}":  # Made anew
            assert after.get(name) == before[name]
    assert sorted(tree(elsewhere)) == [half, f"{half}/draft.txt", MANIFEST]


def test_the_doctor_moves_no_folder_that_does_not_say_that_it_is_ours(store):
    unreadable, unsealed = (store.get_or_make("things", key, hello).folder for key in (KEY, OTHER))
    (unreadable / MANIFEST).write_text("{")
    restate(unsealed, seal=None)
    lines = [line for line, fault in examine(repair=True) if fault]
    assert len(lines) == 2 and all("left alone" in line for line in lines)
    assert unreadable.exists() and unsealed.exists()


def test_a_copy_is_written_over_an_earlier_one_alone(store, tmp_path):
    def other(target, work):
        (target / "file.txt").write_text("another")

    first = store.get_or_make("things", KEY, hello).folder
    second = store.get_or_make("things", OTHER, other).folder
    copy = tmp_path / "copy"
    copy_folder(first, copy)
    assert tree(copy) == tree(first)
    (copy / MANIFEST).unlink()  # A kill: the manifest comes last
    copy_folder(first, copy)
    put(copy, "notes.txt")
    copy_folder(second, copy)
    assert (copy / "file.txt").read_text() == "another" and (copy / "notes.txt").exists()
    for edited in ("file.txt", MANIFEST):  # Without its manifest nothing tells that it is ours
        place = Path(shutil.copytree(copy, tmp_path / f"edited {edited}"))
        put(place, edited)
        before = tree(place)
        said = r"file.txt is none of ours, was edited or was left half done: nothing is"
        with pytest.raises(InputError, match=said):
            copy_folder(first, place)
        assert tree(place) == before


# Locks


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS])
def test_a_store_works_where_the_file_system_keeps_no_locks(number, store, no_flock, half_written):
    no_flock(number)
    lock = store.home / "things" / f"{KEY}.soft.lock"

    def make(target, work):
        assert lock.exists()
        hello(target, work)

    assert not store.get_or_make("things", KEY, make).hit and not lock.exists()
    half = half_written(store.home / "things" / KEY, DEAD, folder=True)
    with SoftFileLock(lock):
        assert not is_abandoned(store, half)
    assert is_abandoned(store, half)


def test_large_files_are_read_again_only_after_they_changed(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"one")
    reads = Mock(side_effect=sha256)
    monkeypatch.setattr(manifests, "sha256", reads)
    assert sha256_of_large(path) == sha256_of_large(path) == sha256(path)
    assert reads.call_count == 2, "what was written just now may be written again unseen"
    settled = path.stat().st_ctime_ns + manifests.SETTLED
    monkeypatch.setattr(manifests.time, "time_ns", lambda: settled)
    assert sha256_of_large(path) == sha256_of_large(path) == sha256(path)
    assert reads.call_count == 3
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setattr(manifests.time, "time_ns", lambda: settled + 10**12)
    assert sha256_of_large(path) == sha256(path), "of the same size, dated as before"


@pytest.mark.parametrize("of_several", [False, True])
@pytest.mark.parametrize("rows", [30, 3000, 30_000])
def test_an_array_whose_last_bytes_found_no_room_is_not_kept(
    rows, of_several, tmp_path, no_room_above
):
    whole = np.arange(float(rows))
    value, store = {"x": whole} if of_several else whole, Store(tmp_path / "home")
    store.claim()
    header = 128
    for lacking in (1, 200):
        with no_room_above(header + whole.nbytes - lacking), pytest.raises(OSError):
            store.remember("things", {"rows": rows}, lambda: value, code="repro.types")
        assert [*artefacts(store), *partials(store)] == []
    found = store.remember("things", {"rows": rows}, lambda: value, code="repro.types")
    assert np.array_equal(found["x"] if of_several else found, whole)


def test_nothing_is_left_where_not_even_the_clock_finds_room(tmp_path, no_room_above):
    store = Store(tmp_path / "home")
    store.claim()
    with no_room_above(0), pytest.raises(OSError):
        store.remember("things", {"n": 1}, lambda: 1, code="repro.types")
    assert partials(store) == []
