"""What it costs to encode a sentence: seconds on one thread, whatever kind of encoder it is."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from repro.evaluation.stats import Interval
from repro.models.encoder import merge_equal
from repro.runs.cell import threads
from repro.seeding import make_rng
from repro.sets import ScoredPairs, texts_of
from repro.types import check_dim

WARM_UP = 16
"""sentences encoded before the clock starts"""


def timed_texts(pairs: ScoredPairs, count: int, *, seed: int) -> list[str]:
    """So many distinct sentences of some pairs, drawn by the seed; all where there are fewer."""
    distinct = merge_equal(texts_of(pairs))[0]
    drawn = make_rng(seed, "timed sentences").permutation(len(distinct))[: check_dim(count, what="timed")]
    return [distinct[row] for row in sorted(drawn)]


def encode_seconds(encode: Callable[[Sequence[str]], Any], texts: Sequence[str], *, repeats: int = 3) -> Interval:
    """Seconds to encode the texts on one thread: median over rounds, between the fastest and the slowest."""
    with _one_thread():
        encode(texts[:WARM_UP])
        spent = []
        for _ in range(check_dim(repeats, what="repeats")):
            started = perf_counter()
            encode(texts)
            spent.append(perf_counter() - started)
    return Interval(float(np.median(spent)), min(spent), max(spent))


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for networks, matrix products and tokenizers, which read this variable at every call."""
    name, before = "TOKENIZERS_PARALLELISM", os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ[name] = "false"
    try:
        with threads(1), threadpool_limits(1):
            yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
