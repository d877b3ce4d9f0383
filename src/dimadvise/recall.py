"""Recall of each way, in a table: with its interval, and among more rows than were searched."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dimadvise.coding import Deployment
from dimadvise.screening import is_front, recalled
from dimadvise.search import Found, Places, ranks
from repro.evaluation.growth import fit_law
from repro.evaluation.stats import Interval, wilson
from repro.types import Array

KS = (1, 10, 100)
ALIKE = 3e-3
"""Share of the spread of a query's scores, from its nearest to the last that is kept, within which
a document is as near as the tenth.
"""
LOST = 0.5  # Share of its neighbours that a query must find, or it is counted apart


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
    ranked_by_stop = [_ranked(found) for found in walk]
    table = []
    for i, way in enumerate(ways):
        ranked = [of_stop[i] for of_stop in ranked_by_stop]
        for times in dict.fromkeys((0, depth)):
            again = max(times, 1)
            candidates = 10 * again
            by_query = [recalled(places, 10, again) for places in ranked]
            seen = [float(recall.mean()) for recall in by_query]
            table.append(
                {
                    "way": i,
                    **way.named,
                    "bytes": way.bytes,
                    "rerank": times,
                    **_recalls(ranked[-1], again),
                    "alike@10": _as_near(last, last.places[i][:, :candidates]),
                    "tail@10": float((by_query[-1] < LOST).mean()),
                    "seen@10": seen,
                    "expected@10": projected(stops, seen, n, candidates=candidates),
                    "ms": 1000 * last.seconds[i] / len(last.places[i]),
                }
            )
    options = pd.DataFrame(table)
    options["front"] = False
    for _, of_depth in options.groupby("rerank"):
        options.loc[of_depth.index, "front"] = is_front(
            of_depth["bytes"].to_numpy(),
            of_depth["recall@10"].to_numpy(),
        )
    falls = _falls(options, stops, n)
    return options.drop(columns="seen@10"), falls


def _ranked(found: Found) -> list[Places]:
    """Of each way, the place that it gives to each true neighbour of each query."""
    neighbours = found.places[0][:, : min(max(KS), found.documents - 1)]
    return [ranks(neighbours, places) for places in found.places]


def _recalls(ranked: Places, times: int) -> dict[str, float]:
    """Recall of one way with its interval, by how many neighbours are asked for."""
    row: dict[str, float] = {}
    for k in KS:
        interval = interval_of(recalled(ranked, k, times))
        row[f"recall@{k}"] = interval.value
        row[f"low@{k}"] = interval.low
        row[f"high@{k}"] = interval.high
    return row


def projected(stops: Sequence[int], recalls: Sequence[float], n: int, *, candidates: int) -> float:
    """Recall among n rows, by the law of `repro.evaluation.growth` of one way alone, from what it
    was among fewer; what it was among the most where there is nothing to project, and NaN where too
    few sizes tell how it falls.
    """
    pairs = zip(stops, recalls, strict=True)
    usable = [(rows, recall) for rows, recall in pairs if rows > 2 * candidates]
    if n <= stops[-1]:
        return recalls[-1]
    if len(usable) < 2:
        return float("nan")
    rows, values = np.array(usable).T
    alone = np.full(len(rows), 0.5)  # Of one way the share of the dimensions says nothing.
    law = fit_law(alone, rows, values, candidates=candidates, terms=_of_one_way)
    change = float(law(0.5, n) - law(0.5, stops[-1]))
    return float(np.clip(recalls[-1] + change, 0, recalls[-1]))


def _of_one_way(share: Any, scale: Any) -> list[Any]:
    """The terms of the law that no share of the dimensions changes."""
    return [np.ones_like(scale), np.log(scale)]


def interval_of(values: Array) -> Interval:
    """The mean of recalls, one of each query, with Wilson's 95 % interval of as many trials as have
    their variance.
    """
    n, p = len(values), float(values.mean())
    variance = float(values.var())
    trials = n if variance == 0 else max(n, n * p * (1 - p) / variance)
    ends = wilson(p * trials, trials)  # type: ignore[arg-type]
    return Interval(p, max(min(ends.low, p), 0.0), min(max(ends.high, p), 1.0))


def _falls(options: pd.DataFrame, stops: Sequence[int], n: int) -> list[str]:
    """How recall changes as rows are added, told of the way nearest to 0.95, which need not
    be the answer.
    """
    front = options[options["front"] & (options["rerank"] == 0)]
    row = front.loc[(front["recall@10"] - 0.95).abs().idxmin()]
    recalls = ", ".join(
        f"{value:.3f} among {rows:,}" for value, rows in zip(row["seen@10"], stops, strict=True)
    )
    sentence = (
        f"Recall changes as rows are added: of the way measured nearest to 0.95, {row['method']} "
        f"{row['dim']} × {row['level']}, it is {recalls}"
    )
    if stops[-1] < n and np.isnan(row["expected@10"]):
        return [f"{sentence}; too few to project it to {n:,}."]
    if stops[-1] < n:
        return [f"{sentence}; among {n:,} about {row['expected@10']:.3f}, projected."]
    return [f"{sentence}; advise again when there are many more."] if len(stops) > 1 else []


def _as_near(found: Found, candidates: Places) -> float:
    """Recall@10 where whatever is as near as the tenth neighbour by the full vectors counts too.

    Near ties change places under any code, and nothing is lost by it.
    """
    tenth = min(10, found.scores.shape[1]) - 1
    span = found.scores[:, :1] - found.scores[:, -1:]
    ties = (found.scores >= found.scores[:, [tenth]] - ALIKE * span).sum(1, keepdims=True)
    near = ranks(candidates, found.places[0]) < ties
    return float(np.minimum(near.sum(1) / (tenth + 1), 1).mean())
