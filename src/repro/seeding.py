"""Randomness with an owner: every component derives its own seed, so no component moves another.

A generator is derived from (seed, component name, keys such as dim), never from a global stream: adding
one dim to a sweep leaves every other dim's numbers as they were.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def derive_seed(seed: int, component: str, *keys: object) -> int:
    """A 63-bit seed for one component, stable across platforms and Python versions."""
    text = "\x1f".join([str(int(seed)), component, *(str(key) for key in keys)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def make_rng(seed: int, component: str, *keys: object) -> np.random.Generator:
    """A numpy generator owned by one component."""
    return np.random.default_rng(derive_seed(seed, component, *keys))


def cpu_count() -> int:
    """Cores this process may use; `REPRO_THREADS` overrides it."""
    if os.environ.get("REPRO_THREADS", "").isdigit():
        return max(1, int(os.environ["REPRO_THREADS"]))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many torch threads inside the block: sums that are split otherwise differ in their last bits."""
    import torch  # of an extra, which the other functions here do without

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
