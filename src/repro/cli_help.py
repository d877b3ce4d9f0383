"""From a verb's signature and docstring to what its `--help` says."""

import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import docstring_parser
import tyro

from repro.terminal import QUIET

T = TypeVar("T")


def _default(value: str) -> str:
    """A default as help shows it; one that is nothing is left to the option's own words ("by default …")."""
    return "" if value in ("", "None", str(tyro.MISSING_NONPROP)) else f"(default: {value})"


Unset = Annotated[T | None, tyro.conf.arg(help_behavior_hint=_default)]
"""an option whose help says what happens without it"""
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
