"""`python -m tests.soak`: what the project promises of kills, damage, odd input and company, tried many times over.

A line for each kind; 1 if something did not hold. With `--record` the counts go to `results/soak.parquet`, from which
`book/trust.md` takes them.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.soak import damage, kills, odd, sharing
from tests.soak.material import prepare
from tests.soak.process import adopt_orphans, ended, forked

from repro.book.kernel import IMPORTED
from repro.rows import make_rows, record
from repro.seeding import cpu_count, derive_seed
from repro.terminal import say

FULL = 25  # minutes that all trials take at most on two cores
ALSO = ("rivals.loaders", "microworld", "dimadvise.measure", "dimadvise.report", "dimadvise.inputs", "repro.runs.cell")
Trials = Callable[[Path, random.Random, Path, int], Iterator[str]]
SIGNALS = {"killed": (signal.SIGKILL, 210), "interrupted": (signal.SIGINT, 30), "terminated": (signal.SIGTERM, 30)}
PROMISES: Mapping[str, Mapping[str, tuple[Trials, int, int]]] = {
    **{
        promise: {
            name: (partial(kills.trials, name, how), max(1, round(total * command.share)), 5)
            for name, command in kills.COMMANDS.items()
        }
        for promise, (how, total) in SIGNALS.items()
    },
    "damaged": {name: (trials, 2_000, 500) for name, trials in damage.KINDS.items()},
    "odd input": {name: (trials, total, 5_000) for name, (trials, total) in odd.KINDS.items()},
    "in company": {name: (trials, total, 10) for name, (trials, total) in sharing.KINDS.items()},
}
"""by promise and kind: trials, how many, and how many at a time"""


@dataclass(frozen=True)
class Job:
    """Some trials of one kind, done in a process of their own."""

    promise: str
    kind: str
    trials: Trials
    count: int
    seed: int

    def work(self, material: Path, folder: Path) -> None:
        """Try, and write down how long it took and what went wrong."""
        adopt_orphans()
        folder.mkdir()
        started = time.perf_counter()
        said = list(self.trials(material, random.Random(self.seed), folder, self.count))
        note = {"count": len(said), "seconds": time.perf_counter() - started, "faults": [word for word in said if word]}
        folder.with_suffix(".json").write_text(json.dumps(note), encoding="utf-8")


def jobs(only: Sequence[str], share: float, seed: int) -> Iterator[Job]:
    """All trials, or of every kind a share and at least one, in pieces."""
    for promise, kinds in PROMISES.items():
        for kind, (trials, total, piece) in kinds.items():
            if not only or {promise, kind} & set(only):
                count = max(1, round(total * share))
                for number, start in enumerate(range(0, count, piece)):
                    own = derive_seed(seed, "soak", promise, kind, number)
                    yield Job(promise, kind, trials, min(piece, count - start), own)


def side_by_side(todo: Sequence[Job], folder: Path) -> Iterator[tuple[Job, dict]]:
    """Do the jobs in as many processes as there are cores; each with its outcome, as they end."""
    waiting, running = list(enumerate(todo)), dict[int, tuple[Job, Path]]()
    while waiting or running:
        while waiting and len(running) < min(2, cpu_count()):
            number, job = waiting.pop(0)
            place = folder / f"job{number}"
            pid = forked(partial(job.work, folder / "material", place), place.with_suffix(".log"))
            running[pid] = job, place
        pid, status = os.wait()
        job, place = running.pop(pid)
        note = place.with_suffix(".json")
        if note.exists():
            yield job, json.loads(note.read_text(encoding="utf-8"))
        else:  # hung, or died
            said = place.with_suffix(".log").read_text(encoding="utf-8")[-1500:]
            yield job, {"count": 0, "seconds": 0.0, "faults": [f"{os.waitstatus_to_exitcode(status)}: {said}"]}


ONE_THREAD = {"OMP_NUM_THREADS": "1", "REPRO_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Try, print, record; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="promises or kinds")
    parser.add_argument("--minutes", type=float, default=FULL, help="about so many; by default all trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the counts to results/soak.parquet")
    options = parser.parse_args(arguments)
    started = time.perf_counter()
    os.environ.update(ONE_THREAD)
    for name in (*IMPORTED, *ALSO):
        import_module(name)
    todo = list(jobs(options.only, options.minutes / FULL, options.seed))
    left, told = Counter((job.promise, job.kind) for job in todo), defaultdict[tuple[str, str], list[dict]](list)
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        if ended(forked(partial(prepare, folder / "material"), folder / "prepare.log"), 300):
            raise SystemExit((folder / "prepare.log").read_text(encoding="utf-8"))
        if set(SIGNALS) & {job.promise for job in todo} or any("full disk" in job.kind for job in todo):
            kills.measure(folder)
        for job, note in side_by_side(todo, folder):
            kind = job.promise, job.kind
            told[kind].append(note)
            left[kind] -= 1
            for fault in note["faults"][:5]:
                say(f"FAULT {', '.join(kind)}: {fault}")
            if not left[kind]:
                say(
                    f"{kind[0]:12} | {kind[1]:24} | {_sum(told[kind], 'count'):7,} | {_sum(told[kind], 'seconds'):6.0f} s"
                )
    every = [note for notes in told.values() for note in notes]
    faults = sum(len(note["faults"]) for note in every)
    say(f"{_sum(every, 'count'):,} trials, {faults} faults, {(time.perf_counter() - started) / 60:.1f} minutes")
    if options.record and not faults:
        shared = {
            "experiment": "soak",
            "metric": "trials",
            "seed": options.seed,
            "command": 'make soak ARGS="--record"',
        }
        rows = [
            {"method": promise, "setting": kind, "value": _sum(notes, "count"), "seconds": _sum(notes, "seconds")}
            for (promise, kind), notes in told.items()
        ]
        record(make_rows(rows, **shared))
    return int(faults > 0)


def _sum(notes: Sequence[dict], name: str) -> float:
    return sum(note[name] for note in notes)


if __name__ == "__main__":
    sys.exit(main())
