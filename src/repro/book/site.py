"""The book as a site: the pages that `_toc.yml` names, and how Jupyter Book renders them, executing nothing."""

import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.paths import inside
from repro.types import InputError

SUFFIXES = (".md", ".ipynb")
# Jupyter Book has no `python -m` entrance; its console script may not be on PATH.
JUPYTER_BOOK = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
CARRIED = {"book/_static": "*", "book/_ext": "*.py", "book": "*.bib", "src": "*.py"}
"""What pages include or cite besides their own text: folder of the checkout, pattern of names."""


def pages_of(root: Path) -> dict[str, Path]:
    """The pages of `_toc.yml` in reading order: name as the contents file has it, and source.

    Raises:
        InputError: if a page is named that does not exist, or that lies outside the checkout.
    """
    pages = {}
    for name in _files(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        candidates = [inside(root, name + suffix) for suffix in ("", *SUFFIXES)]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise InputError(f"_toc.yml names {name!r}, but there is no {name}.md: write the page or drop the line")
        pages[name.removesuffix(found.suffix)] = found
    return pages


def choose(pages: Collection[str], wanted: Collection[str] | None) -> set[str]:
    """The pages a user names, bare or with folder and suffix; all of them if none is named.

    Raises:
        InputError: if a name is no page; the message lists the pages.
    """
    chosen = set()
    for name in wanted or ():
        bare = name.removesuffix(".md").removesuffix(".ipynb")
        found = [page for page in pages if bare in (page, page.rsplit("/", 1)[-1])]
        if not found:
            raise InputError(f"no page {name!r} in _toc.yml: choose among {', '.join(pages)}")
        chosen.update(found)
    return chosen or set(pages)


def _files(node: Any) -> Iterator[str]:
    """Every page named in a contents file, whatever its nesting."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("root", "file"):
                yield str(value)
            else:
                yield from _files(value)
    elif isinstance(node, list):
        for item in node:
            yield from _files(item)


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write only what differs: Sphinx takes a new modification time for a changed page."""
    if path.is_file() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def prepare(root: Path, tree: Path) -> None:
    """Carry configuration, contents, style and the sources that pages quote into the tree."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")) or {}
    # The checkout hides what is not a page; the tree holds nothing else, and its pages are .ipynb.
    config |= {"execute": {"execute_notebooks": "off"}, "exclude_patterns": []}
    write_if_changed(tree / "_config.yml", yaml.safe_dump(config, allow_unicode=True).encode())
    write_if_changed(tree / "_toc.yml", (root / "_toc.yml").read_bytes())
    for folder, pattern in CARRIED.items():
        for source in (root / folder).rglob(pattern):
            if source.is_file() and "__pycache__" not in source.parts:
                write_if_changed(tree / source.relative_to(root), source.read_bytes())


def prune(tree: Path, pages: Collection[str]) -> None:
    """Remove what is no page any more, and the text of an executed one: Sphinx wants one file per name."""
    for path in [*tree.rglob("*.ipynb"), *tree.rglob("*.md")]:
        name = path.relative_to(tree).with_suffix("").as_posix()
        if name not in pages or (path.suffix == ".md" and path.with_suffix(".ipynb").is_file()):
            path.unlink()


def render(root: Path, tree: Path, *, fresh: bool) -> list[str]:
    """Run Jupyter Book on the tree with warnings as errors; the site goes to `_build/html/`.

    Args:
        root: the checkout.
        tree: the folder of executed pages.
        fresh: read every page again. Needed after a failure: Sphinx would not repeat an old warning.

    Returns:
        The complaints, none if all is well. The whole log is in `_build/render.log`.
    """
    if fresh:
        shutil.rmtree(root / "_build" / ".doctrees", ignore_errors=True)
    command = [*JUPYTER_BOOK, "build", str(tree), "--path-output", str(root), "-W", "--keep-going", "-n"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    (root / "_build" / "render.log").write_text(log, encoding="utf-8")
    if done.returncode == 0:
        return []
    complaints = [line for line in log.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)]
    return complaints or log.strip().splitlines()[-12:]
