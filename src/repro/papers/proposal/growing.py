"""Does a larger collection need more dimensions? Neighbours kept and retrieval, as the collection
grows.

Metrics: `neighbours_kept` is the share of the ten nearest by full floats that are among the ten
nearest of a way, or among the first so many, which the full floats then put in order (re-scoring).
`neighbours_kept_change` is the same less its value in the smallest collection, query by query.
`ndcg@10` is that of questions whose paragraphs lie among the collection's sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.growth import Law, fit_law, share_needed
from repro.evaluation.stats import mean_draws
from repro.methods import FULL_SIZE
from repro.papers.proposal.collection import Collection
from repro.papers.proposal.searches import FULL, NEIGHBOURS, Coder, Nearest, Search, Way
from repro.reducers import REDUCER_NAMES
from repro.rows import make_rows
from repro.terminal import progress_bar
from repro.types import Array, InputError, unit_rows

# What the setting of a row says.
SETTING = r"(?P<level>.+), (?P<vectors>[\d,]+) vectors(?:, (?P<candidates>\d+) re-scored)?"


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


def _law_of(rows: pd.DataFrame) -> Law:
    """The law of one way and one number of candidates."""
    (candidates,) = set(rows["candidates"])
    numbers = [rows[name].to_numpy(np.float64) for name in ("share", "vectors", "value")]
    return fit_law(*numbers, candidates=int(candidates))


@dataclass(frozen=True)
class Rescoring:
    """What a number of candidates keeps of the ten nearest, as shares of them."""

    dim: int
    candidates: int
    measured: float  # In the largest collection recorded
    projected: float  # By the law, in a larger one
    off: float  # The law less what was measured, after as long a stretch, or a longer one


def rescorings(rows: pd.DataFrame, vectors: int) -> list[Rescoring]:
    """What uncentred SVD in float32 is projected to keep among so many vectors, at every size and
    number of candidates.

    The error is that of the same law, fitted to collections that the largest one exceeds at least
    as far as `vectors` exceeds that.

    Args:
        rows: of one encoder, as `with_setting` gives them.
        vectors: more than were searched.

    Raises:
        InputError: for a number that was searched, or one so large that no recorded collection is
            as small beside the largest: no law could be judged.
    """
    is_read = (rows["metric"] == "neighbours_kept") & (rows["level"] == "float32")
    kept = rows[is_read & (rows["method"] == REDUCER_NAMES["svd"])]
    largest, sizes = int(kept["vectors"].max()), sorted(set(kept["vectors"]))
    furthest = largest**2 // sizes[2]  # A law is fitted to three sizes at least
    if not largest < vectors <= furthest:
        raise InputError(
            f"{vectors:,} vectors: expected more than the {largest:,} that were searched, and at "
            f"most {furthest:,}, for which the recorded sizes can judge a projection"
        )
    found = []
    for candidates, own in kept.groupby("candidates"):
        # Of a collection of a few times the candidates, chance finds a good part
        own = own[own["vectors"] >= 10 * candidates]
        known = own[own["vectors"] * vectors <= largest**2]
        law, law_before = _law_of(own), _law_of(known)
        for cell in own[own["vectors"] == largest].sort_values("share").itertuples():
            found.append(
                Rescoring(
                    dim=int(cell.dim),
                    candidates=int(candidates),
                    measured=float(cell.value),
                    projected=float(law(cell.share, vectors)),
                    off=float(law_before(cell.share, largest) - cell.value),
                )
            )
    return found


def rescoring_table(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> pd.DataFrame:
    """Dimensions in lines: the fewest of the recorded numbers of candidates that keep the target
    among the most vectors searched, and among more by projection.
    """
    largest, full = int(rows["vectors"].max()), int(rows["full"].iloc[0])
    found = rescorings(rows, vectors)
    lines = []
    for dim in sorted({each.dim for each in found}, reverse=True):
        own = [each for each in found if each.dim == dim]
        line: dict[str, Any] = {"dimensions": f"{dim} of {full}"}
        now = next((each for each in own if each.measured >= target), own[-1])
        then = next((each for each in own if each.projected >= target), own[-1])
        line[f"{largest:,} vectors, measured"] = _candidates(now.candidates, now.measured, target)
        line[f"{vectors:,}, projected"] = _candidates(then.candidates, then.projected, target)
        line["the law was off by"] = f"{100 * then.off:.1f} points".replace("-", "−")
        lines.append(line)
    return pd.DataFrame(lines)


def _candidates(count: int, kept: float, target: float) -> str:
    """How many candidates suffice and what they keep; the most recorded may not suffice."""
    return f"{'' if kept >= target else 'more than '}{count} ({100 * kept:.1f} %)"


def rescoring_statement(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> str:
    """How many candidates at half of the dimensions keep the target among so many vectors: a
    projection with its error, and what no law tells.
    """
    encoder, full = rows["backbone"].iloc[0], int(rows["full"].iloc[0])
    half = [each for each in rescorings(rows, vectors) if each.dim == full // 2]
    enough = next((each for each in half if each.projected >= target), None)
    measured = next((each for each in half if each.measured >= target), None)
    asked, largest = f"{100 * target:g} %", int(rows["vectors"].max())
    if enough is None or measured is None:
        return f"At half of the dimensions no recorded number of candidates keeps {asked}."
    off = f"{100 * enough.off:.1f}".replace("-", "−")
    safe = next((each for each in half if each.projected - abs(each.off) >= target), None)
    caution = ""
    if safe and safe != enough:
        caution = (
            f" An error as large could leave less than {asked}, but not with {safe.candidates} "
            f"candidates ({100 * safe.projected:.1f} %)."
        )
    return (
        f"**A projection.** To keep {asked} of the ten nearest among {vectors:,} vectors at half "
        f"of the dimensions, re-score {enough.candidates} candidates by the full floats: the law "
        f"says {100 * enough.projected:.1f} %. Stretched as far before, it was off by {off} points "
        f"(what it said less what was measured).{caution} Among {largest:,} vectors "
        f"{measured.candidates} keep {100 * measured.measured:.1f} %, measured. All this is of one "
        f"encoder, {encoder}, and of exact search. No row tells the same of bits: they are "
        f"recorded at too few sizes for a law."
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
        share = share_needed(_law_of(measured), 0.95, sizes[1])
        needed.append(np.ceil(full * (1 if np.isnan(share) else share)))
    return (
        f"Half of the dimensions of {of_encoder['backbone'].iloc[0]} keep {half.iloc[0]:.0f} % of "
        f"the ten nearest neighbours among {sizes[0]:,} sentences, and {half.iloc[1]:.0f} % among "
        f"{sizes[1]:,}. To keep 95 % there takes {needed[0]:.0f} of {full}.\n\n"
        f"With 95 % intervals, in the smaller and the larger collection: {'; '.join(said)}. Where "
        f"the full floats put {4 * NEIGHBOURS} candidates in order, {needed[1]:.0f} dimensions "
        f"keep 95 % in the larger one."
    )
