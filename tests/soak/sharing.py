"""Stores and results in company: of two processes, without the right to write, and on a disk that fills up."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tests.soak.kills import COMMANDS, Command, began, half, made
from tests.soak.process import ended, forked

from repro.rows import make_rows, read_rows, record
from repro.store import Store

NOBODY = 65534


def both(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """Two processes make the same artefacts and record rows; now and then one is killed and begins again."""
    for number in range(count):
        place = folder / str(number)
        place.mkdir()

        def work(process: int, place: Path = place) -> None:
            store = Store(place / "home")
            for i in range(12):

                def compute(i: int = i) -> np.ndarray:
                    with (place / "computed").open("a") as file:
                        file.write(f"{i}\n")
                    return np.full(50, i)

                found = store.remember("things", {"i": i}, compute, code="repro.types")
                record(make_rows([{"value": i + found[0]}], experiment="e", seed=100 * process + i), place / "results")

        pids = [forked(lambda p=p: work(p), folder / f"log{p}") for p in (0, 1)]
        killed = number % 3 == 0
        if killed:
            time.sleep(rng.uniform(0, 0.4))
            os.kill(pids[1], signal.SIGKILL)
        codes = [ended(pid) for pid in pids]
        if killed:
            codes[1] = ended(forked(lambda: work(1), folder / "log1"))
        computed = (place / "computed").read_text().split()
        seeds = sorted(read_rows(place / "results" / "e.parquet")["seed"])
        if codes != [0, 0] or seeds != [100 * p + i for p in (0, 1) for i in range(12)]:
            yield f"ended with {codes}, rows {seeds}: {(folder / 'log1').read_text()[-500:]}"
        else:
            yield f"made {len(computed)} times" if len(computed) > 12 + killed else ""
        shutil.rmtree(place)


def read_only(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
    """A store that may not be written gives what it holds, and says in one message what it does not hold."""
    folder.chmod(0o755)
    os.environ["HOME"] = str(folder)
    for number in range(count):
        home = folder / str(number)
        config, value = {"n": rng.random()}, np.arange(9.0) * number
        Store(home).remember("things", config, lambda: value, code="repro.types")
        for path in [home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

        def work() -> None:
            if os.getuid() == 0:
                os.setuid(NOBODY)
            from repro.types import InputError

            found = Store(home).remember("things", config, lambda: None, code="repro.types")
            if not np.array_equal(found, value):
                raise SystemExit(3)
            try:
                Store(home).remember("things", {"n": 2}, lambda: value, code="repro.types")
            except InputError as error:
                raise SystemExit(0 if "may not be written" in str(error) else 4) from None
            raise SystemExit(5)

        log = folder / f"log{number}"
        log.touch()
        log.chmod(0o666)
        code = ended(forked(work, log))
        yield f"ended with {code}: {log.read_text()[-500:]}" if code else ""


def full(name: str) -> Callable[[Path, random.Random, Path, int], Iterator[str]]:
    """Trials of a command on a small disk that is full at a random moment."""

    def trials(m: Path, rng: random.Random, folder: Path, count: int) -> Iterator[str]:
        command = COMMANDS[name]
        for number in range(count):
            disk = folder / f"disk{number}"
            disk.mkdir()
            mount(disk, "16m")
            try:
                yield _on_full(command, rng, disk)
            finally:
                subprocess.run([*as_root(), "umount", "-l", str(disk)], check=False)

    return trials


def _on_full(command: Command, rng: random.Random, disk: Path) -> str:
    place = disk / "place"
    place.mkdir()
    (place / "log").symlink_to(disk.with_suffix(".log"))
    kept = Store(place / "home").remember("things", {"n": 1}, lambda: np.arange(9), code="repro.types")
    left = shutil.disk_usage(disk).free
    with (disk / "ballast").open("wb") as file:
        file.write(bytes(left - int(rng.random() ** 3 * 0.9 * sum(_sizes(command)))))
    code, said = ended(began(command, place)), disk.with_suffix(".log").read_text()
    if code not in (0, 2) or "Traceback" in said or (code and ("is full" not in said or said.count("error:") != 1)):
        return f"ended with {code}: {said[-500:]}"
    again = Store(place / "home").remember("things", {"n": 1}, lambda: None, code="repro.types")
    wrong = half(command, place)
    if wrong or not np.array_equal(again, kept) or list(place.rglob("*.partial*")):
        return f"half of {wrong} stands there, or {list(place.rglob('*.partial*'))} or what was there is lost"
    (disk / "ballast").unlink()
    code = ended(began(command, place))
    return f"with room again it ended with {code} or other bytes" if code or made(place) != command.made else ""


def _sizes(command: Command) -> Iterator[int]:
    for value in command.made.values():
        yield len(value) if isinstance(value, bytes) else 50_000


def as_root() -> list[str]:
    """What makes a command one of the administrator's."""
    return [] if os.getuid() == 0 else ["sudo", "-n"]


def mount(folder: Path, size: str) -> None:
    """A disk of its own in memory, which the calling user may write."""
    said = ["mount", "-t", "tmpfs", "-o", f"size={size},uid={os.getuid()}", "tmpfs", str(folder)]
    subprocess.run([*as_root(), *said], check=True)


KINDS: dict[str, tuple[Callable[[Path, random.Random, Path, int], Iterator[str]], int]] = {
    "two processes": (both, 30),
    "read-only store": (read_only, 50),
    **{f"full disk: {name}": (full(name), 10) for name in ("train", "encode", "advise", "apply")},
}
