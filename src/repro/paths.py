"""Where things are, and files that appear whole or not at all, whoever is killed and however full
the disk is.

A file or folder is written under a name of its process, `<name>.<pid>.<16 hex>.partial`, and
renamed into place. The hex digits stand for the machine and for the rest of the name: what carries
them was written here, and nothing else is ever removed.
"""

import errno
import glob
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
import psutil

from repro.types import Array, InputError, check_embeddings

log = logging.getLogger(__name__)
PACKAGE = Path(__file__).resolve().parent
ASSETS = PACKAGE / "assets"
BACKBONES = ASSETS / "backbones"
PAPER_VALUES = ASSETS / "paper_values"
TABLES = PACKAGE / "papers"  # of claims, a file a document
ENDINGS = {
    *(".npy", ".npz", ".safetensors", ".parquet", ".arrow", ".feather", ".csv", ".tsv", ".xlsx"),
    *(".json", ".jsonl", ".ndjson", ".txt", ".ipynb", ".md", ".html", ".pdf", ".py"),
    *(".pt", ".pth", ".pkl", ".h5", ".hdf5", ".fvecs", ".fbin", ".gz", ".zip"),
}
"""Endings of files by which readers tell their form."""
LONGEST_NAME = 216
"""Bytes of an output's name; file systems take 255, of which its partial name needs up to 39."""
DEEPEST = 100
"""Levels of lists and objects in JSON that is read; no file of ours or of a network has ten."""


def project_root() -> Path:
    """The nearest parent with `_toc.yml` and `notebooks/`, of the working folder first, then of
    this package.
    """
    for start in (Path.cwd(), PACKAGE):
        for folder in (start, *start.parents):
            if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
                return folder
    raise InputError(
        f"no project checkout above {Path.cwd()}: run inside the folder that "
        "holds _toc.yml and notebooks/"
    )


def home() -> Path:
    """The artefact store: `REPRO_HOME`, by default `.repro/` in the checkout (or working
    folder).
    """
    if os.environ.get("REPRO_HOME"):  # set but empty means unset, as in a shell
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


@contextmanager
def disk_full_explained(place: Path) -> Iterator[None]:
    """Turn the errors of a full disk into an InputError that says what to do."""
    try:
        yield
    except Exception as error:
        if not _is_disk_full(error):
            raise
        there = next(folder for folder in place.parents if folder.exists())
        free = shutil.disk_usage(there).free / 1e6
        is_stored = place.is_relative_to(home())
        elsewhere = "set REPRO_HOME to another disk" if is_stored else "name an output on another"
        raise InputError(
            f"the disk of {there} is full ({free:.0f} MB free): free some space or {elsewhere}, "
            "then run the same command again; what was finished is kept"
        ) from error


def _is_disk_full(error: Exception) -> bool:
    full = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError):
        # numpy gives no number when a write comes back short
        return error.errno in full or bool(
            re.fullmatch(r"\d+ requested and \d+ written", str(error))
        )
    # safetensors writes in Rust and has an exception of its own, which holds the number in its text
    # only
    return type(error).__name__ == "SafetensorError" and any(
        f"os error {number})" in str(error) for number in full
    )


def writable_file(path: Path, *inputs: Path | str) -> Path:
    """The file that an output's name stands for, links followed; refuses what renaming over it
    would destroy, and a name too long to be written under a partial one.
    """
    real = Path(os.path.realpath(path))
    if (length := len(os.fsencode(real.name))) > LONGEST_NAME:
        wanted = f"expected at most {LONGEST_NAME}"
        raise InputError(f"the name {real.name} has {length} bytes: {wanted}")
    if real.exists() and any(os.path.exists(each) and real.samefile(each) for each in inputs):
        raise InputError(f"the output {path} is an input: expected another file")
    writable_folder(real.parent)
    if real.is_symlink() or (real.exists() and not real.is_file()):
        what = "a folder" if real.is_dir() else "no regular file"
        raise InputError(f"{path} is {what}: give the name of a file, there already or not")
    return real


def refuse_other_form(path: Path, form: str) -> None:
    """Refuse the name of an output whose ending says another form than it is written in, by which
    a reader would take it for damaged.
    """
    if path.suffix.lower() in ENDINGS - {form}:
        raise InputError(f"{path} would be no {path.suffix} file: give a name that ends in {form}")


