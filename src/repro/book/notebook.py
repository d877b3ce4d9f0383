"""Text notebooks: the parameters that a page declares, and its execution; the executed .ipynb is
never a source.

A notebook declares its parameters as ordinary typed assignments with a comment each, in a cell
tagged `parameters`:

    dims: list[int] = [64, 16, 8]  # embedding sizes to train

The cell is parsed, never executed, so a wrong name or type is refused before a kernel starts.
Papermill reads JSON only, so a MyST notebook goes through jupytext first and is handed over as a
node.
"""

import ast
import contextlib
import io
import json
import logging
import os
import re
import sys
import tokenize
import typing
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any

import jupytext
import nbformat
import papermill
import yaml  # type: ignore[import-untyped]
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from repro.book import kernel
from repro.digests import digest
from repro.paths import (
    inside,
    is_out_of_memory,
    partial_of,
    project_root,
    read_json,
    regular_file,
    writable_file,
    write_text,
)
from repro.printed import completed
from repro.types import InputError, above_zero, choices

SUFFIXES = (".md", ".ipynb")
CHECK = """# A misspelt parameter is refused here, and a value of another type.
from repro.book.notebook import check_parameters

check_parameters({page!r})"""
TYPE_NODES = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Tuple,
    ast.List,
    ast.Constant,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
)
"""What types are written with."""
# In the metadata of a notebook that we wrote: a digest of its place and of all else in it
MARK = "repro"


class NotebookError(RuntimeError):
    """A notebook that stopped in one of its cells; the message says which, and why."""


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    kind: str  # as the notebook writes it (`list[int]`); `Any` where it writes none
    default: Any  # source text if it is not a literal
    comment: str = ""

    def __str__(self) -> str:
        """The line as a user would write it."""
        return f"{self.name}: {self.kind} = {self.default!r}" + (
            f"  # {self.comment}" if self.comment else ""
        )


def locate(name: str | Path) -> Path:
    """Find a notebook by its path, or by its bare name below `notebooks/` or `book/` of the
    checkout.
    """
    path = Path(name)
    if path.suffix in SUFFIXES and path.is_file():
        return path.resolve()
    root = project_root()
    tried = (
        [name]
        if path.suffix in SUFFIXES
        else [f"{name}.md", f"notebooks/{name}.md", f"book/{name}.md"]
    )
    for guess in tried:
        if (found := inside(root, str(guess))).is_file():
            return found
    pages = [*(root / "notebooks").glob("*.md"), *(root / "book").glob("*.md")]
    texts = {page.stem: regular_file(page).read_text("utf-8") for page in pages}
    names = sorted(name for name, text in texts.items() if "```{code-cell}" in text)
    told = choices(path.stem, names) if names else "it has none yet"
    raise InputError(f"no notebook {str(name)!r} in this checkout: {told}")


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
        with warnings.catch_warnings(action="ignore"):  # of cells without a name, which get one
            _, node = nbformat.validator.normalize(node)
        nbformat.validate(node, relax_add_props=True)
    except Exception as error:  # of three libraries, which raise whatever they run into
        if is_out_of_memory(error):
            raise
        said = " ".join(str(error).split())[:300] or type(error).__name__
        expected = "expected what Jupyter saves, or MyST Markdown"
        raise InputError(f"{path} is not a notebook that can be read: {said}; {expected}") from None
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


def _write(content: dict[str, Any], path: Path) -> None:
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
    roots = _roots_around(real)
    # The tree that is rendered has a contents file too
    place = real.relative_to(roots[-1]) if roots else real
    return digest({"place": place.as_posix(), "content": content})


def _roots_around(path: Path) -> list[Path]:
    """The folders around a path that have a contents file of a book, the nearest first."""
    return [folder for folder in path.parents if (folder / "_toc.yml").is_file()]


def _declares(cell: Any) -> bool:
    return cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])


def parameters_of(source: Path | Any) -> dict[str, Parameter]:
    """The parameters that a notebook declares, in order: name, type, default and comment."""
    node = read(source) if isinstance(source, Path) else source
    cell = next(filter(_declares, node.cells), None)
    found: dict[str, Parameter] = {}
    if cell is None:
        return found
    try:
        tree = ast.parse(cell.source)
        tokens = list(tokenize.generate_tokens(io.StringIO(cell.source).readline))
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"the parameters cell is not valid Python: {error}") from None
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    for line in tree.body:
        match line:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=annotation,
                value=ast.expr() as value,
            ):
                kind = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = "Any"
            case _:
                continue
        try:
            default = ast.literal_eval(value)
        except (ValueError, TypeError):  # an expression, say 2**7: shown as written
            default = ast.unparse(value)
        found[name] = Parameter(
            name,
            kind,
            default,
            comments.get(line.end_lineno or line.lineno, ""),
        )
    return found


