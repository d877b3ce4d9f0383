"""The command `repro`: a verb is a function here or in `verbs_*.py`, which `verb_options.py` makes
an entry of the command line.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that
needs them.
"""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dimadvise.command import advise, apply, check
from repro import __version__
from repro.paths import is_out_of_memory
from repro.terminal import (
    ProfileName,
    allow_any_letter,
    close_output,
    complain,
    say,
    shows_progress,
)
from repro.types import InputError, extra_with, lacking, one_of
from repro.verb_options import command
from repro.verbs_cells import Pairs, sweep
from repro.verbs_doctor import doctor
from repro.verbs_embeddings import encode, evaluate, export, reduce
from repro.verbs_training import pretrain, train

ABOUT = """How many dimensions does a sentence embedding need?
Measure it on texts of your own, or run the pages of the book again.

Three things to begin with:
  repro advise --encoder all-MiniLM-L6-v2 --texts stsb   how few dimensions an encoder needs
  repro run playground -p dims "[64, 16]"                a page of the book, with your numbers
  repro compare wang_table1                              a paper's table beside what was measured

The book is made by `repro book` and lies in _build/html/index.html; what the repository holds is
told in README.md.

More of each verb is told by `repro VERB --help`; `repro --version` says which version this is.
"""


def book(
    only: tuple[str, ...] = (),
    force: bool = False,
    profile: ProfileName = "embedded",
    timeout: float | None = None,
) -> int:
    """The book as web pages in `_build/html`: pages that changed are executed, and all are
    rendered.

    Args:
        only: names of pages to execute, the others stay as they are; by default all that changed.
        force: execute all pages, changed or not.
        profile: size of the experiments.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book.builder import build
    from repro.paths import project_root

    built = build(project_root(), profile=profile, only=only or None, force=force, timeout=timeout)
    for line in built.complaints:
        complain(line)
    for page in built.failures:
        complain(f"{page.name} failed: {page.error}")
    say(
        f"{'the book is' if built.ok else 'the book, with faults, is'} at "
        f"{built.index} ({built.seconds:.0f} s)"
    )
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
        output: where the executed notebook goes; by default `runs/<notebook>-<digest of its
            parameters>.ipynb`.
        record: append its rows to `results/`.
        timeout: seconds one cell may take; by default as long as it needs.
    """
    from repro.book import execution
    from repro.book.notebook import locate
    from repro.book.parameters import from_here, parameters_of, validate
    from repro.config import PROFILES
    from repro.digests import digest
    from repro.paths import project_root, refuse_other_form, writable_file

    if output is not None and not output.exists():  # What is there is told as what it is
        refuse_other_form(output, ".ipynb")
    source = locate(notebook)
    given = dict(p) | ({"record": "True"} if record else {})
    values = from_here(validate(parameters_of(source), given))
    if "profile" in values:
        one_of(values["profile"], list(PROFILES), "profile")
    usual = f"{source.stem}-{digest(values)[:8] if values else 'default'}.ipynb"
    target = writable_file(output, source) if output else project_root() / "runs" / usual
    try:
        execution.run(source, target, values, timeout=timeout, progress=shows_progress())
    except execution.NotebookError as error:
        place = execution.failed_of(target)
        complain(f"{error} (the notebook up to that cell is at {place})")
        return 1
    say(f"executed: {target}")
    return 0


def notebooks() -> int:
    """All pages as `notebooks/*.ipynb`, not yet executed, for Jupyter and plain papermill.

    One that was edited or run since it was written is not overwritten.
    """
    from repro.book.notebook import ipynb_of, not_ours, to_ipynb
    from repro.paths import project_root

    folder = project_root() / "notebooks"
    kept = []
    for source in sorted(folder.glob("*.md")):
        target = ipynb_of(source, folder)
        if not_ours(target):
            kept.append(target)
        else:
            say(str(to_ipynb(source, folder)))
    if kept:
        raise InputError(
            "not overwritten, for they are not as `repro notebooks` wrote them: "
            f"{', '.join(map(str, kept))}; "
            "move them to names of their own, or delete them, then run it again"
        )
    return 0


