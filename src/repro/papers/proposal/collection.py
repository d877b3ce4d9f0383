"""Does a larger collection need more dimensions? Neighbours kept and retrieval, as the collection
grows.

The sentences of a corpus are put into one random order. The first of them ask, the next teach maps
and codebooks, and all others are the collection: every size that is judged is a prefix of it. A
*way* is a reducer, a size and a level. Documents are reduced, brought to length 1, coded and read
back; queries are reduced and stay floats, but for the way whose two sides are bits.

Metrics: `neighbours_kept` is the share of the ten nearest by full floats that are among the ten
nearest of a way, or among the first so many, which the full floats then put in order (re-scoring).
`neighbours_kept_change` is the same less its value in the smallest collection, query by query.
`ndcg@10` is that of questions whose paragraphs lie among the collection's sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.evaluation import quantise as coding
from repro.evaluation.growth import fit_law, share_needed
from repro.evaluation.stats import mean_draws
from repro.methods import FULL_SIZE
from repro.reducers import REDUCER_NAMES, make_reducer
from repro.reducers.reducer import Reducer
from repro.rows import make_rows
from repro.seeding import make_rng
from repro.terminal import progress_bar
from repro.types import Array, InputError, unit_rows

NEIGHBOURS = 10
FULL = "none"  # The reducer of a way that keeps all dimensions.
HAMMING = "binary, queries too"
LEVELS = (*coding.BITS, HAMMING)
# What the setting of a row says.
SETTING = r"(?P<level>.+), (?P<vectors>[\d,]+) vectors(?:, (?P<candidates>\d+) re-scored)?"


class Way(NamedTuple):
    """One way to store a vector."""

    reducer: str  # A name of `repro.reducers`, or `FULL`.
    dim: int
    level: str

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows, but for the setting."""
        method = FULL_SIZE if self.reducer == FULL else REDUCER_NAMES[self.reducer]
        return {"method": method, "dim": self.dim, "readout": "encoder"}

    @property
    def bytes(self) -> int:
        """Bytes of one stored vector."""
        level = "binary" if self.level == HAMMING else self.level
        return coding.vector_bytes(self.dim, level)


class Texts(NamedTuple):
    """A corpus in random order, cut into who asks, what teaches and what is searched."""

    asking: list[str]
    teaching: list[str]
    searched: list[str]


