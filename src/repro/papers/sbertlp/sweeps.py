"""Figures 2 to 5: scores of the mapping against its neighbours and its dims, and what two statistics would pick."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.retention import procrustes_statistic, residual_variance
from repro.evaluation.stats import Floats, mean_draws, percentiles, spearman_draws
from repro.papers.sbertlp.claims import NEIGHBOURS, RANGE, RANGES, lp
from repro.papers.sbertlp.mapping import Mapped, map_texts, prefix
from repro.papers.sbertlp.neighbours import correct
from repro.papers.sbertlp.systems import Encoded
from repro.papers.sbertlp.tasks import scored, sentences
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.sweep import cosines_of
from repro.sets import DataSet, ScoredPairs
from repro.types import Array


def neighbours_setting(k: int) -> str:
    """What the `setting` of a row with k neighbours says."""
    return f"{NEIGHBOURS}{k}"


def sweep_rows(
    system: Encoded,
    splits: Mapping[str, Mapping[str, DataSet]],
    names: Sequence[str],
    *,
    neighbors: Sequence[int],
    dims: Sequence[int],
    **shared: Any,
) -> pd.DataFrame:
    """Scores at every number of neighbours and dim, and of the system itself; with three kinds of comparison.

    All lines of a dataset share resamples. Comparisons are rows of their own, at the system's number: `grid − worst`
    and `grid − residual variance`, `grid − Procrustes` over neighbours at the best dim; `best in range` is the best
    score among the dims that the paper names less the best among the others, at the best number of neighbours.

    Args:
        system: with the embeddings of all texts.
        splits: of the datasets.
        names: of the datasets, scored pairs or labelled texts.
        neighbors: numbers of neighbours.
        dims: sizes.
        shared: columns common to all rows; `seed` is also that of the bootstrap.
    """
    rows: list[dict[str, Any]] = []
    for name in names:
        judged = sentences(*_evaluated(splits[name]).values())
        mapped = map_texts(system.table, judged, judged, neighbors, max(dims))
        cells = [(k, d) for k, one in mapped.items() for d in dims if d <= one.table.X.shape[1]]
        tables = [system.table, *(prefix(mapped[k].table, d) for k, d in cells)]
        values, draws, metric = _drawn(tables, splits[name], int(shared["seed"]))
        own = {"dataset": name, "metric": metric, "method": lp(system.method), "backbone": system.backbone}
        rows.append(
            {
                **own,
                "method": system.method,
                "dim": system.table.X.shape[1],
                **percentiles(values[0], draws[:, 0]).columns,
            }
        )
        for i, (k, d) in enumerate(cells, 1):
            here = percentiles(values[i], draws[:, i])
            rows.append({**own, "dim": d, "setting": neighbours_setting(k), **here.columns})
        dim = cells[int(np.argmax(values[1:]))][1]
        found = _statistics(system.table[judged], mapped, judged, dim)
        for statistic, by_k in found.items():
            rows += [
                {**own, "metric": statistic, "dim": dim, "setting": neighbours_setting(k), "value": v}
                for k, v in by_k.items()
            ]
        picked = {statistic: min(by_k, key=by_k.__getitem__) for statistic, by_k in found.items()}
        compared = _over_neighbours(cells, values[1:], draws[:, 1:], picked)
        compared += _over_dims(cells, values[1:], draws[:, 1:], "sts" if metric == "spearman" else "sentiment")
        rows += [{**own, "metric": f"{metric}_lead", **row} for row in compared]
    return make_rows(rows, **{"readout": "encoder", **shared})


def _evaluated(splits: Mapping[str, DataSet]) -> dict[str, DataSet]:
    """The splits that a score reads: the test pairs, or train and test, or the whole set."""
    if isinstance(splits.get("test"), ScoredPairs):
        return {"test": splits["test"]}
    return {name: part for name, part in splits.items() if name != "dev"}


def _drawn(tables: Sequence[TextTable], splits: Mapping[str, DataSet], seed: int) -> tuple[Floats, Floats, str]:
    """Score of every table (P,), of each resample (R, P), and the metric."""
    if isinstance(splits.get("test"), ScoredPairs):
        test = scored(splits["test"])
        values, draws = spearman_draws(
            [cosines_of(table, test) for table in tables], test.scores, subsets=test.subsets, seed=seed
        )
        return values, draws, "spearman"
    values, draws = mean_draws([correct(table, splits)[0] for table in tables], seed=seed)
    return values, draws, "accuracy"


def _statistics(X: Array, mapped: Mapping[int, Mapped], judged: Sequence[str], dim: int) -> dict[str, dict[int, float]]:
    """Both statistics at one dim, by number of neighbours."""
    Y = {k: prefix(one.table, dim)[judged] for k, one in mapped.items() if dim <= one.table.X.shape[1]}
    return {
        "residual variance": {k: residual_variance(X, each) for k, each in Y.items()},
        "Procrustes": {k: procrustes_statistic(X, each, k) for k, each in Y.items()},
    }


def _over_neighbours(
    cells: Sequence[tuple[int, int]], values: Floats, draws: Floats, picked: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The best number of neighbours, at the best dim, against the worst and those that the statistics pick."""
    top = int(np.argmax(values))
    dim = cells[top][1]
    same = [i for i, (_, d) in enumerate(cells) if d == dim]
    worst = min(same, key=lambda i: values[i])
    rivals = {"worst": worst, **{name: cells.index((k, dim)) for name, k in picked.items()}}
    return [
        {
            "method": f"grid − {name}",
            "dim": dim,
            "setting": neighbours_setting(cells[i][0]),
            **percentiles(values[top] - values[i], draws[:, top] - draws[:, i]).columns,
        }
        for name, i in rivals.items()
    ]


def _over_dims(cells: Sequence[tuple[int, int]], values: Floats, draws: Floats, kind: str) -> list[dict[str, Any]]:
    """At the best number of neighbours: the best dim of the paper's range against the best one outside it."""
    low, high = RANGES[kind]
    k = cells[int(np.argmax(values))][0]
    inside = [i for i, (n, d) in enumerate(cells) if n == k and low <= d <= high]
    outside = [i for i, (n, d) in enumerate(cells) if n == k and not low <= d <= high]
    if not inside or not outside:
        return []
    lead = values[inside].max() - values[outside].max()
    drawn = draws[:, inside].max(1) - draws[:, outside].max(1)
    best = inside[int(np.argmax(values[inside]))]
    return [
        {"method": RANGE, "dim": cells[best][1], "setting": neighbours_setting(k), **percentiles(lead, drawn).columns}
    ]
