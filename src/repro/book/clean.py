"""What was built is removed from a checkout, and nothing that cannot be told to have been built.

Ours are the files that the builds' ledger knows, as they were left; notebooks that say so
themselves, at the place they were written to, and half-written ones of processes that are gone, by
their names; and the folder that Sphinx writes to. Everything else stays, also the caches of tools,
in which nothing tells a tool's files from others. No link is followed but that of `_build` to
another disk: what another checkout built is its own.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from repro.book import execution, notebook, site
from repro.book.builder import LOCK, one_at_a_time
from repro.book.ledger import NAME, Ledger
from repro.paths import is_file
from repro.writing import owner_of

HALVES = (execution.HALF, ".partial")
"""Endings of notebooks while they are executed, and while they are written."""


def clean(root: Path) -> list[Path]:
    """Remove the book, its unexecuted notebooks and runs; what stays at places where such things
    are built.

    A notebook that was edited or run after it was written stays, as does one without a text to make
    it from.
    """
    build, runs, pages = (root / name for name in ("_build", "runs", "notebooks"))
    not_ours = [build] if _leads_into_another_checkout(build, root) else _clean_build(build)
    not_ours += [runs] if runs.is_symlink() else _clean_notebooks(runs)
    for source in sorted(pages.glob("*.md")):
        notebook_path = source.with_suffix(".ipynb")
        if notebook.ours(notebook_path) and not pages.is_symlink():
            notebook_path.unlink()
        elif notebook_path.exists():
            not_ours.append(notebook_path)
    return not_ours


def _leads_into_another_checkout(folder: Path, root: Path) -> bool:
    """Whether a folder is a link to a place around which there is another contents file."""
    real = folder.resolve()
    if real.is_relative_to(root.resolve()):
        return False
    return any((parent / "_toc.yml").is_file() for parent in real.parents)


def _clean_build(folder: Path) -> list[Path]:
    """Remove what builds made; what else is there."""
    if not folder.is_dir():
        return []
    with one_at_a_time(folder):
        ledger = Ledger(folder)
        # First the notebooks, whose place is told from a contents file that may be among the
        # others.
        candidates = [
            *(folder / "book").rglob("*.ipynb"),
            *(folder / name for name in ledger.files),
        ]
        for path in candidates:
            if ledger.owns(path):
                path.unlink()
        work = folder / site.RENDERING
        if site.is_rendering(work) and not work.is_symlink():
            site.remove_rendering(work)
            (work / site.CACHE_TAG).unlink()
        if ledger.readable:
            (folder / NAME).unlink(missing_ok=True)
        (folder / LOCK).unlink()
    not_ours = list(_files(folder))
    _remove_empty(folder)
    return not_ours


def _clean_notebooks(folder: Path) -> list[Path]:
    """Remove executed notebooks that are as a run left them, and what killed runs had half written;
    what else is there.
    """
    for path in (*folder.rglob("*.ipynb"), *folder.rglob("*.partial")):
        if notebook.ours(path) or is_left(path):
            path.unlink()
    not_ours = list(_files(folder))
    _remove_empty(folder)
    return not_ours


def is_left(path: Path) -> bool:
    """Whether a file has the name of a half-written one whose process is gone."""
    owners = (owner_of(path, ending) for ending in HALVES if path.name.endswith(ending))
    return is_file(path) and any(owner is not None and owner.is_dead for owner in owners)


def _files(folder: Path) -> Iterator[Path]:
    """All that lies below a folder and is no folder."""
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in sorted(names))


def _remove_empty(folder: Path) -> None:
    """Remove the folders below a folder, and itself, that hold nothing; links to folders stay."""
    for place, _, _ in os.walk(folder, topdown=False):
        if not os.path.islink(place) and not os.listdir(place):
            os.rmdir(place)
