"""The command `repro`: a verb is a function of `verbs*.py`, its help the docstring, its options the arguments.

A user's mistake ends with exit code 2 and one message; heavy libraries load only in the verb that needs them.
"""

import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, get_type_hints

import docstring_parser
import tyro

from dimadvise.command import advise
from repro import __version__
from repro.terminal import QUIET, close_output, complain, say
from repro.types import InputError
from repro.verbs import book, compare, data, doctor, export, notebooks, run
from repro.verbs_embeddings import encode, evaluate, reduce
from repro.verbs_training import pretrain, train

ABOUT = """How many dimensions does a sentence embedding need? Measure it on your own texts, or rerun the book's pages.

Three things to begin with:
  repro advise --encoder all-MiniLM-L6-v2 --texts stsb   how few dimensions keep an encoder's quality
  repro run playground -p dims "[64, 16]"                a page of the book with numbers of your own
  repro compare wang_table1                              a paper's table beside what was measured here

The book is made by `repro book` and lies in _build/html/index.html; what the repository holds is told in README.md.

More of each verb is told by `repro VERB --help`; `repro --version` says which version this is.
"""

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


def _default(value: str) -> str:
    """A default as help shows it; one that is nothing is left to the option's own words ("by default …")."""
    return "" if value in ("", "None", str(tyro.MISSING_NONPROP)) else f"(default: {value})"


Quiet = Annotated[
    tyro.conf.FlagCreatePairsOff[bool], tyro.conf.arg(help="show no bars of progress", help_behavior_hint="")
]
quiet_option = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)


def command(verb: Callable[..., int], *, shows_progress: bool) -> Callable[..., int]:
    """The verb as tyro reads it: each option's help in one piece, and `--quiet` where there is progress to show."""
    hints = get_type_hints(verb, include_extras=True)
    parsed = docstring_parser.parse(verb.__doc__ or "")
    texts = {option.arg_name: " ".join((option.description or "").split()) for option in parsed.params}
    options = list(inspect.signature(verb).parameters.values())
    for at, option in enumerate(options):
        hint = hints[option.name]
        if option.name in texts:  # the others bring a help text of their own
            hint = Annotated[hint, tyro.conf.arg(help=texts[option.name], help_behavior_hint=_default)]
        options[at] = option.replace(annotation=hint)
    options += [quiet_option] if shows_progress else []

    def run(*given: Any, quiet: bool = False, **named: Any) -> int:
        if quiet:
            os.environ[QUIET] = "1"
        return verb(*given, **named)

    run.__doc__, run.__name__ = verb.__doc__, verb.__name__
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run
