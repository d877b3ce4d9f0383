"""Rendering of the executed tree by Jupyter Book: incremental, strict, and never executing anything."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml  # type: ignore[import-untyped]

# Jupyter Book has no `python -m` entrance; its console script may not be on PATH.
JUPYTER_BOOK = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
CARRIED = {"book/_static": "*", "book/_ext": "*.py", "book": "*.bib", "src": "*.py"}
"""What pages include or cite besides their own text: folder of the checkout, pattern of names."""


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
