"""How large is the project? `python tests/counts.py` prints each figure beside its budget;
`--strict` fails over one.

A function serves one page only if the code of exactly one page names it, and nothing in `src/` does
but its definition (and perhaps the `__init__` that hands it on). A page's code lines are the
non-empty ones of its code cells; shown are those of cells whose input is not hidden. The files that
explain a page are those of `papers`, `runs` and `report` that it imports, with what a file of
`papers` imports of these three in its turn; the science beneath (models, losses, data and so on) is
counted nowhere.
"""

import ast
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import jupytext

from repro.terminal import say

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
SKIP = re.compile("# fmt: " + "skip")
HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
EXPLAINING = ("repro.papers", "repro.runs", "repro.report")
OF_PAPERS = ("wang_", "zhang_", "sbertlp_", "ese_")


def names_in(tree: ast.AST) -> Iterator[str]:
    """Every name that code reads, imports or looks up."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name.rsplit(".", 1)[-1]


def module_of(name: str) -> Path | None:
    """The file of a module, or of a package that is more than a docstring."""
    path = SRC / name.replace(".", "/")
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    package = path / "__init__.py"
    return (
        package
        if package.is_file() and len(ast.parse(package.read_text(encoding="utf-8")).body) > 1
        else None
    )


def imported(tree: ast.AST) -> set[Path]:
    """The explaining files that code imports: modules, or the packages that stand for them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if module_of(name) else node.module for name in inner]
        else:
            continue
        found |= {
            path for name in names if name.startswith(EXPLAINING) and (path := module_of(name))
        }
    return found


def explaining(tree: ast.AST) -> set[Path]:
    """All files that explain a page."""
    found, waiting = set[Path](), imported(tree)
    while waiting:
        path = waiting.pop()
        found.add(path)
        if SRC / "repro" / "papers" in path.parents:
            waiting |= imported(ast.parse(path.read_text(encoding="utf-8"))) - found
    return found


def cells_of(page: Path) -> list[tuple[str, bool]]:
    """The code of every cell of a page, and whether it is shown."""
    node = jupytext.read(page, fmt="md:myst")
    code = [cell for cell in node.cells if cell.cell_type == "code"]
    return [(cell.source, not HIDDEN & set(cell.metadata.get("tags", []))) for cell in code]


SPACING = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
"""Tokens that nobody has to understand."""
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def without_docstrings(tree: ast.Module) -> ast.Module:
    """The same tree, less the text that opens a module, a class or a function."""
    for node in ast.walk(tree):
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return tree


def nodes_of(files: list[Path]) -> int:
    """Nodes of the syntax trees of all files: what there is to understand, however it is laid
    out.
    """
    trees = (without_docstrings(ast.parse(file.read_text(encoding="utf-8"))) for file in files)
    return sum(len(list(ast.walk(tree))) for tree in trees)


def tokens_a_line(files: list[Path]) -> float:
    """Tokens of a line that holds code, on average; docstrings and comments are no code."""
    tokens = 0
    lines = 0
    for file in files:
        with file.open("rb") as text:
            code_lines = set()
            for token in tokenize.tokenize(text.readline):
                opens_text = token.type == tokenize.STRING and token.line.lstrip().startswith(
                    ('"""', 'r"""')
                )
                if token.type not in SPACING and not opens_text:
                    tokens += 1
                    code_lines.add(token.start[0])
            lines += len(code_lines)
    return tokens / lines


def long_functions(trees: list[ast.Module]) -> tuple[int, int]:
    """Functions of nine arguments or more, and functions of more than sixty lines."""
    functions = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, DEFINITIONS[2:])
    ]
    arguments = [[*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs] for f in functions]
    wide = sum(len(names) >= 9 for names in arguments)
    return wide, sum(f.end_lineno - f.lineno >= 60 for f in functions)


def figures() -> Iterator[tuple[str, float, float | None]]:
    """Every figure: what it is, its value, and its budget.

    Budgets count nodes of syntax trees, which no layout makes fewer. Those of today leave a few per
    cent of room; what they are to become is said behind them.
    """
    packages = {
        name: sorted((SRC / name).rglob("*.py"))
        for name in ("repro", "rivals", "dimadvise", "microworld")
    }
    tests = sorted((ROOT / "tests").rglob("*.py"))
    source = [file for files in packages.values() for file in files]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in source}
    budgets = {"repro": 182_000, "dimadvise": 39_000}
    yield "nodes of src (to become 188,000)", nodes_of(source), 246_000
    for name, files in packages.items():
        yield f"nodes of {name}", nodes_of(files), budgets.get(name)
    yield "tokens a code line of src", round(tokens_a_line(source), 1), 9.5
    long_lines = sum(
        len(line) > 100 for file in source for line in file.read_text(encoding="utf-8").splitlines()
    )
    yield "lines of src over 100 columns", long_lines, 0
    classes = sum(
        isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree)
    )
    yield "classes of src (to become 130)", classes, 186
    wide, tall = long_functions(list(trees.values()))
    yield "functions of nine arguments or more", wide, 4
    yield "functions over sixty lines (to become 0)", tall, 6
    yield "files of src", len(source), None
    yield "nodes of tests", nodes_of(tests), None
    yield (
        "nodes of the soak, which is among them",
        nodes_of([file for file in tests if "soak" in file.parts]),
        None,
    )

    used = Counter(
        name
        for file, tree in trees.items()
        if file.name != "__init__.py"
        for name in names_in(tree)
    )
    cells = {page: cells_of(page) for page in sorted((ROOT / "notebooks").glob("*.md"))}
    pages = {page: ast.parse("\n".join(code for code, _ in own)) for page, own in cells.items()}
    of_book = [cells_of(page) for page in sorted((ROOT / "book").glob("*.md"))]
    prose = [ast.parse("\n".join(code for code, _ in own)) for own in of_book]
    named = [set(names_in(tree)) for tree in (*pages.values(), *prose)]
    functions = [
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    ]
    single = [
        name for name in functions if not used[name] and sum(name in own for own in named) == 1
    ]
    yield "functions of src that serve one page only", len(single), 25
    longest, lines = "", 0
    for page, own in cells.items():
        code = "\n".join(code for code, shown in own if shown)
        count = sum(bool(line.strip()) for line in code.splitlines())
        if page.stem.startswith(OF_PAPERS) and count > lines:
            longest, lines = page.stem, count
    yield f"code lines that a page of a paper shows, most ({longest})", lines, 60
    exempted = sum(
        len(SKIP.findall(file.read_text(encoding="utf-8"))) for file in (*source, *tests)
    )
    yield "lines exempted from the formatter", exempted, 0
    explained = {page.stem: len(explaining(tree)) for page, tree in pages.items()}
    yield "files that explain a page, median", median(explained.values()), 9
    most = max(explained, key=lambda page: explained[page])
    yield f"files that explain a page, most ({most})", explained[most], None


def main() -> int:
    """Print the figures; 1 if `--strict` is given and one is over its budget."""
    over = 0
    for what, value, budget in figures():
        kept = budget is None or value <= budget
        bound = "" if budget is None else f"  at most {budget:,}"
        say(f"{'' if kept else '!':<2}{what:<58}{value:>10,}{bound}")
        over += not kept
    return int(bool(over) and "--strict" in sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
