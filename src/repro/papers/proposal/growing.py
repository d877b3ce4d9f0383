"""Does a larger collection need more dimensions? Neighbours kept and retrieval, as the collection
grows.

Metrics: `neighbours_kept` is the share of the ten nearest by full floats that are among the ten
nearest of a way, or among the first so many, which the full floats then put in order (re-scoring).
`neighbours_kept_change` is the same less its value in the smallest collection, query by query.
`ndcg@10` is that of questions whose paragraphs lie among the collection's sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.growth import Law, fit_law, share_needed
from repro.evaluation.stats import mean_draws
from repro.methods import FULL_SIZE
from repro.papers.proposal.collection import Collection
from repro.papers.proposal.searches import FULL, NEIGHBOURS, Coder, Nearest, Search, Way
from repro.reducers import REDUCER_NAMES
from repro.rows import Row, make_rows, only
from repro.terminal import progress_bar
from repro.types import Array, InputError, unit_rows

# What the setting of a row says.
SETTING = r"(?P<level>.+), (?P<vectors>[\d,]+) vectors(?:, (?P<candidates>\d+) re-scored)?"


def _searches(collection: Collection, coder: Coder, depth: int) -> dict[Way, Search]:
    """A search that has seen the paragraphs, but no document yet, for every way of a coder."""
    searches = {}
    for way, queries in coder.queries(unit_rows(collection.asking)):
        searches[way] = Search(queries, Nearest(len(queries), depth))
    if (asked := collection.asked) is not None:
        for way, questions in coder.queries(unit_rows(asked.questions)):
            searches[way].questions = questions
        for way, paragraphs in coder.stored(unit_rows(asked.paragraphs)):
            searches[way].see(paragraphs, asked.relevant)
    return searches


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
            f"collections of {sizes} documents: expected more than {NEIGHBOURS} in each, and at "
            f"most the {collection.size} that there are"
        )
    full = Way(FULL, collection.asking.shape[1], "float32")
    by_reducer: dict[str, list[Way]] = {}
    for way in dict.fromkeys([full, *ways]):
        by_reducer.setdefault(way.reducer, []).append(way)
    teaching = unit_rows(collection.teaching)
    coders = [Coder(name, of_reducer, teaching, seed) for name, of_reducer in by_reducer.items()]
    searches: dict[Way, Search] = {}
    for coder in coders:
        searches |= _searches(collection, coder, max(depths))
    shares_kept: dict[tuple[Way, int, int], Array] = {}
    gains: dict[tuple[Way, int], Array] = {}
    for seen in _searched(collection, sizes, coders, searches):
        truth = searches[full].nearest.rows[:, :NEIGHBOURS]
        for way, search in searches.items():
            for depth in depths:
                shares_kept[way, seen, depth] = search.kept(truth, depth)
            if collection.asked is not None:
                gains[way, seen] = search.ndcg()
    rows = [
        *_kept_rows(shares_kept, collection.name, sizes[0], seed),
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
    shares_kept: dict[tuple[Way, int, int], Array],
    dataset: str,
    smallest: int,
    seed: int,
) -> Iterator[Row]:
    """Rows of the neighbours that ways keep, and of what growing from the smallest collection
    changes.
    """
    resampled = mean_draws(list(shares_kept.values()), seed=seed)
    place = {key: number for number, key in enumerate(shares_kept)}
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
) -> Iterator[Row]:
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


def law_of(rows: pd.DataFrame) -> Law:
    """The law of one way and one number of candidates."""
    (candidates,) = set(rows["candidates"])
    numbers = [rows[name].to_numpy(np.float64) for name in ("share", "vectors", "value")]
    return fit_law(*numbers, candidates=int(candidates))


def statement(rows: pd.DataFrame) -> str:
    """What half of the dimensions keep in the smallest and the largest collection, of the encoder
    that was searched in the largest one, and the dimensions that keep 95 % in that, by the law of
    `repro.evaluation.growth`; in a paragraph of its own the same with intervals, of the smallest
    share and where candidates are put in order.

    Args:
        rows: as `with_setting` gives them.
    """
    of_svd = {"level": "float32", "method": REDUCER_NAMES["svd"]}
    neighbour_rows = only(rows, metric="neighbours_kept", **of_svd)
    if neighbour_rows.empty:
        return "No rows are recorded."
    encoder = neighbour_rows.loc[neighbour_rows["vectors"].idxmax(), "backbone"]
    of_encoder = only(neighbour_rows, backbone=encoder)
    full = int(of_encoder["full"].iloc[0])
    sizes = [int(of_encoder["vectors"].min()), int(of_encoder["vectors"].max())]
    sentence_parts = []
    alone = only(of_encoder, candidates=NEIGHBOURS)
    for dim in (full // 2, int(alone["dim"].min())):
        cells = only(alone, dim=dim).set_index("vectors").loc[sizes]
        before, after = [
            f"{100 * cell.value:.1f} % ({100 * cell.ci_low:.1f} to {100 * cell.ci_high:.1f})"
            for cell in cells.itertuples()
        ]
        sentence_parts.append(f"{dim} dimensions keep {before} and {after}")
    clauses = "; ".join(sentence_parts)
    half = 100 * only(alone, dim=full // 2).set_index("vectors")["value"].loc[sizes]
    needed = []
    for candidates in (NEIGHBOURS, 4 * NEIGHBOURS):
        measured = only(of_encoder, candidates=candidates)
        share = share_needed(law_of(measured), 0.95, sizes[1])
        needed.append(np.ceil(full * (1 if np.isnan(share) else share)))
    return (
        f"Half of the dimensions of {of_encoder['backbone'].iloc[0]} keep {half.iloc[0]:.0f} % of "
        f"the ten nearest neighbours among {sizes[0]:,} sentences, and {half.iloc[1]:.0f} % among "
        f"{sizes[1]:,}. To keep 95 % there takes {needed[0]:.0f} of {full}.\n\n"
        f"With 95 % intervals, in the smaller and the larger collection: {clauses}. Where the full "
        f"floats put {4 * NEIGHBOURS} candidates in order, {needed[1]:.0f} dimensions keep 95 % in "
        "the larger one."
    )
