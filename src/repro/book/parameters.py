"""The parameters that a page declares, and whether given values fit them.

A notebook declares its parameters as ordinary typed assignments with a comment each, in a cell
tagged `parameters`:

    dims: list[int] = [64, 16, 8]  # embedding sizes to train

The cell is parsed, never executed, so a wrong name or type is refused before a kernel starts.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tokenize
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any

import yaml  # type: ignore[import-untyped]
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from repro.book.notebook import declares, read
from repro.printed import completed
from repro.types import InputError

TYPE_NODES = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
)
"""What types are written with."""
QUOTED = re.compile(r"""'(?:[^'\n]|'')*'|"(?:[^"\\\n]|\\.)*\"""")
"""One text in the quotes of YAML, on one line."""
NO_VALUE = ("None", "null", "Null", "NULL", "~")
"""How Python and YAML spell that there is no value."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    kind: str  # As the notebook writes it (`list[int]`); `Any` where it writes none
    default: Any  # Source text if it is not a literal
    comment: str = ""

    def __str__(self) -> str:
        """The line as a user would write it."""
        return f"{self.name}: {self.kind} = {self.default!r}" + (
            f"  # {self.comment}" if self.comment else ""
        )


def parameters_of(source: Path | Any) -> dict[str, Parameter]:
    """The parameters that a notebook declares, in order: name, type, default and comment."""
    node = read(source) if isinstance(source, Path) else source
    cell = next(filter(declares, node.cells), None)
    declared: dict[str, Parameter] = {}
    if cell is None:
        return declared
    try:
        tree = ast.parse(cell.source)
        tokens = list(tokenize.generate_tokens(io.StringIO(cell.source).readline))
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"the parameters cell is not valid Python: {error}") from None
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    for line in tree.body:
        match line:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=annotation,
                value=ast.expr() as value,
            ):
                kind = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = "Any"
            case _:
                continue
        try:
            default = ast.literal_eval(value)
        except (ValueError, TypeError):  # An expression, say 2**7: shown as written
            default = ast.unparse(value)
        declared[name] = Parameter(
            name,
            kind,
            default,
            comments.get(line.end_lineno or line.lineno, ""),
        )
    return declared


def validate(declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check names and types of `given`, turning text (from a command line) into values.

    A number, list or nothing (`None`, `null`, `~`) is read as a Python literal, then as YAML (hence
    JSON), whichever first fits the declared type. Text is taken as it is; quotes around all of it
    are left out, so that `"null"` is a word.
    """
    menu = "Valid parameters:\n" + "\n".join(f"  {parameter}" for parameter in declared.values())
    menu = menu if declared else "This notebook declares no parameters."
    values = {}
    for name, value in given.items():
        if name not in declared:
            raise InputError(f"unknown parameter {name!r}. {menu}")
        try:
            values[name] = _read_as(value, _type_of(declared[name]))
        except TypeCheckError:
            raise InputError(
                f"parameter {name} is {value!r}: expected {declared[name].kind}. {menu}"
            ) from None
    return values


def _read_as(value: Any, kind: Any) -> Any:
    """A value as a type wants it, text in the first reading that fits; or a TypeCheckError."""
    for candidate in _readings(value) if isinstance(value, str) else iter([value]):
        with contextlib.suppress(TypeCheckError):
            return _fitted(candidate, kind)
    raise TypeCheckError("fits in no reading")


def _type_of(parameter: Parameter) -> Any:
    """The type that a parameter is declared with; one that only the notebook knows admits
    everything.

    Raises:
        InputError: for what is no type; nothing is called to find out.
    """
    try:
        nodes = list(ast.walk(ast.parse(parameter.kind, mode="eval")))
        if any(isinstance(node, ast.Call) for node in nodes):
            return Any
        if all(isinstance(node, TYPE_NODES) for node in nodes):
            kind = eval(parameter.kind, dict(vars(typing)))
            if isinstance(kind, str):  # A type in quotes
                return _type_of(replace(parameter, kind=kind))
            if kind is None or callable(kind) or typing.get_origin(kind) is not None:
                return kind
    except NameError:
        return Any
    except (SyntaxError, TypeError, AttributeError, ValueError, RecursionError):
        pass
    declared = f"parameter {parameter.name} is declared as {parameter.kind}"
    raise InputError(f"{declared}: expected a type, such as int or list[int]")


