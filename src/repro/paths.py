"""Where things are: the package's own assets, the artefact store, the benchmark folder."""

import os
from pathlib import Path

from repro.types import InputError

PACKAGE = Path(__file__).resolve().parent
ASSETS = PACKAGE / "assets"
BACKBONES = ASSETS / "backbones"
PAPER_VALUES = ASSETS / "paper_values"
CLAIMS = ASSETS / "claims.csv"


def project_root() -> Path:
    """The checkout that holds `notebooks/` and `results/`: the nearest parent folder with a `_toc.yml`.

    Looks upwards from the working folder first, so an installed package serves any checkout, then from
    this file, so an editable install works from anywhere.

    Raises:
        InputError: if neither lies in a checkout.
    """
    for start in (Path.cwd(), PACKAGE):
        for folder in (start, *start.parents):
            if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
                return folder
    raise InputError(
        f"no project checkout above {Path.cwd()}: run inside the folder that holds _toc.yml and notebooks/"
    )


def home() -> Path:
    """The artefact store: `REPRO_HOME`, by default `.repro/` in the checkout (or working folder)."""
    if os.environ.get("REPRO_HOME"):  # set but empty means unset, as in a shell
        return Path(os.environ["REPRO_HOME"]).expanduser().resolve()
    try:
        return project_root() / ".repro"
    except InputError:
        return Path.cwd() / ".repro"


def data_folder() -> Path | None:
    """The folder of local benchmark files named by `REPRO_DATA`, or None if it is not set.

    Raises:
        InputError: if `REPRO_DATA` names something that is not a folder.
    """
    return _folder_named_by("REPRO_DATA", "the benchmark files")


def hub_folder() -> Path | None:
    """The folder named by `REPRO_HUB`, which holds copies of hub repositories by their ids, or None if it is not set.

    Raises:
        InputError: if `REPRO_HUB` names something that is not a folder.
    """
    return _folder_named_by("REPRO_HUB", "the copies of hub repositories")


def _folder_named_by(variable: str, holds: str) -> Path | None:
    value = os.environ.get(variable, "")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_absolute() and not folder.is_dir():
        folder = project_root() / folder
    folder = folder.resolve()
    if not folder.is_dir():
        raise InputError(f"{variable} is {value!r}, which is not a folder: point it at {holds} or unset it")
    return folder


def inside(folder: Path, name: str) -> Path:
    """Resolve `name` under `folder`, refusing a path that leaves it.

    Raises:
        InputError: if the resolved path is outside `folder`.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{name!r} leads outside {folder}: name a file below that folder")
    return path
