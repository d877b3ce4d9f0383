"""What fewer dimensions save: bytes are counted, seconds of one core measured here and scaled."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np
from threadpoolctl import threadpool_limits

from repro.types import check_dim

SAMPLE = 20_000
"""stored vectors that are searched to time a query"""
COUNTS = (1_000_000, 1_000_000_000)


@dataclass(frozen=True)
class Saving:
    """A store of vectors at the full size and at a smaller one."""

    vectors: int
    full_bytes: int
    bytes: int
    full_seconds: float
    """of one core for one exact query: measured over `SAMPLE` vectors, times what is missing"""
    seconds: float


def savings(full: int, dim: int, *, counts: Sequence[int] = COUNTS, repeats: int = 25, seed: int = 0) -> list[Saving]:
    """Memory in float32 and seconds of one core for one exact query, at `full` and at `dim` dimensions.

    The seconds are processor time: those spent waiting for a busy machine do not count.

    Args:
        full: present size.
        dim: smaller size.
        counts: numbers of stored vectors.
        repeats: timed queries of each size, in turns; the fastest counts, others shared the memory with company.
        seed: of the vectors, whose values do not matter to the time.
    """
    check_dim(dim, limit=check_dim(full, what="full"))
    rng = np.random.default_rng(seed)
    stores = {size: rng.standard_normal((SAMPLE, size), dtype=np.float32) for size in {full, dim}}
    taken: dict[int, list[float]] = {size: [] for size in stores}
    with threadpool_limits(1, user_api="blas"):
        for _ in range(repeats):
            for size, store in stores.items():
                begun = thread_time()
                int((store @ store[0]).argmax())
                taken[size].append(thread_time() - begun)
    each = {size: min(times) / SAMPLE for size, times in taken.items()}
    return [Saving(n, 4 * n * full, 4 * n * dim, n * each[full], n * each[dim]) for n in counts]
