"""Work done by several processes side by side, none of which outlives what started it."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from repro.types import InputError

Item = TypeVar("Item")


def done_in_processes(function: Callable[[Item], Any], items: Sequence[Item], count: int) -> Iterator[Item]:
    """Call `function(item)` for every item in `count` fresh processes; yields the items as they are done.

    Items begin in the order given. Ctrl-C ends the processes at once, and so does the death of this one; after an
    error no further item begins.

    Raises:
        InputError: if a process dies, as all do that a script without `if __name__ == "__main__":` starts.
    """
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_become_worker)
    try:
        with _interrupts_ignored():  # by the processes too, which start here and inherit that
            futures = {pool.submit(function, item): item for item in items}
        for future in as_completed(futures):
            future.result()
            yield futures[future]
    except (KeyboardInterrupt, GeneratorExit):
        for worker in multiprocessing.active_children():
            if worker not in others:
                worker.terminate()
        raise
    except BrokenProcessPool as error:
        raise InputError(
            "a worker process died; what was finished is kept. A script must call this below "
            '`if __name__ == "__main__":`, since workers import it anew; if it does, memory ran out: give workers=1'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C unheard, which reaches every process of a terminal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _become_worker() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    end_with_parent()


def end_with_parent() -> None:
    """Let this process end when the one that started it does: a killed parent tells nobody, and work would wait for it.

    A process that a fork server has forked ends with the one that asked for it, not with the server.
    """
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
