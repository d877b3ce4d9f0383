"""Where things are: the checkout, the package, the store and the folders of data."""

import errno
import os
from pathlib import Path

from repro.types import InputError

PACKAGE = Path(__file__).resolve().parent
ASSETS = PACKAGE / "assets"
BACKBONES = ASSETS / "backbones"
PAPER_VALUES = ASSETS / "paper_values"
TABLES = PACKAGE / "papers"  # Of claims, a file a document


def project_root() -> Path:
    """The nearest parent with `_toc.yml` and `notebooks/`, of the working folder first, then of
    this package.
    """
    for start in (Path.cwd(), PACKAGE):
        for folder in (start, *start.parents):
            if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
                return folder
    raise InputError(
        f"no project checkout above {Path.cwd()}: run inside the folder that holds _toc.yml and "
        "notebooks/"
    )


def home() -> Path:
    """The artefact store: `REPRO_HOME`, by default `.repro/` in the checkout (or working
    folder).
    """
    if os.environ.get("REPRO_HOME"):  # Set but empty means unset, as in a shell
        return resolved(Path(os.path.expanduser(os.environ["REPRO_HOME"])))
    try:
        return project_root() / ".repro"
    except InputError:
        return Path.cwd() / ".repro"


def data_folder() -> Path | None:
    """The folder of local benchmark files named by `REPRO_DATA`, or None if it is not set."""
    return _folder_named_by("REPRO_DATA", "the benchmark files")


def hub_folder() -> Path | None:
    """The folder of copies of hub repositories, by their ids, named by `REPRO_HUB`, or None if it
    is not set.
    """
    return _folder_named_by("REPRO_HUB", "the copies of hub repositories")


def _folder_named_by(variable: str, holds: str) -> Path | None:
    if not (value := os.environ.get(variable)):
        return None
    folder = Path(os.path.expanduser(value))
    if not folder.is_absolute() and not folder.is_dir():
        folder = project_root() / folder
    folder = resolved(folder)
    if not folder.is_dir():
        raise InputError(
            f"{variable} is {value!r}, which is not a folder: point it at {holds} or unset it"
        )
    return folder


def resolved(path: Path) -> Path:
    """The place that a path leads to, there or not; links that lead in a circle are refused."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            way_out = "name another place, or mend the link"
            raise InputError(f"{path} is a link that leads in a circle: {way_out}") from None
    return path.resolve()


def inside(folder: Path, name: str) -> Path:
    """Resolve `name` under `folder`, refusing a path that leaves it."""
    path = resolved(folder / name)
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{name!r} leads outside {folder}: name a file below that folder")
    return path


def is_folder(path: Path) -> bool:
    """Whether a folder is there, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def is_file(path: Path) -> bool:
    """Whether a file is there, and no link to one."""
    return path.is_file() and not path.is_symlink()
