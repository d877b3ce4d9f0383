"""Locks between processes, also where the file system keeps none."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

log = logging.getLogger(__name__)

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
    from filelock import FileLock, SoftFileLock  # Slow to load, for those who lock nothing

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
        # Of another one, such as of a folder that may not be written, whoever takes the lock hears
        return error if error.errno in unsupported else None
    return None
