"""Processes of a soak: forks of one that has imported everything, each with a session and a log of
its own.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from contextlib import suppress

import psutil

PATIENCE = 30  # Seconds that a process has to end in, and its descendants with it
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


def forked(work, log, **environment):
    """Start a process that does `work` and writes to `log`; its id, which is that of its group
    too.
    """
    if pid := os.fork():
        with suppress(OSError):  # Both do it, so that it is done before anybody sends a signal
            os.setpgid(pid, pid)
        return pid
    code = 1
    try:
        with suppress(OSError):
            os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
        # In the background a shell has it ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.update(environment)
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:  # Before the command has begun
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(pid, patience=PATIENCE):
    """The exit code of a process, minus the signal that ended it; None if it has not ended in
    time.
    """
    end = time.monotonic() + patience
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return None


def adopt_orphans():
    """Have descendants whose parent dies become this process's children, so that none is missed."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def orphans():
    """The descendants that are left after a while, by their command lines; they are ended."""
    end = time.monotonic() + PATIENCE
    while left := psutil.Process().children(recursive=True):
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if time.monotonic() > end:
            with suppress(psutil.NoSuchProcess):
                return [(" ".join(process.cmdline())[:200], process.kill())[0] for process in left]
        time.sleep(0.02)
    return []