def draw_texts(texts: Sequence[str], *, asking: int, teaching: int, seed: int = 0) -> Texts:
    """Put the distinct texts of a corpus into one random order and cut it.

    Raises:
        InputError: if nothing is left to be searched.
    """
    distinct = list(dict.fromkeys(texts))
    if asking + teaching >= len(distinct):
        raise InputError(
            f"asking is {asking} and teaching {teaching}: the corpus has "
            f"{len(distinct)} distinct texts, "
            "of which some must be left to be searched"
        )
    order = make_rng(seed, "collection").permutation(len(distinct))
    shuffled = [distinct[i] for i in order]
    end = asking + teaching
    return Texts(shuffled[:asking], shuffled[asking:end], shuffled[end:])


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions and the paragraphs that answer them, which are searched for among the
    collection.
    """

    name: str
    questions: Array  # (q, D)
    paragraphs: Array  # (p, D)
    # By question, the rows of the paragraphs that support its answer.
    relevant: Sequence[NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Collection:
    """Embeddings of everything; rows need not have length 1."""

    name: str
    asking: Array  # (m, D)
    teaching: Array  # (f, D)
    searched: Sequence[Array]  # Blocks (…, D) of the documents, in their random order.
    asked: Questions | None = None

    @classmethod
    def of_shards(
        cls,
        name: str,
        shards: Sequence[Array],
        *,
        asking: int,
        teaching: int,
        asked: Questions | None = None,
    ) -> "Collection":
        """The collection whose embeddings follow each other in blocks: of who asks, of what teaches
        and of all that is searched, which is not copied.
        """
        head: list[Array] = []
        searched: list[Array] = []
        left = asking + teaching
        for shard in shards:
            head.append(shard[:left])
            searched.append(shard[left:])
            left -= len(head[-1])
        first = np.concatenate(head)
        return cls(name, first[:asking], first[asking:], searched, asked)

    @property
    def size(self) -> int:
        """Documents that there are."""
        return sum(len(block) for block in self.searched)

    def blocks(self, sizes: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """The documents in pieces that end where a size is reached: their number so far, and unit
        rows.
        """
        bounds = sorted(set(sizes))
        seen = 0
        for block in self.searched:
            start = 0
            while start < len(block) and seen < bounds[-1]:
                next_bound = next(bound for bound in bounds if bound > seen)
                stop = min(len(block), start + next_bound - seen)
                seen += stop - start
                yield seen, unit_rows(np.asarray(block[start:stop], np.float32))
                start = stop


class Nearest:
    """The k nearest documents of every query, as pieces of a collection come by."""

    def __init__(self, queries: int, k: int) -> None:
        self.cosines = np.full((queries, k), -np.inf, np.float32)
        self.rows = np.full((queries, k), -1, np.int64)

    def offer(self, cosines: Array, first_row: int) -> None:
        """Take in the documents from `first_row` on, with their cosines (m, b); ties go to the
        lower row.
        """
        queries, k = self.cosines.shape
        nearer = cosines > self.cosines[:, -1:]
        if np.count_nonzero(nearer) > 2 * queries * k:
            # As of the first documents: most are behind the k nearest of this very piece.
            nearer &= cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]
        query, column = np.divmod(np.flatnonzero(nearer), cosines.shape[1])
        if not len(query):
            return
        counts = np.bincount(query, minlength=queries)
        place = k + np.arange(len(query)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = np.full((queries, k + int(counts.max())), -np.inf, np.float32)
        rows = np.full(values.shape, -1, np.int64)
        values[:, :k] = self.cosines
        rows[:, :k] = self.rows
        values[query, place] = cosines[query, column]
        rows[query, place] = first_row + column
        # What is known stands before what is new, and both by row: a stable order keeps ties so.
        order = np.argsort(-values, axis=1, kind="stable")[:, :k]
        self.cosines = np.take_along_axis(values, order, axis=1)
        self.rows = np.take_along_axis(rows, order, axis=1)


@dataclass(eq=False)
class Search:
    """What one way has found so far."""

    way: Way
    asking: Array  # Queries as the way compares them.
    questions: Array | None
    gold_cosines: list[Array]  # By question, the cosines of its relevant paragraphs.
    ahead: list[NDArray[np.int64]]  # By question, how many documents are nearer than each of these.
    nearest: Nearest = field(repr=False)

    def offer(self, C: Array, first_row: int) -> None:
        """Take in decoded documents C (b, dim) of length 1."""
        self.nearest.offer(self.asking @ C.T, first_row)
        if self.questions is None:
            return
        cosines = self.questions @ C.T
        for number, of_gold in enumerate(self.gold_cosines):
            nearer = [np.count_nonzero(cosines[number] > cosine) for cosine in of_gold]
            self.ahead[number] += np.array(nearer)

    def kept(self, truth: NDArray[np.int64], depth: int) -> Array:
        """Share of each query's true neighbours among its first `depth`."""
        first = self.nearest.rows[:, :depth]
        return (truth[:, :, None] == first[:, None, :]).any(axis=2).mean(axis=1)

    def ndcg(self) -> Array:
        """nDCG@10 of each question."""
        values = []
        for ahead in self.ahead:
            ranks = np.sort(ahead) + 1
            gained = (1 / np.log2(ranks + 1.0))[ranks <= NEIGHBOURS].sum()
            ideal = (1 / np.log2(np.arange(min(len(ranks), NEIGHBOURS)) + 2.0)).sum()
            values.append(gained / ideal)
        return np.array(values)


