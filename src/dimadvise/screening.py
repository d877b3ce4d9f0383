"""Which ways of storing are worth measuring, and which of those that were measured answers."""

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dimadvise.bounds import smallest_sufficient
from dimadvise.coding import PRODUCT, level_bytes
from dimadvise.honesty import Sample
from dimadvise.queries import check_differ
from dimadvise.request import Request
from dimadvise.search import Places, ranks
from dimadvise.ways import Way, Ways, bytes_of, default_sizes, resized
from repro.terminal import progress_bar
from repro.types import Array, check_dim

# Of the ways that are measured anew, each takes at most so many times the bytes of the one before
THINNED = 0.75
FINE = 0.95  # So many times where they come near to what is asked for
ABOUT = {"recall": (-0.01, 0.08), "bytes": (-0.2, 0.0)}
"""How near, as a difference in recall and as a share of the bytes. Recall is screened among few
rows, and falls as more are searched.
"""
FALL = 0.4  # Of what may be missed, so much is allowed for that
MOVED = 0.02
"""Recall that a way may gain, with re-ranking, each time that the rows searched double."""
CLOSE = 0.01
"""Difference in recall that is none: of two such ways the smaller is kept."""
SURE = 0.8
"""A way that spares this share of what may be missed is taken to reach what is asked for."""
FINEST = 3
"""Ways of few but fine numbers that are measured beside the others, at most."""
NEARLY, CUTS = 1.4, 6
"""Times the fewest bytes that reached what is asked for, up to which sizes are cut finer, and into
how many parts.
"""

Aim: TypeAlias = tuple[str, float]  # Recall or bytes, and how much of it


def worth_measuring(
    fitted_ways: Ways,
    sample: Sample,
    wanted: Request,
    aim: Aim | None,
    depth: int,
) -> tuple[int, list[Way]]:
    """How many ways were tried on a sample, and those that no other beats, the full vectors
    first.
    """
    limit = fitted_ways.full_dim
    sizes = {check_dim(d, limit=limit) for d in wanted.dims} or default_sizes(limit)
    tried = fitted_ways.all(wanted.methods, wanted.levels, sorted(sizes, reverse=True))
    check_differ(sample.documents, fitted_ways.rows)
    screened = _screen(fitted_ways, tried, sample, depth)
    if aim is not None and not wanted.dims:
        about = [way for recall in screened.T for way in between(tried, recall, aim)]
        closer = fitted_ways.held([fitted_ways.full, *about])
        recall_closer = _screen(fitted_ways, closer, sample, depth)
        tried, screened = tried + closer[1:], np.concatenate([screened, recall_closer[1:]])
    sizes_of = np.array([bytes_of(way) for way in tried])
    doublings = np.log2(min(fitted_ways.rows, wanted.sample) / len(sample.documents))
    best = contenders(sizes_of, screened, aim, doublings)
    best += overlooked(tried, sizes_of, screened[:, 1], aim, doublings)
    return len(tried), list(dict.fromkeys([fitted_ways.full, *(tried[i] for i in best)]))


def _screen(
    fitted_ways: Ways,
    tried: Sequence[Way],
    sample: Sample,
    depth: int,
) -> Array:
    """Recall@10 of each way without re-ranking and with it (W, 2); the first finds the truth."""
    recall, count = [], min(10 * depth, len(sample.documents) - 1)
    neighbours: Places | None = None
    steps = progress_bar(tried, show=True, unit="way", desc="screening")
    # One map at a time: all of them would not fit into memory
    for _, levels in groupby(steps, key=lambda way: way[:2]):
        ways = [fitted_ways.way(*way) for way in levels]
        found = sample.searched(ways, count)
        for places in found.places:
            neighbours = places[:, :10] if neighbours is None else neighbours
            ranked = ranks(neighbours, places)
            recall.append([recalled(ranked, 10, times).mean() for times in (1, depth)])
    return np.array(recall)


def between(tried: Sequence[Way], recall: Array, aim: Aim) -> list[Way]:
    """Ways of sizes between those tried, of which recall (W,) was screened, where the answer to
    what is asked for may lie.

    Of each method and its bits these are, of bytes, the largest size that fits; of recall, sizes
    from one that surely reaches it to the first that failed, where that has not many more bytes
    than the fewest that did.
    """
    criterion, amount = aim
    families: dict[tuple[str, int | str], dict[int, int]] = {}
    for place, (method, dim, level) in enumerate(tried[1:], 1):
        bits = dim // level_bytes(level, dim) if level.startswith(PRODUCT) else level
        families.setdefault((method, bits), {})[dim] = place
    ways: list[Way] = []
    brackets = []
    for places in families.values():
        sizes = sorted(places, reverse=True)
        if criterion == "bytes":
            largest = tried[places[sizes[0]]]
            fitting = min(sizes[0], int(amount * sizes[0] / bytes_of(largest)))
            ways += [resized(largest, fitting)] if fitting else []
            continue
        recalls = [recall[places[size]] for size in sizes]
        least = smallest_sufficient(sizes, recalls, amount)
        if least is not None:
            surely = smallest_sufficient(sizes, recalls, amount + FALL * (1 - amount))
            failed = max((size for size in sizes if size < least), default=least)
            brackets.append((tried[places[least]], tried[places[surely or sizes[0]]], failed))
    fewest = min((bytes_of(reached) for reached, *_ in brackets), default=0)
    for reached, safe, failed in brackets:
        if bytes_of(reached) <= NEARLY * fewest:
            step = (safe[1] - failed) / CUTS
            ways += [resized(safe, safe[1] - round(step * cut)) for cut in range(1, CUTS)]
    return [way for way in dict.fromkeys(ways) if way not in tried and bytes_of(way)]


