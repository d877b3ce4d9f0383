"""`python -m tests.soak`: what the project promises of kills, damage, odd input and company, tried
many times over.

A line for each kind; 1 if something did not hold. With `--record` the counts go to
`results/soak.parquet`, from which `book/trust.md` takes them.
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
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.soak import changes, damage, foreign, kills, odd, sharing, values
from tests.soak.material import prepare
from tests.soak.process import adopt_orphans, ended, forked

from repro.book.kernel import IMPORTED
from repro.results import record
from repro.rows import make_rows
from repro.seeding import cpu_count, derive_seed
from repro.terminal import say

FULL = 25  # Minutes that all trials take on two cores
ALSO = (
    "rivals.loaders",
    "microworld",
    "dimadvise.measure",
    "dimadvise.report",
    "dimadvise.inputs",
    "repro.runs.cell",
)
ENDED = {
    "killed": (signal.SIGKILL, 210),
    "interrupted": (signal.SIGINT, 30),
    "terminated": (signal.SIGTERM, 30),
}
PROMISES = {
    **{
        promise: {
            n: (partial(kills.trials, n, how), total * c.share, 5)
            for n, c in kills.COMMANDS.items()
        }
        for promise, (how, total) in ENDED.items()
    },
    "damaged": {name: (trials, 2_000, 500) for name, trials in damage.KINDS.items()},
    "odd input": {name: (trials, total, 5_000) for name, (trials, total) in odd.KINDS.items()},
    "in company": {name: (trials, total, 10) for name, (trials, total) in sharing.KINDS.items()},
    "not ours": {name: (trials, total, 5) for name, (trials, total) in foreign.KINDS.items()},
    "changed": {name: (trials, total, 300) for name, (trials, total) in changes.KINDS.items()},
    "right values": {name: (trials, total, 500) for name, (trials, total) in values.KINDS.items()},
}
"""By promise and kind: trials, how many, and how many at a time."""


def jobs(only, share, seed):
    """All trials, or of every kind a share and at least one, in pieces: promise, kind and what does
    the piece.
    """
    for promise, kinds in PROMISES.items():
        for kind, (trials, total, piece) in kinds.items():
            count = max(1, round(total * share)) if not only or {promise, kind} & set(only) else 0
            for number, start in enumerate(range(0, count, piece)):
                own = derive_seed(seed, "soak", promise, kind, number)
                yield promise, kind, partial(work, trials, own, min(piece, count - start))


def work(trials, seed, count, material, folder):
    """Try, and write down how long it took and what went wrong."""
    adopt_orphans()
    folder.mkdir(mode=0o755)
    started = time.perf_counter()
    said = list(trials(material, random.Random(seed), folder, count))
    note = {
        "count": len(said),
        "seconds": time.perf_counter() - started,
        "faults": [word for word in said if word],
    }
    folder.with_suffix(".json").write_text(json.dumps(note), encoding="utf-8")


def side_by_side(todo, folder):
    """Do the jobs in as many processes as there are cores, at most two: promise, kind and outcome,
    as they end.
    """
    waiting, running = dict(enumerate(todo)), {}
    while waiting or running:
        while waiting and len(running) < min(2, cpu_count()):
            number = next(iter(waiting))
            *names, job = waiting.pop(number)
            place = folder / f"job{number}"
            running[forked(partial(job, folder / "material", place), place.with_suffix(".log"))] = (
                names,
                place,
            )
        pid, status = os.wait()
        names, place = running.pop(pid)
        if (note := place.with_suffix(".json")).exists():
            yield *names, json.loads(note.read_text(encoding="utf-8"))
        else:
            said = place.with_suffix(".log").read_text(encoding="utf-8")[-1500:]
            yield *names, {"count": 0, "seconds": 0, "faults": [f"hung or died, {status}: {said}"]}


def main(arguments=None):
    """Try, print, record; 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="promises or kinds")
    parser.add_argument(
        "--minutes",
        type=float,
        default=FULL,
        help="about so many; by default all trials",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the counts to results/soak.parquet",
    )
    options = parser.parse_args(arguments)
    todo, started = (
        list(jobs(options.only, options.minutes / FULL, options.seed)),
        time.perf_counter(),
    )
    lanes, left, told = cpu_count(), Counter(job[:2] for job in todo), defaultdict(Counter)
    os.environ.update(
        OMP_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        HF_HUB_OFFLINE="1",
        REPRO_THREADS=str(lanes),
    )
    # All of it is generated, in folders from which a relative path leads nowhere
    os.environ.pop("REPRO_DATA", None)
    for name in (*IMPORTED, *ALSO):
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="soak-") as made:
        folder = Path(made)
        folder.chmod(0o755)  # For readers of a store who are somebody else
        if ended(forked(partial(prepare, folder / "material"), folder / "prepare.log"), 300):
            raise SystemExit((folder / "prepare.log").read_text(encoding="utf-8"))
        kinds = {kind.removeprefix("full disk: ") for _, kind in left}
        kills.measure(folder, [name for name in kills.COMMANDS if name in kinds])
        for promise, kind, note in side_by_side(todo, folder):
            sums = told[promise, kind]
            sums.update(count=note["count"], seconds=note["seconds"], faults=len(note["faults"]))
            for fault in note["faults"][:5]:
                say(f"FAULT {promise}, {kind}: {fault}")
            left[promise, kind] -= 1
            if not left[promise, kind]:
                say(f"{promise:12} | {kind:24} | {sums['count']:7,} | {sums['seconds']:6.0f} s")
    whole = sum(told.values(), Counter())
    say(
        f"{whole['count']:,} trials, {whole['faults']} faults, "
        f"{(time.perf_counter() - started) / 60:.1f} minutes"
    )
    if options.record and not whole["faults"]:
        named = {
            "experiment": "soak",
            "metric": "trials",
            "seed": options.seed,
            "command": 'make soak ARGS="--record"',
        }
        rows = [
            {"method": p, "setting": k, "value": s["count"], "seconds": s["seconds"]}
            for (p, k), s in told.items()
        ]
        record(make_rows(rows, **named))
    return int(whole["faults"] > 0)


if __name__ == "__main__":
    sys.exit(main())
