"""The book as a site: the pages that `_toc.yml` names, what each depends on, cause by cause, and how it is rendered."""

import json
import logging
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import yaml  # type: ignore[import-untyped]

from repro.digests import PACKAGES, digest
from repro.paths import PACKAGE, data_folder, inside, write_text
from repro.store import sha256
from repro.types import InputError, installed

log = logging.getLogger(__name__)
SUFFIXES = (".md", ".ipynb")
# Jupyter Book has no `python -m` entrance, and none of its options passes Sphinx a number of processes.
ENDING = "import os; from repro.seeding import end_with_parent; end_with_parent(os.getppid()); "
PARALLEL = "from jupyter_book import sphinx; sphinx.build_sphinx.__kwdefaults__['jobs'] = 2; "
JUPYTER_BOOK = [sys.executable, "-c", ENDING + PARALLEL + "from jupyter_book.cli.main import main; main()"]
CARRIED = {"book/_static": "*", "book/_ext": "*.py", "book": "*.bib", "src": "*.py"}
"""What pages include or cite besides their own text: folder of the checkout, pattern of names."""
# Libraries whose version can change a number or a figure. Others may come and go without a rebuild.
WATCHED = ["numpy", "scipy", "scikit-learn", "pandas", "torch", "transformers", "matplotlib", "altair", "papermill"]


def pages_of(root: Path) -> dict[str, Path]:
    """The pages of `_toc.yml` in reading order: name as the contents file has it, and source."""
    pages = {}
    for name in _files(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        candidates = [inside(root, name + suffix) for suffix in ("", *SUFFIXES)]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise InputError(f"_toc.yml names {name!r}, but there is no {name}.md: write the page or drop the line")
        pages[name.removesuffix(found.suffix)] = found
    return pages


def _files(node: Any) -> Iterator[str]:
    """Every page named in a contents file, whatever its nesting."""
    if isinstance(node, dict):
        yield from (str(node[key]) for key in ("root", "file") if key in node)
        node = list(node.values())
    for item in node if isinstance(node, list) else ():
        yield from _files(item)


def choose(pages: Collection[str], wanted: Collection[str] | None) -> set[str]:
    """The pages a user names, bare or with folder and suffix; all of them if none is named."""
    chosen = set()
    for name in wanted or ():
        bare = name.removesuffix(".md").removesuffix(".ipynb")
        found = [page for page in pages if bare in (page, page.rsplit("/", 1)[-1])]
        if not found:
            raise InputError(f"no page {name!r} in _toc.yml: choose among {', '.join(pages)}")
        chosen.update(found)
    return chosen or set(pages)


def contents(files: Iterable[Path], base: Path) -> str:
    """Digest of names and bytes of files."""
    return digest({path.relative_to(base).as_posix(): sha256(path) for path in files if path.is_file()})


def stamps(folder: Path) -> str:
    """Digest of names, sizes and times below a folder, for files too large to read at each build."""
    found = {path.as_posix(): path.stat() for path in folder.rglob("*") if path.is_file()}
    return digest({name: [stat.st_size, stat.st_mtime_ns] for name, stat in found.items()})


def surroundings(root: Path) -> dict[str, str]:
    """Digests of everything that all pages share: package, recorded results, data source, libraries."""
    source = PACKAGE.parent
    files = (path for name in PACKAGES for path in (source / name).rglob("*") if "__pycache__" not in path.parts)
    data = data_folder()
    return {
        "src/": contents(files, source),
        "results/": contents((root / "results").rglob("*.parquet"), root),
        "the data source": stamps(data) if data else "microworld",
        "a library version": digest([platform.python_version(), *map(installed, WATCHED)]),
    }


def differences(before: Mapping[str, str] | None, now: Mapping[str, str]) -> list[str]:
    """The causes whose digests differ; a page never executed has one cause of its own."""
    if before is None:
        return ["first build"]
    return [f"{cause} changed" for cause in now if before.get(cause) != now[cause]]


class Ledger:
    """What earlier builds did, in one JSON file that is replaced whole at each step; threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self.pages: dict[str, dict[str, str]] = {}  # the causes of each page's last good execution
        self.rendered = ""  # the stamps of the tree that was last rendered without complaint
        if path.is_file():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                pages = {name: dict(causes) for name, causes in stored["pages"].items()}
                self.pages, self.rendered = pages, str(stored["rendered"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%s cannot be read (%s): every page is made anew", path, error)

    @contextmanager
    def changed(self) -> Iterator["Ledger"]:
        """The ledger for a change that no other thread sees half done, saved after it."""
        with self._lock:
            yield self
            kept = {"pages": self.pages, "rendered": self.rendered}
            write_text(self._path, json.dumps(kept, indent=1))


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
    """Render the tree of executed pages to `_build/html/`, warnings as errors; the complaints, and `render.log`."""
    if fresh:  # every page is read again, as is needed after a failure: Sphinx would not repeat an old warning
        for made in (".doctrees", "html/_static"):  # nor write anew what a kill has left half copied
            shutil.rmtree(root / "_build" / made, ignore_errors=True)
    command = [*JUPYTER_BOOK, "build", str(tree), "--path-output", str(root), "-W", "--keep-going", "-n"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    (root / "_build" / "render.log").write_text(log, encoding="utf-8")
    if done.returncode == 0:
        return []
    complaints = [line for line in log.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b|Error:", line)]
    return complaints or log.strip().splitlines()[-12:]
