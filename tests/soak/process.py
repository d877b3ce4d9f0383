"""Processes of a soak: forks of one that has imported everything, each with a session, a log and an end."""

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE = 30  # seconds that a process has to end in, and its descendants with it
REAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


def forked(work: Callable[[], object], log: Path, **environment: str) -> int:
    """Start a process that does `work` and writes to `log`; its id, which is that of its group too."""
    sys.stdout.flush()
    if pid := os.fork():
        with suppress(OSError):  # done by either, before anybody sends it a signal
            os.setpgid(pid, pid)
        return pid
    code = 1
    try:
        with suppress(OSError):
            os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout, sys.stderr = (open(stream, "w", closefd=False) for stream in (1, 2))
        signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background a shell has it ignored
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(environment)
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:  # before the command has begun
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def adopt_orphans() -> None:
    """Have descendants whose parent dies become this process's children, so that none is missed."""
    ctypes.CDLL(None).prctl(REAPER, 1, 0, 0, 0)


def ended(pid: int, patience: float = PATIENCE) -> int | None:
    """The exit code of a process, minus the signal that ended it; None if it has not ended in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def orphans(patience: float = PATIENCE) -> list[str]:
    """The descendants that are left after a while, by their command lines; they are ended."""
    end = time.monotonic() + patience
    while left := psutil.Process().children(recursive=True):
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > end:
            said = [" ".join(_command(process))[:200] for process in left]
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return said
        time.sleep(0.02)
    return []


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