def writable_folder(path: Path) -> Path:
    """The folder that an output's name stands for, links followed; refuses what is there and is no
    folder.
    """
    real = resolved(path)
    there = next(place for place in (real, *real.parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{there} is not a folder: give the name of one, there already or not")
    return real


class Owner(NamedTuple):
    """What the name of a partial file says: what it was to become, and who was writing it."""

    name: str
    pid: int
    machine: str

    @property
    def is_dead(self) -> bool:
        """Whether the process is gone; of one on another machine nothing is known."""
        return self.machine == _machine() and not psutil.pid_exists(self.pid)


def partial_of(path: Path, ending: str = ".partial", *, folder: bool = False) -> Path:
    """A name of this process beside `path`, to write a file or folder under and then rename; what
    dead processes left of that kind is removed.
    """
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{ending}"):
        owner = owner_of(left, ending)
        is_left = owner is not None and owner.name == path.name and owner.is_dead
        if is_left and left.is_dir() == folder:
            _remove(left)
    return path.with_name(_partial_name(Owner(path.name, os.getpid(), _machine())) + ending)


def owner_of(partial: Path, ending: str = ".partial") -> Owner | None:
    """Who wrote a partial file or folder; None for what bears no name of ours, or is a link."""
    stem = partial.name.removesuffix(ending)
    parts = re.fullmatch(r"(.+)\.([1-9][0-9]{0,8})\.([0-9a-f]{8})[0-9a-f]{8}", stem, re.DOTALL)
    is_written = partial.is_file() or partial.is_dir()
    if parts is None or partial.is_symlink() or not is_written:
        return None
    owner = Owner(parts[1], int(parts[2]), parts[3])
    return owner if stem == _partial_name(owner) else None


def _partial_name(owner: Owner) -> str:
    """The name without its ending; its last digits are a checksum, which no other name has."""
    start = f"{owner.name}.{owner.pid}.{owner.machine}"
    return start + hashlib.sha256(os.fsencode(start)).hexdigest()[:8]


def _remove(partial: Path) -> None:
    """Remove a file or folder that bears a name of ours, if it is there."""
    if partial.is_dir():
        shutil.rmtree(partial)
    else:
        partial.unlink(missing_ok=True)


@cache
def _machine() -> str:
    """Eight hex digits that stand for this machine: on another, a process has another number."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


_LOCKS: dict[int, bool] = {}
"""Device → whether its file system keeps locks, as far as that was tried."""


@contextmanager
def locked(path: Path, *, timeout: float = -1) -> Iterator[None]:
    """Hold the lock `NAME.lock`; by default wait for it as long as it takes.

    Where the file system keeps no locks, as some shared ones do, a file `NAME.soft.lock` stands
    for one.

    Raises:
        filelock.Timeout: if another process has held it for `timeout` seconds.
    """
    from filelock import FileLock, SoftFileLock  # slow to load, for those who lock nothing

    lock = FileLock(path) if _keeps_locks(path.parent) else SoftFileLock(soft_lock(path))
    with lock.acquire(timeout=timeout):
        yield


def soft_lock(path: Path) -> Path:
    """The file that stands for a lock where the file system keeps none."""
    return path.with_suffix(".soft.lock")


def _keeps_locks(folder: Path) -> bool:
    """Whether the file system of a folder keeps locks; where it does not, that is said once."""
    device = folder.stat().st_dev
    if device not in _LOCKS:
        refusal = _refused_lock(folder)
        _LOCKS[device] = refusal is None
        if refusal is not None:
            log.warning(
                "the file system of %s keeps no locks (%s): a file *.soft.lock stands for each; "
                "should a command wait in vain after a crash, remove it",
                folder,
                refusal.strerror,
            )
    return _LOCKS[device]


def _refused_lock(folder: Path) -> OSError | None:
    """The error by which a file system says that it has no locks, tried on a nameless file."""
    unsupported = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)
    try:
        import fcntl
    except ImportError:  # Windows has locks of its own
        return None
    try:
        with TemporaryFile(dir=folder) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # of another one, such as of a folder that may not be written, whoever takes the lock hears
        return error if error.errno in unsupported else None
    return None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that becomes `path` when the block ends well, and vanishes when it does
    not.

    The file may be read by whom new files may be, also where a library made it for its owner alone.
    """
    path = writable_file(path)
    with disk_full_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = partial_of(path)
        try:
            usual = _mode_of_new(partial)
            yield partial
            partial.chmod(usual)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def _mode_of_new(partial: Path) -> int:
    """The mode that a new file has at a place, by a file that is made there and removed."""
    partial.unlink(missing_ok=True)
    partial.touch()
    mode = partial.stat().st_mode
    partial.unlink()
    return mode


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A folder that becomes `path`, new or empty so far, when the block ends well, and vanishes
    when it does not.
    """
    path = writable_folder(path)
    with disk_full_explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = partial_of(path, folder=True)
        _remove(partial)  # of a dead process that had our number
        partial.mkdir()
        try:
            yield partial
            if path.is_dir():
                path.rmdir()  # which refuses one that has been filled in the meantime
            os.replace(partial, path)
        finally:
            _remove(partial)


def parse_json(text: str | bytes, where: str, way_out: str, **options: Any) -> Any:
    """What JSON says, by `options` of `json.loads`; an InputError tells `where` it stands and the
    `way_out` if it cannot be read.

    Refused are bytes that are no UTF-8, text that is no JSON, a number of thousands of digits, and
    values in more than `DEEPEST` levels, on which whatever walks through them runs out of stack.
    """
    try:
        value = json.loads(text if isinstance(text, str) else text.decode("utf-8"), **options)
        _check_depth(value)
    except RecursionError:
        raise InputError(f"{where} is not valid JSON (nested too deeply): {way_out}") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON ({error}): {way_out}") from None
    return value


def fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of an object in JSON, for the `object_pairs_hook` of `json.loads`; ValueError for
    a name that occurs twice.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {repeated!r} occurs twice")
    return fields


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                below += part.values()
            elif isinstance(part, list):
                below += part
        if not below:
            return
        level = below
    raise RecursionError


def regular_file(path: Path) -> Path:
    """The path of a file to be read; refused is a pipe or a device, for which a reader may wait for
    ever.

    Raises:
        OSError: where nothing is. A folder is refused by whoever opens it.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise InputError(
            f"{path} is a pipe or a device: expected a regular file, so copy it to one"
        )
    return path


def read_json(path: Path, way_out: str = "write or copy it again") -> Any:
    """What a JSON file says, by `parse_json`; OSError for a file that cannot be opened."""
    return parse_json(regular_file(path).read_bytes(), str(path), way_out)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of any library tells that memory ran out, and nothing of what was read."""
    if isinstance(error, MemoryError):  # numpy's and pyarrow's are of its kind
        return True
    if isinstance(error, OSError):  # of a file that is mapped
        return error.errno == errno.ENOMEM
    # torch has a type for accelerators alone; of the CPU it tells in words
    told = r"can't allocate memory|not enough memory|out of memory"
    return isinstance(error, RuntimeError) and re.search(told, str(error)) is not None


@contextmanager
def memory_explained(what: str) -> Iterator[None]:
    """Turn errors of memory that runs out while something is read into an InputError naming it."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error) or type(error).__name__
        way_out = "end other programs, give fewer rows, or use a larger machine"
        raise InputError(f"memory ran out while {what} was read ({reason}): {way_out}") from error


def read_matrix(path: Path) -> Array:
    """The finite matrix (n, dim) in a `.npy` file, as float32 or float64; nothing is unpickled."""
    if not path.is_file():
        raise InputError(f"no file {path}: expected a .npy matrix, such as `repro encode` writes")
    with memory_explained(str(path)):
        X = check_embeddings(_numbers(path), str(path))
        if X.dtype in (np.float32, np.float64):
            return X
        return X.astype(np.float32 if X.dtype == np.float16 else np.float64)


def _numbers(path: Path) -> Array:
    """The numbers in a `.npy` file, whatever their shape."""
    try:
        # The file is mapped, and none of it read: an error of whatever type is of the file, for its
        # header is parsed as Python. What follows needs memory.
        np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:
        if "object" in str(error).lower():
            raise InputError(
                f"{path} holds Python objects: save plain numbers, np.save(path, X)"
            ) from error
        raise InputError(
            f"{path} is not a whole .npy file ({error}): np.save(path, X) writes one"
        ) from error
    with path.open("rb") as file:
        X = np.lib.format.read_array(file, allow_pickle=False)
    if X.dtype.kind not in "fiu":
        raise InputError(f"{path} holds {X.dtype} values: expected numbers, such as float32")
    return X


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def write_matrix(path: Path, X: Array) -> None:
    """Write a matrix as `.npy`, whole or not at all."""
    with replacing(path) as partial, partial.open("wb") as file:
        np.save(file, X, allow_pickle=False)
