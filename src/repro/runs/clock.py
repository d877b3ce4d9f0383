"""A fair clock: works take turns, and what is told of two of them are ratios within a round.

Without an accelerator the seconds are the processor's, which other programs on the machine do not lengthen; on one
thread they are the time that the work takes on an idle machine.
"""

from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import t
from threadpoolctl import threadpool_limits

from repro.evaluation.stats import Interval
from repro.seeding import threads
from repro.types import check_dim

Seconds: TypeAlias = NDArray[np.float64]
"""of every round (R,)"""


def in_turns(
    works: Mapping[Any, Callable[[], Callable[[], object]]], repeats: int, *, tries: int = 1
) -> dict[Any, Seconds]:
    """Seconds of each work in every round, all taking turns, on one thread; a round to warm up is dropped.

    Each round starts one work later than the last, so that none always comes after the same one, and prepares each
    anew: vectors that lie well in memory stay fast for as long as they lie there, which would look like a property of
    theirs.

    Args:
        works: what prepares a work, untimed, and returns the work itself.
        repeats: rounds that count.
        tries: runs of a work within a round, of which the fastest counts: an interruption spoils one, not all.
    """
    check_dim(repeats, what="repeats")
    check_dim(tries, what="tries")
    taken: dict[Any, list[float]] = {name: [] for name in works}
    names = list(works)
    read = perf_counter if torch.cuda.is_available() else process_time  # the processor's clock stops while it waits
    with threads(1), threadpool_limits(1):
        for i in range(repeats + 1):
            first = i % max(len(names), 1)
            for name in [*names[first:], *names[:first]]:
                work = works[name]()
                taken[name].append(min(_seconds(work, read) for _ in range(tries)))
    return {name: np.array(seconds[1:]) for name, seconds in taken.items()}


def _seconds(work: Callable[[], object], read: Callable[[], float]) -> float:
    started = read()
    work()
    return read() - started


def ratio_of(a: Seconds, b: Seconds) -> Interval:
    """Geometric mean of the rounds' ratios a / b, with Student's 95 % interval on their logarithms.

    One round has no interval: nothing follows from it.
    """
    logs = np.log(a / b)
    value = float(np.exp(logs.mean()))
    if len(logs) < 2:
        return Interval(value, float("nan"), float("nan"))
    half = float(t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs)))
    return Interval(value, value * float(np.exp(-half)), value * float(np.exp(half)))
