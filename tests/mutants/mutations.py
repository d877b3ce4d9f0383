"""The list of mistakes, and how one is made in a source: found by meaning, whatever the layout.

A mistake names a function and a piece of its code before and after. The piece is parsed and looked
for in the tree of that function, so that line breaks, quotes, parentheses, comments and docstrings
are free. It may be an expression, one statement or several (`a; b`), keyword arguments of a call,
or what stands in the brackets of a subscript (`:, :k`). It must be there once; where it is more
than once, the mistake says which one it means. Only the text of that piece is replaced, and every
other line keeps its place.

In a script (`.js`) the piece is the text itself, to be found once inside the function of that name.
"""

import ast
import functools
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutations.toml")
MODULE = "<module>"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Unfit(ValueError):
    """A mistake that cannot be made in this source."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: where, what it means, the code before and after, and who should notice.

    The function is qualified (`Class.method`), the name of a class (what stands in it outside its
    methods), or `<module>` (what stands outside functions and classes). The number is 0 where the
    code before is there once, and otherwise says which one is meant, counted from 1.
    """

    area: str
    file: str
    function: str
    means: str
    before: str
    after: str
    tests: str
    number: int = 0

    def made_in(self, source: str) -> str:
        """The source with the mistake in it, or `Unfit`."""
        make = made_in_script if self.file.endswith(".js") else made_in_module
        return make(source, self.function, self.before, self.after, self.number)


def read_list(text: str) -> list[Mutant]:
    """The mistakes, in the order of the list."""
    mutants = []
    for file, table in tomllib.loads(text).items():
        for function, means, before, after, *others in table["mutants"]:
            tests = [table["tests"]]
            number = 0
            for other in others:
                if isinstance(other, int):
                    number = other
                else:
                    tests = [other]
            code = (function, means, before, after)
            mutants.append(Mutant(table["area"], file, *code, *tests, number))
    return mutants


def faults_of(mutants: list[Mutant]) -> list[str]:
    """Why mistakes do not fit the package any more, a sentence each."""
    faults = []
    made = set()
    for mutant in mutants:
        what = f"{mutant.file}, {mutant.means!r}"
        source = ROOT / "src" / mutant.file
        tests = [ROOT / word.split("::")[0] for word in mutant.tests.split() if "/" in word]
        lost = [file for file in (source, *tests) if not file.exists()]
        faults += [f"{what}: there is no {file}" for file in lost]
        if source in lost:
            continue
        try:
            changed = mutant.made_in(source.read_text(encoding="utf-8"))
        except Unfit as fault:
            faults.append(f"{what}: {fault}")
            continue
        if (mutant.file, changed) in made:
            faults.append(f"{what}: listed twice")
        made.add((mutant.file, changed))
    return faults


# ------------------------------------------------------------------------------ what a piece can be


def expression(text: str) -> list[ast.AST]:
    """An expression, of any kind that may stand in parentheses."""
    return [ast.parse(f"({text}\n)", mode="eval").body]


def statements(text: str) -> list[ast.AST]:
    """One statement or several."""
    return list(ast.parse(text).body)


def keywords(text: str) -> list[ast.AST]:
    """Keyword arguments: `temperature=1.0`."""
    match ast.parse(f"f({text}\n)", mode="eval").body:
        case ast.Call(func=ast.Name(), args=[], keywords=[*given]):
            return list(given)
    return []


def subscript(text: str) -> list[ast.AST]:
    """What only brackets can hold: `:k`, or `:, 0`."""
    match ast.parse(f"x[{text}\n]", mode="eval").body:
        case ast.Subscript(value=ast.Name(), slice=ast.Slice() | ast.Tuple() as inside):
            return [inside] if any(isinstance(node, ast.Slice) for node in ast.walk(inside)) else []
    return []


def read_as(read: Callable[[str], list[ast.AST]], text: str) -> list[ast.AST]:
    """What the text is when it is read so; nothing where it cannot be."""
    try:
        return read(text)
    except SyntaxError:
        return []


