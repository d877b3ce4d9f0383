"""Which of the full-size neighbours shorter and coarser vectors still find, measured on queries
that no fit has seen.

All ways of storing are screened on a small sample. Those that no other beats, in bytes or in
recall@10, are measured anew, by other queries and on as many rows as are asked for, so that what is
promised was not chosen by the queries that promise it. Recall@k with re-ranking needs none: the
full vectors put a neighbour in its place if it is a candidate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dimadvise.bounds import smallest_sufficient
from dimadvise.deploy import PRODUCT, Deployment, level_bytes
from dimadvise.files import Block, Rows, Vectors, row_keys
from dimadvise.honesty import oddities
from dimadvise.search import Found, Places, ranks, searched
from dimadvise.transform import most_dims, unchanged
from dimadvise.ways import CHUNK, Way, Ways, bytes_of, default_sizes, has_faiss, resized
from repro.evaluation.growth import fit_law
from repro.evaluation.stats import Interval, wilson
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import InputError, check_dim

KS = (1, 10, 100)
FITTED = 50_000  # rows that maps are fitted on, at most
SCREENED, SCREENING = 5_000, 200  # rows and queries of the screening, at most
CORPUS, QUERIES = 100_000, 1_000  # rows and queries of the measurement, at most
FEWEST = 100  # rows below which nothing is worth measuring
ALIKE = 3e-3
"""Share of the spread of a query's scores, from its nearest to the last that is kept, within which
a document is as near as the tenth.
"""
# Of the ways that are measured anew, each takes at most so many times the bytes of the one before
THINNED = 0.75
FINE = 0.95  # so many times where they come near to what is asked for
ABOUT = {"recall": (-0.01, 0.08), "bytes": (-0.2, 0.0)}
"""How near, as a difference in recall and as a share of the bytes. Recall is screened among few
rows, and falls as more are searched.
"""
FALL = 0.4  # of what may be missed, so much is allowed for that
NEARLY, CUTS = 1.4, 6
"""Times the fewest bytes that reached what is asked for, up to which sizes are cut finer, and into
how many parts.
"""
# Parts of the rows searched after which recall is read, to see how it falls as rows are added
STOPS = (16, 4, 1)

LOST = 0.5  # share of its neighbours that a query must find, or it is counted apart

Aim: TypeAlias = tuple[str, float]  # recall or bytes, and how much of it


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
    ways: tuple[Deployment, ...]  # the full vectors first
    corpus: int  # rows searched
    queries: int
    fitted: int  # rows that maps were fitted on
    measured: tuple[str, ...]  # how, in sentences
    notes: tuple[str, ...]  # what is odd about the vectors


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


def survey(
    vectors: Vectors,
    queries: Vectors | None = None,
    *,
    similarity: str = "cosine",
    methods: Sequence[str] = (),
    levels: Sequence[str] = (),
    dims: Sequence[int] = (),
    depth: int = 4,
    rows: int = CORPUS,
    also: Sequence[Way] = (),
    unit: bool | None = None,
    aim: Aim | None = None,
    store: str = "",
    total: int = 0,
    seed: int = 0,
) -> Survey:
    """Measure what is lost at every number of bytes.

    Args:
        vectors: documents (n, D).
        queries: (m, D), as they will be asked; None takes rows of `vectors`. One that equals a
            document is no neighbour of itself, and no map is fitted on it.
        similarity: cosine, ip or l2.
        methods: of `WAYS`; by default all.
        levels: of `MENU`; by default those that `Ways.all` names.
        dims: sizes; by default two to each halving, and more of them about the `aim`.
        depth: times as many candidates as are wanted that the full vectors re-rank; at least 2.
        rows: at most so many documents are searched.
        also: ways that are measured whatever the screening says, of fewer dims where rows are too
            few; they come last.
        unit: whether the maps of `also` divide rows by their length; by default where cosines
            count.
        aim: what is asked for, about which sizes lie closer.
        store: of `STORES`: what it holds is tried, compared as it compares.
        total: rows that there will be, to which recall is projected; by default those of `vectors`.
        seed: of samples, random projections and rotations.

    Raises:
        InputError: for values that cannot be, too few rows, and product quantisation without faiss.
    """
    n, D = vectors.shape
    sizes = sorted({check_dim(d, limit=D) for d in dims} or default_sizes(D), reverse=True)
    if depth < 2:
        raise InputError(
            f"depth is {depth}: expected 2 or more times as many candidates as are wanted"
        )
    screening, asked, fitted = draw(vectors, queries, make_rng(seed, "queries"))
    made = Ways(vectors, fitted, similarity, seed, store=store)
    rng = make_rng(seed, "corpus")

    tried = made.all(methods, levels, sizes)
    pool = np.sort(rng.choice(n, min(n, SCREENED), replace=False))  # in the order of the file
    if queries is not None:
        screening = screening.found_in(vectors, pool)
    documents, places = vectors.take(pool), screening.among(pool)
    if (documents == documents[0]).all():
        raise InputError(f"all {n:,} embeddings are equal: no size keeps what is not there")
    screened = _screen(made, tried, screening.full, places, documents, depth)
    if aim is not None and not dims:
        about = [way for recall in screened.T for way in between(tried, recall, aim)]
        closer = made.held([made.full, *about])
        found = _screen(made, closer, screening.full, places, documents, depth)
        tried, screened = tried + closer[1:], np.concatenate([screened, found[1:]])
    best = contenders(np.array([bytes_of(way) for way in tried]), screened, aim)
    finals = list(dict.fromkeys([made.full, *(tried[i] for i in best)]))

    corpus = rng.choice(n, min(n, check_dim(rows, what="rows")), replace=False)
    parts = [(asked, fitted)]
    if queries is not None:
        parts = [(asked.found_in(vectors, corpus), fitted)]
    elif len(asked.rows) < QUERIES:
        parts = crossed(vectors, asked, fitted)
    walks: list[list[Found]] = []
    ways: list[Deployment] = []
    for part, seen in parts:
        fresh = made if seen is fitted else Ways(vectors, seen, similarity, seed, store=store)
        judged = (
            fresh
            if unit in (None, made.unit)
            else Ways(vectors, seen, similarity, seed, unit, store)
        )
        stored = [fresh.way(*way) for way in finals]
        for name, dim, level in also:
            stored.append(judged.way(name, min(dim, most_dims(name, judged.moments)), level))
        walks.append(list(_walk(vectors, corpus, part, stored, depth)))
        ways = ways or stored
    asked = all_of([part for part, _ in parts])
    walk = [together(stops) for stops in zip(*walks, strict=True)]
    options, falls = tabulate(ways, walk, depth, total or n)

    foreign = queries is not None
    notes = oddities(
        documents,
        screening.full,
        places,
        made.moments,
        similarity=similarity,
        foreign=foreign,
    )
    themselves = int((asked.rows >= 0).sum())
    if foreign and themselves:
        notes.append(
            f"{themselves:,} of {len(asked.rows):,} queries are documents, number for number: none "
            "is its own neighbour here, nor was a map fitted on it. If others will "
            "be asked, measure "
            "by those."
        )
    how = _how(made, fitted, asked, n, len(corpus), foreign)
    how.append(
        f"{len(tried)} ways of storing were screened by {len(screening.rows):,} "
        f"other queries on {len(pool):,} rows, "
        f"and the {len(ways)} that no other beat were measured."
    )
    if not has_faiss():
        notes.append(
            "Product codes were not tried, as faiss is not installed: `pip install "
            "faiss-cpu` brings it."
        )
    return Survey(
        options,
        tuple(ways),
        len(corpus),
        len(asked.rows),
        len(fitted),
        (*how, *falls),
        tuple(notes),
    )


def _how(
    made: Ways,
    fitted: Rows,
    asked: Queries,
    n: int,
    searched: int,
    foreign: bool,
) -> list[str]:
    """How it was measured, and what error the samples bring."""
    quarter = max(1, made.full_dim // 4)
    way = replace(made.way("svd", min(quarter, len(fitted)), "float32"), similarity="ip")
    kept = []
    for X in (made.seen, asked.full):
        whole = made.way(*made.full).vectors(X)
        kept.append(float(np.square(way.vectors(X)).sum() / max(np.square(whole).sum(), 1e-300)))
    themselves = int((asked.rows >= 0).sum())
    who = "rows taken for queries, each never its own neighbour,"
    if foreign:
        who = f"queries of yours ({themselves:,} are documents, each never its own neighbour)"
    seen = len(fitted) / n
    return [
        "Queries are compared as the named store compares them."
        if made.store
        else "Queries stay floats and are compared with what codes stand for; a store that codes "
        "queries too, as by Hamming's distance, finds fewer: name it by --store.",
        f"Maps were fitted on {len(fitted):,} of {n:,} rows, of which none is a "
        "query. Of the squared length of rows, "
        f"{quarter} singular directions keep {100 * kept[0]:.1f} % where fitted "
        f"and {100 * kept[1]:.1f} % of queries.",
        f"Measured by {len(asked.rows):,} {who} on {searched:,} of {n:,} rows; "
        "intervals are of 95 %, over queries.",
        f"Maps had seen {100 * seen:.0f} % of the rows searched, as where a "
        "store's own rows are what is fitted on.",
    ]


def draw(vectors: Vectors, queries: Vectors | None, rng: Any) -> tuple[Queries, Queries, Rows]:
    """Queries to screen by, queries to measure by, and the rows to fit on, of which none is a
    query.

    Of rows that are queries, taken for such or equal to one, there are a fifth of all at most.
    """
    n, D = vectors.shape
    if n < FEWEST:
        raise InputError(
            f"{n} rows of {vectors.name}: expected at least {FEWEST}; store so few as they are"
        )
    source = queries or vectors
    if source.shape[1] != D:
        raise InputError(
            f"{source.name} has {source.shape[1]} columns, {vectors.name} {D}: expected the same"
        )
    most = source.shape[0] if queries else n // 5
    if most < 8:
        raise InputError(
            f"{most} queries in {source.name}: expected at least 8, better {QUERIES:,}"
        )
    drawn = rng.choice(source.shape[0], min(most, SCREENING + QUERIES), replace=False)
    fitted = rng.choice(n, min(n, FITTED + len(drawn)), replace=False)
    full, rows, unfitted = source.take(drawn), drawn, drawn
    if queries is not None:
        equal, unfitted = equal_pairs(full, vectors, np.sort(fitted))
        is_document = np.isin(np.arange(len(drawn)), equal)
        kept = ~is_document | (np.cumsum(is_document) <= n // 5)
        full, rows = full[kept], np.full(int(kept.sum()), -1)
        unfitted = unfitted[kept[equal]]
    first = len(full) * SCREENING // (SCREENING + QUERIES)
    sets = [Queries(full[part], rows[part]) for part in (slice(0, first), slice(first, None))]
    return sets[0], sets[1], fitted[~np.isin(fitted, unfitted)][:FITTED]


def crossed(vectors: Vectors, asked: Queries, fitted: Rows) -> list[tuple[Queries, Rows]]:
    """Parts of few rows, each of queries and of the rows to fit on, so that nearly all are a query
    once: those `asked` and `fitted`, then as many of the fitted, by turns, with all others.
    """
    rows, size = np.concatenate([asked.rows, fitted]), len(asked.rows)
    parts = [(asked, fitted)]
    for start in range(size, min(len(rows), QUERIES) - size + 1, size):
        part = rows[start : start + size]
        parts.append((Queries(vectors.take(part), part), rows[~np.isin(rows, part)]))
    return parts


def all_of(parts: Sequence[Queries]) -> Queries:
    """The queries of all parts, one part after the other."""
    return Queries(
        np.concatenate([part.full for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )


def together(parts: Sequence[Found]) -> Found:
    """What all queries found, of parts that were asked among the same documents."""
    first = parts[0]
    places = zip(*(part.places for part in parts), strict=True)
    seconds = zip(*(part.seconds for part in parts), strict=True)
    return Found(
        first.documents,
        [np.concatenate(each) for each in places],
        np.concatenate([part.scores for part in parts]),
        [sum(each) for each in seconds],
    )


def found_again(
    deployment: Deployment,
    vectors: Vectors,
    corpus: Rows,
    asked: Queries,
) -> pd.Series:
    """The option, as in `Survey`, of one way as it is, with the re-ranking that it has."""
    whole = Deployment(unchanged(vectors.shape[1]), deployment.similarity)
    ways, times = [whole, deployment], deployment.rerank
    walk = list(_walk(vectors, corpus, asked, ways, max(times, 1)))
    options, _ = tabulate(ways, walk, times, len(corpus))
    return options[(options["way"] == 1) & (options["rerank"] == times)].iloc[0]


def _walk(
    vectors: Vectors,
    corpus: Rows,
    asked: Queries,
    ways: Sequence[Deployment],
    depth: int,
) -> Iterator[Found]:
    """Search a corpus in blocks that fit into memory."""
    least = min(FEWEST, len(corpus) // 4)
    stops = sorted({len(corpus) // part for part in STOPS if len(corpus) // part >= least})
    # Of blocks, none of which contains a stop
    ends = sorted({*range(0, len(corpus), CHUNK), *stops, len(corpus)})
    steps = progress_bar(list(pairwise(ends)), show=True, unit="block", desc="measuring")
    blocks = (vectors.take(corpus[a:b]) for a, b in steps)
    count = min(max(KS) * depth, len(corpus) - 1)
    yield from searched(ways, asked.full, asked.among(corpus), blocks, count, stops)


def equal_pairs(Q: Block, vectors: Vectors, rows: Rows) -> tuple[Rows, Rows]:
    """Numbers of queries (m, D) and of the rows of `vectors` that they equal, all pairs, as rows
    come.
    """
    queries_of: dict[bytes, list[int]] = {}
    for query, key in enumerate(row_keys(Q)):
        queries_of.setdefault(key, []).append(query)
    keys = (key for block in vectors.taken(rows) for key in row_keys(block))
    queries, equal = [], []
    for row, key in zip(rows.tolist(), keys, strict=True):
        for query in queries_of.get(key, ()):
            queries.append(query)
            equal.append(row)
    return np.array(queries, np.int64), np.array(equal, np.int64)


def _screen(
    made: Ways,
    tried: Sequence[Way],
    Q: Block,
    own: Places,
    documents: Block,
    depth: int,
) -> NDArray[Any]:
    """Recall@10 of each way without re-ranking and with it (W, 2); the first finds the truth."""
    recall, count = [], min(10 * depth, len(documents) - 1)
    wanted: Places | None = None
    steps = progress_bar(tried, show=True, unit="way", desc="screening")
    # One map at a time: all of them would not fit into memory
    for _, levels in groupby(steps, key=lambda way: way[:2]):
        ways = [made.way(*way) for way in levels]
        found = next(searched(ways, Q, own, [documents], count, [len(documents)]))
        for places in found.places:
            wanted = places[:, :10] if wanted is None else wanted
            ranked = ranks(wanted, places)
            recall.append([_recalled(ranked, 10, times).mean() for times in (1, depth)])
    return np.array(recall)


def between(tried: Sequence[Way], recall: NDArray[Any], aim: Aim) -> list[Way]:
    """Ways of sizes between those tried, of which recall (W,) was screened, where the answer to
    what is asked for may lie.

    Of each method and its bits these are, of bytes, the largest size that fits; of recall, sizes
    from one that surely reaches it to the first that failed, where that has not many more bytes
    than the fewest that did.
    """
    what, amount = aim
    families: dict[tuple[str, int | str], dict[int, int]] = {}
    for place, (method, dim, level) in enumerate(tried[1:], 1):
        part = dim // level_bytes(level, dim) if level.startswith(PRODUCT) else level
        families.setdefault((method, part), {})[dim] = place
    found: list[Way] = []
    brackets = []
    for places in families.values():
        sizes = sorted(places, reverse=True)
        if what == "bytes":
            largest = tried[places[sizes[0]]]
            fitting = min(sizes[0], int(amount * sizes[0] / bytes_of(largest)))
            found += [resized(largest, fitting)] if fitting else []
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
            found += [resized(safe, safe[1] - round(step * cut)) for cut in range(1, CUTS)]
    return [way for way in dict.fromkeys(found) if way not in tried and bytes_of(way)]


def contenders(
    sizes: NDArray[Any],
    recall: NDArray[Any],
    aim: Aim | None = None,
) -> list[int]:
    """Places of the ways that no other beats, in bytes (W,) or in any column of recall (W, m),
    thinned by size, but not about what is asked for.
    """
    chosen: set[int] = set()
    what, amount = aim or ("", 0.0)
    for column in recall.T:
        last, front = np.inf, is_front(sizes, column)
        apart = column - amount if what == "recall" else sizes / max(amount, 1) - 1
        for place in np.argsort(-sizes, kind="stable"):
            is_near = bool(aim) and ABOUT[what][0] <= apart[place] <= ABOUT[what][1]
            step = FINE if is_near else THINNED
            if front[place] and sizes[place] <= step * last:
                chosen.add(int(place))
                last = sizes[place]
    return sorted(chosen)


def is_front(sizes: NDArray[Any], recall: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether no other way has at most as many bytes and a higher recall, or fewer bytes and as
    high a one (W,).
    """
    order = np.lexsort((-recall, sizes))
    best = np.maximum.accumulate(np.r_[-np.inf, recall[order]])[:-1]
    front = np.empty(len(sizes), bool)
    front[order] = recall[order] > best
    return front


