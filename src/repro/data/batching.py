"""Batches: which rows go together at which step, decided by (seed, step) alone."""

import numpy as np
from numpy.typing import NDArray

from repro.seeding import make_rng


def epoch_order(n: int, *, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation of 0 … n-1 for one epoch; the same for every dim of a sweep, so comparisons are paired."""
    return make_rng(seed, "data order", epoch).permutation(n)


def bucketed_batches(
    lengths: NDArray[np.integer], batch_size: int, *, seed: int, epoch: int, pool: int = 64
) -> list[NDArray[np.int64]]:
    """Shuffled batches of rows of like length: sort inside pools of `pool` batches, then shuffle the batches."""
    order = epoch_order(len(lengths), seed=seed, epoch=epoch)
    span = batch_size * pool
    batches: list[NDArray[np.int64]] = []
    for start in range(0, len(order), span):
        rows = order[start : start + span]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    batches = [rows for rows in batches if len(rows) == batch_size] or batches
    shuffled = make_rng(seed, "batch order", epoch).permutation(len(batches))
    return [batches[i] for i in shuffled]
