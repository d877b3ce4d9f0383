"""Which of the full-size neighbours shorter and coarser vectors still find, measured on queries
that no fit has seen.

All ways of storing are screened on a small sample. Those that no other beats, in bytes or in
recall@10, and a few that may be the answer among more rows are measured anew, by other queries and
on as many rows as are asked for, so that what is promised was not chosen by the queries that
promise it. Recall@k with re-ranking needs none: the full vectors put a neighbour in its place if it
is a candidate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.coding import Deployment
from dimadvise.files import Rows, Vectors
from dimadvise.honesty import Sample, oddities
from dimadvise.queries import Queries, all_of, crossed, draw
from dimadvise.recall import KS, tabulate
from dimadvise.request import ANYTHING, Request
from dimadvise.screening import Aim, worth_measuring
from dimadvise.search import Found, searched
from dimadvise.transform import most_dims, unchanged
from dimadvise.ways import CHUNK, Way, Ways, has_faiss
from repro.seeding import make_rng
from repro.terminal import progress_bar

SCREENED = 5_000  # Rows of the screening, at most
SEARCHED = 100  # Rows from which on it is read how recall falls
DEPTH = 4  # Re-scoring that is measured unless told otherwise
# Parts of the rows searched after which recall is read, to see how it falls as rows are added
STOPS = (16, 4, 1)


@dataclass(frozen=True)
class Survey:
    """What was measured.

    `options` has a row for each way and re-ranking: way (its place in `ways`), method, dim, level,
    bytes, rerank, recall@k with low@k and high@k, expected@10 (recall@10 among all rows, a
    projection where fewer were searched), tail@10 (share of queries that find less than half of
    their ten), alike@10 (recall@10 where what is as near as the tenth counts too), ms a
    query, front (no other of this re-ranking has fewer bytes and more recall@10).
    """

    options: pd.DataFrame
    ways: tuple[Deployment, ...]  # The full vectors first
    corpus: int  # Rows searched
    queries: int
    fitted: int  # Rows that maps were fitted on
    measured: tuple[str, ...]  # How, in sentences
    notes: tuple[str, ...]  # What is odd about the vectors


def survey(
    vectors: Vectors,
    queries: Vectors | None = None,
    wanted: Request = ANYTHING,
    *,
    aim: Aim | None = None,
    also: Sequence[Way] = (),
    unit: bool | None = None,
) -> Survey:
    """Measure what is lost at every number of bytes.

    Args:
        vectors: documents (n, D).
        queries: (m, D), as they will be asked; None takes rows of `vectors`. One that equals a
            document is no neighbour of itself, and no map is fitted on it.
        wanted: the `methods` of `WAYS` that are tried, by default all; `levels` of `MENU`, by
            default those that `Ways.all` names; sizes (`dims`), by default two to each halving and
            more of them about the aim; a `store` of `STORES`, of which what it holds is tried,
            compared as it compares; `similarity`, by default cosine; how many times as many
            candidates as are wanted the full vectors re-rank (`depth`); how many documents are
            searched at most (`sample`); how many there will be, to which recall is projected
            (`rows_total`); and the `seed` of samples, random projections and rotations.
        aim: what is asked for, about which sizes lie closer.
        also: ways that are measured whatever the screening says, of fewer dims where rows are too
            few; they come last.
        unit: whether the maps of `also` divide rows by their length; by default where cosines
            count.

    Raises:
        InputError: for values that cannot be, too few rows, and product quantisation without faiss.
    """
    n, depth = vectors.shape[0], wanted.depth or DEPTH
    foreign = queries is not None
    screening, measuring, fitted = draw(vectors, queries, make_rng(wanted.seed, "queries"))
    similarity, store = wanted.similarity or "cosine", wanted.store or ""
    fit = partial(Ways, vectors, similarity=similarity, seed=wanted.seed, store=store)
    fitted_ways = fit(fitted)
    rng = make_rng(wanted.seed, "corpus")
    sample = _sample(vectors, screening, rng, foreign)
    tried, finals = worth_measuring(fitted_ways, sample, wanted, aim, depth)
    corpus = rng.choice(n, min(n, wanted.sample), replace=False)
    if foreign:
        measuring = measuring.found_in(vectors, corpus)
    rounds = [(measuring, fitted)] if foreign else crossed(vectors, measuring, fitted)
    walks: list[list[Found]] = []
    ways: list[Deployment] = []
    for of_round, seen in rounds:
        fresh = fitted_ways if seen is fitted else fit(seen)
        judged = fresh if unit in (None, fitted_ways.unit) else fit(seen, unit=unit)
        stored = [*(fresh.way(*way) for way in finals), *_within_reach(judged, also)]
        walks.append(list(_walk(vectors, corpus, of_round, stored, depth)))
        ways = ways or stored
    measuring = all_of([of_round for of_round, _ in rounds])
    walk = [together(stops) for stops in zip(*walks, strict=True)]
    options, falls = tabulate(ways, walk, depth, wanted.rows_total or n)
    how = _how(fitted_ways, fitted, measuring, len(corpus), foreign)
    how.append(_screened(tried, sample, len(ways)))
    notes = tuple(_notes(fitted_ways, sample, measuring, foreign))
    counts = len(corpus), len(measuring.rows), len(fitted)
    return Survey(options, tuple(ways), *counts, (*how, *falls), notes)


def _sample(vectors: Vectors, screening: Queries, rng: Any, foreign: bool) -> Sample:
    """Rows in the order of their file, and the queries to screen by."""
    n = vectors.shape[0]
    pool = np.sort(rng.choice(n, min(n, SCREENED), replace=False))
    if foreign:
        screening = screening.found_in(vectors, pool)
    return Sample(vectors.take(pool), screening.full, screening.among(pool))


def _screened(tried: int, sample: Sample, measured: int) -> str:
    """How ways were chosen to be measured."""
    return (
        f"{tried} ways of storing were screened by {len(sample.queries):,} other queries on "
        f"{len(sample.documents):,} rows, and the {measured} that no other beat, or may not beat "
        "among more rows, were measured."
    )


def _within_reach(fitted_ways: Ways, also: Sequence[Way]) -> Iterator[Deployment]:
    """Ways of as many dims as the rows that were seen give."""
    for name, dim, level in also:
        yield fitted_ways.way(name, min(dim, most_dims(name, fitted_ways.moments)), level)


def _notes(fitted_ways: Ways, sample: Sample, queries: Queries, foreign: bool) -> Iterator[str]:
    """What is odd about vectors and queries, and what was not tried."""
    similarity = fitted_ways.similarity
    yield from oddities(sample, fitted_ways.moments, similarity=similarity, foreign=foreign)
    themselves = int((queries.rows >= 0).sum())
    if foreign and themselves:
        yield (
            f"{themselves:,} of {len(queries.rows):,} queries are documents, number for number: "
            "none is its own neighbour here, nor was a map fitted on it. If others will be asked, "
            "measure by those."
        )
    if not has_faiss():
        yield (
            "Product codes were not tried, as faiss is not installed: `pip install faiss-cpu` "
            "brings it."
        )


def _how(
    fitted_ways: Ways,
    fitted: Rows,
    queries: Queries,
    searched: int,
    foreign: bool,
) -> list[str]:
    """How it was measured, and what error the samples bring."""
    n, quarter = fitted_ways.rows, max(1, fitted_ways.full_dim // 4)
    way = replace(fitted_ways.way("svd", min(quarter, len(fitted)), "float32"), similarity="ip")
    length_kept = []
    for X in (fitted_ways.seen, queries.full):
        length = float(np.square(fitted_ways.way(*fitted_ways.full).vectors(X)).sum())
        length_kept.append(float(np.square(way.vectors(X)).sum()) / max(length, 1e-300))
    themselves = int((queries.rows >= 0).sum())
    who = "rows taken for queries, each never its own neighbour,"
    if foreign:
        who = f"queries of yours ({themselves:,} are documents, each never its own neighbour)"
    seen = len(fitted) / n
    return [
        f"Queries are compared as {fitted_ways.store} compares them."
        if fitted_ways.store
        else "Queries stay floats and are compared with what codes stand for; a store that codes "
        "queries too, as by Hamming's distance, finds fewer: name it by --store.",
        f"Maps were fitted on {len(fitted):,} of {n:,} rows, of which none is a query. Of the "
        f"squared length of rows, {quarter} singular directions keep {100 * length_kept[0]:.1f} % "
        f"where fitted and {100 * length_kept[1]:.1f} % of queries.",
        f"Measured by {len(queries.rows):,} {who} on {searched:,} of {n:,} rows; intervals are of "
        "95 %, over queries.",
        f"Maps had seen {100 * seen:.0f} % of the rows searched, as where a store's own rows are "
        "what is fitted on.",
    ]


def together(rounds: Sequence[Found]) -> Found:
    """What all queries found, of parts that were asked among the same documents."""
    first = rounds[0]
    places = zip(*(of_round.places for of_round in rounds), strict=True)
    seconds = zip(*(of_round.seconds for of_round in rounds), strict=True)
    return Found(
        first.documents,
        [np.concatenate(of_way) for of_way in places],
        np.concatenate([of_round.scores for of_round in rounds]),
        [sum(of_way) for of_way in seconds],
    )


def found_again(
    deployment: Deployment,
    vectors: Vectors,
    corpus: Rows,
    queries: Queries,
) -> pd.Series:
    """The option, as in `Survey`, of one way as it is, with the re-ranking that it has."""
    full = Deployment(unchanged(vectors.shape[1]), deployment.similarity)
    ways, times = [full, deployment], deployment.rerank
    walk = list(_walk(vectors, corpus, queries, ways, max(times, 1)))
    options, _ = tabulate(ways, walk, times, len(corpus))
    return options[(options["way"] == 1) & (options["rerank"] == times)].iloc[0]


def _walk(
    vectors: Vectors,
    corpus: Rows,
    queries: Queries,
    ways: Sequence[Deployment],
    depth: int,
) -> Iterator[Found]:
    """Search a corpus in blocks that fit into memory."""
    least = min(SEARCHED, len(corpus) // 4)
    stops = sorted({len(corpus) // divisor for divisor in STOPS if len(corpus) // divisor >= least})
    # Of blocks, none of which contains a stop
    ends = sorted({*range(0, len(corpus), CHUNK), *stops, len(corpus)})
    steps = progress_bar(list(pairwise(ends)), show=True, unit="block", desc="measuring")
    blocks = (vectors.take(corpus[a:b]) for a, b in steps)
    count = min(max(KS) * depth, len(corpus) - 1)
    yield from searched(ways, queries.full, queries.among(corpus), blocks, count, stops)
