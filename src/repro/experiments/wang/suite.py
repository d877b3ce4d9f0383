"""Two-step training against reducing afterwards, on whole suites of tasks (Wang et al., 2023, Tables 3 and 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from repro.data.sets import DataSet, ScoredPairs
from repro.evaluation.stats import accuracy_draws, percentiles, spearman_draws
from repro.experiments.embeddings import TextTable, encode_once
from repro.experiments.scores import stored_classification
from repro.experiments.sweep import Sweep, cosines_of
from repro.experiments.texts import training_sentences
from repro.experiments.wang.two_step import TwoStep
from repro.methods import FULL, MAJORITY, REDUCED, TRAINED_NARROW, TWO_STEP
from repro.reducers import make_reducer
from repro.rows import make_rows
from repro.seeding import make_rng
from repro.store import Store
from repro.types import Array, InputError

AVERAGE = "Avg."
"""dataset of the rows that hold a suite's mean"""
SUITES = {
    "table3": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table4": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""the seven datasets of each table; only all seven have an average"""


@dataclass(frozen=True)
class Contender:
    """One line of Tables 3 and 4: embeddings of all texts by one method at one dim."""

    method: str
    dim: int
    readout: str
    setting: str
    """what a reducer was fitted on; empty for a trained pooler"""
    table: TextTable


def wiki_states(sweep: Sweep, encoder: int, sizes: Sequence[int], store: Store) -> dict[int, Array]:
    """States h (n, hidden_dim) of n training sentences drawn at random, by n; smaller sets lie within larger ones.

    The paper takes the first 2,000 lines of a file that is itself a random sample of Wikipedia.
    """
    cell = sweep.cells[encoder]
    texts = training_sentences(replace(cell.config, sentences=max(sizes)), store)
    table, _ = encode_once(partial(getattr, cell, "encoder"), cell.key, texts, store)
    order = make_rng(cell.config.seed, "fit set").permutation(len(texts))
    return {n: table[[texts[row] for row in order[:n]]] for n in sizes}


def contenders(
    sweep: Sweep,
    trained: TwoStep,
    fit_sets: Mapping[int, Array],
    dims: Sequence[int],
    *,
    n_neighbors: int = 5,
    reference: int | None = None,
) -> Iterator[Contender]:
    """Every line of the tables: the full size in both readouts, then per dim the reducers and both trainings.

    Each reducer is fitted once, on the states of the encoder trained at full size, at the largest dim it can give.

    Args:
        sweep: end-to-end trained encoders; must hold `reference` and every dim.
        trained: two-step training on the same sweep.
        fit_sets: states that reducers are fitted on, by their number; all reducers use the smallest set, PCA all.
        dims: reduced sizes.
        n_neighbors: of Isomap and LLE.
        reference: dim of the full-size model; None is the hidden size.

    Raises:
        InputError: for a dim that was not trained.
    """
    full = reference or next(iter(sweep.cells.values())).pooler.hidden_dim
    missing = [d for d in (full, *dims) if d not in sweep.cells]
    if missing:
        raise InputError(
            f"dim {missing[0]} was not trained: the sweep holds {', '.join(map(str, sorted(sweep.cells)))}"
        )
    states = sweep.embeddings(full)
    yield Contender(FULL, full, "encoder", "", states)
    yield Contender(FULL, full, "pooler", "", sweep.embeddings(full, full))
    smallest = min(fit_sets)
    for label, name in REDUCED.items():
        for n, fit in sorted(fit_sets.items()):
            if n != smallest and name != "pca":
                continue
            reachable = [d for d in dims if d <= min(len(fit) - 1, fit.shape[1])]
            if not reachable:
                continue
            extra = {} if name == "pca" else {"n_neighbors": n_neighbors}
            reducer = make_reducer(name, max(reachable), **extra).fit(fit)
            Y = reducer.transform(states.X)
            for d in reachable:
                yield Contender(label, d, "encoder", f"fitted on {n:,} sentences", TextTable(states.index, Y[:, :d]))
    for d in dims:
        yield Contender(TRAINED_NARROW, d, "pooler", "", sweep.embeddings(d, d))
        projected = sweep.states[trained.opt[d]].map(trained.new_poolers[d].project)
        yield Contender(TWO_STEP, d, "pooler", "", projected)


def suite_rows(
    lines: Sequence[Contender],
    tasks: Mapping[str, Mapping[str, DataSet]],
    store: Store,
    *,
    protocol: str = "logreg",
    progress: bool = True,
    **shared: Any,
) -> pd.DataFrame:
    """Score of every line on every task, averages, and leads of two-step training and of PCA with paired intervals.

    All lines of a dataset are resampled on the same items, so that averages over datasets and differences between
    lines have intervals of their own: rows of method `A − B` and metric `spearman_lead` or `accuracy_lead`.

    Args:
        lines: what `contenders` gives.
        tasks: the splits of each task, by name; all scored pairs, or all labelled.
        store: where fitted probes are kept.
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
    if any(set(tasks) == set(suite) for suite in SUITES.values()):
        values[AVERAGE] = np.mean(list(values.values()), axis=0)
        draws[AVERAGE] = np.mean(list(draws.values()), axis=0)
        floors = [row["value"] for row in rows]
        if floors:
            rows.append({"dataset": AVERAGE, "method": MAJORITY, "metric": metric, "value": float(np.mean(floors))})
    for name in values:
        for k, line in enumerate(lines):
            rows.append({**_line(line), "dataset": name, "metric": metric, **_interval(values[name], draws[name], k)})
        for a, b in _rivals(lines):
            found = percentiles(values[name][a] - values[name][b], draws[name][:, a] - draws[name][:, b])
            rows.append(
                {**_line(lines[b]), "dim": lines[a].dim, "dataset": name, "metric": f"{metric}_lead",
                 "method": f"{lines[a].method} − {lines[b].method}",
                 "value": found.value, "ci_low": found.low, "ci_high": found.high}
            )  # fmt: skip
    return make_rows(rows, **shared)


def _line(line: Contender) -> dict[str, Any]:
    return {"method": line.method, "dim": line.dim, "readout": line.readout, "setting": line.setting}


def _interval(values: Array, draws: Array, k: int) -> dict[str, float]:
    found = percentiles(float(values[k]), np.asarray(draws[:, k], np.float64))
    return {"value": found.value, "ci_low": found.low, "ci_high": found.high}


def _rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    """Which lines are compared: two-step training and PCA with the others of their dim, two-step with full size."""
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            same = other.dim == line.dim and other.method not in (TWO_STEP, FULL)
            if line.method == TWO_STEP and (same or other.method == FULL):
                yield a, b
            if line.method == "PCA" and other.method in ("Isomap", "LLE") and same and line.setting == other.setting:
                yield a, b