def tabulate(
    ways: Sequence[Deployment],
    walk: Sequence[Found],
    depth: int,
    n: int,
) -> tuple[pd.DataFrame, list[str]]:
    """The options of `Survey` and, in words, how recall@10 falls as rows are added; the first way
    finds the truth.
    """
    last, stops = walk[-1], [found.documents for found in walk]
    by_stop: list[list[Places]] = []
    for found in walk:
        wanted = found.places[0][:, : min(max(KS), found.documents - 1)]
        by_stop.append([ranks(wanted, places) for places in found.places])
    table = []
    for i, way in enumerate(ways):
        for times in dict.fromkeys((0, depth)):
            row: dict[str, Any] = {
                "way": i,
                "method": way.transform.method,
                "dim": way.transform.dim,
                "level": way.level,
                "bytes": way.bytes,
                "rerank": times,
            }
            again = max(times, 1)
            for k in KS:
                interval = interval_of(_recalled(by_stop[-1][i], k, again))
                row[f"recall@{k}"], row[f"low@{k}"] = interval.value, interval.low
                row[f"high@{k}"] = interval.high
            row["alike@10"] = _as_near(last, last.places[i][:, : 10 * again])
            found_at = [_recalled(ranked[i], 10, again) for ranked in by_stop]
            row["tail@10"] = float((found_at[-1] < LOST).mean())
            row["seen@10"] = [float(each.mean()) for each in found_at]
            row["expected@10"] = projected(stops, row["seen@10"], n, candidates=10 * again)
            row["ms"] = 1000 * last.seconds[i] / len(last.places[i])
            table.append(row)
    options = pd.DataFrame(table)
    options["front"] = False
    for _, own in options.groupby("rerank"):
        options.loc[own.index, "front"] = is_front(
            own["bytes"].to_numpy(),
            own["recall@10"].to_numpy(),
        )
    falls = _falls(options, stops, n)
    return options.drop(columns="seen@10"), falls


