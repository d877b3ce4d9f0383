"""Claims as records: one table a document, `repro/papers/NAME.toml`, and what is read from it.

A table begins with the networks that single claims name and others do not, `also_judge`, and what
holds of `every` claim of the document. Then come the `places` of its networks that ours take, the
`experiments` that judge it, each with the function that reads its rows, and `words` that stand in
its sentences and queries under a name in braces, `{name}`.

A record holds the `statement` as the document makes it, its `place` there, and the law by which it
is judged, all of it declared before any run: what kind of statement it is (`testable`), the
networks that judge it, in order (`judges`), which of them are the paper's (`own`), what it `asks`
of a network, and the `likely` reason, in one word, if it is not seen. Only parts whose text matches
`asked_of` speak of similarity and ask for a score above counted words'. In `folds` stand the
experiments where folds of all items speak alone. All of its `parts` must hold.

An experiment, or a record, says in `protocol` what is not the paper's there, on whatever network.
An experiment says in `taught` which one tells what its training lifts; `lifts` are the printed
ones.

A part says `on` which experiments it is judged and, as fields of a `Judge`, which `rows` decide, in
which cell, against what, in which `unit`, at which printed size; of a statement that is a size, and
is told by another measure or at another size, `sized`. A part with a `control` is asked only of
networks that training costs nothing without the method. A part that needs arithmetic or conditions
of its own names a function, `by = "levelled"`, to which all that stands beside it is given.

A name that a table misspells is refused with those that it may be: `RECORD` and `PART` list the
fields. What a part says without `more_than` or `less_than` is that the value is above 0.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial
from inspect import Parameter, signature
from itertools import product
from typing import Any, get_args

import pandas as pd

from repro import paths
from repro.report.cells import average, farthest, highest, lowest
from repro.report.claim_fields import PART, SIDES, check_fields, check_kinds, check_record
from repro.report.judge import (
    Facts,
    Judge,
    Premised,
    Rule,
    each_network,
    judge,
    network_by_network,
    whole,
)
from repro.report.verdict import Measurement, Test
from repro.rows import parsed, without_origin
from repro.types import InputError, one_of

DOCUMENTS = ("wang", "zhang", "sbertlp", "ese", "proposal")
"""Tables, in the order in which claims are listed."""
UNITS: dict[str, tuple[str, Callable[[Facts], float]]] = {
    "points lost": ("points", lambda facts: -1.0),
    # The score it is divided by is taken as exact
    "per cent lost": ("%", lambda facts: -100 / float(facts["score"])),
    "of the map": ("of the map", lambda facts: 0.01),
}
"""What a lead is told in, other than points: the unit, and the factor to it."""
AS_THEY_ARE = ("points", "hundredths of a nat")
"""Units of values that stand as they are."""
KNOWN = {
    function.__name__: function
    for function in (
        average,
        each_network,
        farthest,
        highest,
        judge,
        lowest,
        network_by_network,
    )
}
"""Functions that every table may name."""

Functions = Mapping[str, Any]


@cache
def table(document: str) -> dict[str, Any]:
    """The table of a document, as it is written."""
    path = paths.TABLES / f"{document}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def records() -> dict[str, dict[str, Any]]:
    """The records of all claims by id, each with what holds of every claim of its document."""
    all_records = {}
    for document in DOCUMENTS:
        for claim, record in table(document)["claims"].items():
            all_records[claim] = {**table(document)["every"], **record}
            check_record(claim, all_records[claim], table(document))
    return all_records


def record_of(claim: str) -> dict[str, Any]:
    """The record of one claim; an InputError for an id that no table has."""
    if claim not in records():
        tables_hold = f"the tables hold {len(records())}, such as {min(records())}"
        raise InputError(f"unknown claim {claim!r}: {tables_hold}")
    return records()[claim]


@cache
def claims() -> pd.DataFrame:
    """All checkable statements of the five documents."""
    columns = ["paper", "place", "statement", "testable"]
    listed = pd.DataFrame.from_dict(records(), orient="index")[columns]
    return listed.rename_axis("claim_id").reset_index()


def places_of(experiment: str) -> dict[str, str]:
    """Our networks, or `any`, to those of the paper that an experiment is of in whose place they
    stand.
    """
    document = experiment.split("_")[0]
    return table(document).get("places", {}) if document in DOCUMENTS else {}


def pages_of(claim: str) -> int:
    """On how many pages the parts of a claim are judged."""
    return len({name for part in record_of(claim)["parts"] for name in part["on"]})


def experiment_of(name: str) -> dict[str, Any]:
    """What its document's table says of an experiment, with or without folds; nothing of one that
    no table has.
    """
    document, _, name_in_table = name.removesuffix("_folds").partition("_")
    return table(document)["experiments"].get(name_in_table, {}) if document in DOCUMENTS else {}


def lift_of(experiment: str) -> dict[str, Any]:
    """What an experiment's training is printed to lift, and where ours is told: `objective`,
    `untouched`, `trained`, `rows`; empty where the table says nothing.
    """
    taught = experiment_of(experiment).get("taught")
    if taught is None:
        return {}
    document = experiment.split("_")[0]
    return {**table(document)["lifts"][taught], "rows": f"{document}_{taught}"}


def folded(experiment: str) -> list[str]:
    """The claims of which in an experiment folds of all items speak alone."""
    document, _, name = experiment.partition("_")
    listed = table(document)["claims"].items()
    return [claim for claim, record in listed if name in record.get("folds", ())]


@dataclass(frozen=True)
class OfExperiment:
    """What judges the rows of an experiment by the rules of its document's table."""

    experiment: str
    read: Callable[..., list[Measurement]]
    code: tuple[str, ...]  # Modules with the functions that the table names
    options: tuple[Any, ...] = ()
    """What `read` is given besides rows, such as the full size of a network that is not known."""

    def __call__(self, rows: pd.DataFrame, *options: Any) -> list[Measurement]:
        """What rows say of the claims; recorded ones come `parsed`, live ones do not."""
        parsed_rows = rows if "winner" in rows else parsed(rows)
        return self.read(without_origin(parsed_rows), *(options or self.options))

    def given(self, *options: Any) -> "OfExperiment":
        """The same with options; None leaves them to the rows."""
        return replace(self, options=() if set(options) == {None} else options)


