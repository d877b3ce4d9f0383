"""Execution of text notebooks with parameters; the executed .ipynb is an artefact, never a source.

Papermill reads JSON only, so a MyST notebook goes through jupytext first and is handed over as a node.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jupytext
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from repro.book import kernel
from repro.book import parameters as declarations
from repro.book.parameters import Parameter
from repro.book.site import SUFFIXES
from repro.paths import inside, project_root
from repro.types import InputError
from repro.writing import partial_of, writable_file

LOGGER = logging.getLogger(__name__)
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


class NotebookError(RuntimeError):
    """A notebook that stopped in one of its cells; the message says which, and why."""


def locate(name: str | Path, root: Path | None = None) -> Path:
    """Find a notebook by its path, or by its bare name below `notebooks/` or `book/` of the checkout.

    Raises:
        InputError: if there is none; the message lists those of the checkout.
    """
    path = Path(name)
    if path.suffix in SUFFIXES and path.is_file():
        return path.resolve()
    root = root or project_root()
    tried = [name] if path.suffix in SUFFIXES else [f"{name}.md", f"notebooks/{name}.md", f"book/{name}.md"]
    for guess in tried:
        if (found := inside(root, str(guess))).is_file():
            return found
    names = ", ".join(sorted(file.stem for file in (root / "notebooks").glob("*.md")))
    raise InputError(f"no notebook {str(name)!r} here; this checkout has: {names or 'none yet'}")


def read(path: Path) -> Any:
    """Read a notebook of either format as a node that papermill can run and Jupyter can open."""
    # Said outright, since jupytext would take ```python in plain prose for code to execute.
    form = "md:myst" if path.suffix == ".md" else None
    try:
        node = jupytext.read(path, fmt=form)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} is not a notebook that can be read: {error}") from None
    node.metadata.setdefault("kernelspec", dict(KERNELSPEC))
    node.metadata["kernelspec"].setdefault("language", "python")  # papermill writes parameters in this language
    return node


def has_code(node: Any) -> bool:
    """Whether a notebook holds anything to execute."""
    return any(cell.cell_type == "code" and cell.source.strip() for cell in node.cells)


def parameters_of(source: Path | Any) -> dict[str, Parameter]:
    """The parameters a notebook declares in its cell tagged `parameters`: name, type, default and comment."""
    node = read(source) if isinstance(source, Path) else source
    for cell in node.cells:
        if _declares(cell):
            return declarations.declared_in(cell.source)
    return {}


def _declares(cell: Any) -> bool:
    return cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])


def validate(source: Path | Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check given parameters against a notebook's declarations; text is parsed, see `parameters.validate`.

    Raises:
        InputError: on an unknown name or a wrong type; the message lists names, types and defaults.
    """
    return declarations.validate(parameters_of(source), given)


def from_here(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with paths of the reader's working folder made absolute, since a page runs in the checkout."""

    def absolute(value: Any) -> Any:
        if isinstance(value, list):
            return [absolute(item) for item in value]
        name, colon, blocks = value.partition(":") if isinstance(value, str) else ("", "", "")  # folder:blocks
        path = Path(name).expanduser()
        # A bare name may be a system or a set as well: only a folder that holds a network is taken for one.
        known = path.exists() if os.sep in name else name and (path / "config.json").is_file()
        return f"{path.resolve()}{colon}{blocks}" if known else value

    return {name: absolute(value) for name, value in values.items()}


def default_output(source: Path, given: Mapping[str, Any], root: Path | None = None) -> Path:
    """Where an execution goes if nobody says: `runs/<notebook>-<digest of its parameters>.ipynb`."""
    root = root or project_root()
    digest = hashlib.sha256(json.dumps(dict(given), sort_keys=True, default=str).encode()).hexdigest()[:8]
    return root / "runs" / f"{source.stem}-{digest if given else 'default'}.ipynb"


def run(
    source: Path,
    output: Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    progress: bool = False,
    cwd: Path | None = None,
    forked: bool = False,
) -> Any:
    """Execute a notebook with parameters and write the result to `output`.

    Args:
        source: a MyST `.md` or an `.ipynb`.
        output: where the executed `.ipynb` goes; it appears whole or, after a failure, up to the failing cell.
        parameters: values by name; text is parsed to the declared type.
        timeout: seconds a single cell may take; None for no limit.
        progress: show a bar that advances by cells.
        cwd: working folder of the kernel; the checkout that holds the notebook by default.
        forked: fork the kernel from a process that has imported the heavy libraries; pays from the second notebook on.

    Raises:
        InputError: if a parameter is wrong, if a cell itself raised `InputError`, or if `output` is no regular file.
        NotebookError: if a cell failed otherwise, took too long or lost its kernel.
    """
    node = read(source)
    values = validate(node, parameters or {})
    output = writable_file(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(output, ".partial.ipynb")  # papermill wants that ending
    # Papermill reports each file it touches and warns of types it cannot read; ours were checked above.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        executed = papermill.execute_notebook(
            node,
            partial,
            parameters=values,
            kernel_name="python3",
            language="python",
            kernel_manager_class=kernel.manager(forked=forked),
            execution_timeout=timeout,
            progress_bar=progress,
            stderr_file=sys.stderr if progress else None,  # bars of what runs inside a cell
            cwd=cwd or _working_folder(source),
        )
    except PapermillExecutionError as error:
        message = (
            f"{source.name}, cell {error.cell_index + 1}, at `{_failing_line(error)}`: {error.ename}: {error.evalue}"
        )
        raise (InputError if error.ename == "InputError" else NotebookError)(message) from error
    except CellTimeoutError as error:
        raise NotebookError(f"{source.name}: a cell took longer than {timeout:g} s") from error
    except DeadKernelError as error:
        raise NotebookError(f"{source.name}: its kernel died, most likely for want of memory") from error
    finally:
        with contextlib.suppress(FileNotFoundError):  # nothing was written if the kernel never started
            os.replace(partial, output)
    return executed


def to_ipynb(source: Path, folder: Path) -> Path:
    """Write a text notebook as `.ipynb`, unexecuted, for plain `papermill` and Jupyter."""
    node = read(source)
    for cell in filter(_declares, node.cells):
        cell.source = declarations.without_bars(cell.source)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{source.stem}.ipynb"
    jupytext.write(node, target, fmt="ipynb")
    return target


def _working_folder(source: Path) -> Path:
    """The checkout around a notebook, so that `results/` is where the notebook expects it; else its own folder."""
    for folder in source.resolve().parents:
        if (folder / "_toc.yml").is_file():
            return folder
    return source.resolve().parent


def _failing_line(error: PapermillExecutionError) -> str:
    """The line of the cell that raised; IPython marks it with an arrow in the first frame."""
    frames = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrow = re.search(r"^-+>\s*\d+\s+(.*)$", frames, flags=re.MULTILINE)
    lines = [line for line in error.source.strip().splitlines() if line.strip()]
    return (arrow.group(1) if arrow else lines[0] if lines else "").strip()
