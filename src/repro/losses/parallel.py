"""Independent decompositions side by side, each on one thread.

A small matrix gives several threads too little to share: mostly they wait for each other, on a busy machine above all.
One matrix to a thread keeps them apart, and its result does not depend on how many there are.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from repro.losses.distributed import world_size


def each_on_a_thread(work: Callable[[int, Tensor], Tensor], matrices: Sequence[Tensor]) -> list[Tensor]:
    """`work(index, matrix)` of each, in order; without gradient, since threads do not share a graph's recording.

    One after the other on an accelerator, and with several processes, which must gather in one order.
    """
    threads = min(torch.get_num_threads(), len(matrices))
    if threads < 2 or matrices[0].device.type != "cpu" or world_size() > 1:
        with torch.no_grad():
            return [work(i, matrix) for i, matrix in enumerate(matrices)]

    @torch.no_grad()
    def alone(i: int) -> Tensor:
        return work(i, matrices[i])

    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(alone, range(len(matrices))))
    finally:
        torch.set_num_threads(before)  # the workers' setting became that of threads yet to come