class Coder:
    """One reducer with all its ways: from unit rows to what each way reads back from its store."""

    def __init__(self, reducer: str, ways: Sequence[Way], teaching: Array, seed: int) -> None:
        self.ways = list(ways)
        self.fitted: Reducer | None = None
        if reducer != FULL:
            largest = max(way.dim for way in ways)
            self.fitted = make_reducer(reducer, largest, seed=seed).fit(teaching)
        self.books: dict[Way, coding.Codebook] = {}
        for way, rows in self._reduced(teaching):
            level = "binary" if way.level == HAMMING else way.level
            self.books[way] = coding.fit_codebook(rows, level)

    def _reduced(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Rows of length 1 at the size of every way; ways of one size share them."""
        Y = X if self.fitted is None else self.fitted.transform(X)
        at_size: dict[int, Array] = {}
        for way in self.ways:
            if way.dim not in at_size:
                prefix = X if self.fitted is None else self.fitted.prefix(Y, way.dim)
                at_size[way.dim] = unit_rows(np.asarray(prefix, np.float32))
            yield way, at_size[way.dim]

    def stored(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Documents as every way reads them back, rows of one length."""
        for way, rows in self._reduced(X):
            if way.level == "float32":
                yield way, rows
                continue
            book = self.books[way]
            decoded = coding.dequantise(coding.quantise(rows, book), book)
            # Signs have one length already; as ±1 their products with signs are whole numbers, so
            # that ties are ties.
            yield way, decoded if book.level == "binary" else unit_rows(decoded)

    def queries(self, X: Array) -> Iterator[tuple[Way, Array]]:
        """Queries as every way compares them: floats, or bits where these are the way."""
        for way, rows in self._reduced(X):
            book = self.books[way]
            if way.level == HAMMING:
                yield way, coding.dequantise(coding.quantise(rows, book), book)
            else:
                yield way, np.asarray(coding.prepare_queries(rows, book), np.float32)


def _searches(collection: Collection, coder: Coder, depth: int) -> Iterator[Search]:
    """A search that has seen the paragraphs, but no document yet, for every way of a coder."""
    asking = dict(coder.queries(unit_rows(collection.asking)))
    asked = collection.asked
    if asked is None:
        for way in coder.ways:
            yield Search(way, asking[way], None, [], [], Nearest(len(asking[way]), depth))
        return
    questions = dict(coder.queries(unit_rows(asked.questions)))
    for way, paragraphs in coder.stored(unit_rows(asked.paragraphs)):
        cosines = questions[way] @ paragraphs.T
        gold = [cosines[number, rows] for number, rows in enumerate(asked.relevant)]
        ahead = []
        for number, of_gold in enumerate(gold):
            ahead.append((cosines[number] > of_gold[:, None]).sum(axis=1))
        yield Search(
            way,
            asking[way],
            questions[way],
            gold,
            ahead,
            Nearest(len(asking[way]), depth),
        )


def collection_rows(
    collection: Collection,
    ways: Sequence[Way],
    sizes: Sequence[int],
    *,
    depths: Sequence[int] = (10, 20, 40, 100, 200),
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """Scores of every way in every size of the collection, on the same queries.

    Args:
        collection: embeddings of queries, of what maps learn from, and of documents.
        ways: what is compared; full floats are added if they are not among them.
        sizes: documents, at most as many as there are.
        depths: how many of a way's nearest are looked at; ten is the way alone, more is re-scored
            by full floats.
        seed: of reducers that draw at random, and of the resamples.
        shared: columns of all rows.

    Raises:
        InputError: for a size beyond the collection, or too small to have so many neighbours.
    """
    sizes = sorted(set(sizes))
    if sizes[0] <= NEIGHBOURS or sizes[-1] > collection.size:
        raise InputError(
            f"sizes are {sizes}: expected more than {NEIGHBOURS}, at most "
            f"{collection.size} documents"
        )
    full = Way(FULL, collection.asking.shape[1], "float32")
    by_reducer: dict[str, list[Way]] = {}
    for way in dict.fromkeys([full, *ways]):
        by_reducer.setdefault(way.reducer, []).append(way)
    teaching = unit_rows(collection.teaching)
    coders = [Coder(name, of_reducer, teaching, seed) for name, of_reducer in by_reducer.items()]
    searches: dict[Way, Search] = {}
    for coder in coders:
        searches |= {search.way: search for search in _searches(collection, coder, max(depths))}
    kept: dict[tuple[Way, int, int], Array] = {}
    gains: dict[tuple[Way, int], Array] = {}
    for seen in _searched(collection, sizes, coders, searches):
        truth = searches[full].nearest.rows[:, :NEIGHBOURS]
        for way, search in searches.items():
            for depth in depths:
                kept[way, seen, depth] = search.kept(truth, depth)
            if collection.asked is not None:
                gains[way, seen] = search.ndcg()
    rows = [
        *_kept_rows(kept, collection.name, sizes[0], seed),
        *_gain_rows(gains, collection, seed),
    ]
    return make_rows(rows, seed=seed, n_train=len(teaching), **shared)


def _searched(
    collection: Collection,
    sizes: Sequence[int],
    coders: Sequence[Coder],
    searches: Mapping[Way, Search],
) -> Iterator[int]:
    """Offer the documents to all searches, block by block; each size once it has been reached."""
    first_row = 0
    with progress_bar(total=sizes[-1], desc="searching", show=True) as bar:
        for seen, block in collection.blocks(sizes):
            for coder in coders:
                for way, documents in coder.stored(block):
                    searches[way].offer(documents, first_row)
            first_row = seen
            bar.update(len(block))
            if seen in sizes:
                yield seen


def _kept_rows(
    kept: dict[tuple[Way, int, int], Array],
    dataset: str,
    smallest: int,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Rows of the neighbours that ways keep, and of what growing from the smallest collection
    changes.
    """
    resampled = mean_draws(list(kept.values()), seed=seed)
    place = {key: number for number, key in enumerate(kept)}
    for (way, size, depth), number in place.items():
        rescored = "" if depth == NEIGHBOURS else f", {depth} re-scored"
        columns = {
            **way.columns,
            "dataset": dataset,
            "setting": f"{way.level}, {size:,} vectors{rescored}",
        }
        yield {**columns, "metric": "neighbours_kept", **resampled[number].columns}
        if size > smallest:
            change = resampled[number] - resampled[place[way, smallest, depth]]
            yield {**columns, "metric": "neighbours_kept_change", **change.columns}


def _gain_rows(
    gains: dict[tuple[Way, int], Array],
    collection: Collection,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """Rows of the questions that find their paragraphs."""
    if collection.asked is None:
        return
    resampled = mean_draws(list(gains.values()), seed=seed)
    for number, (way, size) in enumerate(gains):
        columns = {
            **way.columns,
            "dataset": collection.asked.name,
            "setting": f"{way.level}, {size:,} vectors",
        }
        yield {**columns, "metric": "ndcg@10", **resampled[number].columns}


def with_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with what their setting says as columns: level, vectors, candidates; and their share of
    the encoder's dimensions.
    """
    words = rows["setting"].str.extract(f"^{SETTING}$")
    full = rows["dim"].where(rows["method"] == FULL_SIZE).groupby(rows["backbone"]).transform("max")
    return rows.assign(
        level=words["level"],
        vectors=words["vectors"].str.replace(",", "").astype("int64"),
        candidates=words["candidates"].fillna(str(NEIGHBOURS)).astype("int64"),
        full=full.astype("int64"),
        share=rows["dim"].astype("float64") / full.astype("float64"),
    )


def statement(rows: pd.DataFrame) -> str:
    """What half of the dimensions keep in the smallest and the largest collection, of the encoder
    that was searched in the largest one, and the dimensions that keep 95 % in that, by the law of
    `repro.evaluation.growth`; in a paragraph of its own the same with intervals, of the smallest
    share and where candidates are put in order.

    Args:
        rows: as `with_setting` gives them.
    """
    kept = rows[(rows["metric"] == "neighbours_kept") & (rows["level"] == "float32")]
    kept = kept[kept["method"] == REDUCER_NAMES["svd"]]
    if kept.empty:
        return "No rows are recorded."
    of_encoder = kept[kept["backbone"] == kept.loc[kept["vectors"].idxmax(), "backbone"]]
    full = int(of_encoder["full"].iloc[0])
    sizes = [int(of_encoder["vectors"].min()), int(of_encoder["vectors"].max())]
    said = []
    alone = of_encoder[of_encoder["candidates"] == NEIGHBOURS]
    for dim in (full // 2, int(alone["dim"].min())):
        cells = alone[alone["dim"] == dim].set_index("vectors").loc[sizes]
        before, after = [
            f"{100 * cell.value:.1f} % ({100 * cell.ci_low:.1f} to {100 * cell.ci_high:.1f})"
            for cell in cells.itertuples()
        ]
        said.append(f"{dim} dimensions keep {before} and {after}")
    half = 100 * alone[alone["dim"] == full // 2].set_index("vectors")["value"].loc[sizes]
    needed = []
    for candidates in (NEIGHBOURS, 4 * NEIGHBOURS):
        measured = of_encoder[of_encoder["candidates"] == candidates]
        law = fit_law(
            *(measured[name].to_numpy(np.float64) for name in ("share", "vectors", "value")),
            candidates=candidates,
        )
        share = share_needed(law, 0.95, sizes[1])
        needed.append(np.ceil(full * (1 if np.isnan(share) else share)))
    return (
        f"Half of the dimensions of {of_encoder['backbone'].iloc[0]} keep {half.iloc[0]:.0f} % of "
        f"the ten nearest neighbours among {sizes[0]:,} sentences, and {half.iloc[1]:.0f} % among "
        f"{sizes[1]:,}. To keep 95 % there takes {needed[0]:.0f} of {full}.\n\n"
        f"With 95 % intervals, in the smaller and the larger collection: {'; '.join(said)}. Where "
        f"the full floats put {4 * NEIGHBOURS} candidates in order, {needed[1]:.0f} dimensions "
        f"keep 95 % in the larger one."
    )