Reading = tuple[Callable[[str], list[ast.AST]], list[ast.AST], list[ast.AST]]


def readings(before: str, after: str) -> Iterator[Reading]:
    """Every way to read both pieces, with what they then are. An expression is no statement too."""
    for read in (expression, statements, keywords, subscript):
        pair = read_as(read, before), read_as(read, after)
        if all(pair):
            yield read, *pair
            if read is expression:
                return


# ---------------------------------------------------------------------------------- where it stands


@dataclass(frozen=True)
class Place:
    """Nodes side by side: which of which field of which parent."""

    parent: ast.AST
    field: str
    start: int
    nodes: list[ast.AST]

    @property
    def position(self) -> tuple[int, int]:
        return self.nodes[0].lineno, self.nodes[0].col_offset

    def turns(self, tops: list[ast.AST], into: list[ast.AST], *, with_nodes: list[ast.AST]) -> bool:
        """Whether statements of the module become others once this place holds other nodes."""
        if isinstance(self.parent, ast.Module):
            return same(into, with_nodes)
        value = getattr(self.parent, self.field)
        if isinstance(value, list):
            changed = [*value[: self.start], *with_nodes, *value[self.start + len(self.nodes) :]]
        else:
            (changed,) = with_nodes
        setattr(self.parent, self.field, changed)
        try:
            return same(tops, into)
        finally:
            setattr(self.parent, self.field, value)


def same(one: Any, other: Any) -> bool:
    """Whether trees mean the same, wherever they stand, and whether names are read or assigned."""
    if type(one) is not type(other):
        return False
    if isinstance(one, ast.AST):
        names = [name for name in one._fields if name != "ctx"]
        return all(same(getattr(one, name, None), getattr(other, name, None)) for name in names)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@functools.lru_cache(maxsize=256)
def parsed(source: str) -> ast.Module:
    """The tree of a module."""
    return ast.parse(source)


def named(tree: ast.AST, name: str) -> list[ast.AST]:
    """The functions or classes of a qualified name: two for a property with a setter."""
    here = [tree]
    for word in name.split("."):
        here = [node for outer in here for node in definitions(outer) if node.name == word]
    return here


def definitions(outer: ast.AST) -> Iterator[ast.AST]:
    """Functions and classes directly inside, or inside an `if`, a `with` or the like."""
    for node in ast.iter_child_nodes(outer):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node
        else:
            yield from definitions(node)


def nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function; of a class or a module those outside its functions and classes."""
    if isinstance(scope, FUNCTIONS):
        yield from ast.walk(scope)
        return
    yield scope
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield from nodes_of(node)


def places(scope: ast.AST, wanted: list[ast.AST]) -> Iterator[Place]:
    """Where these nodes stand side by side."""
    for parent in nodes_of(scope):
        for field, value in ast.iter_fields(parent):
            siblings = value if isinstance(value, list) else [value]
            for start in range(len(siblings) - len(wanted) + 1):
                nodes = siblings[start : start + len(wanted)]
                if same(nodes, wanted):
                    yield Place(parent, field, start, nodes)


# ------------------------------------------------------------------------------- how it is replaced


def made_in_module(source: str, function: str, before: str, after: str, number: int = 0) -> str:
    """The source of a module with one piece of a function replaced."""
    tree = parsed(source)
    scopes = [tree] if function == MODULE else named(tree, function)
    known = list(readings(before, after))
    if not known:
        raise Unfit(f"not both can be read as code of one kind: {before!r} and {after!r}")
    candidates = []
    for read, old, new in known:
        if same(old, new):
            raise Unfit(f"nothing is changed: {before}")
        for scope in scopes:
            candidates += [(place, read, new) for place in places(scope, old)]
    candidates.sort(key=lambda candidate: candidate[0].position)
    if not candidates:
        raise Unfit(f"not found in {function}{elsewhere(tree, known)}: {before}")
    place, read, new = the_one(candidates, number, f"in {function}: {before}")
    return replaced(source, place, new, text_of(place, read, new, after))


def elsewhere(tree: ast.Module, known: list[Reading]) -> str:
    """The functions that do hold what was looked for, to help whoever moved or renamed one."""
    names = []
    scopes = [(MODULE, tree)]
    while scopes:
        name, scope = scopes.pop()
        if any(list(places(scope, old)) for _, old, _ in known):
            names.append(name)
        inside = f"{name}." if scope is not tree else ""
        scopes += [(inside + inner.name, inner) for inner in definitions(scope)]
    return f", but in {', '.join(sorted(names))}" if names else ""


def the_one(candidates: list, number: int, what: str) -> Any:
    """The only candidate, or that of the number; `Unfit` where there are more or fewer."""
    times = len(candidates)
    if number and not 2 <= times >= number:
        raise Unfit(f"expected to be number {number} of several, but found {times} times {what}")
    if not number and times != 1:
        raise Unfit(f"expected once, but found {times} times {what}")
    return candidates[max(number, 1) - 1]


def text_of(place: Place, read: Callable, new: list[ast.AST], after: str) -> str:
    """The text to put there, with empty lines for those that the place loses."""
    first, last = place.nodes[0], place.nodes[-1]
    text = after
    if read is statements:
        text = "\n".join(ast.unparse(node) for node in new)
        text = textwrap.indent(text, " " * first.col_offset).lstrip()
    missing = "\n" * (last.end_lineno - first.lineno - text.count("\n"))
    return f"({text}{missing})" if read is expression else text + missing


def replaced(source: str, place: Place, new: list[ast.AST], text: str) -> str:
    """The source with other text in one place; `Unfit` unless that makes the new nodes alone."""
    lines = source.encode().split(b"\n")
    first, last = place.nodes[0], place.nodes[-1]
    head = lines[first.lineno - 1][: first.col_offset]
    tail = lines[last.end_lineno - 1][last.end_col_offset :]
    middle = (head + text.encode() + tail).split(b"\n")
    changed = [*lines[: first.lineno - 1], *middle, *lines[last.end_lineno :]]

    below = [top for top in parsed(source).body if top.end_lineno >= first.lineno]
    tops = [top for top in below if begin(top) <= last.end_lineno]
    piece = changed[begin(tops[0]) - 1 : tops[-1].end_lineno + len(changed) - len(lines)]
    now = read_as(statements, b"\n".join(piece).decode())
    if not place.turns(tops, into=now, with_nodes=new):
        what = f"cannot be cut out of line {first.lineno} alone, name what encloses it"
        raise Unfit(f"{what}: {ast.unparse(first)}")
    return b"\n".join(changed).decode()


def begin(statement: ast.stmt) -> int:
    """The first line of a statement, its decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return min(node.lineno for node in [statement, *decorators])


def made_in_script(source: str, function: str, before: str, after: str, number: int = 0) -> str:
    """The text of a script with one piece of a function replaced."""
    start, end = 0, len(source)
    if function != MODULE:
        heads = re.finditer(rf"\bfunction {re.escape(function)}\(", source)
        start = the_one([*heads], 0, f"function {function}").start()
        end = closing_brace(source, source.index("{", start))
    if before == after:
        raise Unfit(f"nothing is changed: {before}")
    pieces = re.compile(re.escape(before)).finditer(source, start, end)
    piece = the_one([*pieces], number, f"in {function}: {before}")
    return source[: piece.start()] + after + source[piece.end() :]


def closing_brace(source: str, opening: int) -> int:
    """Behind the brace that closes the one that opens there; those in texts are counted too."""
    depth = 0
    for brace in re.compile("[{}]").finditer(source, opening):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    raise Unfit("a brace is never closed")