def judges_of(document: str, *namespaces: Functions) -> dict[str, OfExperiment]:
    """By experiment, what judges its rows; the namespaces hold the functions that the table
    names.
    """
    functions_by_name = dict(KNOWN)
    for functions in namespaces:
        functions_by_name |= functions
    code = tuple(functions["__name__"] for functions in namespaces)
    judges: dict[str, OfExperiment] = {}
    for name, experiment in table(document)["experiments"].items():
        rules = list(rules_of(document, name, functions_by_name))
        read = partial(function_of(experiment["read"], functions_by_name), rules)
        alone = folded(f"{document}_{name}")
        judged = partial(whole, read, alone) if alone else read
        judges[f"{document}_{name}"] = OfExperiment(f"{document}_{name}", judged, code)
    return judges


def rules_of(document: str, experiment: str, functions: Functions) -> Iterator[Rule]:
    """The rules of all parts that are judged on an experiment, in the order of the table.

    A part with `for_each` is a rule for each of the words, or tables of words, that it lists; if it
    is to be told at the `smallest` of them, these are one rule.
    """
    document_table = table(document)
    shared = {**document_table.get("words", {}), **document_table["experiments"][experiment]}
    for claim, record in document_table["claims"].items():
        for part in record["parts"]:
            if experiment not in part["on"]:
                continue
            fields = {
                name: part[name] for name in part if name not in ("on", "for_each", "smallest")
            }
            listed = part.get("for_each", {})
            rules = []
            for chosen in product(*listed.values()):
                words = shared.copy()
                for name, word in zip(listed, chosen, strict=True):
                    words |= word if isinstance(word, dict) else {name: word}
                rules.append(rule_of(claim, filled(fields, words), functions))
            yield from [tuple(rules)] if part.get("smallest") else rules


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """What a field says, with the words of these names in place of the names in braces."""
    if isinstance(value, dict):
        return {name: filled(inner, words) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, words) for inner in value]
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"{{{name}}}", word)
    return value


def rule_of(claim: str, fields: Mapping[str, Any], functions: Functions) -> Any:
    """The rule of one part: what its function measures, or a `Judge` of its fields.

    `printed` is a number or the name of what computes it; other numbers stand as they are.
    """
    check_kinds(claim, fields, PART)
    arguments = dict(fields)
    if "control" in arguments:
        control = {
            "what": "",
            "each": arguments.get("each", "each_network"),
            **arguments.pop("control"),
        }
        control_experiment = control.pop("of", "")
        return Premised(
            rule_of(claim, arguments, functions),
            rule_of(claim, control, functions),
            of=control_experiment,
        )
    if len(sides := [side for side in SIDES if side in fields]) > 1:
        raise InputError(f"{claim} says {' and '.join(sides)}: expected one of them")
    if "by" not in fields:
        check_fields(claim, fields, PART, needed=("what", "rows"))
        one_of(fields.get("test", "effect"), get_args(Test), f"`test` of {claim}")
        one_of(fields.get("unit", "points"), [*UNITS, *AS_THEY_ARE], f"`unit` of {claim}")
        if left := re.search(r"\{\w*\}", fields["rows"]):
            raise InputError(f"the rows of {claim} name {left[0]}: expected a word of its table")
    if "printed" in arguments:
        printed = arguments.pop("printed")
        arguments["paper"] = (
            function_of(printed, functions)() if isinstance(printed, dict) else printed
        )
    for side in SIDES:
        if side in arguments:
            arguments |= {"null": arguments.pop(side), "direction": SIDES[side]}
    if "each" in arguments:
        arguments["each"] = function_of(arguments["each"], functions)
    if "by" in arguments:
        return function_of({**arguments, "claim": claim}, functions)
    if "cell" in arguments:
        arguments["pick"] = function_of(arguments.pop("cell"), functions)
    if arguments.get("unit") in UNITS:
        arguments["unit"], arguments["scale"] = UNITS[arguments["unit"]]
    if "over" in arguments:
        arguments["over"] = tuple(arguments["over"])
    return Judge(claim, **arguments)


def function_of(function: str | Mapping[str, Any], functions: Functions) -> Callable[..., Any]:
    """The function that a table names, with the arguments that stand beside its name, if any do."""
    arguments = {"by": function} if isinstance(function, str) else dict(function)
    name = arguments.pop("by")
    if not callable(functions.get(name)):
        near = " or ".join(get_close_matches(name, functions))
        meant = f" (did you mean {near}?)" if near else ""
        expected = f"expected a function of its document{meant}"
        raise InputError(f"a table of claims names {name!r}: {expected}")
    parameters = signature(functions[name]).parameters
    if all(parameter.kind is not Parameter.VAR_KEYWORD for parameter in parameters.values()):
        for argument in arguments:
            one_of(
                argument, list(parameters), f"argument of {name}, which a table of claims names,"
            )
    return partial(functions[name], **arguments)
