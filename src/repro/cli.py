"""The command `repro`: a verb is a function in a file `verbs_*.py`, which `verb_options.py` makes
an entry of the command line.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that
needs them.
"""

import logging
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence

import tyro

from dimadvise.command import advise, apply, check
from repro import __version__
from repro.reading import is_out_of_memory
from repro.terminal import (
    allow_any_letter,
    close_output,
    complain,
    complain_of_warnings,
    explained,
    say,
)
from repro.types import InputError, extra_with, lacking, one_of
from repro.verb_options import command
from repro.verbs_cells import sweep
from repro.verbs_data import data
from repro.verbs_doctor import doctor
from repro.verbs_embeddings import encode, evaluate
from repro.verbs_export import export
from repro.verbs_pages import book, clean, compare, notebooks, run
from repro.verbs_pretraining import pretrain
from repro.verbs_reduce import reduce
from repro.verbs_training import train

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
FEWEST_COLUMNS = 20
"""Of a terminal, for help; within six or fewer, tyro never ends wrapping it."""


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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # A scheduler's Ctrl-C
    allow_any_letter()
    code = 0
    try:
        with warnings.catch_warnings(action="default", category=UserWarning):
            complain_of_warnings()
            code = _verb(sys.argv[1:] if arguments is None else arguments, verbs, prog)
        sys.stdout.flush()
    except BrokenPipeError:
        close_output()
    except ModuleNotFoundError as error:
        extra = extra_with(error.name or "")
        if extra is None:  # A fault of the package, not of its installation
            raise
        complain(f"error: {lacking(str(error.name), extra)}")
        code = 2
    except (InputError, TypeError, OSError) as error:
        if isinstance(error, TypeError) and not str(error).startswith("texts"):
            raise
        complain(f"error: {explained(error) if isinstance(error, OSError) else error}")
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
    if shutil.get_terminal_size().columns < FEWEST_COLUMNS:
        os.environ["COLUMNS"] = str(FEWEST_COLUMNS)
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
