"""A verb as tyro reads it: its options are the arguments of a function or the fields of the record
that it takes, their help is the docstring.
"""

import inspect
import os
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, Union, get_origin, get_type_hints

import docstring_parser
import tyro

from repro.terminal import QUIET, Menu

Pairs = Annotated[
    tyro.conf.UseAppendAction[list[tuple[str, str]]],
    tyro.conf.arg(aliases=["-p"], metavar="NAME VALUE"),
]
"""Parameters of pages, given one by one."""
_NO_BARS = tyro.conf.arg(help="show no bars of progress", help_behavior_hint="")
Quiet = Annotated[tyro.conf.FlagCreatePairsOff[bool], _NO_BARS]
quiet_option = inspect.Parameter(
    "quiet",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Quiet,
)


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
    described = _record(verb) or verb
    hints = get_type_hints(described, include_extras=True)
    parsed = docstring_parser.parse(described.__doc__ or "")
    texts = {
        option.arg_name: " ".join((option.description or "").split()) for option in parsed.params
    }
    options = list(inspect.signature(described).parameters.values())
    for position, option in enumerate(options):
        hint = hints[option.name]
        if asked:
            hint = _with_choices(hint)
        if option.name in texts:  # The others bring a help text of their own
            hint = Annotated[
                hint, tyro.conf.arg(help=texts[option.name], help_behavior_hint=_default)
            ]
        options[position] = option.replace(annotation=hint)
    options += [quiet_option] if shows_progress else []

    def verb_of_options(*given: Any, quiet: bool = False, **named: Any) -> int:
        if quiet:
            os.environ[QUIET] = "1"
        return verb(*given, **named) if described is verb else verb(described(*given, **named))

    verb_of_options.__doc__, verb_of_options.__name__ = verb.__doc__, verb.__name__
    verb_of_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    verb_of_options.__annotations__ = {option.name: option.annotation for option in options}
    return verb_of_options


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


def _default(value: str) -> str:
    """A default as help shows it; one that is nothing is left to the option's own words ("by
    default …").
    """
    return "" if value in ("", "None", str(tyro.MISSING_NONPROP)) else f"(default: {value})"