def _readings(text: str) -> Iterator[Any]:
    """The values a piece of command line may mean, most literal first.

    Text is itself, blanks and all, unless it is quoted as a whole: as YAML it would lose what looks
    like a comment, an anchor or a line's end.
    """
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text.strip())
        if not isinstance(value, str) and _is_meant(value, text):
            yield value
    with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
        value = yaml.safe_load(text)
        json.dumps(value, default=str, skipkeys=True)  # A ValueError if it contains itself
        if _is_meant(value, text):
            yield value
    yield text


def _is_meant(value: Any, text: str) -> bool:
    """Whether a piece of command line stands for a value that text could be taken for by chance."""
    if isinstance(value, str):
        return QUOTED.fullmatch(text) is not None
    return value is not None or text.strip() in NO_VALUE


def _fitted(value: Any, kind: Any) -> Any:
    """The value as the type wants it, or a TypeCheckError."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, UnionType):
        for option in inner:
            with contextlib.suppress(TypeCheckError):
                return _fitted(value, option)
        raise TypeCheckError("fits none of the types")
    if typing.get_origin(kind) is list and isinstance(value, list | tuple):
        return [_fitted(item, inner[0]) for item in value]
    if kind in (int, float) and (
        isinstance(value, bool) or (isinstance(value, float) and not isfinite(value))
    ):
        raise TypeCheckError("is no number to count with")
    check_type(value, kind, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    return float(value) if kind is float else value


def check_parameters(page: str = "") -> None:
    """Refuse what plain papermill passes to a notebook unchecked: a name it does not declare, a
    value of another type. Under the profile `paper` what was not passed gets the page's printed
    value.

    For a cell of the notebook, after that of its parameters. Papermill's own cell is known by its
    first line.
    """
    main = sys.modules["__main__"]
    kinds: dict[str, Any] = getattr(main, "__annotations__", {})
    menu = "\n".join(
        ["Valid parameters:", *(f"  {name}: {_spelled(kind)}" for name, kind in kinds.items())]
    )
    declared: set[str] = set()
    passed: dict[str, Any] = {}
    for cell in getattr(main, "In", []):
        names = _assigned(cell)
        if cell.startswith("# Parameters\n"):
            passed |= {name: getattr(main, name) for name in names}
        else:
            declared.update(names)
        for name in names:
            if name not in declared:
                raise InputError(f"unknown parameter {name!r}. {menu}")
    for name, kind in kinds.items():
        value = getattr(main, name)
        try:
            setattr(main, name, _fitted(value, kind))
        except TypeCheckError:
            expected = f"expected {_spelled(kind)}{_other_option(name, value, kind)}"
            raise InputError(f"parameter {name} is {value!r}: {expected}. {menu}") from None
    for name, value in completed(page, passed).items():
        if name not in passed:
            setattr(main, name, _read_as(value, kinds[name]))


def _other_option(name: str, value: Any, kind: Any) -> str:
    """In words, the option of papermill that passes a value as a type wants it, if one does.

    By `-p` a list comes as text, and what looks like a number as one.
    """
    option, passed = f"-r {name} {value}", str(value)
    try:
        if isinstance(value, str):
            option, passed = f'-y "{name}: {value}"', yaml.safe_load(value)
        _fitted(passed, kind)
    except (yaml.YAMLError, ValueError, RecursionError, TypeCheckError):
        return ""
    return f", which papermill's {option} passes"


def _assigned(code: str) -> list[str]:
    """The names that a cell gives values to; none if it is no Python."""
    try:
        lines = ast.parse(code).body
    except SyntaxError:
        return []
    targets: list[ast.expr] = []
    for line in lines:
        if isinstance(line, ast.Assign):
            targets += line.targets
        elif isinstance(line, ast.AnnAssign):
            targets.append(line.target)
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _spelled(kind: Any) -> str:
    """A type as a notebook writes it."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return " | ".join(_spelled(option) for option in typing.get_args(kind))
    if kind is type(None):
        return "None"
    return str(kind) if typing.get_args(kind) else getattr(kind, "__name__", str(kind))


def from_here(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with paths of the reader's working folder made absolute, since a page runs in the
    checkout.
    """

    def absolute(value: Any) -> Any:
        if isinstance(value, list):
            return [absolute(item) for item in value]
        # Folder:blocks
        name, colon, blocks = value.partition(":") if isinstance(value, str) else ("", "", "")
        path = Path(os.path.expanduser(name))
        # A bare name may be a system or a set as well: only a folder that holds a network is taken
        # for one.
        is_network = path.exists() if os.sep in name else name and (path / "config.json").is_file()
        return f"{path.resolve()}{colon}{blocks}" if is_network else value

    return {name: absolute(value) for name, value in values.items()}
