"""The command `repro`: every verb is a function here, its help is the docstring, its options the arguments.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that needs them.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from repro import __version__
from repro.cli_advise import advise
from repro.cli_export import export
from repro.cli_help import command
from repro.cli_models import encode, evaluate, pretrain, train
from repro.cli_reduce import reduce
from repro.terminal import close_output, complain, say, shows_progress
from repro.types import InputError, one_of

ABOUT = """How many dimensions does a sentence embedding need? Measure it on your own texts, or rerun the book's pages.

Three things to begin with:
  repro advise --encoder all-MiniLM-L6-v2 --texts stsb   how few dimensions keep an encoder's quality
  repro run playground -p dims "[64, 16]"                a page of the book with numbers of your own
  repro compare wang_table1                              a paper's table beside what was measured here

The book is made by `repro book` and lies in _build/html/index.html; what the repository holds is told in README.md.

More of each verb is told by `repro VERB --help`; `repro --version` says which version this is.
"""

Pairs = Annotated[tyro.conf.UseAppendAction[list[tuple[str, str]]], tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE")]


def book(
    only: tuple[str, ...] = (),
    force: bool = False,
    profile: Literal["embedded", "gpu", "paper"] = "embedded",
    timeout: float | None = None,
) -> int:
    """The book as web pages in `_build/html`: pages that changed are executed, and all are rendered.

    Args:
        only: names of pages to execute, the others stay as they are; by default all that changed.
        force: execute all pages, changed or not.
        profile: size of the experiments.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book.builder import build
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
    """One page of the book with dims, networks or seeds of your own, as an executed notebook.

    A wrong name or type of a parameter is refused, and the valid ones are listed.

    Args:
        notebook: path of a notebook, or its bare name.
        p: a notebook parameter; may be given several times.
        output: where the executed notebook goes; by default below `runs/`.
        record: append its rows to `results/`.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book import notebook as notebooks
    from repro.book.notebook import NotebookError
    from repro.config import PROFILES
    from repro.writing import writable_file

    source = notebooks.locate(notebook)
    given: dict[str, Any] = dict(p)
    if record:
        given["record"] = "True"
    values = notebooks.from_here(notebooks.validate(source, given))
    if "profile" in values:
        one_of(values["profile"], list(PROFILES), "profile")
    target = writable_file(output) if output else notebooks.default_output(source, values)
    try:
        notebooks.run(source, target, values, timeout=timeout, progress=shows_progress())
    except NotebookError as error:
        complain(f"{error} (the notebook up to that cell is at {target})")
        return 1
    say(f"executed: {target}")
    return 0


def notebooks() -> int:
    """All pages as `notebooks/*.ipynb`, not yet executed, for Jupyter and plain papermill."""
    from repro.book.notebook import to_ipynb
    from repro.paths import project_root

    folder = project_root() / "notebooks"
    for source in sorted(folder.glob("*.md")):
        say(str(to_ipynb(source, folder)))
    return 0


def data(
    verb: tyro.conf.Positional[Literal["list", "check", "fetch"]],
    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")] = None,
) -> int:
    """The datasets there are, whether your files of them are whole, or one of them from the hub.

    Args:
        verb: list them, check local files against the official counts, or fetch one from the hub.
        name: one dataset, needed for fetch; by default check looks at all.
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


def compare(
    experiment: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[EXPERIMENT]")] = None,
) -> int:
    """A paper's printed numbers beside those measured here; without a name, the verdicts on all claims.

    Args:
        experiment: such as wang_table1; by default the scorecard of all claims.
    """
    from repro.papers.recorded import experiment_lines, scorecard_lines

    for line in scorecard_lines() if experiment is None else experiment_lines(experiment):
        say(line)
    return 0


def doctor(repair: bool = False) -> int:
    """Whether installation, data and stored artefacts are in order; with --repair they are mended.

    Args:
        repair: move damaged artefacts aside, so that they are made anew, and remove what killed runs left.
    """
    from repro.doctor import examine

    faults = 0
    for line, bad in examine(repair=repair):
        say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return 0 if repair or not faults else 1


VERBS = {
    f.__name__: f
    for f in (book, run, notebooks, train, encode, reduce, evaluate, advise, export, pretrain, data, compare, doctor)
}
SHOW_PROGRESS = (run, train, encode, reduce, evaluate, advise, pretrain)


def main(arguments: list[str] | None = None) -> None:
    """Run one verb; exit 0 when it did its work, 1 when something failed, 2 on a user's mistake."""
    logging.basicConfig(format="%(levelname)s: %(message)s", level=os.environ.get("REPRO_LOG", "WARNING").upper())
    code = 0
    try:
        with _warnings_told():
            code = _verb(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        close_output()
    except (InputError, TypeError, OSError) as error:
        if isinstance(error, TypeError) and not str(error).startswith("texts"):
            raise
        complain(f"error: {error}")
        code = 2
    except KeyboardInterrupt:
        complain("stopped; what was finished is kept, the same command goes on from there")
        code = 130
    raise SystemExit(code)


@contextmanager
def _warnings_told() -> Iterator[None]:
    """What code warns of is told as a sentence, without the line of code that Python prints beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *where: complain(f"warning: {message}")
        yield


def _verb(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:
        say(f"repro {__version__}")
        return 0
    return tyro.extras.subcommand_cli_from_dict(
        {name: command(verb, shows_progress=verb in SHOW_PROGRESS) for name, verb in VERBS.items()},
        prog="repro",
        description=ABOUT,
        args=arguments,
        sort_subcommands=False,
        config=(tyro.conf.DisallowNone,),
    )
