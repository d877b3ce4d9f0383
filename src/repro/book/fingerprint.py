"""What a page of the book depends on, and what it depended on when it was last executed.

Kept apart by cause so that a rebuild can say why: "src/ changed" is worth more than "digest differs".
"""

import hashlib
import json
import logging
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from threading import Lock

from repro.paths import PACKAGE, data_folder
from repro.writing import replacing

log = logging.getLogger(__name__)

# Libraries whose version can change a number or a figure. Others may come and go without a rebuild.
WATCHED = ["numpy", "scipy", "scikit-learn", "pandas", "torch", "transformers", "matplotlib", "altair", "papermill"]


def digest(*pieces: object) -> str:
    """A short digest of the text of some objects."""
    return hashlib.sha256("\x1f".join(str(piece) for piece in pieces).encode()).hexdigest()[:16]


def contents(files: Iterable[Path], base: Path) -> str:
    """Digest of names and bytes of files."""
    pairs = sorted((path.relative_to(base).as_posix(), path) for path in files if path.is_file())
    return digest(*(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for name, path in pairs))


def stamps(folder: Path) -> str:
    """Digest of names, sizes and times below a folder, for files too large to read at each build."""
    pairs = sorted((path.relative_to(folder).as_posix(), path.stat()) for path in folder.rglob("*") if path.is_file())
    return digest(folder, *(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in pairs))


def surroundings(root: Path) -> dict[str, str]:
    """Digests of everything that all pages share: package, recorded results, data source, libraries."""
    packages = ("repro", "rivals", "dimadvise", "microworld")
    files = (
        path for name in packages for path in (PACKAGE.parent / name).rglob("*") if "__pycache__" not in path.parts
    )
    data = data_folder()
    return {
        "src/": contents(files, PACKAGE.parent),
        "results/": contents((root / "results").rglob("*.parquet"), root),
        "the data source": stamps(data) if data else "microworld",
        "a library version": digest(platform.python_version(), *(_version(name) for name in WATCHED)),
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
        self.pages: dict[str, dict[str, str]] = {}
        """The causes of each page's last good execution."""
        self.rendered = ""
        """The stamps of the tree that was last rendered without complaint."""
        if path.is_file():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                self.pages = {name: dict(causes) for name, causes in stored["pages"].items()}
                self.rendered = str(stored["rendered"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                log.warning("%s cannot be read (%s): every page is made anew", path, error)
                self.pages = {}

    @contextmanager
    def changed(self) -> Iterator["Ledger"]:
        """The ledger for a change that no other thread sees half done, saved after it."""
        with self._lock:
            yield self
            kept = {"pages": self.pages, "rendered": self.rendered}
            with replacing(self._path) as partial:
                partial.write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"
