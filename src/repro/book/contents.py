"""The table of contents: which pages the book has, and where their sources are."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.paths import inside
from repro.types import InputError

SUFFIXES = (".md", ".ipynb")


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
