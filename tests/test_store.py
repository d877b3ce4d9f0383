import errno
import json
import os
import time
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from filelock import FileLock
from safetensors import SafetensorError

from repro.cli import examine
from repro.digests import digest
from repro.seeding import derive_seed
from repro.store import MANIFEST, Store
from repro.types import InputError


@pytest.fixture
def store(repro_home):
    return Store()


def hello(target, work):
    (target / "file.txt").write_text("hello")
    (target / "deep").mkdir()
    (target / "deep" / "other.bin").write_bytes(b"\0\1")


def test_made_once_then_found(store, repro_home, monkeypatch):
    first = store.get_or_make("things", "abc", hello, config={"dim": 8})
    lock = store.home / "things" / "abc.lock"
    lock.unlink()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="WORLD_SIZE is 2: "):
        store.get_or_make("things", "new", hello)
    second = store.get_or_make("things", "abc", hello)
    assert (first.hit, second.hit) == (False, True)
    assert not lock.exists(), "what is finished is read without a right to write"
    assert first.folder == second.folder == repro_home.resolve() / "things/abc" and 0 < first.seconds == second.seconds
    notes = json.loads((first.folder / MANIFEST).read_text())
    assert (notes["config"], set(notes["files"])) == ({"dim": 8}, {"file.txt", os.path.join("deep", "other.bin")})
    assert list(store.artefacts()) == [first.folder] and store.partials() == []


def test_a_failed_maker_leaves_nothing_but_its_scratch(store):
    def fail(target, work):
        (target / "file.txt").write_text("half")
        (work / "state").write_text("step 3")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.get_or_make("things", "abc", fail)
    assert list(store.artefacts()) == store.partials() == []

    def go_on(target, work):
        (target / "file.txt").write_text("after " + (work / "state").read_text())

    made = store.get_or_make("things", "abc", go_on)
    assert (made.folder / "file.txt").read_text() == "after step 3" and not list(store.home.glob("work/*"))


def test_the_seconds_of_killed_runs_count_up_to_their_last_state(store):
    def killed(target, work):
        time.sleep(0.06)
        (work / "state").write_text("step 3")
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            store.get_or_make("things", "abc", killed)
    made = store.get_or_make("things", "abc", hello)
    assert made.seconds >= 0.12
    assert store.get_or_make("things", "abc", hello).seconds == made.seconds
    assert store.get_or_make("things", "new", hello).seconds < made.seconds, "another starts from 0"


@pytest.mark.parametrize(
    "value", [np.arange(6.0).reshape(2, 3), {"a": np.eye(2), "b": np.array("word")}, {"x": [1, "é", None]}, ["a"], {}]
)
def test_a_value_is_computed_once_and_comes_back(value):
    compute, config = Mock(return_value=value), {"of": value, "n": 3}
    for _ in range(2):
        np.testing.assert_equal(Store().remember("things", config, compute, code="repro.types"), value)
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


# damage, and a full disk


def corrupt(path):
    path.write_bytes(b"X" + path.read_bytes()[1:])


def restate(folder, name, value):
    said = json.loads((folder / MANIFEST).read_text())
    if name == "key":  # as whoever exchanges two folders
        del said["seal"]
    (folder / MANIFEST).write_text(json.dumps({**said, name: value}))


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda folder: corrupt(folder / "file.txt"), "file.txt has changed since it was written"),
        (lambda folder: (folder / "deep" / "other.bin").unlink(), "other.bin is missing"),
        (lambda folder: (folder / MANIFEST).unlink(), "unreadable manifest"),
        (lambda folder: (folder / MANIFEST).write_text('{"files": {}}'), "unreadable manifest"),
        (lambda folder: restate(folder, "seconds", 9.0), "its manifest has changed, or is another artefact's"),
        (lambda folder: restate(folder, "key", "def"), "its manifest has changed, or is another artefact's"),
    ],
)
def test_damage_is_noticed_set_aside_and_mended(store, damage, fault, caplog):
    damage(store.get_or_make("things", "abc", hello).folder)
    again = store.get_or_make("things", "abc", hello)
    assert not again.hit and (again.folder / "file.txt").read_text() == "hello"
    assert fault in caplog.text and "making it anew" in caplog.text
    assert [p.name.rsplit("-", 1)[0] for p in (store.home / "damaged").iterdir()] == ["things-abc"]
    assert list(store.artefacts()) == [again.folder]


def test_the_doctor_reports_and_repairs(store):
    assert any(line.startswith("store: ") for line in dict(examine())) and not store.home.exists()
    good, bad = store.get_or_make("things", "good", hello), store.get_or_make("things", "bad", hello)
    corrupt(bad.folder / "file.txt")

    def faults(**options):
        return [line for line, fault in examine(**options) if fault]

    (line,) = faults()
    assert str(bad.folder) in line and "file.txt has changed" in line and "repro doctor --repair" in line
    assert bad.folder.exists()
    (line,) = faults(repair=True)
    assert line.endswith("moved aside") and not bad.folder.exists() and good.folder.exists()
    assert faults() == []


def test_the_doctor_leaves_alone_what_is_being_written(store):
    partial = store.home / "things" / f"abc.{os.getpid()}.partial"
    dead = store.home / "work" / "encoders-abc" / "state.safetensors.999999999.partial"
    elsewhere = store.home / "encoders" / "def.999999998.partial"  # its process lives on another machine
    for folder in (partial, dead.parent, elsewhere):
        folder.mkdir(parents=True)
    dead.write_bytes(b"half")
    with FileLock(store.home / "encoders" / "def.lock"):
        assert list(examine(repair=True))
        assert partial.exists() and elsewhere.exists() and not dead.exists()
    assert any(f"{elsewhere}: left by a killed run; removed" in line for line in dict(examine(repair=True)))
    assert partial.exists() and not elsewhere.exists()


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        OSError("262144 requested and 1024 written"),  # as np.save says it
    ],
    ids=str,
)
def test_a_full_disk_says_what_to_do_and_loses_nothing(store, error):
    kept = store.get_or_make("things", "kept", hello)

    def fill(target, work):
        (work / "state").write_text("step 3")
        raise error

    with pytest.raises(InputError, match=r"is full \(\d+ MB free\): free some space or set REPRO_HOME"):
        store.get_or_make("things", "abc", fill)
    assert store.get_or_make("things", "kept", hello).hit
    assert (store.home / "work" / "things-abc" / "state").read_text() == "step 3"
    assert list(store.artefacts()) == [kept.folder] and store.partials() == []
