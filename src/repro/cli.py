"""The command `repro`: a verb is a function here or in `verbs_*.py`, its help the docstring, its
options the arguments or the fields of the record that it takes.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that
needs them.
"""

import inspect
import logging
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_origin, get_type_hints

import docstring_parser
import tyro

from dimadvise.command import advise, apply, check
from repro import __version__
from repro.paths import is_out_of_memory
from repro.terminal import (
    QUIET,
    Menu,
    ProfileName,
    allow_any_letter,
    close_output,
    complain,
    say,
    shows_progress,
)
from repro.types import InputError, extra_with, installed, installing, lacking, one_of
from repro.verbs_cells import Pairs, sweep
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
PACKAGES = (
    "torch",
    "transformers",
    "scikit-learn",
    "papermill",
    "jupytext",
    "jupyter-book",
    "datasets",
    "accelerate",
)


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
        found = list(sets.check(name))
        for item in found:
            expected = " or ".join(f"{count:,}" for count in item.expected)
            count = "–" if item.found is None else f"{item.found:,}"
            say(
                f"{'ok ' if item.ok else 'BAD'} {item.name:<10} {item.split:<32} "
                f"{count:>9} of {expected} {item.note}"
            )
        return 0 if all(item.ok for item in found) else 1
    if name is None:
        raise InputError("fetch needs a dataset name: `repro data list` shows them")
    from repro.data.hub import fetch  # brings pyarrow

    for path in fetch(name):
        say(str(path))
    return 0


def doctor(repair: bool = False) -> int:
    """Whether installation, data and stored artefacts are in order; with --repair they are mended.

    Args:
        repair: move damaged artefacts aside, so that they are made anew, and what killed runs left;
            nothing is removed.
    """
    faults = 0
    for line, bad in examine(repair=repair):
        say(("BAD " if bad else "ok  ") + line)
        faults += bad
    return int(any(bad for _, bad in examine()) if faults and repair else faults > 0)


def examine(*, repair: bool = False) -> Iterator[tuple[str, bool]]:
    """Findings of `repro doctor`, one by one: a line, and whether it is a fault."""
    from repro import paths
    from repro.rows import hardware

    yield f"hardware: {hardware()}", False
    for package in PACKAGES:
        absent = (found := installed(package)) == "absent"
        yield (
            f"{package} {found}"
            + (f": `make .venv/.ready`, or {installing('all')}" if absent else ""),
            absent,
        )
    yield from _backbones()
    yield f"REPRO_DATA: {paths.data_folder() or 'not set; the microworld is used'}", False
    yield from _examine_store(repair=repair)


def _examine_store(*, repair: bool) -> Iterator[tuple[str, bool]]:
    """The findings in the store; repairing moves what is faulty or left over to `damaged/`."""
    from repro.store import DAMAGED, Store

    store = Store()
    if refusal := store.refusal():
        yield f"store: {refusal}: set REPRO_HOME to a folder of its own, new or empty", True
        return
    there = next(folder for folder in (store.home, *store.home.parents) if folder.exists())
    yield f"store: {store.home} ({shutil.disk_usage(there).free / 1e9:.1f} GB free)", False
    artefacts = list(store.artefacts())
    for artefact in artefacts:
        fault = store.fault_found(artefact)
        if not fault:
            continue
        if not store.is_proven(artefact):
            outcome = "left alone, for its manifest does not say that it is ours: move it away"
        elif repair:
            in_use = "left alone, for another process makes it anew"
            outcome = "moved aside" if store.repair(artefact) else in_use
        else:
            outcome = "`repro doctor --repair` moves it aside"
        yield f"{artefact}: {fault}; {outcome}", True
    yield f"{len(artefacts)} artefacts examined", False
    for partial in store.partials():
        if store.abandoned(partial):  # else it is still being written
            outcome = f"; moved to {store.move_partial(partial)}" if repair else ""
            yield f"{partial}: left by a killed run{outcome}", True
    moved = [path for path in (store.home / DAMAGED).rglob("*") if path.is_file()]
    if moved:
        size = f"{sum(path.stat().st_size for path in moved) / 1e6:,.1f} MB"
        yield f"{store.home / DAMAGED}: {size} that nothing reads, to be removed at will", False


def _backbones() -> Iterator[tuple[str, bool]]:
    """What `examine` finds about the networks that come with the installation."""
    try:
        from repro.models.pretrained import MINILM, SHIPPED, check_intact, locate
    except ModuleNotFoundError as error:  # told above as absent
        yield f"backbones: not looked at without {error.name}", False
        return
    for name in (*SHIPPED, MINILM):
        try:
            folder = locate(name)
            check_intact(folder)
            yield f"backbone {name}: {folder}", False
        except InputError as error:
            yield f"backbone {name}: {error}", True


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


def _default(value: str) -> str:
    """A default as help shows it; one that is nothing is left to the option's own words ("by
    default …").
    """
    return "" if value in ("", "None", str(tyro.MISSING_NONPROP)) else f"(default: {value})"


_NO_BARS = tyro.conf.arg(help="show no bars of progress", help_behavior_hint="")
Quiet = Annotated[tyro.conf.FlagCreatePairsOff[bool], _NO_BARS]
quiet_option = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Quiet,
)


def _record(verb: Callable[..., int]) -> Any:
    """The record that a verb takes in place of options, whose fields they are; None if it has
    none.
    """
    kinds = list(get_type_hints(verb).values())
    return kinds[0] if is_dataclass(kinds[0]) else None


def _with_choices(hint: Any) -> Any:
    """The type of an option, or if a `Menu` is noted beside it, one that admits the choices of that
    menu alone; also within another type.
    """
    inner = getattr(hint, "__args__", ())
    if not hasattr(hint, "__metadata__") and any(hasattr(one, "__metadata__") for one in inner):
        chosen = tuple(_with_choices(one) for one in inner)
        return (tuple if get_origin(hint) is tuple else Union)[chosen]
    notes = getattr(hint, "__metadata__", ())
    menu = next((note for note in notes if isinstance(note, Menu)), None)
    return hint if menu is None else Literal[menu.choices()]


def command(
    verb: Callable[..., int],
    *,
    shows_progress: bool,
    asked: bool = True,
) -> Callable[..., int]:
    """The verb as tyro reads it: each option's help in one piece, and `--quiet` where there is
    progress to show.

    The menus of a verb that is not the one `asked` for are left unread, for what they list takes
    seconds to import.
    """
    told_by = _record(verb) or verb
    hints = get_type_hints(told_by, include_extras=True)
    parsed = docstring_parser.parse(told_by.__doc__ or "")
    texts = {
        option.arg_name: " ".join((option.description or "").split()) for option in parsed.params
    }
    options = list(inspect.signature(told_by).parameters.values())
    for at, option in enumerate(options):
        hint = hints[option.name]
        if asked:
            hint = _with_choices(hint)
        if option.name in texts:  # the others bring a help text of their own
            hint = Annotated[
                hint, tyro.conf.arg(help=texts[option.name], help_behavior_hint=_default)
            ]
        options[at] = option.replace(annotation=hint)
    options += [quiet_option] if shows_progress else []

    def told(*given: Any, quiet: bool = False, **named: Any) -> int:
        if quiet:
            os.environ[QUIET] = "1"
        return verb(*given, **named) if told_by is verb else verb(told_by(*given, **named))

    told.__doc__, told.__name__ = verb.__doc__, verb.__name__
    told.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    told.__annotations__ = {option.name: option.annotation for option in options}
    return told
