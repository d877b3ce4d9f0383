"""Seconds to search stored codes: what a level costs or saves beside its bytes, in numpy on one thread."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.quantise import (
    BITS,
    Codebook,
    affordable_dim,
    code_cosines,
    fit_codebook,
    hamming_cosines,
    quantise,
)
from repro.papers.proposal.quantisation import HAMMING, NEIGHBOURS
from repro.report.wide import in_order
from repro.rows import make_rows
from repro.runs.clock import in_turns, ratio_of
from repro.runs.embeddings import unit_rows
from repro.seeding import make_rng
from repro.types import Array


def search_rows(
    X: Array,
    *,
    stored: int,
    budget: int,
    levels: Sequence[str] = tuple(BITS),
    queries: int = 8,
    repeats: int = 3,
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Seconds to find the ten nearest of stored codes for a query: every level at full size, and at equal bytes.

    Metrics: `search_seconds` of one query, and `search_ratio`, by the seconds of float32 at full size, round by round.

    Args:
        X: embeddings (n, D), repeated with noise up to what is stored.
        stored: vectors.
        budget: bytes per vector of the comparison at equal bytes.
        levels: of `quantise.BITS`; the binary one is timed with float queries and with coded ones.
        queries: searched together.
        repeats: rounds that count.
        seed: of the noise.
        shared: columns of every row.
    """
    rng = make_rng(seed, "stored vectors")
    C = np.resize(unit_rows(X), (stored, X.shape[1])).astype(np.float32)
    # equal rows would spare a selection its work
    C = unit_rows(C + rng.normal(scale=0.1 / np.sqrt(C.shape[1]), size=C.shape).astype(np.float32))
    Q = C[rng.permutation(stored)[:queries]]

    def ten_nearest(cosines: Array) -> Array:
        return np.asarray(np.argpartition(-cosines, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS])

    def by_floats(q: Array, codes: Array, book: Codebook) -> Callable[[], object]:
        fresh = codes.copy()
        return lambda: ten_nearest(code_cosines(q, fresh, book))

    def by_bits(q: Array, codes: Array, book: Codebook) -> Callable[[], object]:
        fresh = codes.copy()
        return lambda: ten_nearest(hamming_cosines(quantise(q, book), fresh, book.dim))

    works: dict[tuple[str, str, int], Callable[[], Callable[[], object]]] = {}
    for level in dict.fromkeys(["float32", *levels]):
        for setting, dim in (("full size", C.shape[1]), (f"{budget} bytes", affordable_dim(budget, level))):
            if not 1 <= dim <= C.shape[1]:
                continue
            book = fit_codebook(C[:, :dim], level)
            codes = quantise(C[:, :dim], book)
            works[level, setting, dim] = partial(by_floats, Q[:, :dim], codes, book)
            if level == "binary":
                works[HAMMING, setting, dim] = partial(by_bits, Q[:, :dim], codes, book)
    taken = in_turns(works, repeats, tries=2)
    base = taken["float32", "full size", C.shape[1]]
    rows = []
    for (method, setting, dim), seconds in taken.items():
        at = {"method": method, "setting": f"{setting}, {stored:,} vectors", "dim": dim}
        rows.append({**at, "metric": "search_seconds", "value": float(np.median(seconds)) / queries})
        rows.append({**at, "metric": "search_ratio", **ratio_of(seconds, base).columns})
    return make_rows(rows, seed=seed, **shared)


def time_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds of one query, by level and size, and their ratio to those of float32 at full size."""
    lines = []
    own = rows[rows["metric"].isin(["search_seconds", "search_ratio"])]
    for (setting, level, dim), group in own.groupby(["setting", "method", "dim"], sort=False):
        of = group.set_index("metric")
        ratio = of.loc["search_ratio"]
        lines.append(
            {
                "level": level,
                "at": str(setting).split(", ")[0],
                "dims": int(dim),
                "ms a query": 1000 * float(of.loc["search_seconds", "value"]),
                "× float32, full size": f"{ratio['value']:.2f} [{ratio['ci_low']:.2f}, {ratio['ci_high']:.2f}]",
            }
        )
    return in_order(lines, "at", key=lambda at: at != "full size")
