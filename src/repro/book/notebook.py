"""Text notebooks: where they are, their content, and the `.ipynb` that are written here.

Papermill reads JSON only, so a MyST notebook goes through jupytext first and is handed over as a
node. An `.ipynb` is never a source; a mark in it tells one that is as we wrote it.
"""

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml  # type: ignore[import-untyped]

from repro.digests import digest
from repro.paths import inside, project_root
from repro.reading import is_out_of_memory, read_json, regular_file
from repro.types import InputError, choices
from repro.writing import write_text

SUFFIXES = (".md", ".ipynb")
CHECK = """# A misspelt parameter is refused here, and a value of another type.
from repro.book.parameters import check_parameters

check_parameters({page!r})"""
# In the metadata of a notebook that we wrote: a digest of its place and of all else in it
MARK = "repro"


def locate(name: str | Path) -> Path:
    """Find a notebook by its path, or by its bare name below `notebooks/` or `book/` of the
    checkout.
    """
    path = Path(name)
    if path.suffix in SUFFIXES and path.is_file():
        return path.resolve()
    root = project_root()
    places = (
        [name]
        if path.suffix in SUFFIXES
        else [f"{name}.md", f"notebooks/{name}.md", f"book/{name}.md"]
    )
    for place in places:
        page = inside(root, str(place))
        if page.is_file():
            return page
    pages = [*(root / "notebooks").glob("*.md"), *(root / "book").glob("*.md")]
    texts = {page.stem: regular_file(page).read_text("utf-8") for page in pages}
    names = sorted(name for name, text in texts.items() if "```{code-cell}" in text)
    menu = choices(path.stem, names) if names else "it has none yet"
    raise InputError(f"no notebook {str(name)!r} in this checkout: {menu}")


def read(path: Path) -> Any:
    """Read a notebook of either format as a node that papermill can run and Jupyter can open.

    Raises:
        InputError: for what cannot be read, or is no valid notebook.
    """
    try:
        text = regular_file(path).read_text(encoding="utf-8")
        if path.suffix == ".md":
            # Said outright, since jupytext would take ```python in plain prose for code to execute.
            node = jupytext.reads(_with_kernel_named(text), fmt="md:myst")
        else:
            node = nbformat.reader.reads(text)
        if node.nbformat != nbformat.current_nbformat:
            node = nbformat.convert(node, nbformat.current_nbformat)
        node.metadata.setdefault("kernelspec", {"name": "python3", "display_name": "Python 3"})
        # Papermill writes parameters in this language
        node.metadata["kernelspec"].setdefault("language", "python")
        with warnings.catch_warnings(action="ignore"):  # Of cells without a name, which get one
            _, node = nbformat.validator.normalize(node)
        nbformat.validate(node, relax_add_props=True)
    except Exception as error:  # Of three libraries, which raise whatever they run into
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        expected = "expected what Jupyter saves, or MyST Markdown"
        raise InputError(
            f"{path} is not a notebook that can be read: {reason}; {expected}"
        ) from None
    return node


def _with_kernel_named(text: str) -> str:
    """A text notebook whose kernel has a name to be shown, which jupytext demands and few pages
    give.
    """
    front = re.match(r"---\n(.*?\n)---\n", text, flags=re.DOTALL)
    notes = yaml.safe_load(front[1]) if front else None
    kernel_notes = notes.get("kernelspec") if isinstance(notes, dict) else None
    if front is None or not isinstance(kernel_notes, dict) or "display_name" in kernel_notes:
        return text
    kernel_notes["display_name"] = str(kernel_notes.get("name", "Python 3"))
    return f"---\n{yaml.safe_dump(notes, allow_unicode=True)}---\n{text[front.end() :]}"


def declares(cell: Any) -> bool:
    """Whether a cell is the one in which a notebook declares its parameters."""
    return cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])


def ours(path: Path) -> bool:
    """Whether a file is a notebook that was written here by this package, and is as it was
    written.
    """
    if path.is_symlink():
        return False
    try:
        content = read_json(path)
        return bool(content["metadata"].pop(MARK) == _mark(path, content))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def not_ours(path: Path) -> bool:
    """Whether something stands at a path that this package did not write, or that was changed
    since.
    """
    return os.path.lexists(path) and not ours(path)


def write(content: dict[str, Any], path: Path) -> None:
    """Write a notebook with our mark, whole or not at all."""
    content["metadata"].pop(MARK, None)
    content["metadata"][MARK] = _mark(path, content)
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _mark(path: Path, content: dict[str, Any]) -> str:
    """Digest of a notebook that has no mark and of its place: a copy of it elsewhere is its
    owner's.

    A place in a checkout is told from the checkout, which may be moved.
    """
    real = path.resolve()
    roots = roots_around(real)
    # The tree that is rendered has a contents file too
    place = real.relative_to(roots[-1]) if roots else real
    return digest({"place": place.as_posix(), "content": content})


def roots_around(path: Path) -> list[Path]:
    """The folders around a path that have a contents file of a book, the nearest first."""
    return [folder for folder in path.parents if (folder / "_toc.yml").is_file()]


def ipynb_of(source: Path, folder: Path) -> Path:
    """Where `to_ipynb` writes a text notebook."""
    return folder / f"{source.stem}.ipynb"


def to_ipynb(source: Path, folder: Path) -> Path:
    """Write a text notebook as `.ipynb`, unexecuted, for plain `papermill` and Jupyter.

    A cell after the one of its parameters checks them, as `execution.run` does before a kernel
    starts.

    Raises:
        InputError: if a notebook is there that this did not write, or that was changed since.
    """
    target = ipynb_of(source, folder)
    if not_ours(target):
        raise InputError(f"{target} is not as `repro notebooks` wrote it: move it, or delete it")
    node = read(source)
    # Plain papermill's reader knows `Union`, but not `|`
    for cell in filter(declares, node.cells):
        union = r"(?<=: )[\w\[\]]+( \| \w+)+(?= =)"
        spelled = re.sub(union, lambda t: f"Union[{t[0].replace(' | ', ', ')}]", cell.source)
        cell.source = (
            cell.source if spelled == cell.source else f"from typing import Union\n\n{spelled}"
        )
    place = next((number for number, cell in enumerate(node.cells) if declares(cell)), None)
    if place is not None:
        checking = CHECK.format(page=source.stem)
        check = nbformat.v4.new_code_cell(checking, metadata={"tags": ["hide-input"]})
        node.cells.insert(place + 1, check)
    write(json.loads(jupytext.writes(node, fmt="ipynb")), target)
    return target
