"""Functions that the pages of the papers define for the reader, to be tested as the reader sees them."""

import re
from typing import Any

from repro.paths import project_root

CELL = re.compile(r"```\{code-cell\} ipython3\n(.*?)```", re.DOTALL)


def on_page(page: str, *functions: str) -> dict[str, Any]:
    """What a page's imports and the cells that define some functions leave behind."""
    cells = CELL.findall((project_root() / "notebooks" / f"{page}.md").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    imports = [line for cell in cells for line in cell.splitlines() if line.startswith(("import ", "from "))]
    exec("\n".join(imports), found)
    for name in functions:
        (cell,) = [cell for cell in cells if f"\ndef {name}(" in f"\n{cell}"]
        lines = cell.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith(f"def {name}("))
        stop = next((i for i in range(start + 1, len(lines)) if lines[i] and not lines[i][0].isspace()), len(lines))
        constants = [line for line in lines[:start] if re.match(r"[A-Z]+ = ", line)]
        exec("\n".join([*constants, *lines[start:stop]]), found)
    return found
