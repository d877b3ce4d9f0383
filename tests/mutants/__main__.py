"""Mutation testing: would the tests notice what a scientist gets wrong?  `make mutants`

`mutations.toml` lists one-line mistakes: a temperature that is ignored, n for n − 1, dev for test. Each is made in a
copy of the checkout, and the tests named beside it must then fail. Every selection of tests runs unchanged first: a
test that fails anyway notices nothing. One warm process imports torch and its like once and forks for each mistake;
only the package, from the copy, is imported anew.
"""

import argparse
import ast
import compileall
import contextlib
import gc
import importlib
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
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parents[2]
PASS = 0.95
LIMIT, SLOWER = 60.0, 6.0
"""a mistake may take so many seconds, or so many times what the tests take without it, before it counts as noticed"""
WARM = (
    *("numpy", "scipy.stats", "scipy.sparse.linalg", "pandas", "pyarrow.parquet", "matplotlib.pyplot"),
    *(f"sklearn.{name}" for name in ("linear_model", "neighbors", "cluster", "decomposition", "manifold")),
    *("torch", "transformers", "transformers.models.bert.modeling_bert", "accelerate", "safetensors.torch"),
    *("tokenizers", "peft", "tyro", "filelock", "hypothesis", "pytest"),
)
SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    **dict.fromkeys(("PYTHONDONTWRITEBYTECODE", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"), "1"),
    **{"TOKENIZERS_PARALLELISM": "false", "MPLBACKEND": "agg", "CUDA_VISIBLE_DEVICES": ""},
}
PLUGINS = [f"-p{name}" for name in ("_hypothesis_pytestplugin", "no:cacheprovider", "no:unraisableexception")]
"""what a second of every run is spared for: plugins no test needs, and a collection of torch's garbage at the end"""

LIST = Path(__file__).with_name("mutations.toml")


class ListError(Exception):
    """The list of mistakes does not fit the package any more."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it means, the text of a line before and after, and the tests that should notice."""

    area: str
    file: str
    means: str
    before: str
    after: str
    tests: str

    def of(self, source: str) -> str:
        """The file with the mistake in it."""
        found = source.count(self.before)
        if found != 1 or self.before == self.after:
            what = f"{found} times: expected once" if found != 1 else "with nothing changed after it"
            raise ListError(f"{self.file}, {self.means!r}: the list has the text\n    {self.before}\n{what}")
        changed = source.replace(self.before, self.after)
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise ListError(f"{self.file}, {self.means!r}: no Python after the change ({error})") from None
        return changed


def read_list(text: str) -> list[Mutant]:
    """The mistakes, in the order of the list."""
    return [
        Mutant(part["area"], file, means, before, after, own[0] if own else part["tests"])
        for file, part in tomllib.loads(text).items()
        for means, before, after, *own in part["mutants"]
    ]


def check(mutants: list[Mutant], src: Path) -> None:
    """Refuse a list of which a line has gone, or that says one thing twice."""
    complaints = []
    for mutant in mutants:
        path = src / mutant.file
        try:
            for file in (path, *(src.parent / word.split("::")[0] for word in mutant.tests.split() if "/" in word)):
                if not file.exists():
                    raise ListError(f"{mutant.file}, {mutant.means!r}: there is no {file}")
            mutant.of(path.read_text(encoding="utf-8"))
        except ListError as error:
            complaints.append(str(error))
    twice = [key for key, n in Counter((m.file, m.before, m.after) for m in mutants).items() if n > 1]
    complaints += [f"{file}: listed twice\n    {before}" for file, before, _ in twice]
    if complaints:
        raise ListError("\n".join([*complaints, f"mend tests/mutants/{LIST.name}: name each mistake where it now is"]))


@dataclass
class Run:
    """One run of tests in a child of its own."""

    folder: Path
    pid: int
    began: float
    limit: float

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def stop(self) -> None:
        """End it, with what it started and left behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def outcome(self) -> tuple[str, str] | None:
        """None while it runs; then survived, killed, crashed, timed out or broken, and which test said so."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid and time.monotonic() - self.began < self.limit:
            return None
        self.stop()
        if not pid:
            os.waitpid(self.pid, 0)
            return "timed out", f"after {self.limit:.0f} s"
        if os.WIFSIGNALED(status):
            return "crashed", f"by signal {os.WTERMSIG(status)}"
        failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", self.log.read_text(errors="replace"), re.MULTILINE)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return "survived", ""
        return ("killed", failed[1]) if code == 1 and failed else ("broken", f"pytest ended with {code}")


def copy_checkout(folder: Path) -> Path:
    """What tests need, with bytecode that is valid for a source by its content, not by its date."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.is_file() and path.stat().st_size < 2**20:
            shutil.copy(path, folder)
        elif path.is_dir() and not path.name.startswith((".", "_build")) and path.name != "runs":
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("src", "tests"):
        compileall.compile_dir(folder / part, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


def start(folder: Path, tests: str, limit: float) -> Run:
    """Run tests in a fork of this warm process, with the package of that folder."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return Run(folder, pid, time.monotonic(), limit)
    code = 3
    try:
        os.setsid()
        os.chdir(folder)
        with open("log", "wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.environ["PYTHONPATH"] = f"{folder}/src"
        sys.path.insert(0, f"{folder}/src")
        import pytest

        options = ["-x", "--assert=plain", "--tb=short", "--hypothesis-seed=0", "--hypothesis-profile=mutants"]
        options += [*PLUGINS, f"--basetemp={folder}/tmp", *shlex.split(tests)]
        code = int(pytest.main(options))
        if not str(sys.modules["repro"].__file__).startswith(str(folder)):
            code = 4
    finally:
        sys.stdout.flush()
        os._exit(code)


def warm_up() -> None:
    """Import what takes seconds, and nothing of the package."""
    sys.dont_write_bytecode = True
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:
            say(f"{name} is not here: the tests that need it will import nothing of it")
    from hypothesis import Phase, settings

    # a mistake is noticed by any example: none is made smaller, or kept for the next mistake
    settings.register_profile("mutants", database=None, deadline=None, phases=(Phase.explicit, Phase.generate))
    gc.freeze()
    assert "repro" not in sys.modules and threading.active_count() == 1, "only a process of one thread may fork"


def run_all(jobs: list[tuple[str, Mutant | None, float]], folders: list[Path], report) -> None:
    """Run (tests, mutant or None, limit) over the folders, as many at a time, and report each outcome."""
    waiting, running, free = list(reversed(jobs)), [], list(folders)
    try:
        while waiting or running:
            while waiting and free:
                tests, mutant, limit = waiting.pop()
                folder, source = free.pop(), ""
                if mutant:
                    path = folder / "src" / mutant.file
                    source = path.read_text(encoding="utf-8")
                    path.write_text(mutant.of(source), encoding="utf-8")
                running.append((start(folder, tests, limit), tests, mutant, source))
            time.sleep(0.02)
            for run, tests, mutant, source in list(running):
                if outcome := run.outcome():
                    running.remove((run, tests, mutant, source))
                    free.append(run.folder)
                    if mutant:
                        (run.folder / "src" / mutant.file).write_text(source, encoding="utf-8")
                    report(tests, mutant, *outcome, time.monotonic() - run.began, run)
    finally:
        for run, *_ in running:
            run.stop()


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="mistakes whose area, file or meaning match this pattern")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", action="store_true", help="only see whether the list fits the package")
    given = parser.parse_args()
    mutants = read_list(LIST.read_text(encoding="utf-8"))
    try:
        check(mutants, ROOT / "src")
    except ListError as error:
        say(f"The list of mistakes does not fit the package:\n{error}")
        return 1
    mutants = [m for m in mutants if re.search(given.only, f"{m.area} {m.file} {m.means}")]
    say(f"{len(mutants)} mistakes, {len({m.tests for m in mutants})} selections of tests")
    if given.check or not mutants:
        return 0
    began = time.monotonic()
    warm_up()
    took: dict[str, float] = {}
    lost: list[str] = []
    found: list[tuple[Mutant, str]] = []

    def report(tests: str, mutant: Mutant | None, outcome: str, by: str, seconds: float, run: Run) -> None:
        what = f"{mutant.area:10} {mutant.file}: {mutant.means}" if mutant else f"unchanged  {tests}"
        say(f"{outcome:9} {what} ({seconds:.1f} s{by and ', '}{by})")
        if mutant:
            found.append((mutant, outcome))
        elif outcome == "survived":
            took[tests] = seconds
        if outcome == "broken" or (not mutant and outcome != "survived"):
            lost.append(f"{what}: {outcome} {by}\n{run.log.read_text(errors='replace')[-3000:]}")

    with tempfile.TemporaryDirectory(prefix="mutants-") as temporary:
        folders = [copy_checkout(Path(temporary).resolve() / str(i)) for i in range(max(1, given.workers))]
        selections = list(dict.fromkeys(m.tests for m in mutants))
        run_all([(tests, None, 600.0) for tests in selections], folders, report)
        jobs = [(m.tests, m, max(LIMIT, SLOWER * took[m.tests])) for m in mutants if m.tests in took]
        run_all(jobs, folders, report)
    code = verdict(found, time.monotonic() - began)
    say("\n".join(lost))
    return 1 if lost else code


def verdict(found: list[tuple[Mutant, str]], seconds: float) -> int:
    """Score per area and survivors; 1 if too many survive."""
    survivors = [m for m, outcome in found if outcome == "survived"]
    every, left = Counter(m.area for m, _ in found), Counter(m.area for m in survivors)
    say("")
    for area, n in every.items():
        say(f"{area:10} {n - left[area]:3} of {n:3} noticed")
    share = 1 - len(survivors) / max(1, len(found))
    noticed = f"{len(found) - len(survivors):3} of {len(found):3}, {100 * share:.1f} %"
    say(f"{'in all':10} {noticed}, in {seconds / 60:.1f} min")
    for m in survivors:
        say(f"survived: {m.file}: {m.means}\n    - {m.before.strip()}\n    + {m.after.strip()}\n    under {m.tests}")
    return int(share < PASS)


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1" or "CUDA_VISIBLE_DEVICES" not in os.environ:  # before any import
        sys.exit(subprocess.call([sys.executable, __file__, *sys.argv[1:]], env={**os.environ, **SETTINGS}))
    sys.exit(main())
