"""Functions that the pages of the papers define for the reader, to be tested as the reader sees
them.
"""

import ast
from typing import Any

from repro.book import notebook
from repro.paths import project_root


def on_page(name: str, /, *functions: str, **values: Any) -> dict[str, Any]:
    """Imports, constants and functions of a page's cells, with some of the page's values; no more
    of it runs.
    """
    cells = notebook.read(project_root() / "notebooks" / f"{name}.md").cells
    lines = [
        line for cell in cells if cell.cell_type == "code" for line in ast.parse(cell.source).body
    ]
    wanted = ast.Import | ast.ImportFrom | ast.FunctionDef
    kept = [line for line in lines if isinstance(line, wanted) or _constant(line)]
    found = dict(values)
    exec(compile(ast.Module(kept, []), name, "exec"), found)
    assert not set(functions) - set(found)
    return found


def _constant(line: ast.stmt) -> bool:
    """Whether a line gives a name in capitals a value that is written out, perhaps with other such
    names.
    """
    if not (
        isinstance(line, ast.Assign)
        and isinstance(line.targets[0], ast.Name)
        and line.targets[0].id.isupper()
    ):
        return False
    parts = list(ast.walk(line.value))
    calls = any(
        isinstance(part, ast.Call | ast.Attribute | ast.Subscript | ast.comprehension)
        for part in parts
    )
    return not calls and all(part.id.isupper() for part in parts if isinstance(part, ast.Name))
