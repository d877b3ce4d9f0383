"""Train a projection to the wanted size, or train at full size and reduce: the proposal's experiment (PROTOCOLS §7.8).

Both sides share the network, the sentences, the number of steps and the seed. The encoder is the proposal's: mean of
the states, a linear map without bias, unit length, InfoNCE. Reducers are fitted on training sentences. A third way lies
between the two: Wang et al.'s second step, a projection trained on a frozen encoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.config import StepTwoConfig
from repro.evaluation.retrieve import retrieve
from repro.evaluation.stats import Interval, bootstrap_mean, percentiles, spearman_draws
from repro.methods import BEST_REDUCED, FULL_SIZE, REDUCER_NAMES, TRAINED_PROJECTION, TWO_STEP_PROJECTION, fitted_on
from repro.models.encoder import merge_equal
from repro.papers.wang.two_step import train_two_step
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.reduce import reduced
from repro.runs.suite import Contender
from repro.runs.sweep import Sweep, cosines_of, spearman_of, states_of
from repro.sets import Retrieval, ScoredPairs
from repro.store import Store
from repro.types import Array, InputError, one_of

TOP = 10
"""documents that nDCG looks at"""


def contenders(
    sweep: Sweep,
    dev: ScoredPairs,
    fit: Sequence[str],
    store: Store,
    *,
    methods: Sequence[str] = ("pca", "grp", "truncate"),
    step_two: StepTwoConfig | None = None,
) -> Iterator[Contender]:
    """Full size, then at every dim the trained projection, the reductions, the best of them on dev, and step 2.

    Args:
        sweep: of `train_projections`.
        dev: pairs that choose among the reductions, and the encoder and checkpoint of step 2.
        fit: sentences that reducers are fitted on; equal ones count once.
        store: where slow reductions and the projections of step 2 are kept.
        methods: reducers by name.
        step_two: schedule of step 2; None leaves it out.

    Raises:
        InputError: for no method, or an unknown one.
    """
    if not methods:
        raise InputError("methods is empty: expected at least one reducer")
    for name in methods:
        one_of(name, list(REDUCER_NAMES), "method")
    full, *dims = sweep.cells  # the full size first
    table, cell = sweep.embeddings(full, full), sweep.cells[full]
    yield Contender(FULL_SIZE, full, "pooler", "", table)
    distinct = merge_equal(fit)[0]
    learned = states_of(cell, distinct, store).map(cell.pooler.project)[distinct]
    setting = fitted_on(len(distinct))
    by_dim: dict[int, list[Contender]] = {d: [] for d in dims}
    for name in methods:
        for d, Y in reduced(name, learned, table.X, dims, store, seed=sweep.config.seed):
            line = Contender(REDUCER_NAMES[name], d, "pooler", setting, TextTable(table.index, Y))
            by_dim[d].append(line)
    two = None if step_two is None else train_two_step(sweep, dev, step_two, store)
    for d in dims:
        yield Contender(TRAINED_PROJECTION, d, "pooler", "", sweep.embeddings(d, d))
        yield from by_dim[d]
        if by_dim[d]:
            best = max(by_dim[d], key=lambda line: spearman_of(line.table, dev))
            yield replace(best, method=BEST_REDUCED, setting=f"{best.method}, chosen on {dev.name} {dev.split}")
        if two is not None:
            z = sweep.states[two.opt[d]].map(two.new_poolers[d].project)
            yield Contender(TWO_STEP_PROJECTION, d, "pooler", f"on the encoder trained at {two.opt[d]}", z)


@dataclass(frozen=True)
class _Judged:
    """All lines on one task: their scores, and each less another with its interval over shared items."""

    metric: str
    values: NDArray[np.float64]
    draws: NDArray[np.float64] | None = None
    """resamples (R, lines) of a score that is not a mean over items"""
    items: Array | None = None
    """outcomes (lines, items) of one that is"""
    seed: int = 0

    def score(self, k: int) -> Interval:
        """Of line k."""
        if self.draws is not None:
            return percentiles(self.values[k], self.draws[:, k])
        assert self.items is not None
        return bootstrap_mean(self.items[k], seed=self.seed)

    def lead(self, a: int, b: int) -> Interval:
        """Of line a over line b."""
        if self.draws is not None:
            return percentiles(self.values[a] - self.values[b], self.draws[:, a] - self.draws[:, b])
        assert self.items is not None
        return bootstrap_mean(self.items[a] - self.items[b], seed=self.seed)


def _judge(lines: Sequence[Contender], task: ScoredPairs | Retrieval, seed: int) -> _Judged:
    if isinstance(task, ScoredPairs):
        cosines = [cosines_of(line.table, task) for line in lines]
        values, draws = spearman_draws(cosines, task.scores, subsets=task.subsets, seed=seed)
        return _Judged("spearman", values, draws=draws)
    ids = {"query_ids": task.query_ids, "corpus_ids": task.document_ids}
    items = [
        retrieve(line.table[task.queries], line.table[task.documents], task.qrels, **ids).ndcg(TOP) for line in lines
    ]
    table = np.stack(items)
    return _Judged(f"ndcg@{TOP}", table.mean(axis=1), items=table, seed=seed)


def train_or_reduce_rows(
    lines: Sequence[Contender], tasks: Mapping[str, ScoredPairs | Retrieval], sweep: Sweep, **shared: Any
) -> pd.DataFrame:
    """Score of every line, and leads on shared items: `spearman` and `ndcg@10`, with `_lead` for differences.

    Leads: the trained projection over every other line of its dim, and everything over full size.

    Args:
        lines: of `contenders`.
        tasks: judged sets, by name.
        sweep: whose columns rows take.
        shared: further columns common to all rows.
    """
    rows: list[dict[str, Any]] = []
    seed = sweep.config.seed
    for name, task in tasks.items():
        judged = _judge(lines, task, seed)
        for k, line in enumerate(lines):
            rows.append({**_columns(line), "dataset": name, "metric": judged.metric, **judged.score(k).columns})
        for a, b in _rivals(lines):
            method = f"{lines[a].method} − {lines[b].method}"
            setting = lines[b].setting or lines[a].setting
            at = {**_columns(lines[a]), "method": method, "setting": setting, "dataset": name}
            rows.append({**at, "metric": f"{judged.metric}_lead", **judged.lead(a, b).columns})
    for dim, cell in sweep.cells.items():
        rows.append(
            {
                "method": FULL_SIZE if dim == lines[0].dim else TRAINED_PROJECTION,
                "dim": dim,
                "metric": "train_seconds",
                "value": cell.seconds,
                "seconds": cell.seconds,
                "dataset": sweep.config.corpus,
            }
        )
    return make_rows(rows, **{**sweep.shared(), **shared})


def _columns(line: Contender) -> dict[str, Any]:
    return {"method": line.method, "dim": line.dim, "readout": line.readout, "setting": line.setting}


def _rivals(lines: Sequence[Contender]) -> Iterator[tuple[int, int]]:
    for a, line in enumerate(lines):
        for b, other in enumerate(lines):
            over_full = other.method == FULL_SIZE and line.method != FULL_SIZE
            own = line.method == TRAINED_PROJECTION and line.dim == other.dim and a != b
            if over_full or own:
                yield a, b
