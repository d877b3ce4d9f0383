"""Between two calls something changes, an input or the code: what is given back is that of the
second.
"""

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from tests.soak.process import ended, forked

from dimadvise.apply import apply
from repro import data
from repro.paths import PACKAGE
from repro.terminal import say
from repro.types import InputError

ASK = "import sys; from repro.store import Store; from repro.theory import jl_dim; "
ASK += (
    "print(Store().remember('things', {'n': int(sys.argv[1])}, lambda: "
    "jl_dim(100, 0.5), code='repro.theory'))"
)


def shards_of(X, m, output):
    """The codes of a matrix, as `dimadvise apply` writes them to a folder."""
    apply(X, m / "advice", output, rows_per_shard=150)
    return [np.load(path) for path in sorted(output.glob("*.npy"))]


def edited_vectors(m, rng, folder, count):
    """The input of `apply` is edited between two calls, its times set back: no shard holds old rows
    beside new ones.
    """
    for number in range(count):
        place = folder / str(number)
        place.mkdir()
        path = place / "X.npy"
        shutil.copy(m / "X.npy", path)
        before = path.stat()
        shards_of(path, m, place / "out")
        for written in list((place / "out").glob("*.npy")):
            if rng.random() < 0.4:
                written.unlink()
        X = np.load(path)
        way = rng.choice(
            ("one row", "one number", "all rows", "rows change places", "more rows", "fewer rows")
        )
        row = rng.randrange(len(X))
        if way == "one row":
            X[row] = X[row - 1]
        elif way == "one number":
            X[row, 0] += 1
        elif way == "all rows":
            X = X[::-1]
        elif way == "rows change places":
            X[[row, row - 1]] = X[[row - 1, row]]
        elif way == "more rows":
            X = np.concatenate([X, X[: rng.randint(1, 200)]])
        else:
            X = X[: rng.randint(100, len(X) - 1)]
        np.save(path, X)
        if rng.random() < 0.7:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        try:
            again = shards_of(path, m, place / "out")
        except InputError:
            yield ""  # It said what differs, and wrote nothing
            continue
        fresh = shards_of(path, m, place / "fresh")
        same = len(again) == len(fresh) and all(map(np.array_equal, again, fresh))
        yield "" if same else f"{way}: shards hold other rows than the input"
        shutil.rmtree(place)


def edited_table(m, rng, folder, count):
    """A table of texts is edited between two readings of one process, now and then with its times
    set back.
    """
    path = folder / "texts.txt"
    for number in range(count):
        lines = [f"a cook number {rng.randrange(1000)}" for _ in range(5)]
        before = path.stat() if path.exists() else None
        path.write_text("\n".join(lines) + "\n")
        if before is not None and rng.random() < 0.5:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + number))
        found = list(data.load(str(path)).texts)
        yield "" if found == lines else f"read {found[:2]} …, the file holds {lines[:2]} …"


def two_versions(m, rng, folder, count):
    """Two versions of the code share a store, in any order: each gets what it computes itself."""
    versions = {}
    for name, factor in (("one", 1), ("two", 2)):
        root = folder / name
        shutil.copytree(
            PACKAGE.parent,
            root,
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )
        theory = root / "repro" / "theory.py"
        theory.write_text(changed(theory, factor), encoding="utf-8")
        versions[name] = root
    right: dict[str, str] = {}
    for _ in range(count):
        name, n = rng.choice(list(versions)), rng.randrange(3)
        asked = {
            **os.environ,
            "PYTHONPATH": str(versions[name]),
            "REPRO_HOME": str(folder / "home"),
        }
        done = subprocess.run(
            [sys.executable, "-c", ASK, str(n)],
            env=asked,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            yield f"version {name} ended with {done.returncode}: {done.stderr[-400:]}"
            continue
        told = right.setdefault(name, done.stdout)
        other = [value for key, value in right.items() if key != name]
        yield (
            ""
            if done.stdout == told and told not in other
            else f"version {name} said {done.stdout}, not {told}"
        )


def changed(module: Path, factor: int) -> str:
    """The source of a module whose `jl_dim` gives so many times as much."""
    source = module.read_text(encoding="utf-8")
    wrapped = (
        f"_before = jl_dim\n\n\ndef jl_dim(n, eps, **options):\n    return {factor} * _before(n, "
        "eps, **options)\n"
    )
    return f"{source}\n\n{wrapped}"


def two_at_once(m, rng, folder, count):
    """Two processes put one input through an advice into one folder: one does it, or both say what
    is the matter.
    """
    for number in range(count):
        output = folder / str(number)
        logs = [folder / f"log{number}-{process}" for process in (0, 1)]
        work = partial(shards_of, m / "X.npy", m, output)
        pids = [forked(partial(told_or_done, work), log) for log in logs]
        codes = [ended(pid, 60) for pid in pids]
        again = shards_of(m / "X.npy", m, output)
        fresh = shards_of(m / "X.npy", m, folder / f"fresh{number}")
        wrong = (
            not set(codes) <= {0, 2} or 0 not in codes or not all(map(np.array_equal, again, fresh))
        )
        yield (
            f"ended with {codes}: {logs[0].read_text()[-300:]} {logs[1].read_text()[-300:]}"
            if wrong
            else ""
        )


def told_or_done(work):
    """End with 2 where a message says why nothing was done, as the command does."""
    try:
        work()
    except InputError as error:
        say(str(error))
        raise SystemExit(2) from None


KINDS = {
    "edited vectors": (edited_vectors, 300),
    "edited texts": (edited_table, 2_000),
    "two versions of the code": (two_versions, 40),
    "two writers of shards": (two_at_once, 20),
}
