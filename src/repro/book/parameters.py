"""The parameters of a notebook: what its tagged cell declares, and whether given values fit.

A notebook declares its parameters as ordinary typed assignments with a comment each:

    dims: list[int] = [64, 16, 8]  # embedding sizes to train

The cell is parsed, never executed, so a wrong name or type is refused before a kernel starts. (Papermill's own reader
passes over a type such as `str | None`.)
"""

import ast
import contextlib
import io
import tokenize
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from types import UnionType
from typing import Any

import yaml  # type: ignore[import-untyped]
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from repro.types import InputError


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    kind: str
    """The type as the notebook writes it (`list[int]`); `Any` where it writes none."""
    default: Any
    """The default value; source text if it is not a literal."""
    comment: str = ""

    def __str__(self) -> str:
        """The line as a user would write it."""
        return f"{self.name}: {self.kind} = {self.default!r}" + (f"  # {self.comment}" if self.comment else "")


def declared_in(source: str) -> dict[str, Parameter]:
    """Read the assignments of a parameters cell, in order.

    Raises:
        InputError: if the cell is not valid Python.
    """
    try:
        tree = ast.parse(source)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, tokenize.TokenError) as error:
        raise InputError(f"the parameters cell is not valid Python: {error}") from None
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    found: dict[str, Parameter] = {}
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                kind = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = "Any"
            case _:
                continue
        try:
            default = ast.literal_eval(value)
        except ValueError:  # an expression, say 2**7: shown as written
            default = ast.unparse(value)
        found[name] = Parameter(name, kind, default, comments.get(node.end_lineno or node.lineno, ""))
    return found


def without_bars(source: str) -> str:
    """A parameters cell with `Optional` and `Union` in place of `|`, which plain papermill's reader does not know."""
    lines, used = source.splitlines(), set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.BinOp):
            line, written = node.annotation.lineno - 1, ast.unparse(node.annotation)
            kinds = [kind for kind in written.split(" | ") if kind != "None"]
            spelled = kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"
            spelled = f"Optional[{spelled}]" if "None" in written.split(" | ") else spelled
            lines[line] = lines[line].replace(written, spelled, 1)
            used |= {name for name in ("Optional", "Union") if name in spelled}
    return "\n".join([f"from typing import {', '.join(sorted(used))}\n"] * bool(used) + lines)


def validate(declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check names and types of `given`, turning text (from a command line) into values.

    Text is read as a Python literal, then as YAML (hence JSON), then as itself, whichever first fits the
    declared type. An int passes for a float, which must be finite; elements of lists are checked one by one.

    Raises:
        InputError: on an unknown name or an unfitting value; the message lists the valid parameters.
    """
    values = {}
    for name, value in given.items():
        if name not in declared:
            raise InputError(f"unknown parameter {name!r}. {_menu(declared)}")
        try:
            kind = eval(declared[name].kind, dict(vars(typing)))
        except NameError:  # a type that only the notebook knows admits everything
            kind = Any
        for candidate in _readings(value) if isinstance(value, str) else iter([value]):
            with contextlib.suppress(TypeCheckError):
                values[name] = _fitted(candidate, kind)
                break
        else:
            raise InputError(f"parameter {name} is {value!r}: expected {declared[name].kind}. {_menu(declared)}")
    return values


def _menu(declared: Mapping[str, Parameter]) -> str:
    if not declared:
        return "This notebook declares no parameters."
    return "Valid parameters:\n" + "\n".join(f"  {parameter}" for parameter in declared.values())


def _readings(text: str) -> Iterator[Any]:
    """The values a piece of command line may mean, most literal first."""
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        yield ast.literal_eval(text.strip())
    with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
        yield yaml.safe_load(text)
    yield text


def _fitted(value: Any, kind: Any) -> Any:
    """The value as the type wants it, or a TypeCheckError."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, UnionType):
        for option in inner:
            with contextlib.suppress(TypeCheckError):
                return _fitted(value, option)
    if typing.get_origin(kind) is list and isinstance(value, list | tuple):
        return [_fitted(item, inner[0]) for item in value]
    if kind in (int, float) and (isinstance(value, bool) or (isinstance(value, float) and not isfinite(value))):
        raise TypeCheckError("is no number to count with")
    check_type(value, kind, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    return float(value) if kind is float else value