def projected(stops: Sequence[int], kept: Sequence[float], n: int, *, candidates: int) -> float:
    """Recall among n rows, by the law of `repro.evaluation.growth` of one way alone, from what it
    was among fewer; what it was among the most where there is nothing to project, and NaN where too
    few sizes tell how it falls.
    """
    told = [(rows, value) for rows, value in zip(stops, kept, strict=True) if rows > 2 * candidates]
    if n <= stops[-1]:
        return kept[-1]
    if len(told) < 2:
        return float("nan")
    rows, values = np.array(told).T
    alone = np.full(len(rows), 0.5)  # Of one way the share of the dimensions says nothing.
    law = fit_law(alone, rows, values, candidates=candidates, terms=_of_one_way)
    change = float(law(0.5, n) - law(0.5, stops[-1]))
    return float(np.clip(kept[-1] + change, 0, kept[-1]))


def _of_one_way(share: NDArray[Any], scale: NDArray[Any]) -> list[NDArray[Any]]:
    """The terms of the law that no share of the dimensions changes."""
    return [np.ones_like(scale), np.log(scale)]


def interval_of(values: NDArray[Any]) -> Interval:
    """The mean of recalls, one of each query, with Wilson's 95 % interval of as many trials as have
    their variance.
    """
    n, p = len(values), float(values.mean())
    variance = float(values.var())
    trials = n if variance == 0 else max(n, n * p * (1 - p) / variance)
    ends = wilson(p * trials, trials)  # type: ignore[arg-type]
    return Interval(p, max(min(ends.low, p), 0.0), min(max(ends.high, p), 1.0))


