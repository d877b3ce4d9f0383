"""A toy checkout whose book is built without kernels and without Sphinx, so that a build takes a
moment.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jupytext
import papermill
import pytest

from repro import digests
from repro.book import builder, site

FRONT = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Title
"""
CELL = "\n```{code-cell} ipython3\n%s\n```\n"
PROFILE = CELL % ':tags: [parameters]\n\nprofile: str = "embedded"  # size'
PAGES = {"sized": PROFILE + CELL % "from rivals.code import later", "plain": CELL % "2"}
RIVALS = "from repro.code import x\n\ndef later():\n    import microworld.code\n"
MODULES = {
    "repro/book/execution": "",
    "repro/book/kernel": "",
    "repro/code": "x = 1\n",
    "rivals/code": RIVALS,
    "microworld/code": "",
    "dimadvise/code": "",
}
"""Modules of the toy: a page imports one, which imports another, and a third in a function."""


def forget() -> None:
    """Let the source of modules be read anew, as another process would read it."""
    for known in vars(digests).values():
        if hasattr(known, "cache_clear"):
            known.cache_clear()


@dataclass
class Toy:
    """A checkout with two notebooks, a scorecard, results, data and a package of its own."""

    root: Path
    executed: list[str] = field(default_factory=list)
    """Names of pages, in the order in which the last build executed them."""
    verdicts: dict[str, str] = field(default_factory=dict)
    """What a page leaves for the scorecard as it is executed."""

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def edit(self, name: str) -> bytes:
        """Change a notebook as its owner would; its new content."""
        path = self.root / name
        content = json.loads(path.read_text(encoding="utf-8"))
        notes = {"cell_type": "markdown", "id": "mine", "metadata": {}, "source": "My notes."}
        content["cells"].append(notes)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path.read_bytes()

    def build(self, **options: Any) -> builder.Book:
        self.executed.clear()
        forget()
        return builder.build(self.root, **options)

    def files(self, place: str = "_build") -> dict[str, bytes]:
        """All files below a place, by name."""
        below = self.root / place
        return {
            str(path.relative_to(below)): path.read_bytes()
            for path in below.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    made = Toy(tmp_path / "checkout", verdicts={"sized": "confirmed"})
    made.write("_config.yml", "title: Toy\nonly_build_toc_files: true\n")
    chapters = "".join(f"- file: notebooks/{name}\n" for name in PAGES) + "- file: book/scorecard\n"
    made.write("_toc.yml", f"format: jb-book\nroot: book/index\nchapters:\n{chapters}")
    made.write("book/index.md", "# Toy\n\nWords.\n")
    made.write("book/scorecard.md", FRONT + CELL % "3")
    for name, cells in PAGES.items():
        made.write(f"notebooks/{name}.md", FRONT + cells)
    for name, code in MODULES.items():
        made.write(f"src/{name}.py", code)
    made.write("src/repro/papers/a.toml", "[claims]\n")
    made.write("results/rows.parquet", "rows")
    made.write("data/sts/stsb.tsv", "pairs")
    for module in (site, digests):
        monkeypatch.setattr(module, "PACKAGE", made.root / "src" / "repro")
    monkeypatch.setenv("REPRO_DATA", str(made.root / "data"))
    monkeypatch.delenv("REPRO_HUB", raising=False)

    def execute(node: Any, output: Path, **options: Any) -> Any:
        source = output.name.split(".")[0]
        made.executed.append(source)
        for number, cell in enumerate(node.cells):
            cell["id"] = f"cell-{number}"  # Jupytext draws them
        Path(output).write_text(jupytext.writes(node, fmt="ipynb"), encoding="utf-8")
        if source in made.verdicts:
            made.write(f"_build/verdicts/{source}.parquet", made.verdicts[source])
        return node

    def sphinx(command: list[str], cwd: Path, **options: Any) -> Any:
        """Every page as a file of HTML, below the folder that the command names."""
        html = Path(command[command.index("--path-output") + 1]) / "_build" / "html"
        for page in [*cwd.rglob("*.ipynb"), *cwd.rglob("*.md")]:
            path = (html / page.relative_to(cwd)).with_suffix(".html")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(page.read_bytes())
        shutil.copyfile(html / "book" / "index.html", html / "index.html")
        return site.subprocess.CompletedProcess(command, 0, "rendered\n", "")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    monkeypatch.setattr(site.subprocess, "run", sphinx)
    monkeypatch.chdir(made.root)
    yield made
    forget()
