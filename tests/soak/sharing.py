"""Stores and results in company: of two processes, without the right to write, and on a disk that
fills up.
"""

import os
import shutil
import signal
import subprocess
import time
from functools import partial

import numpy as np
from tests.soak.kills import COMMANDS, made
from tests.soak.process import ended, forked

from repro.results import read_rows, record
from repro.rows import make_rows
from repro.store import Store
from repro.types import InputError

NOBODY = 65534
EACH = range(12)  # Artefacts, and rows, of each process


def remember(home, n, value):
    return Store(home).remember("things", {"n": n}, lambda: value, code="repro.types")


def share(place, process):
    """What one of two processes does: makes artefacts that the other wants too, and records rows
    beside its rows.
    """
    for i in EACH:

        def compute(i=i):
            with (place / "computed").open("a") as file:
                file.write(f"{i}\n")
            return np.full(50, i)

        found = Store(place / "home").remember("things", {"i": i}, compute, code="repro.types")
        record(
            make_rows([{"value": i + found[0]}], experiment="e", seed=100 * process + i),
            place / "results",
        )


def two_processes(m, rng, folder, count):
    """Both do the same; now and then one is killed, and begins again."""
    for number in range(count):
        place, log, killed = folder / str(number), folder / f"log{number}", number % 3 == 2
        place.mkdir()
        pids = [forked(partial(share, place, process), log) for process in (0, 1)]
        if killed:
            time.sleep(rng.uniform(0, 0.4))
            os.kill(pids[1], signal.SIGKILL)
        codes = [ended(pid) for pid in pids]
        if killed:
            codes[1] = ended(forked(partial(share, place, 1), log))
        times = len((place / "computed").read_text().split())
        found = sorted(read_rows(place / "results" / "e.parquet")["seed"])
        wrong = (
            codes != [0, 0]
            or found != [100 * p + i for p in (0, 1) for i in EACH]
            or times > len(EACH) + killed
        )
        yield (
            f"ended with {codes}, computed {times}, rows {found}: {log.read_text()[-500:]}"
            if wrong
            else ""
        )


def read_only(m, rng, folder, count):
    """A store that may not be written gives what it holds, and says in one message that it does not
    hold the rest.
    """
    os.environ["HOME"] = str(folder)
    for number in range(count):
        home, value, log = folder / str(number), np.arange(9.0) * number, folder / f"log{number}"
        remember(home, 1, value)
        for path in [home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

        def work(home=home, value=value):
            if os.getuid() == 0:  # Whom no mode keeps from writing
                os.setuid(NOBODY)
            np.testing.assert_array_equal(remember(home, 1, None), value)
            try:
                remember(home, 2, value)
            except InputError as error:
                raise SystemExit(0 if "may not be written" in str(error) else 4) from None

        log.touch()
        log.chmod(0o666)
        code = ended(forked(lambda work=work: [work(), os._exit(5)], log))
        yield f"ended with {code}: {log.read_text()[-500:]}" if code else ""


def full_disk(name, m, rng, folder, count):
    """A command on a small disk that is full at a random moment, and then again with room."""
    root = [] if os.getuid() == 0 else ["sudo", "-n"]
    for number in range(count):
        disk = folder / str(number)
        disk.mkdir()
        options = f"size=16m,uid={os.getuid()}"
        subprocess.run(
            [*root, "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)],
            check=True,
        )
        yield _on_full(COMMANDS[name], rng, disk)
        subprocess.run([*root, "umount", "-l", str(disk)], check=True)


def _on_full(command, rng, disk):
    place, log = disk / "place", disk.with_suffix(".log")
    place.mkdir()
    (place / "log").symlink_to(log)
    kept = remember(place / "home", 1, np.arange(9))
    needed = sum(
        len(value) if isinstance(value, bytes) else 50_000 for value in command.made.values()
    )
    (disk / "ballast").write_bytes(
        bytes(shutil.disk_usage(disk).free - 60_000 - int(rng.random() ** 2 * needed))
    )
    code, said = ended(command.begin(place)), log.read_text()
    if (
        code not in (0, 2)
        or "Traceback" in said
        or (code and (said.count("error:"), "is full" in said) != (1, True))
    ):
        return f"ended with {code}: {said[-500:]}"
    half, partials = command.half(place), list(place.rglob("*.partial*"))
    if half or partials or not np.array_equal(remember(place / "home", 1, None), kept):
        return f"half of {half} stands there, {partials} left, or what was there is lost"
    (disk / "ballast").unlink()
    code = ended(command.begin(place))
    return (
        f"with room again: ended with {code}, or other bytes"
        if code or made(place) != command.made
        else ""
    )


KINDS = {
    "two processes": (two_processes, 30),
    "read-only store": (read_only, 50),
    **{
        f"full disk: {name}": (partial(full_disk, name), 10)
        for name in ("train", "encode", "advise", "apply")
    },
}
