"""Who asks: queries to screen by, queries to measure by, and the rows that no query is among."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.files import Block, Rows, Vectors, row_keys
from dimadvise.search import Places
from repro.types import InputError

FITTED = 50_000  # Rows that maps are fitted on, at most
SCREENING, QUERIES = 200, 1_000  # Queries of the screening and of the measurement, at most
FEWEST = 100  # Rows below which nothing is worth measuring


def check_differ(X: Block, count: int) -> None:
    """Refuse rows (n, D), of so many in all, that are one vector: nothing can be found among
    them.
    """
    if (X[0] == X).all():
        raise InputError(f"all {count:,} embeddings are equal: no size keeps what is not there")


def check_same_width(vectors: Vectors, queries: Vectors) -> None:
    """Refuse queries that are not as wide as the vectors."""
    width, D = queries.shape[1], vectors.shape[1]
    if width != D:
        raise InputError(
            f"{queries.name} has {width} columns, {vectors.name} {D}: expected the same"
        )


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries (m, D), and the rows of the documents' file that they are; -1 for none of them
    (m,).
    """

    full: Block
    rows: Rows

    def among(self, corpus: Rows) -> Places:
        """The place of each in a corpus of these rows; -1 where it is not among them."""
        return pd.Index(corpus).get_indexer(self.rows)

    def found_in(self, vectors: Vectors, corpus: Rows) -> "Queries":
        """The same, each known by the first of a corpus of rows of `vectors` that it equals."""
        rows = np.full(len(self.full), -1)
        queries, equal = equal_pairs(self.full, vectors, np.sort(corpus))
        rows[queries[::-1]] = equal[::-1]  # The first of several is set last.
        return replace(self, rows=rows)


def draw(vectors: Vectors, queries: Vectors | None, rng: Any) -> tuple[Queries, Queries, Rows]:
    """Queries to screen by, queries to measure by, and the rows to fit on, of which none is a
    query.

    Of rows that are queries, taken for such or equal to one, there are a fifth of all at most.
    """
    n = vectors.shape[0]
    if n < FEWEST:
        raise InputError(
            f"{n} rows of {vectors.name}: expected at least {FEWEST}; store so few as they are"
        )
    source = queries or vectors
    check_same_width(vectors, source)
    most = source.shape[0] if queries else n // 5
    if most < 8:
        raise InputError(
            f"{most} queries in {source.name}: expected at least 8, better {QUERIES:,}"
        )
    query_rows = rng.choice(source.shape[0], min(most, SCREENING + QUERIES), replace=False)
    fitted = rng.choice(n, min(n, FITTED + len(query_rows)), replace=False)
    full, rows, unfitted = source.take(query_rows), query_rows, query_rows
    if queries is not None:
        if not full.any():
            raise InputError(
                f"all {len(query_rows):,} sampled queries in {source.name} are zero: they have no "
                "direction, so any way to store finds the same"
            )
        equal, unfitted = equal_pairs(full, vectors, np.sort(fitted))
        is_document = np.isin(np.arange(len(query_rows)), equal)
        in_sample = ~is_document | (np.cumsum(is_document) <= n // 5)
        full, rows = full[in_sample], np.full(int(in_sample.sum()), -1)
        unfitted = unfitted[in_sample[equal]]
    first = len(full) * SCREENING // (SCREENING + QUERIES)
    sets = [Queries(full[span], rows[span]) for span in (slice(0, first), slice(first, None))]
    return sets[0], sets[1], fitted[~np.isin(fitted, unfitted)][:FITTED]


def crossed(vectors: Vectors, queries: Queries, fitted: Rows) -> list[tuple[Queries, Rows]]:
    """Queries and the rows to fit on: those `asked` and `fitted`, and where rows are few as many of
    the fitted, by turns, with all others, so that nearly all are a query once.
    """
    rows, size = np.concatenate([queries.rows, fitted]), len(queries.rows)
    rounds = [(queries, fitted)]
    for start in range(size, min(len(rows), QUERIES) - size + 1, size):
        query_rows = rows[start : start + size]
        others = rows[~np.isin(rows, query_rows)]
        rounds.append((Queries(vectors.take(query_rows), query_rows), others))
    return rounds


def all_of(rounds: Sequence[Queries]) -> Queries:
    """The queries of all parts, one part after the other."""
    return Queries(
        np.concatenate([of_round.full for of_round in rounds]),
        np.concatenate([of_round.rows for of_round in rounds]),
    )


def equal_pairs(Q: Block, vectors: Vectors, rows: Rows) -> tuple[Rows, Rows]:
    """Numbers of queries (m, D) and of the rows of `vectors` that they equal, all pairs, as rows
    come.
    """
    asked = pd.DataFrame({"key": list(row_keys(Q)), "query": np.arange(len(Q))})
    stored = pd.DataFrame({"key": vectors.keys(rows), "row": rows})
    pairs = stored.merge(asked, on="key")
    return pairs["query"].to_numpy(), pairs["row"].to_numpy()