def clean() -> int:
    """What was built is removed: the book, unexecuted notebooks, runs; trained artefacts stay.

    So does whatever was not built here or was changed since, of which a line is printed.
    """
    from collections import Counter

    from repro.book.clean import clean as clean_checkout
    from repro.paths import project_root

    root = project_root()
    left = Counter(Path(*path.relative_to(root).parts[:2]) for path in clean_checkout(root))
    for place, count in sorted(left.items()):
        files = f" ({count} files)" if count > 1 else ""
        say(f"stays, for it was not built here or was changed since: {place}{files}")
    return 0


def compare(
    experiment: Annotated[
        tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[EXPERIMENT]")
    ] = None,
) -> int:
    """A paper's printed numbers beside those measured here; without a name, the verdicts on all
    claims.

    Args:
        experiment: such as wang_table1; by default the scorecard of all claims.
    """
    from repro.papers.recorded import experiment_lines, scorecard_lines

    for line in scorecard_lines() if experiment is None else experiment_lines(experiment):
        say(line)
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
        counted = list(sets.check(name))
        for item in counted:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            say(
                f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} "
                f"{count:>9} of {expected} {item.note}"
            )
        return 0 if all(item.ok for item in counted) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    from repro.data.hub import fetch  # brings pyarrow

    for path in fetch(name):
        say(str(path))
    return 0


_LISTED = (
    book,
    run,
    sweep,
    notebooks,
    clean,
    train,
    encode,
    reduce,
    evaluate,
    advise,
    export,
    pretrain,
    data,
    compare,
    doctor,
)
VERBS = {f.__name__: f for f in _LISTED}
SHOW_PROGRESS = (run, train, encode, reduce, evaluate, advise, apply, check, pretrain)


def dimadvise() -> None:
    """The command `dimadvise`: of all verbs those that vectors of one's own need."""
    main(verbs={"advise": advise, "apply": apply, "check": check}, prog="dimadvise")


def main(
    arguments: list[str] | None = None,
    *,
    verbs: Mapping[str, Callable[..., int]] = VERBS,
    prog: str = "repro",
) -> None:
    """Run one verb; exit 0 when it did its work, 1 when something failed, 2 on a user's mistake."""
    level = logging.getLevelNamesMapping().get(
        os.environ.get("REPRO_LOG", "").upper(),
        logging.WARNING,
    )
    logging.basicConfig(format="%(levelname)s: %(message)s", level=level)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a scheduler's Ctrl-C
    allow_any_letter()
    code = 0
    try:
        with warnings.catch_warnings(action="always", category=UserWarning):
            # told as a sentence, without the line of code that Python prints beside it
            warnings.showwarning = lambda message, *where: complain(f"warning: {message}")
            code = _verb(sys.argv[1:] if arguments is None else arguments, verbs, prog)
        sys.stdout.flush()
    except BrokenPipeError:
        close_output()
    except ModuleNotFoundError as error:
        extra = extra_with(error.name or "")
        if extra is None:  # a fault of the package, not of its installation
            raise
        complain(f"error: {lacking(str(error.name), extra)}")
        code = 2
    except (InputError, TypeError, OSError) as error:
        if isinstance(error, TypeError) and not str(error).startswith("texts"):
            raise
        complain(f"error: {error}")
        code = 2
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        way_out = "end other programs, give less at a time, or use a larger machine"
        complain(f"error: memory ran out ({error}): {way_out}")
        code = 1
    except KeyboardInterrupt:
        complain("stopped; what was finished is kept, the same command goes on from there")
        code = 130
    raise SystemExit(code)


def _verb(arguments: Sequence[str], verbs: Mapping[str, Callable[..., int]], prog: str) -> int:
    if list(arguments) == ["--version"]:
        say(f"{prog} {__version__}")
        return 0
    if arguments and not arguments[0].startswith("-"):
        one_of(arguments[0], list(verbs), "verb")
    commands = {}
    for name, verb in verbs.items():
        asked = name in arguments[:1]
        commands[name] = command(verb, shows_progress=verb in SHOW_PROGRESS, asked=asked)
    return tyro.extras.subcommand_cli_from_dict(
        commands,
        prog=prog,
        description=ABOUT if verbs is VERBS else None,
        args=arguments,
        sort_subcommands=False,
        config=(tyro.conf.DisallowNone,),
    )