def validate(declared: Mapping[str, Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check names and types of `given`, turning text (from a command line) into values.

    Text is read as a Python literal, then as YAML (hence JSON), then as itself, whichever first
    fits the declared type.
    """
    menu = "Valid parameters:\n" + "\n".join(f"  {parameter}" for parameter in declared.values())
    menu = menu if declared else "This notebook declares no parameters."
    values = {}
    for name, value in given.items():
        if name not in declared:
            raise InputError(f"unknown parameter {name!r}. {menu}")
        try:
            values[name] = _read_as(value, _type_of(declared[name]))
        except TypeCheckError:
            raise InputError(
                f"parameter {name} is {value!r}: expected {declared[name].kind}. {menu}"
            ) from None
    return values


def _read_as(value: Any, kind: Any) -> Any:
    """A value as a type wants it, text in the first reading that fits; or a TypeCheckError."""
    for candidate in _readings(value) if isinstance(value, str) else iter([value]):
        with contextlib.suppress(TypeCheckError):
            return _fitted(candidate, kind)
    raise TypeCheckError("fits in no reading")


def _type_of(parameter: Parameter) -> Any:
    """The type that a parameter is declared with; one that only the notebook knows admits
    everything.

    Raises:
        InputError: for what is no type; nothing is called to find out.
    """
    try:
        nodes = list(ast.walk(ast.parse(parameter.kind, mode="eval")))
        if any(isinstance(node, ast.Call) for node in nodes):
            return Any
        if all(isinstance(node, TYPE_NODES) for node in nodes):
            kind = eval(parameter.kind, dict(vars(typing)))
            if isinstance(kind, str):  # a type in quotes
                return _type_of(replace(parameter, kind=kind))
            if kind is None or callable(kind) or typing.get_origin(kind) is not None:
                return kind
    except NameError:
        return Any
    except (SyntaxError, TypeError, AttributeError, ValueError, RecursionError):
        pass
    declared = f"parameter {parameter.name} is declared as {parameter.kind}"
    raise InputError(f"{declared}: expected a type, such as int or list[int]")


def _readings(text: str) -> Iterator[Any]:
    """The values a piece of command line may mean, most literal first."""
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        yield ast.literal_eval(text.strip())
    with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
        yield yaml.safe_load(text)
    yield text


def _fitted(value: Any, kind: Any) -> Any:
    """The value as the type wants it, or a TypeCheckError."""
    inner = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, UnionType):
        for option in inner:
            with contextlib.suppress(TypeCheckError):
                return _fitted(value, option)
    if typing.get_origin(kind) is list and isinstance(value, list | tuple):
        return [_fitted(item, inner[0]) for item in value]
    if kind in (int, float) and (
        isinstance(value, bool) or (isinstance(value, float) and not isfinite(value))
    ):
        raise TypeCheckError("is no number to count with")
    check_type(value, kind, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    return float(value) if kind is float else value


def check_parameters(page: str = "") -> None:
    """Refuse what plain papermill passes to a notebook unchecked: a name it does not declare, a
    value of another type. Under the profile `paper` what was not passed gets the page's printed
    value.

    For a cell of the notebook, after that of its parameters. Papermill's own cell is known by its
    first line.
    """
    main = sys.modules["__main__"]
    kinds: dict[str, Any] = getattr(main, "__annotations__", {})
    menu = "\n".join(
        ["Valid parameters:", *(f"  {name}: {_spelled(kind)}" for name, kind in kinds.items())]
    )
    known: set[str] = set()
    passed: dict[str, Any] = {}
    for cell in getattr(main, "In", []):
        names = _assigned(cell)
        if cell.startswith("# Parameters\n"):
            passed |= {name: getattr(main, name) for name in names}
        else:
            known.update(names)
        for name in names:
            if name not in known:
                raise InputError(f"unknown parameter {name!r}. {menu}")
    for name, kind in kinds.items():
        value = getattr(main, name)
        try:
            setattr(main, name, _fitted(value, kind))
        except TypeCheckError:
            expected = f"expected {_spelled(kind)}{_other_option(name, value, kind)}"
            raise InputError(f"parameter {name} is {value!r}: {expected}. {menu}") from None
    for name, value in completed(page, passed).items():
        if name not in passed:
            setattr(main, name, _read_as(value, kinds[name]))


def _other_option(name: str, value: Any, kind: Any) -> str:
    """In words, the option of papermill that passes a value as a type wants it, if one does.

    By `-p` a list comes as text, and what looks like a number as one.
    """
    option, passed = f"-r {name} {value}", str(value)
    try:
        if isinstance(value, str):
            option, passed = f'-y "{name}: {value}"', yaml.safe_load(value)
        _fitted(passed, kind)
    except (yaml.YAMLError, ValueError, RecursionError, TypeCheckError):
        return ""
    return f", which papermill's {option} passes"


def _assigned(code: str) -> list[str]:
    """The names that a cell gives values to; none if it is no Python."""
    try:
        lines = ast.parse(code).body
    except SyntaxError:
        return []
    targets: list[ast.expr] = []
    for line in lines:
        if isinstance(line, ast.Assign):
            targets += line.targets
        elif isinstance(line, ast.AnnAssign):
            targets.append(line.target)
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _spelled(kind: Any) -> str:
    """A type as a notebook writes it."""
    if typing.get_origin(kind) in (typing.Union, UnionType):
        return " | ".join(_spelled(option) for option in typing.get_args(kind))
    if kind is type(None):
        return "None"
    return str(kind) if typing.get_args(kind) else getattr(kind, "__name__", str(kind))


def from_here(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with paths of the reader's working folder made absolute, since a page runs in the
    checkout.
    """

    def absolute(value: Any) -> Any:
        if isinstance(value, list):
            return [absolute(item) for item in value]
        # Folder:blocks
        name, colon, blocks = value.partition(":") if isinstance(value, str) else ("", "", "")
        path = Path(os.path.expanduser(name))
        # A bare name may be a system or a set as well: only a folder that holds a network is taken
        # for one.
        known = path.exists() if os.sep in name else name and (path / "config.json").is_file()
        return f"{path.resolve()}{colon}{blocks}" if known else value

    return {name: absolute(value) for name, value in values.items()}


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
            raise InputError(
                f"{path} is not an executed notebook as a run left it: move or delete "
                "it, or give another --output"
            )
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_of(output, ".partial.ipynb")  # papermill wants that ending
    places = [*_roots_around(source.resolve()), source.resolve().parent]
    # Papermill reports each file it touches and warns of types it cannot read; ours were checked
    # above.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    with _told(source, timeout), _kept(partial, output, failed):
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
            stderr_file=sys.stderr if progress else None,  # bars of what runs inside a cell
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
def _told(source: Path, timeout: float | None) -> Iterator[None]:
    """Errors of an execution as errors that say which notebook failed, and where in it."""
    try:
        yield
    except PapermillExecutionError as error:
        where = f"{source.name}, cell {error.cell_index + 1}, at `{_failing_line(error)}`"
        kind = InputError if error.ename == "InputError" else NotebookError
        raise kind(f"{where}: {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise NotebookError(f"{source.name}: a cell took longer than {timeout:g} s") from error
    except DeadKernelError as error:
        raise NotebookError(
            f"{source.name}: its kernel died, most likely for want of memory"
        ) from error
    except RuntimeError as error:  # of a kernel that did not start within a minute
        raise NotebookError(f"{source.name}: {error}") from error


@contextlib.contextmanager
def _kept(partial: Path, output: Path, failed: Path) -> Iterator[None]:
    """What was executed goes to the output, or after a failure, as far as it came, to `failed`."""
    target = failed
    try:
        yield
        target = output
    except KeyboardInterrupt:
        partial.unlink(missing_ok=True)
        raise
    finally:
        # Nothing was written if the kernel never started, and half of it if the disk was full.
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            _write(json.loads(partial.read_text(encoding="utf-8")), target)
            if target != failed and ours(failed):  # of an earlier run
                failed.unlink()
        partial.unlink(missing_ok=True)


def failed_of(output: Path) -> Path:
    """Where a notebook goes that failed, beside the output of the run that it was."""
    return output.with_name(f"{output.stem}.failed.ipynb")


def _failing_line(error: PapermillExecutionError) -> str:
    """The line of the cell that raised; IPython marks it with an arrow in the first frame."""
    frames = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    arrow = re.search(r"^-+>\s*\d+\s+(.*)$", frames, flags=re.MULTILINE)
    lines = [line for line in error.source.strip().splitlines() if line.strip()]
    return (arrow.group(1) if arrow else lines[0] if lines else "").strip()


def ipynb_of(source: Path, folder: Path) -> Path:
    """Where `to_ipynb` writes a text notebook."""
    return folder / f"{source.stem}.ipynb"


def to_ipynb(source: Path, folder: Path) -> Path:
    """Write a text notebook as `.ipynb`, unexecuted, for plain `papermill` and Jupyter.

    A cell after the one of its parameters checks them, as `run` does before a kernel starts.

    Raises:
        InputError: if a notebook is there that this did not write, or that was changed since.
    """
    target = ipynb_of(source, folder)
    if not_ours(target):
        raise InputError(f"{target} is not as `repro notebooks` wrote it: move it, or delete it")
    node = read(source)
    # Plain papermill's reader knows `Union`, but not `|`
    for cell in filter(_declares, node.cells):
        union = r"(?<=: )[\w\[\]]+( \| \w+)+(?= =)"
        spelled = re.sub(union, lambda t: f"Union[{t[0].replace(' | ', ', ')}]", cell.source)
        cell.source = (
            cell.source if spelled == cell.source else f"from typing import Union\n\n{spelled}"
        )
    place = next((number for number, cell in enumerate(node.cells) if _declares(cell)), None)
    if place is not None:
        checking = CHECK.format(page=source.stem)
        check = nbformat.v4.new_code_cell(checking, metadata={"tags": ["hide-input"]})
        node.cells.insert(place + 1, check)
    _write(json.loads(jupytext.writes(node, fmt="ipynb")), target)
    return target
