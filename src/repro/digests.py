"""Sixteen hex digits that name a configuration and the code that acts on it.

The code of a result is that of the module that makes it and of all modules of this project that it
imports, found by reading their source. Comments, docstrings and layout do not count: they change no
result.
"""

import ast
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from repro.paths import PACKAGE
from repro.types import InputError

# What this distribution installs, side by side
PACKAGES = ("repro", "rivals", "dimadvise", "microworld")


def digest(config: Any, *, code: tuple[str, ...] = ()) -> str:
    """Digest of a dataclass or JSON-like values, and of the code of some modules and of all that
    they import.
    """
    named = {
        "type": type(config).__name__,
        "values": plain(config),
        "code": {m: code_digest(m) for m in code},
    }
    return _short(json.dumps(named, sort_keys=True).encode())


def plain(value: Any) -> Any:
    """The value as JSON has it; an array is named by a digest of its numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return {
            "array": [
                value.dtype.str,
                list(value.shape),
                _short(np.ascontiguousarray(value).tobytes()),
            ]
        }
    return str(value) if isinstance(value, Path) else value


def module_of(function: Callable[..., Any]) -> str:
    """The module that defines a function, whatever arguments it was given in advance."""
    while isinstance(function, partial):
        function = function.func
    return function.__module__


@cache
def code_digest(*modules: str) -> str:
    """Digest of what modules do, together with all that they import of this project."""
    closure = import_closure(*modules)
    return _short("".join(f"{name}\n{read_module(name)[0]}\n" for name in closure).encode())


@cache
def import_closure(*modules: str) -> tuple[str, ...]:
    """The modules and those of this project that they import, directly or not, none of them
    executed.
    """
    found, queue = set[str](), list(modules)
    while queue:
        name = queue.pop()
        if name not in found:
            found.add(name)
            queue += read_module(name)[1]
    return tuple(sorted(found))


def all_modules() -> tuple[str, ...]:
    """All modules of this project, by name."""
    source = PACKAGE.parent
    files = (path for package in PACKAGES for path in sorted((source / package).rglob("*.py")))
    names = (path.relative_to(source).with_suffix("").as_posix() for path in files)
    return tuple(name.removesuffix("/__init__").replace("/", ".") for name in names)


@cache
def read_module(module: str) -> tuple[str, tuple[str, ...]]:
    """What a module does, as text, and the modules of this project that it imports."""
    tree = _tree(module)
    return ast.dump(tree), imports_of(tree)


def imports_of(tree: ast.Module) -> tuple[str, ...]:
    """The modules of this project that code imports."""
    imported = list[str]()
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names if _path(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.module and _path(node.module):
            imported += [_home(node.module, alias.name) for alias in node.names]
    return tuple(imported)


def _home(module: str, name: str) -> str:
    """Where a name is defined that is imported from a module: there, in a module below it, or where
    it has it from.
    """
    if _path(f"{module}.{name}"):
        return f"{module}.{name}"
    path = _path(module)
    if path is not None and path.name == "__init__.py":
        for node in _tree(module).body:
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and any(a.name == name for a in node.names)
            ):
                return _home(node.module, name)
    return module


def _path(module: str) -> Path | None:
    if module.partition(".")[0] not in PACKAGES:
        return None
    stem = PACKAGE.parent.joinpath(*module.split("."))
    return next(
        (path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()),
        None,
    )


@cache
def _tree(module: str) -> ast.Module:
    """The syntax tree of a module, without docstrings."""
    path = _path(module)
    if path is None:
        raise InputError(f"no module {module!r} of this project to take a code version from")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for block in (tree, *_statements(tree.body)):
        if body := getattr(block, "body", None):
            body[:] = [line for line in body if not _is_text(line)]
    return tree


def _statements(lines: list[ast.stmt]) -> Iterator[ast.AST]:
    """All statements, those inside of others too; expressions, which hold no import, are not looked
    into.
    """
    for line in lines:
        yield line
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(line, part, []))


def _is_text(line: ast.stmt) -> bool:
    return (
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and isinstance(line.value.value, str)
    )


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
