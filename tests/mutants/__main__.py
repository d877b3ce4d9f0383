"""Mutation testing: would the tests notice what a scientist gets wrong?  `make mutants`

`mutations.toml` lists small mistakes: a temperature that is ignored, n for n − 1, dev for test.
Each is made in a copy of the checkout (`mutations.py`), and the tests named beside it must then
fail. Every selection of tests runs unchanged first: a test that fails anyway notices nothing. One
warm process imports torch and its like once; its workers fork for each mistake, and only the
package, from the copy, is imported anew.
"""

import argparse
import compileall
import contextlib
import functools
import gc
import importlib
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

import psutil
from mutations import LIST, ROOT, Mutant, faults_of, read_list

FORKS = multiprocessing.get_context("fork")
PASS = 0.97
LIMIT, SLOWER, WAITS = 60.0, 6.0, 20.0
"""A mistake may take so many seconds of the processor, or so many times what the tests take without
it, before it counts as noticed; by the clock it may take so many times as many, for the machine may
be busy with other work.
"""
WARM = (
    "numpy",
    "scipy.stats",
    "scipy.sparse.linalg",
    "pandas",
    "pyarrow.parquet",
    "matplotlib.pyplot",
    *(
        f"sklearn.{name}"
        for name in ("linear_model", "neighbors", "cluster", "decomposition", "manifold")
    ),
    "torch",
    "transformers",
    "transformers.models.bert.modeling_bert",
    "accelerate",
    "safetensors.torch",
    "tokenizers",
    "peft",
    "tyro",
    "filelock",
    "hypothesis",
    "pytest",
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")  # As in tests/browser.py
SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    **dict.fromkeys(("PYTHONDONTWRITEBYTECODE", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "agg",
    "CUDA_VISIBLE_DEVICES": "",
}
PLUGINS = [
    f"-p{name}"
    for name in ("_hypothesis_pytestplugin", "no:cacheprovider", "no:unraisableexception")
]
"""What a second of every run is spared for: plugins no test needs, and a collection of torch's
garbage at the end.
"""


@functools.cache
def own_copy() -> Path:
    """This worker's copy of what tests need; its bytecode is valid for a source by its content, not
    by its date.
    """
    folder = Path(str(os.getpid())).absolute()
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file() and path.stat().st_size < 2**20:
            shutil.copy(path, folder)
        elif path.is_dir() and not path.name.startswith((".", "_build")) and path.name != "runs":
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("src", "tests"):
        compileall.compile_dir(
            folder / part,
            quiet=1,
            invalidation_mode=PycInvalidationMode.CHECKED_HASH,
        )
    return folder


def run_tests(folder: Path, tests: str) -> None:
    """In a fork of this warm process, with the package of that folder."""
    os.setsid()
    os.chdir(folder)
    with open("log", "wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.environ["PYTHONPATH"] = f"{folder}/src"
    sys.path.insert(0, f"{folder}/src")
    import pytest

    options = [
        "-x",
        "--assert=plain",
        "--tb=short",
        "--hypothesis-seed=0",
        "--hypothesis-profile=mutants",
    ]
    code = int(pytest.main([*options, *PLUGINS, f"--basetemp={folder}/tmp", *shlex.split(tests)]))
    sys.stdout.flush()
    os._exit(code if str(sys.modules["repro"].__file__).startswith(str(folder)) else 4)


@dataclass(frozen=True)
class Outcome:
    """What tests said of a mistake, or of none: survived, killed, crashed, timed out or broken."""

    tests: str
    mutant: Mutant | None
    word: str
    by: str
    seconds: float
    log: str

    @property
    def what(self) -> str:
        return (
            f"{self.mutant.area:10} {self.mutant.file}: {self.mutant.means}"
            if self.mutant
            else self.tests
        )

    @property
    def lost(self) -> bool:
        """Whether it says nothing of the tests, or that they fail without a mistake."""
        return self.word == "broken" or (not self.mutant and self.word != "survived")


def outcome_of(job: tuple[str, Mutant | None, float]) -> Outcome:
    """Run tests with a mistake, or without, for so many seconds of the processor at most."""
    (tests, mutant, limit), folder = job, own_copy()
    path = folder / "src" / (mutant.file if mutant else "repro/__init__.py")
    source = path.read_text(encoding="utf-8")
    path.write_text(mutant.made_in(source) if mutant else source, encoding="utf-8")
    began, child = time.monotonic(), FORKS.Process(target=run_tests, args=(folder, tests))
    child.start()
    seconds = 0.0
    try:
        while child.is_alive() and seconds < limit and time.monotonic() - began < WAITS * limit:
            seconds = max(seconds, spent_by(child.pid))
            child.join(0.2)
        code = child.exitcode
    finally:
        # It ends with what it started and left behind
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        path.write_text(source, encoding="utf-8")
    log = (folder / "log").read_text(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", log, re.MULTILINE)
    match code:
        case None:
            said = "timed out", f"after {seconds:.0f} s"
        case 0:
            said = "survived", ""
        case 1 if failed:
            said = "killed", failed[1]
        case _:
            said = (
                ("crashed", f"by signal {-code}")
                if code < 0
                else ("broken", f"pytest ended with {code}")
            )
    return Outcome(tests, mutant, *said, seconds, log)


def spent_by(process: int) -> float:
    """Seconds of the processor that a process and all that it started have taken."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process)
        return sum(sum(one.cpu_times()[:4]) for one in (family, *family.children(recursive=True)))
    return 0.0


def warm_up() -> None:
    """Import what takes seconds, and nothing of the package."""
    sys.dont_write_bytecode = True
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:
            say(f"{name} is not here: the tests that need it will import nothing of it")
    from hypothesis import Phase, settings

    # A mistake is noticed by any example: none is made smaller, or kept for the next mistake
    settings.register_profile(
        "mutants",
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
    )
    gc.freeze()
    assert "repro" not in sys.modules and threading.active_count() == 1, (
        "only a process of one thread may fork"
    )


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only",
        default="",
        help="mistakes whose area, file or meaning match this pattern",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--check",
        action="store_true",
        help="only see whether the list fits the package",
    )
    given = parser.parse_args()
    mutants = read_list(LIST.read_text(encoding="utf-8"))
    if faults := faults_of(mutants):
        say(
            "\n".join(
                [
                    "The list of mistakes does not fit the package:",
                    *faults,
                    f"mend tests/mutants/{LIST.name}",
                ]
            )
        )
        return 1
    mutants = [m for m in mutants if re.search(given.only, f"{m.area} {m.file} {m.means}")]
    if not any(map(shutil.which, BROWSERS)):
        say("no browser is installed: mistakes in scripts are left out")
        mutants = [m for m in mutants if not m.file.endswith(".js")]
    say(f"{len(mutants)} mistakes, {len({m.tests for m in mutants})} selections of tests")
    if given.check or not mutants:
        return 0
    began = time.monotonic()
    warm_up()
    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        workers = {"max_workers": max(1, given.workers), "mp_context": FORKS}
        with ProcessPoolExecutor(**workers, initializer=os.chdir, initargs=(temporary,)) as pool:

            def outcomes(jobs) -> Iterator[Outcome]:
                for o in pool.map(outcome_of, jobs):
                    say(f"{o.word:9} {o.what} ({o.seconds:.1f} s{o.by and ', '}{o.by})")
                    yield o

            plain = list(
                outcomes((tests, None, 600.0) for tests in dict.fromkeys(m.tests for m in mutants))
            )
            took = {o.tests: o.seconds for o in plain if not o.lost}
            jobs = (
                (m.tests, m, max(LIMIT, SLOWER * took[m.tests])) for m in mutants if m.tests in took
            )
            found = list(outcomes(jobs))
    code = verdict(found, time.monotonic() - began)
    lost = [f"{o.what}: {o.word} {o.by}\n{o.log[-3000:]}" for o in (*plain, *found) if o.lost]
    say("\n".join(lost))
    return 1 if lost else code


def verdict(found: list[Outcome], seconds: float) -> int:
    """Score per area and survivors; 1 if too many survive."""
    survivors = [o.mutant for o in found if o.word == "survived"]
    every, left = Counter(o.mutant.area for o in found), Counter(m.area for m in survivors)
    say("")
    for area, n in every.items():
        say(f"{area:10} {n - left[area]:3} of {n:3} noticed")
    share = 1 - len(survivors) / max(1, len(found))
    noticed = f"{len(found) - len(survivors):3} of {len(found):3}, {100 * share:.1f} %"
    say(f"{'in all':10} {noticed}, in {seconds / 60:.1f} min")
    for m in survivors:
        say(f"survived: {m.file}, {m.function}: {m.means}")
        say(f"    - {m.before.strip()}\n    + {m.after.strip()}\n    under {m.tests}")
    return int(share < PASS)


if __name__ == "__main__":
    # Before any import
    if os.environ.get("OMP_NUM_THREADS") != "1" or "CUDA_VISIBLE_DEVICES" not in os.environ:
        sys.exit(
            subprocess.call(
                [sys.executable, __file__, *sys.argv[1:]],
                env={**os.environ, **SETTINGS},
            )
        )
    sys.exit(main())
