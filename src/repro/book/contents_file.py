"""The contents file of the book, `_toc.yml`: the pages that it names and the choice among them."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.book.notebook import SUFFIXES
from repro.paths import inside
from repro.types import InputError, choices

WRITE_AGAIN = "correct it, or restore it with git"


def pages_of(root: Path) -> dict[str, Path]:
    """The pages of `_toc.yml` in reading order: name as the contents file has it, and source."""
    pages = {}
    for name in _files(_contents_of(root / "_toc.yml")):
        candidates = [inside(root, name + suffix) for suffix in ("", *SUFFIXES)]
        source = next((path for path in candidates if path.is_file()), None)
        if source is None:
            raise InputError(
                f"_toc.yml names {name!r}, but there is no {name}.md: write the page or drop the "
                "line"
            )
        pages[name.removesuffix(source.suffix)] = source
    return pages


def _contents_of(path: Path) -> dict[str, Any]:
    """What a contents file says, once Sphinx could read it: by one that it cannot, no page of an
    earlier build is to go.

    Raises:
        InputError: for anything else, such as an empty file.
    """
    from sphinx_external_toc.parsing import MalformedError, parse_toc_data

    contents = read_names(path)
    try:
        parse_toc_data(contents)
    except (MalformedError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        expected = "expected the root page and, below it, a line `- file: PAGE` for each of them"
        raise InputError(f"{path}: {reason}; {expected}: {WRITE_AGAIN}") from error
    return contents


def read_names(path: Path) -> dict[str, Any]:
    """The names and values in a YAML file; none in one that is empty.

    Raises:
        InputError: for what is no YAML, holds something else, or leads back to itself.
    """
    expected = "expected names and values in YAML, UTF-8"
    try:
        found = yaml.safe_load(path.read_bytes())
        json.dumps(found, default=str, skipkeys=True)  # Which no end of values could be
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}): {expected}; {WRITE_AGAIN}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"{path} holds a {type(found).__name__}: {expected}; {WRITE_AGAIN}")
    return found


def _files(node: Any) -> Iterator[str]:
    """Every page named in a contents file, whatever its nesting."""
    if isinstance(node, dict):
        yield from (str(node[key]) for key in ("root", "file") if key in node)
        node = list(node.values())
    for item in node if isinstance(node, list) else ():
        yield from _files(item)


def choose(pages: Collection[str], only: Collection[str] | None) -> set[str]:
    """The pages a user names, bare or with folder and suffix; all of them if none is named."""
    chosen = set()
    for name in only or ():
        bare = name.removesuffix(".md").removesuffix(".ipynb")
        found = [page for page in pages if bare in (page, page.rsplit("/", 1)[-1])]
        if not found:
            names = [page.rsplit("/", 1)[-1] for page in pages]
            told = choices(bare.rsplit("/", 1)[-1], names)
            raise InputError(f"no page {name!r} in _toc.yml: {told}")
        chosen.update(found)
    return chosen or set(pages)