def choose(
    options: pd.DataFrame,
    what: str,
    amount: float,
    rerank: int,
    full: float = np.inf,
) -> int | None:
    """The row that is recommended: the fewest bytes that surely reach a recall@10, or the most
    recall in some bytes.

    A recall is reached by the lower end of its interval, less what is expected to be lost among all
    rows where fewer were searched. None: the full vectors, of `full` bytes in their file, alone do.
    """
    own = options[options["rerank"] == rerank]
    if what == "bytes":
        own = own[(own["bytes"] <= amount) & (own["bytes"] < full)]
        return (
            None
            if own.empty
            else int(own.sort_values("bytes", kind="stable")["recall@10"].idxmax())
        )
    own = own[own["front"]].sort_values("bytes", ascending=False, kind="stable")
    bound = own["low@10"] - (own["recall@10"] - own["expected@10"])
    passing = own[(bound >= amount).cummin()]
    best = None if passing.empty else int(passing.index[-1])
    return (
        None
        if best is None or options.loc[best, "bytes"] >= min(full, options["bytes"].max())
        else best
    )


def _falls(options: pd.DataFrame, stops: Sequence[int], n: int) -> list[str]:
    """How recall changes as rows are added, told of the way nearest to 0.95."""
    own = options[options["front"] & (options["rerank"] == 0)]
    row = own.loc[(own["recall@10"] - 0.95).abs().idxmin()]
    told = ", ".join(
        f"{value:.3f} among {rows:,}" for value, rows in zip(row["seen@10"], stops, strict=True)
    )
    said = (
        f"Recall changes as rows are added: that of {row['method']} {row['dim']} "
        f"× {row['level']} is {told}"
    )
    if stops[-1] < n and np.isnan(row["expected@10"]):
        return [f"{said}; too few to project it to {n:,}."]
    if stops[-1] < n:
        return [f"{said}; among {n:,} about {row['expected@10']:.3f}, projected."]
    return [f"{said}; advise again when there are many more."] if len(stops) > 1 else []


def _as_near(found: Found, candidates: Places) -> float:
    """Recall@10 where whatever is as near as the tenth neighbour by the full vectors counts too.

    Near ties change places under any code, and nothing is lost by it.
    """
    tenth = min(10, found.scores.shape[1]) - 1
    span = found.scores[:, :1] - found.scores[:, -1:]
    ties = (found.scores >= found.scores[:, [tenth]] - ALIKE * span).sum(1, keepdims=True)
    near = ranks(candidates, found.places[0]) < ties
    return float(np.minimum(near.sum(1) / (tenth + 1), 1).mean())


def _recalled(ranked: Places, k: int, times: int) -> NDArray[Any]:
    """Share of each query's k nearest that are among the first k · times found (m,)."""
    return np.asarray((ranked[:, :k] < k * times).mean(1))
