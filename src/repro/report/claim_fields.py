"""What the fields of a table of claims hold, and the refusal of any other: a misspelt one would
change in silence what a claim is judged by.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from repro.report.outcomes import REASONS, TESTABLE
from repro.types import InputError, one_of

SIDES = {"more_than": 1, "less_than": -1}
"""Fields that say what a value is compared with, and on which side of it the claim has it."""
TEXT, NAMES, FLAG = "a text", "a list of names", "true or false"
TABLE, TABLES, LISTS = "a table", "a list of tables", "a table of lists"
NUMBER, WHOLE, SIDE = "a finite number", "a whole number", "1 or -1"
CALLED = "a function's name, or a table that names it `by`"
PRINTED = "a finite number, or a table that names a function `by`"
KINDS: dict[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    NAMES: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    FLAG: lambda value: isinstance(value, bool),
    TABLE: lambda value: isinstance(value, dict),
    TABLES: lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value),
    LISTS: lambda value: (
        isinstance(value, dict) and all(isinstance(one, list) for one in value.values())
    ),
    NUMBER: lambda value: type(value) in (int, float) and isfinite(value),
    WHOLE: lambda value: type(value) is int,
    SIDE: lambda value: type(value) is int and abs(value) == 1,
    CALLED: lambda value: isinstance(value, str) or _names_function(value),
    PRINTED: lambda value: KINDS[NUMBER](value) or _names_function(value),
}
"""What a field holds, in words, and whether a value is of that kind."""
RECORD = {
    **dict.fromkeys(("statement", "place", "paper", "testable", "likely"), TEXT),
    **dict.fromkeys(("asked_of", "protocol"), TEXT),
    **dict.fromkeys(("judges", "own", "asks", "folds"), NAMES),
    "trained": FLAG,
    "parts": TABLES,
}
"""Fields of a claim and what they hold, some of them of `every` claim of its document."""
WHERE = {"on": NAMES, "for_each": LISTS, "smallest": FLAG}
"""Fields of every part that say where it is judged, and how often."""
PART = {
    **dict.fromkeys(("what", "rows", "test", "unit", "needs"), TEXT),
    **dict.fromkeys(("near", "more_than", "less_than"), NUMBER),
    **dict.fromkeys(("each", "cell"), CALLED),
    **{"over": NAMES, "at": WHOLE, "direction": SIDE, "sized": FLAG, "control": TABLE},
    "printed": PRINTED,
}
"""Fields of a part that names no function, besides those of `WHERE`; where a part that names one
has them, they hold the same.
"""


def check_record(claim: str, record: Mapping[str, Any], document_table: Mapping[str, Any]) -> None:
    """Raise an InputError for a field or a word that no record has, a field that all have, or one
    that holds something else; and for a network that its table does not know.
    """
    check_fields(claim, record, RECORD, needed=("statement", "place", "parts"))
    every = document_table["every"]
    networks = [*every["judges"], *every["own"], *document_table.get("also_judge", ())]
    for name in ("judges", "own"):
        for network in record[name]:
            one_of(network, list(dict.fromkeys(networks)), f"network in `{name}` of {claim}")
    one_of(record["testable"], list(TESTABLE), f"`testable` of {claim}")
    one_of(record["likely"], list(REASONS), f"`likely` of {claim}")
    for part in record["parts"]:
        where = {name: part[name] for name in WHERE if name in part}
        check_fields(claim, where, WHERE, needed=("on",))
        for name in part["on"]:
            one_of(name, list(document_table["experiments"]), f"experiment of {claim}")


def check_fields(
    claim: str, given: Mapping[str, Any], known: Mapping[str, str], needed: Sequence[str]
) -> None:
    """Raise an InputError for a field that is not known or holds something else than is known, or
    that is needed and missing.
    """
    for name in given:
        one_of(name, list(known), f"field of {claim}")
    if missing := [name for name in needed if name not in given]:
        raise InputError(f"{claim} does not say its {' and '.join(missing)}")
    check_kinds(claim, given, known)


def check_kinds(claim: str, given: Mapping[str, Any], known: Mapping[str, str]) -> None:
    """Raise an InputError for a field that holds something else than is known of it."""
    for name, value in given.items():
        if name in known and not KINDS[known[name]](value):
            raise InputError(f"`{name}` of {claim} is {value!r}: expected {known[name]}")


def _names_function(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("by"), str)
