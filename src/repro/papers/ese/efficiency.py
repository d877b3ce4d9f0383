"""Figure 6: what depth and size cost in seconds, beside what they bring.

Seconds are medians over rounds in which all lines take turns (`repro.runs.clock`), so that a busy machine disturbs all
alike. Metrics: `encode_seconds` of some texts down to a layer, no later block being run; `search_seconds` of some
queries against stored vectors of a size; `total_seconds`, encoding at full depth and search. `…_ratio` is one line's
seconds by another's of the same round, `size_ratio` those of the full size by those of the smallest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.retrieve import FlatIndex
from repro.papers.ese.depth import score_lines, score_rows
from repro.papers.ese.lines import Line
from repro.papers.ese.rag import sizes
from repro.rows import make_rows
from repro.runs.clock import Seconds, in_turns, ratio_of
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.store import Store
from repro.types import Array, InputError, check_dim

JITTER = 0.01
"""noise on repeated vectors, as a share of their length: equal ones would spare a search its work"""


@dataclass(frozen=True)
class Timed:
    """Seconds of every round of every line: to encode down to a layer, and to search with a size."""

    lines: tuple[Line, ...]
    encode: Mapping[tuple[int, int], Seconds]
    """by position of the line and layer"""
    search: Mapping[tuple[int, int], Seconds]
    """by position of the line and size"""

    @property
    def last(self) -> int:
        """The last layer."""
        return max(layer for _, layer in self.encode)

    def total(self, line: int, dim: int) -> Seconds:
        """Encoding at full depth and search, round by round."""
        return np.asarray(self.encode[line, self.last] + self.search[line, dim])


def time_lines(
    lines: Sequence[Line],
    texts: Sequence[str],
    pool: Sequence[str],
    store: Store,
    *,
    stored: int,
    dims: Sequence[int] | None = None,
    repeats: int = 5,
    tries: int = 1,
    seed: int = 0,
) -> Timed:
    """Time some lines of one network at every depth and size.

    Args:
        lines: to be compared.
        texts: what is encoded, and then searched for.
        pool: distinct texts whose embeddings are what is stored, repeated with noise up to `stored`.
        store: where the pool's states are kept.
        stored: vectors that every query is compared with.
        dims: sizes, as `repro.papers.ese.rag.sizes` reads them.
        repeats: rounds that count.
        tries: of each work in every round; the fastest counts.
        seed: of the noise.

    Raises:
        InputError: for no texts, lines of different networks, or fewer than one round.
    """
    if not texts or not pool:
        raise InputError(f"{len(texts)} texts and {len(pool)} stored ones: expected at least one of each")
    tables = [line.states([*pool, *texts], store) for line in lines]
    shapes = {(table.layers[-1], table.hidden_dim) for table in tables}
    if len(shapes) != 1:
        raise InputError(f"lines have layers and sizes {sorted(shapes)}: time networks of one shape together")
    ((last, hidden_dim),) = shapes
    encoders = [line.encoder() for line in lines]
    works = {
        (i, layer): partial(partial, encoder.encode, list(texts), readout="encoder", layer=layer)
        for layer in range(1, last + 1)
        for i, encoder in enumerate(encoders)
    }
    encode = in_turns(works, repeats, tries=tries)
    states = [table.at(last) for table in tables]
    rows = [repeated(table[pool], stored, seed=seed) for table in states]
    search: dict[tuple[int, int], Seconds] = {}
    for dim in sizes(hidden_dim, dims):
        searches = {(i, dim): partial(_search, rows[i], table[texts], dim) for i, table in enumerate(states)}
        search |= in_turns(searches, repeats, tries=tries)
    return Timed(tuple(lines), encode, search)


def _search(C: Array, Q: Array, dim: int) -> Callable[[], object]:
    """A search for Q in a freshly made index of C."""
    return partial(FlatIndex(C, dim).search, Q, 10)


def repeated(X: Array, n: int, *, seed: int = 0) -> Array:
    """N rows (n, D): those of X again and again, each moved by a hundredth of its length in a direction of its own.

    Raises:
        InputError: for n below 1.
    """
    rows = np.resize(np.arange(len(X)), check_dim(n, what="stored"))
    noise = make_rng(seed, "stored vectors").standard_normal((n, X.shape[1])) / np.sqrt(X.shape[1])
    return np.asarray(X[rows] + JITTER * np.linalg.norm(X, axis=1)[rows, None] * noise, np.float32)


def timing_rows(timed: Timed, *, texts: int, stored: int, **shared: Any) -> pd.DataFrame:
    """All seconds with the fastest and slowest round, and all ratios with a 95 % interval over rounds.

    Args:
        timed: as `time_lines` gives it.
        texts: how many were encoded and searched for.
        stored: vectors that they were compared with.
        shared: columns common to all rows.
    """
    encoding, searching = f"{texts:,} texts", f"{texts:,} queries, {stored:,} vectors"
    rows: list[dict[str, Any]] = []
    for (i, layer), seconds in timed.encode.items():
        at = {"layer": layer, "metric": "encode_seconds", "setting": encoding}
        rows.append({**timed.lines[i].columns, **at, **_measured(seconds)})
    for (i, dim), seconds in timed.search.items():
        common = {**timed.lines[i].columns, "dim": dim, "setting": searching}
        rows.append({**common, **_measured(seconds), "metric": "search_seconds"})
        rows.append({**common, **_measured(timed.total(i, dim)), "metric": "total_seconds", "layer": timed.last})
    return make_rows([*rows, *_ratios(timed, encoding, searching)], **shared)


def _measured(seconds: Seconds) -> dict[str, float]:
    """Median, fastest and slowest round, and the sum of all."""
    low, high = float(seconds.min()), float(seconds.max())
    return {"value": float(np.median(seconds)), "ci_low": low, "ci_high": high, "seconds": float(seconds.sum())}


def _ratios(timed: Timed, encoding: str, searching: str) -> Iterator[dict[str, Any]]:
    layers, dims = (sorted({key for _, key in part}) for part in (timed.encode, timed.search))
    for rival, winner in combinations(range(len(timed.lines)), 2):
        pair = timed.lines[winner].less(timed.lines[rival], "/")
        for layer in layers:
            found = ratio_of(timed.encode[winner, layer], timed.encode[rival, layer])
            yield {**pair, "layer": layer, "metric": "encode_ratio", "setting": encoding, **found.columns}
        for name, seconds in (("search", lambda i, dim: timed.search[i, dim]), ("total", timed.total)):
            common = {**pair, "metric": f"{name}_ratio", "setting": searching}
            both = {dim: (seconds(winner, dim), seconds(rival, dim)) for dim in dims}
            yield from ({**common, "dim": dim, **ratio_of(a, b).columns} for dim, (a, b) in both.items())
            # rounds are repetitions, sizes are not: their mean is taken within a round
            mean = np.exp(np.mean([np.log(a / b) for a, b in both.values()], axis=0))
            yield {**common, "setting": f"{searching}, mean over sizes", **ratio_of(mean, np.ones_like(mean)).columns}
    for i, line in enumerate(timed.lines):
        found = ratio_of(timed.total(i, dims[-1]), timed.total(i, dims[0]))
        yield {**line.columns, "dim": dims[0], "metric": "size_ratio", "setting": searching, **found.columns}


def quality_rows(
    lines: Sequence[Line], pairs: ScoredPairs, store: Store, *, seed: int = 0, progress: bool = True, **shared: Any
) -> pd.DataFrame:
    """Spearman of every line at every layer, at full size, with bootstrap intervals over pairs."""
    grid = score_lines(lines, {pairs.name: pairs}, store, seed=seed, progress=progress)
    rows = [row for row in score_rows(grid) if row.get("layer")]  # neither the embedding output nor a mean of layers
    return make_rows(rows, readout="encoder", **shared)


def blocks_run(line: Line, texts: Sequence[str]) -> dict[int, int]:
    """By layer, how many blocks a network runs when it is asked for that layer's states of a batch of texts."""
    encoder, counts = line.encoder(), {}
    for layer in range(1, encoder.n_layers + 1):
        before = encoder.backbone.blocks_run
        encoder.encode(list(texts), readout="encoder", layer=layer)
        counts[layer] = encoder.backbone.blocks_run - before
    return counts
