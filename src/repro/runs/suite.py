"""Many contenders on a suite of tasks: every score, the average and chosen leads, all on shared resamples."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from repro.evaluation.protocol import Score
from repro.evaluation.stats import accuracy_draws, percentiles, spearman_draws
from repro.methods import AVERAGE, MAJORITY
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.score import stored_classification
from repro.runs.sweep import cosines_of
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.terminal import progress_bar

Rivals: TypeAlias = Callable[[Sequence["Contender"]], Iterable[tuple[int, int]]]
"""which contenders are compared: pairs of positions, the first's lead over the second"""
Classify: TypeAlias = Callable[[TextTable, str, Mapping[str, DataSet]], Score]
"""embeddings, name and splits of a labelled task to its score"""


@dataclass(frozen=True)
class Contender:
    """One line of a table: embeddings of all texts by one method at one dim."""

    method: str
    dim: int | None
    """None where it differs between the tasks"""
    readout: str
    setting: str
    """what a reducer was fitted on; empty where nothing was"""
    table: TextTable
    backbone: str | None = None
    """encoder of this line, where lines differ in it"""
    by_task: Mapping[str, TextTable] | None = None
    """embeddings by task instead of `table`, where a reducer is fitted for each task"""

    def on(self, task: str) -> TextTable:
        """The embeddings of a task's texts."""
        return self.table if self.by_task is None else self.by_task[task]


def suite_rows(
    lines: Sequence[Contender],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    rivals: Rivals | None = None,
    average: bool = False,
    protocol: str = "logreg",
    classify: Classify | None = None,
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
        classify: scores labelled tasks; None is a linear probe under `protocol`.
        progress: show a progress bar.
        shared: columns common to all rows; `seed` is also that of folds and bootstrap.
    """
    seed = int(shared["seed"])
    rows: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    draws: dict[str, Any] = {}
    metric = "spearman"
    if classify is None:
        classify = partial(_probe, store=store, protocol=protocol, seed=seed)
    bar = progress_bar(total=len(tasks) * len(lines), desc="scoring", show=progress)
    for name, splits in tasks.items():
        test = splits.get("test")
        outcomes: list[Any] = []
        for line in lines:
            bar.set_postfix_str(f"{name}, {line.method}, dim {line.dim}", refresh=False)
            if isinstance(test, ScoredPairs):
                outcomes.append(cosines_of(line.on(name), test))
            else:
                outcomes.append(classify(line.on(name), name, splits))
            bar.update()
        if isinstance(test, ScoredPairs):
            values[name], draws[name] = spearman_draws(outcomes, test.scores, subsets=test.subsets, seed=seed)
        else:
            metric = outcomes[0].metric
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
                {
                    **_line(lines[b]),
                    "dim": lines[a].dim,
                    "dataset": name,
                    "metric": f"{metric}_lead",
                    "method": f"{lines[a].method} − {lines[b].method}",
                    "setting": lines[b].setting or lines[a].setting,
                    **found.columns,
                }
            )
    return make_rows(rows, **shared)


def _probe(
    table: TextTable, name: str, splits: Mapping[str, DataSet], *, store: Store, protocol: str, seed: int
) -> Score:
    return stored_classification(table, name, splits, store, protocol=protocol, seed=seed)


def _line(line: Contender) -> dict[str, Any]:
    named = {"method": line.method, "dim": line.dim, "readout": line.readout, "setting": line.setting}
    return named if line.backbone is None else {**named, "backbone": line.backbone}
