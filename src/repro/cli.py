"""The command `repro`: every verb is a function here, its help is the docstring, its options the arguments.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that needs them.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro.cli_advise import advise
from repro.cli_export import export
from repro.cli_models import encode, evaluate, pretrain, train
from repro.cli_reduce import reduce
from repro.terminal import complain, say
from repro.types import InputError

Pairs = Annotated[
    tyro.conf.UseAppendAction[list[tuple[str, str]]],
    tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE", help="a notebook parameter; may be given several times"),
]


def book(
    only: tuple[str, ...] = (),
    force: bool = False,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    timeout: float | None = None,
) -> int:
    """Execute the notebooks that changed and render the book; prints where it is.

    Args:
        only: names of pages to execute; the others stay as they are.
        force: execute all pages, changed or not.
        profile: size of the experiments.
        timeout: seconds one cell may take.
    """
    from repro.experiments.book import build
    from repro.paths import project_root

    built = build(project_root(), profile=profile, only=only or None, force=force, timeout=timeout, report=say)
    for line in built.complaints:
        complain(line)
    for page in built.failures:
        complain(f"{page.name} failed: {page.error}")
    say(f"{'the book is' if built.ok else 'the book, with faults, is'} at {built.index} ({built.seconds:.0f} s)")
    return 0 if built.ok else 1


def run(
    notebook: tyro.conf.Positional[Path],
    p: Pairs,
    output: Path | None = None,
    record: bool = False,
    timeout: float | None = None,
) -> int:
    """Execute one notebook with other parameters; a wrong name or type is refused with the valid ones.

    Args:
        notebook: path of a notebook, or its bare name.
        p: a notebook parameter.
        output: where the executed notebook goes; by default below `runs/`.
        record: append its rows to `results/`.
        timeout: seconds one cell may take.
    """
    from repro.experiments import notebook as notebooks
    from repro.experiments.notebook import NotebookError

    source = notebooks.locate(notebook)
    given: dict[str, Any] = dict(p)
    if record:
        given["record"] = "True"
    values = notebooks.from_here(notebooks.validate(source, given))
    target = output or notebooks.default_output(source, values)
    try:
        notebooks.run(source, target, values, timeout=timeout, progress=True)
    except NotebookError as error:
        complain(f"{error} (the notebook up to that cell is at {target})")
        return 1
    say(f"executed: {target}")
    return 0


def notebooks() -> int:
    """Write `notebooks/*.ipynb`, unexecuted, for plain papermill and Jupyter."""
    from repro.experiments.notebook import to_ipynb
    from repro.paths import project_root

    folder = project_root() / "notebooks"
    for source in sorted(folder.glob("*.md")):
        say(str(to_ipynb(source, folder)))
    return 0


def data(
    verb: tyro.conf.Positional[Literal["list", "check", "fetch"]], name: tyro.conf.Positional[str | None] = None
) -> int:
    """Datasets: list them, check the local files against the official counts, or fetch one from the hub.

    Args:
        verb: what to do.
        name: one dataset; needed for fetch.
    """
    from repro import data as sets

    if verb == "list":
        for row in sets.describe():
            say(
                f"{row['name']:<10} {row['title']:<28} {row['rows']:>24} rows  "
                f"local: {row['local']:<4} hub: {row['hub']:<40} {row['licence']}"
            )
        return 0
    if verb == "check":
        found = sets.check(name)
        for item in found:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            say(f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} {count:>9} of {expected} {item.note}")
        return 0 if all(item.ok for item in found) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    for path in sets.fetch(name):
        say(str(path))
    return 0


def compare(experiment: tyro.conf.Positional[str | None] = None) -> int:
    """Paper, recorded and live numbers side by side, with verdicts.

    Args:
        experiment: such as wang_table1; by default the scorecard of all claims.
    """
    from repro.reporting.console import experiment_lines, scorecard_lines

    for line in scorecard_lines() if experiment is None else experiment_lines(experiment):
        say(line)
    return 0


def doctor(repair: bool = False) -> int:
    """Report on the installation and the store; with --repair, move damaged artefacts aside and drop leftovers.

    Args:
        repair: mend what is found.
    """
    from repro.experiments.doctor import examine

    faults = 0
    for line, bad in examine(repair=repair):
        say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return 0 if repair or not faults else 1


VERBS = {
    f.__name__: f
    for f in (book, run, notebooks, train, encode, reduce, evaluate, advise, export, pretrain, data, compare, doctor)
}


def main(arguments: list[str] | None = None) -> None:
    """Run one verb; exit 0 when it did its work, 1 when something failed, 2 on a user's mistake."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=os.environ.get("REPRO_LOG", "WARNING").upper())
    try:
        code = tyro.extras.subcommand_cli_from_dict(
            VERBS, prog="repro", description=__doc__, args=arguments, sort_subcommands=False
        )
    except (InputError, TypeError, FileNotFoundError, PermissionError, IsADirectoryError) as error:
        if isinstance(error, TypeError) and not str(error).startswith("texts"):
            raise
        complain(f"error: {error}")
        code = 2
    except KeyboardInterrupt:
        complain("stopped; what was finished is kept, the same command goes on from there")
        code = 130
    sys.stdout.flush()
    raise SystemExit(code)
