"""How large is the project? `python tests/counts.py` prints each figure beside its budget; `--strict` fails over one.

A function serves one page only if the code of exactly one page names it, and nothing in `src/` does but its definition
(and perhaps the `__init__` that hands it on).
A page's code lines are the non-empty ones of its code cells; shown are those of cells whose input is not hidden.
The files that explain a page are those of `papers`, `runs` and `report` that it imports, with what a file of `papers`
imports of these three in its turn; the science beneath (models, losses, data and so on) is counted nowhere.
"""

import ast
import re
import sys
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


def lines_of(files: list[Path]) -> int:
    """Lines of all files together."""
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


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
    return package if package.is_file() and len(ast.parse(package.read_text(encoding="utf-8")).body) > 1 else None


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
        found |= {path for name in names if name.startswith(EXPLAINING) and (path := module_of(name))}
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


def figures() -> Iterator[tuple[str, float, float | None]]:
    """Every figure: what it is, its value, and its budget; one that is to be reached is negative.

    The advisor is a tool of its own and has budgets of its own.
    """
    packages = {name: sorted((SRC / name).rglob("*.py")) for name in ("repro", "rivals", "dimadvise", "microworld")}
    tests = sorted((ROOT / "tests").rglob("*.py"))
    advisor = [file for file in tests if "dimadvise" in file.parts]
    source = [file for files in packages.values() for file in files]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in source}
    budgets = {"repro": 18_385, "dimadvise": 3_430}
    yield "lines of src but for dimadvise", lines_of(source) - lines_of(packages["dimadvise"]), 20_955
    for name, files in packages.items():
        yield f"lines of {name}", lines_of(files), budgets.get(name)
    yield "files of src", len(source), 145
    soak = [file for file in tests if "soak" in file.parts]
    yield "lines of tests but for dimadvise's", lines_of(tests) - lines_of(advisor), 13_626
    yield "lines of the soak, which is among them", lines_of(soak), None
    yield "lines of dimadvise's tests", lines_of(advisor), 1_320

    used = Counter(name for file, tree in trees.items() if file.name != "__init__.py" for name in names_in(tree))
    cells = {page: cells_of(page) for page in sorted((ROOT / "notebooks").glob("*.md"))}
    pages = {page: ast.parse("\n".join(code for code, _ in own)) for page, own in cells.items()}
    of_book = [cells_of(page) for page in sorted((ROOT / "book").glob("*.md"))]
    prose = [ast.parse("\n".join(code for code, _ in own)) for own in of_book]
    named = [set(names_in(tree)) for tree in (*pages.values(), *prose)]
    functions = [node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.FunctionDef)]
    single = [name for name in functions if not used[name] and sum(name in own for own in named) == 1]
    yield "functions of src that serve one page only", len(single), 25
    counted = [
        (shown, sum(bool(line.strip()) for line in code.splitlines())) for own in cells.values() for code, shown in own
    ]
    share = 100 * sum(n for shown, n in counted if shown) / sum(n for _, n in counted)
    yield "% of the pages' code lines that are shown", round(share, 1), -60
    exempted = sum(len(SKIP.findall(file.read_text(encoding="utf-8"))) for file in (*source, *tests))
    yield "lines exempted from the formatter", exempted, 0
    explained = {page.stem: len(explaining(tree)) for page, tree in pages.items()}
    yield "files that explain a page, median", median(explained.values()), 9
    most = max(explained, key=lambda page: explained[page])
    yield f"files that explain a page, most ({most})", explained[most], None


def main() -> int:
    """Print the figures; 1 if `--strict` is given and one is over its budget."""
    over = 0
    for what, value, budget in figures():
        kept = budget is None or (value >= -budget if budget < 0 else value <= budget)
        bound = "" if budget is None else f"  {'at least' if budget < 0 else 'at most'} {abs(budget):,}"
        say(f"{'' if kept else '!':<2}{what:<58}{value:>10,}{bound}")
        over += not kept
    return int(bool(over) and "--strict" in sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
