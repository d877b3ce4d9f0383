"""A fair clock: works take turns, and what is told of two of them are ratios within a round.

Without an accelerator the seconds are the processor's, which other programs on the machine do not
lengthen; on one thread they are the time that the work takes on an idle machine.
"""

from collections import deque
from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from threadpoolctl import threadpool_limits

from repro.evaluation.stats import Interval
from repro.seeding import threads
from repro.types import check_dim

Seconds: TypeAlias = NDArray[np.float64]
"""How long a work took in every round (R,)."""


def in_turns(
    works: Mapping[Any, Callable[[], Callable[[], object]]],
    repeats: int,
    *,
    tries: int = 1,
) -> dict[Any, Seconds]:
    """Seconds of each work in every round, all taking turns, on one thread; a round to warm up is
    dropped.

    A work is what a function returns that prepares it, untimed. Each round starts one work later
    than the last, so that none always comes after the same one, and prepares each anew: vectors
    that lie well in memory stay fast for as long as they lie there. Of several tries in a round the
    fastest counts: an interruption spoils one, not all.
    """
    import torch  # Comes with an extra, which the rest of `evaluation` does without

    check_dim(repeats, what="repeats")
    check_dim(tries, what="tries")
    taken: dict[Any, list[float]] = {name: [] for name in works}
    names = deque(works)
    # The processor's clock stops while it waits
    read = perf_counter if torch.cuda.is_available() else process_time

    def seconds(work: Callable[[], object]) -> float:
        started = read()
        work()
        return read() - started

    with threads(1), threadpool_limits(1):
        for _ in range(repeats + 1):
            for name in names:
                work = works[name]()
                taken[name].append(min(seconds(work) for _ in range(tries)))
            names.rotate(-1)
    return {name: np.array(rounds[1:]) for name, rounds in taken.items()}


def ratio_of(a: Seconds, b: Seconds) -> Interval:
    """Geometric mean of the rounds' ratios a / b, with Student's 95 % interval on their logarithms;
    one has none.
    """
    logs = np.log(a / b)
    value = float(np.exp(logs.mean()))
    half = np.nan
    if len(logs) > 1:
        error = logs.std(ddof=1) / np.sqrt(len(logs))
        half = t.ppf(0.975, len(logs) - 1) * error
    return Interval(value, value * float(np.exp(-half)), value * float(np.exp(half)))