def contenders(
    sizes: Array,
    recall: Array,
    aim: Aim | None = None,
    doublings: float = 0.0,
) -> list[int]:
    """Places of the ways that no other beats, in bytes (W,) or in any column of recall (W, m),
    thinned by size, but not about what is asked for.

    Among rows that are doubled so many times, recall with re-ranking, the last column, may come up
    to what is asked for from farther below.
    """
    chosen: set[int] = set()
    criterion, amount = aim or ("", 0.0)
    lowest, highest = ABOUT.get(criterion, (np.inf, -np.inf))
    rises = np.zeros(recall.shape[1])
    if criterion == "recall":
        rises[1:] = MOVED * max(doublings, 0.0)
    for column, rise in zip(recall.T, rises, strict=True):
        last, front = np.inf, is_front(sizes, column)
        excess = column - amount if criterion == "recall" else sizes / max(amount, 1) - 1
        may_be_near = (lowest - rise <= excess) & (excess <= highest)
        steps = np.where(may_be_near, FINE, THINNED)
        for place in np.argsort(-sizes, kind="stable"):
            if front[place] and sizes[place] <= steps[place] * last:
                chosen.add(int(place))
                last = sizes[place]
    return sorted(chosen)


def overlooked(
    tried: Sequence[Way],
    sizes: Array,
    recall: Array,
    aim: Aim | None,
    doublings: float,
) -> list[int]:
    """Places of ways that lose in the screening but may win among more rows: as many as were
    screened, doubled so many times. There are none where the rows are no more.

    Where many rows are re-ranked rather than few, coarse numbers find less and a few fine ones
    more. A way counts if it has fewer bytes (W,) than all that surely reach the recall asked for,
    and its recall with re-ranking (W,) may come up to it, by `MOVED` a doubling. The cheapest of
    each number of dims is kept, and of these the ones with the most bits a number.
    """
    criterion, amount = aim or ("", 0.0)
    if criterion != "recall" or doublings <= 0:
        return []
    fewest = sizes[recall >= amount + SURE * (1 - amount)].min(initial=sizes.max())
    is_near = ~is_front(sizes, recall) & (sizes < fewest) & (recall >= amount - MOVED * doublings)
    by_dim: dict[int, list[int]] = {}
    for place in np.flatnonzero(is_near).tolist():
        by_dim.setdefault(tried[place][1], []).append(place)
    cheapest = []
    for places in by_dim.values():
        most = max(recall[place] for place in places)
        as_good = [place for place in places if recall[place] >= most - CLOSE]
        cheapest.append(min(as_good, key=lambda place: (sizes[place], -recall[place])))
    finest = sorted(cheapest, key=lambda place: (-sizes[place] / tried[place][1], sizes[place]))
    return finest[:FINEST]


def is_front(sizes: Array, recall: Array) -> NDArray[np.bool_]:
    """Whether no other way has at most as many bytes and a higher recall, or fewer bytes and as
    high a one (W,).
    """
    order = np.lexsort((-recall, sizes))
    best = np.maximum.accumulate(np.r_[-np.inf, recall[order]])[:-1]
    front = np.empty(len(sizes), bool)
    front[order] = recall[order] > best
    return front


def choose(
    options: pd.DataFrame,
    criterion: str,
    amount: float,
    rerank: int,
    full: float = np.inf,
) -> int | None:
    """The row that is recommended: the fewest bytes that surely reach a recall@10, or the most
    recall in some bytes.

    A recall is reached by the lower end of its interval, less what is expected to be lost among all
    rows where fewer were searched. None: the full vectors, of `full` bytes in their file, alone do.
    """
    candidates = options[options["rerank"] == rerank]
    if criterion == "bytes":
        candidates = candidates[(candidates["bytes"] <= amount) & (candidates["bytes"] < full)]
        if candidates.empty:
            return None
        return int(candidates.sort_values("bytes", kind="stable")["recall@10"].idxmax())
    front = candidates[candidates["front"]]
    front = front.sort_values("bytes", ascending=False, kind="stable")
    bound = front["low@10"] - (front["recall@10"] - front["expected@10"])
    passing = front[(bound >= amount).cummin()]
    if passing.empty:
        return None
    best = int(passing.index[-1])
    return best if options.loc[best, "bytes"] < min(full, options["bytes"].max()) else None


def recalled(ranked: Places, k: int, times: int) -> Array:
    """Share of each query's k nearest that are among the first k · times found (m,)."""
    return np.asarray((ranked[:, :k] < k * times).mean(1))
