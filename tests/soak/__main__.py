"""`python -m tests.soak`: what the project promises of kills, damage, odd input and full disks, tried many times; 1 if
one fails.

Each trial is drawn by the seed. `--record` writes the counts to `results/soak.parquet`, from which `book/trust.md`
takes them.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.soak import damage, kills, odd, sharing
from tests.soak.process import adopt_orphans, ended, forked

from repro.book.kernel import IMPORTED
from repro.rows import make_rows, record
from repro.seeding import cpu_count, derive_seed
from repro.terminal import say

FULL = 25  # minutes that all trials take at most on two cores
COMMAND = "make soak ARGS=--record"
Trials = Callable[[random.Random, Path, int], Iterator[str]]


@dataclass(frozen=True)
class Job:
    """Some trials of one kind, done in a process of their own."""

    promise: str
    kind: str
    trials: Trials
    count: int
    seed: int

    def work(self, folder: Path) -> None:
        """Try, and write down how often, how long it took, and what went wrong."""
        adopt_orphans()
        folder.mkdir()
        started, said = time.perf_counter(), []
        for outcome in self.trials(random.Random(self.seed), folder, self.count):
            said.append(outcome)
        faults = [outcome for outcome in said if outcome]
        note = {"count": len(said), "faults": faults, "seconds": time.perf_counter() - started}
        (folder.with_suffix(".json")).write_text(json.dumps(note))


def promises() -> dict[str, tuple[str, dict[str, tuple[Trials, int, int]]]]:
    """Every promise: the test that holds it at each change, and by kind its trials, how many, and how many a job."""
    shares = {name: command.share for name, command in kills.COMMANDS.items()}

    def ending(how: signal.Signals, total: int) -> dict[str, tuple[Trials, int, int]]:
        return {name: (partial(kills.trials, name, how), round(total * share), 5) for name, share in shares.items()}

    return {
        "killed": ("tests/test_store.py", ending(signal.SIGKILL, 210)),
        "interrupted": ("tests/test_workers.py", ending(signal.SIGINT, 40)),
        "terminated": ("tests/test_workers.py", ending(signal.SIGTERM, 40)),
        "damaged": ("tests/test_store.py", {name: (trials, 2_000, 500) for name, trials in damage.KINDS.items()}),
        "odd": ("tests/test_cli.py", {name: (trials, n, max(1, n // 4)) for name, (trials, n) in odd.KINDS.items()}),
        "shared": ("tests/test_rows.py", {name: (trials, n, n) for name, (trials, n) in sharing.KINDS.items()}),
    }


def jobs(only: Sequence[str], share: float, seed: int) -> Iterator[Job]:
    """All trials in pieces; of a share of them each kind has one at least."""
    for promise, (_, kinds) in promises().items():
        for kind, (trials, total, piece) in kinds.items():
            if only and not {promise, kind} & set(only):
                continue
            left = max(1, round(total * share))
            for number, start in enumerate(range(0, left, piece)):
                own = derive_seed(seed, "soak", promise, kind, number)
                yield Job(promise, kind, trials, min(piece, left - start), own)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try, print a line for each kind, record; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), help=f"promises ({', '.join(promises())}) or kinds")
    parser.add_argument("--minutes", type=float, default=FULL, help="about so long; by default all trials")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the counts to results/soak.parquet")
    options = parser.parse_args(arguments)
    os.environ.update(OMP_NUM_THREADS="1", REPRO_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    lanes, started = min(2, cpu_count()), time.monotonic()
    for name in (*IMPORTED, "rivals.loaders", "dimadvise.measure", "repro.book.builder", "repro.runs.cell"):
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        folder = Path(made)
        material = folder / "material"
        todo = list(jobs(options.only, options.minutes / FULL, options.seed))
        if ended(forked(partial(sharing.prepare, material), folder / "prepare.log"), 300):
            raise SystemExit((folder / "prepare.log").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
