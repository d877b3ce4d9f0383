"""Many contenders on a suite of tasks: every score, the average and chosen leads, all on shared resamples."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from repro.data.sets import DataSet, ScoredPairs
from repro.evaluation.stats import accuracy_draws, percentiles, spearman_draws
from repro.experiments.embeddings import TextTable
from repro.experiments.scores import stored_classification
from repro.experiments.sweep import cosines_of
from repro.methods import AVERAGE, MAJORITY
from repro.rows import make_rows
from repro.store import Store

Rivals: TypeAlias = Callable[[Sequence["Contender"]], Iterable[tuple[int, int]]]
"""which contenders are compared: pairs of positions, the first's lead over the second"""


@dataclass(frozen=True)
class Contender:
    """One line of a table: embeddings of all texts by one method at one dim."""

    method: str
    dim: int
    readout: str
    setting: str
    """what a reducer was fitted on; empty where nothing was"""
    table: TextTable
    backbone: str | None = None
    """encoder of this line, where lines differ in it"""


def suite_rows(
    lines: Sequence[Contender],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    rivals: Rivals | None = None,
    average: bool = False,
    protocol: str = "logreg",
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Score of every line on every task, their averages, and leads of some lines over others with paired intervals.

    All lines of a dataset are resampled on the same items, so that averages over datasets and differences between
    lines have intervals of their own: rows of method `A − B` and metric `spearman_lead` or `accuracy_lead`.

    Args:
        lines: the contenders.
        tasks: the splits of each task, by name; all scored pairs, or all labelled.
        store: where fitted probes are kept.
        rivals: which lines are compared; None compares none.
        average: add the mean over the tasks as a dataset of its own.
        protocol: classifier protocol.
        progress: show a progress bar.
        shared: columns common to all rows; `seed` is also that of folds and bootstrap.
    """
    seed = int(shared["seed"])
    rows: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    draws: dict[str, Any] = {}
    metric = "spearman"
    bar = tqdm(total=len(tasks) * len(lines), desc="scoring", disable=not progress, leave=False)
    for name, splits in tasks.items():
        test = splits.get("test")
        metric = "spearman" if isinstance(test, ScoredPairs) else "accuracy"
        outcomes: list[Any] = []
        for line in lines:
            bar.set_postfix_str(f"{name}, {line.method}, dim {line.dim}", refresh=False)
            if isinstance(test, ScoredPairs):
                outcomes.append(cosines_of(line.table, test))
            else:
                outcomes.append(stored_classification(line.table, name, splits, store, protocol=protocol, seed=seed))
            bar.update()
        if isinstance(test, ScoredPairs):
            values[name], draws[name] = spearman_draws(outcomes, test.scores, subsets=test.subsets, seed=seed)
        else:
            plain, resampled = accuracy_draws([score.items for score in outcomes], seed=seed)
            values[name] = np.array([score.value for score in outcomes])
            draws[name] = resampled + (values[name] - plain)  # nested accuracy is a mean over folds, a hair apart
            rows.append({"dataset": name, "method": MAJORITY, "metric": metric, "value": outcomes[0].floor})
    bar.close()
    if average:
        values[AVERAGE] = np.mean(list(values.values()), axis=0)
        draws[AVERAGE] = np.mean(list(draws.values()), axis=0)
        floors = [row["value"] for row in rows]
        if floors:
            rows.append({"dataset": AVERAGE, "method": MAJORITY, "metric": metric, "value": float(np.mean(floors))})
    for name in values:
        for k, line in enumerate(lines):
            own = percentiles(values[name][k], draws[name][:, k])
            rows.append({**_line(line), "dataset": name, "metric": metric, **own.columns})
        for a, b in rivals(lines) if rivals else ():
            found = percentiles(values[name][a] - values[name][b], draws[name][:, a] - draws[name][:, b])
            rows.append(
                {**_line(lines[b]), "dim": lines[a].dim, "dataset": name, "metric": f"{metric}_lead",
                 "method": f"{lines[a].method} − {lines[b].method}", **found.columns}
            )  # fmt: skip
    return make_rows(rows, **shared)


def _line(line: Contender) -> dict[str, Any]:
    named = {"method": line.method, "dim": line.dim, "readout": line.readout, "setting": line.setting}
    return named if line.backbone is None else {**named, "backbone": line.backbone}
