"""Randomness with an owner, and work on several cores whose result does not depend on how many
there are.

A generator is derived from (seed, component name, keys such as dim), never from a global stream:
adding one dim to a sweep leaves every other dim's numbers as they were.
"""

import hashlib
import multiprocessing
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from repro.types import InputError, is_number

Item = TypeVar("Item")
LIMIT = 2**63  # The first seed that is too large


def derive_seed(seed: int, component: str, *keys: object) -> int:
    """A 63-bit seed for one component, stable across platforms and Python versions."""
    text = "\x1f".join([str(check_seed(seed)), component, *(str(key) for key in keys)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def check_seed(seed: int) -> int:
    """Return a seed as an int, or raise an InputError if rows and torch could not hold it."""
    if not (is_number(seed) and -LIMIT <= seed < LIMIT and seed == int(seed)):
        raise InputError(f"seed is {seed!r}: expected a whole number below 2**63, such as 0")
    return int(seed)


def make_rng(seed: int, component: str, *keys: object) -> np.random.Generator:
    """A numpy generator owned by one component."""
    return np.random.default_rng(derive_seed(seed, component, *keys))


def cpu_count() -> int:
    """Cores this process may use; `REPRO_THREADS` overrides it, 0 there meaning 1.

    Raises:
        InputError: where `REPRO_THREADS` is set to something else.
    """
    if given := os.environ.get("REPRO_THREADS"):
        if not re.fullmatch("[0-9]{1,4}", given.strip()):  # `isdigit` would let ² through
            expected = "expected a number of cores up to 9999, or leave it unset"
            raise InputError(f"REPRO_THREADS is {given!r}: {expected}")
        return max(1, int(given))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many torch threads inside the block: sums that are split otherwise differ in their last
    bits.
    """
    import torch  # Of an extra, which the other functions here do without

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread_each(workers: int) -> Iterator[Callable[..., Any]]:
    """A `map` that works on several items at a time, each on one torch thread: small products do
    not repay splitting.

    The setting of the workers becomes that of threads yet to come, so it is put back at the end.
    """
    import torch

    with threads(1):
        if workers == 1:
            yield map
        else:
            with ThreadPoolExecutor(
                workers,
                initializer=torch.set_num_threads,
                initargs=(1,),
            ) as pool:
                yield pool.map


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """This process's environment, and that of what it starts, with some values for a while."""
    before = {name: os.environ[name] for name in values if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
        os.environ.update(before)


def done_in_processes(
    function: Callable[[Item], Any],
    items: Sequence[Item],
    count: int,
) -> Iterator[Item]:
    """Call `function(item)` for every item in `count` fresh processes; yields the items as they are
    done.

    Items begin in the order given. Ctrl-C ends the processes at once, and so does the death of this
    one; after an error no further item begins. An InputError tells of a process that died.
    """
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=end_with_parent,
    )
    try:
        with _interrupts_ignored():  # By the processes too, which start here and inherit that
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
            '`if __name__ == "__main__":`, since workers import it anew; if it does, '
            "memory ran out: give workers=1"
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


def end_with_parent(pid: int | None = None) -> None:
    """Let this process end when the one that asked for it does, a fork server aside: a killed
    parent tells nobody.

    A process that was started by a command says who its parent is, by `pid`.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # Or forked workers warn of it
    parent = multiprocessing.parent_process()

    def wait() -> None:
        while pid and os.getppid() == pid:
            time.sleep(0.5)
        if parent is not None:
            parent.join()
        if pid or parent:
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
