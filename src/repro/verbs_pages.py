"""The verbs of `repro` on pages: `book` makes web pages of them, `run` executes one, `notebooks`
writes them for Jupyter, `clean` removes what was built, `compare` shows a paper's numbers.
"""

from pathlib import Path
from typing import Annotated

import tyro

from repro.terminal import ProfileName, complain, say, shows_progress
from repro.types import InputError, one_of
from repro.verb_options import Pairs


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
        f"{'the book is' if built.ok else 'the book, with faults, is'} at {built.index} "
        f"({built.seconds:.0f} s)"
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
    from repro.paths import project_root
    from repro.writing import refuse_other_form, writable_file

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
            f"{', '.join(map(str, kept))}; move them to names of their own, or delete them, then "
            "run it again"
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
