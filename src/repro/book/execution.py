"""The execution of a page: parameters are checked, a kernel runs the cells, the result is kept."""

import contextlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError

from repro.book import kernel
from repro.book.notebook import not_ours, ours, read, roots_around, write
from repro.book.parameters import parameters_of, validate
from repro.printed import completed
from repro.terminal import complain
from repro.types import InputError, above_zero
from repro.writing import partial_of, writable_file

HALF = ".partial.ipynb"
"""How the name of a notebook ends while it is executed: papermill wants such an ending."""
STRANGE = "is not an executed notebook as a run left it"
LONGEST_VALUE = 60  # Characters of a parameter's value in a message


class NotebookError(RuntimeError):
    """A notebook that stopped in one of its cells; the message says which, and why."""


def run(
    source: Path,
    output: Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
    progress: bool = False,
    forked: bool = False,
    failed: Path | None = None,
) -> Any:
    """Execute a notebook in the checkout around it, or in its own folder, and write the result to
    `output`.

    Under the profile `paper` parameters that are not given have the page's printed values.

    After a failure the notebook up to the failing cell is in `failed`, by default `failed_of` the
    output, so that the output of an earlier run stays. `timeout` is in seconds of a single cell. A
    `forked` kernel comes from a process that has imported the heavy libraries: it pays from the
    second notebook on. Its notebook is written when it ends, any other one after every cell, so
    that a killed run leaves what it had.

    Raises:
        InputError: if a parameter is wrong, if a cell itself raised `InputError`, or if `output` is
            there and is not as a run left it.
        NotebookError: if a cell failed otherwise, took too long or lost its kernel.
    """
    if timeout is not None:
        above_zero(timeout, "timeout")
    node = read(source)
    values = validate(parameters_of(node), completed(source.stem, parameters or {}))
    output = writable_file(output)
    failed = failed_of(output) if failed is None else writable_file(failed)
    for path in (output, failed):
        if not_ours(path):
            raise InputError(f"{path} {STRANGE}: move or delete it, or give another --output")
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(output, HALF)
    places = [*roots_around(source.resolve()), source.resolve().parent]
    # Papermill reports each file it touches and warns of types it cannot read; ours were checked
    # above.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    placed = _errors_with_place(source, timeout, parameters or {})
    with placed, _result_kept(partial, output, failed):
        return papermill.execute_notebook(
            node,
            partial,
            parameters=values,
            engine_name=SAVED_AT_END if forked else None,
            kernel_name="python3",
            language="python",
            kernel_manager_class=kernel.manager(forked=forked),
            execution_timeout=timeout,
            progress_bar=progress,
            stderr_file=sys.stderr if progress else None,  # Bars of what runs inside a cell
            cwd=places[0],
        )


class _SavedAtEnd(NBClientEngine):
    """Writes a notebook once, whatever ends it; papermill would twice a cell, all figures again."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: NotebookExecutionManager,
        kernel_name: str,
        **options: Any,
    ) -> None:
        """Execute all cells; what is returned from, or raised to, writes the notebook."""
        path, nb_man.output_path = nb_man.output_path, None
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **options)
        finally:
            nb_man.output_path = path


SAVED_AT_END = "saved-at-end"
papermill_engines.register(SAVED_AT_END, _SavedAtEnd)


@contextlib.contextmanager
def _errors_with_place(
    source: Path,
    timeout: float | None,
    given: Mapping[str, Any],
) -> Iterator[None]:
    """Errors of an execution as errors that say which notebook failed, and where in it; and what it
    was given, where a refusal names none of that.
    """
    try:
        yield
    except PapermillExecutionError as error:
        where = f"{source.name}, cell {error.cell_index + 1}, at `{_failing_line(error)}`"
        told = f"{where}: {error.ename}: {error.evalue}"
        if error.ename == "InputError":
            raise InputError(told + _not_named(given, error.evalue)) from error
        raise NotebookError(told) from error
    except CellTimeoutError as error:
        raise NotebookError(f"{source.name}: a cell took longer than {timeout:g} s") from error
    except DeadKernelError as error:
        raise NotebookError(
            f"{source.name}: its kernel died, most likely for want of memory"
        ) from error
    except RuntimeError as error:  # Of a kernel that did not start within a minute
        raise NotebookError(f"{source.name}: {error}") from error


def _not_named(given: Mapping[str, Any], refusal: str) -> str:
    """The parameters that a reader gave, where a refusal names none of them: what uses them may
    have other names, such as folds of rows.
    """
    of_page = {name: value for name, value in given.items() if name not in ("profile", "record")}
    if not of_page or any(re.search(rf"(?<!\w){name}(?!\w)", refusal) for name in of_page):
        return ""
    values = []
    for name, value in of_page.items():
        text = str(value)
        shortened = f"{text[:LONGEST_VALUE]}…" if len(text) > LONGEST_VALUE else text
        values.append(f"{name} {shortened}")
    return f" (given: {', '.join(values)})"


@contextlib.contextmanager
def _result_kept(partial: Path, output: Path, failed: Path) -> Iterator[None]:
    """What was executed goes to the output, or after a failure, as far as it came, to `failed`."""
    target, has_ended = failed, False
    try:
        yield
        target, has_ended = output, True
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)
        raise
    finally:
        # Nothing was written if the kernel never started, and half of it if the disk was full.
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            content = json.loads(partial.read_text(encoding="utf-8"))
            if not_ours(target):  # Since the run began, which may be hours ago
                strange, target = target, _free_name(target)
                complain(f"{strange} {STRANGE}: it stays, what was executed is at {target}")
            write(content, target)
            if has_ended and output != failed and ours(failed):  # Of an earlier run
                failed.unlink()
        partial.unlink(missing_ok=True)


def _free_name(path: Path) -> Path:
    """The name of a file beside another, at which there is none."""
    names = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(2))
    return next(name for name in names if not os.path.lexists(name))


def failed_of(output: Path) -> Path:
    """Where a notebook goes that failed, beside the output of the run that it was."""
    return output.with_name(f"{output.stem}.failed.ipynb")


def _failing_line(error: PapermillExecutionError) -> str:
    """The line of the cell that raised; IPython marks it with an arrow in the first frame."""
    frames = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrow = re.search(r"^-+>\s*\d+\s+(.*)$", frames, flags=re.MULTILINE)
    lines = [line for line in error.source.strip().splitlines() if line.strip()]
    return (arrow.group(1) if arrow else lines[0] if lines else "").strip()
