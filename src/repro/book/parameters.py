"""The parameters of a notebook: what its tagged cell declares, and whether given values fit.

A notebook declares its parameters as ordinary typed assignments with a comment each:

    dims: list[int] = [64, 16, 8]  # embedding sizes to train

The cell is parsed, never executed, so a wrong name or type is refused before a kernel starts.
"""

import ast
import contextlib
import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.types import InputError


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    kind: str
    """The type as the notebook writes it (`list[int]`), or as its default suggests."""
    default: Any
    """The default value; source text if it is not a literal."""
    comment: str = ""

    def __str__(self) -> str:
        """The line as a user would write it."""
        return f"{self.name}: {self.kind} = {self.default!r}" + (f"  # {self.comment}" if self.comment else "")


class _MisfitError(TypeError):
    """A value that a type does not admit."""


def declared_in(source: str) -> dict[str, Parameter]:
    """Read the assignments of a parameters cell, in order.

    Raises:
        InputError: if the cell is not valid Python.
    """
    try:
        tree = ast.parse(source)
        comments = _comments(source)
    except (SyntaxError, tokenize.TokenError) as error:
        raise InputError(f"the parameters cell is not valid Python: {error}") from None
    found: dict[str, Parameter] = {}
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                kind = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = ""
            case _:
                continue
        try:
            default = ast.literal_eval(value)
            kind = kind or _kind_of(default)
        except ValueError:  # an expression, say 2**7: shown as written
            default, kind = ast.unparse(value), kind or "Any"
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
        kind = ast.parse(declared[name].kind, mode="eval").body
        for candidate in _readings(value) if isinstance(value, str) else iter([value]):
            try:
                values[name] = _fit(candidate, kind)
                break
            except _MisfitError:
                continue
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


def _fit(value: Any, kind: ast.expr) -> Any:
    """Return `value` as the annotation `kind` wants it; an annotation unknown here admits everything."""
    match kind:
        case ast.Constant(value=None):
            return _only(value, value is None)
        case ast.Constant(value=str() as quoted):  # a forward reference
            return _fit(value, ast.parse(quoted, mode="eval").body)
        case ast.Name(id="bool"):
            return _only(value, isinstance(value, bool))
        case ast.Name(id="int"):
            return _only(value, isinstance(value, int) and not isinstance(value, bool))
        case ast.Name(id="float"):
            return float(
                _only(value, isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value))
            )
        case ast.Name(id="str"):
            return _only(value, isinstance(value, str))
        case ast.Name(id="list"):
            return list(_only(value, isinstance(value, list | tuple)))
        case ast.Name(id="tuple"):
            return tuple(_only(value, isinstance(value, list | tuple)))
        case ast.Name(id="dict"):
            return _only(value, isinstance(value, dict))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _fit_any(value, [left, right])
        case ast.Subscript(value=ast.Name(id=outer), slice=inner):
            return _fit_generic(value, outer, inner.elts if isinstance(inner, ast.Tuple) else [inner])
    return value


def _fit_generic(value: Any, outer: str, inner: list[ast.expr]) -> Any:
    if outer in ("list", "Sequence", "set"):
        return [_fit(item, inner[0]) for item in _fit(value, ast.Name(id="list"))]
    if outer == "tuple":
        items = _fit(value, ast.Name(id="tuple"))
        if isinstance(inner[-1], ast.Constant) and inner[-1].value is Ellipsis:
            inner = [inner[0]] * len(items)
        _only(items, len(items) == len(inner))
        return tuple(_fit(item, kind) for item, kind in zip(items, inner, strict=True))
    if outer in ("dict", "Mapping"):
        items = _fit(value, ast.Name(id="dict"))
        return {_fit(key, inner[0]): _fit(item, inner[1]) for key, item in items.items()}
    if outer in ("Optional", "Union"):
        return _fit_any(value, [*inner, *[ast.Constant(None)] * (outer == "Optional")])
    if outer == "Literal":
        return _only(value, any(ast.literal_eval(option) == value for option in inner))
    return value


def _fit_any(value: Any, kinds: list[ast.expr]) -> Any:
    for kind in kinds:
        try:
            return _fit(value, kind)
        except _MisfitError:
            continue
    raise _MisfitError


def _only(value: Any, fits: bool) -> Any:
    if not fits:
        raise _MisfitError
    return value


def _kind_of(value: Any) -> str:
    """The type a bare default suggests; an empty list or None says too little and admits everything."""
    if value is None:
        return "Any"
    if isinstance(value, list | tuple) and value:
        kinds = {_kind_of(item) for item in value}
        inner = kinds.pop() if len(kinds) == 1 else "float" if kinds == {"int", "float"} else "Any"
        return f"list[{inner}]"
    return type(value).__name__


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
