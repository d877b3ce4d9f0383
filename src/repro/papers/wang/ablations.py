"""What Wang et al. (2023) say beside their tables, measured: §4.3, §4.4, Limitations.

Where step 2 starts, whether its encoder must stay frozen, whether the tanh matters, how many candidates pay, and what
each step costs.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.sts import sts_spearman
from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.models import Pooler
from repro.models.encoder import SentenceEncoder
from repro.objectives import StepTwoConfig
from repro.papers.wang.two_step import rows_of, stages_at
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.embeddings import TextTable
from repro.runs.sweep import (
    Sweep,
    TwoStep,
    cosines_of,
    gain_over,
    pair_scores,
    spearman_of,
    states_of,
    step_two,
    train_two_step,
)
from repro.sets import ScoredPairs
from repro.store import Store
from repro.training.two_step import choose, splice
from repro.types import InputError


def start_rows(
    sweep: Sweep, dev: ScoredPairs, test: ScoredPairs, config: StepTwoConfig, store: Store, **shared: Any
) -> pd.DataFrame:
    """Step 2 from the pooler at hand and from fresh weights (§4.3): scores, and current − random as `start_gain`."""
    runs = {start: train_two_step(sweep, dev, replace(config, start=start), store) for start in ("current", "random")}
    rows: list[dict[str, Any]] = []
    for d in sorted(sweep.cells):
        tables = {start: stages_at(sweep, run, d)[STEP_2] for start, run in runs.items()}
        rows += compared("start_gain", "start", tables, test, sweep, method=STEP_2, dim=d)
    return rows_of(sweep, rows, shared, readout="pooler", dataset=test.name)


def joint_rows(
    sweep: Sweep, trained: TwoStep, dims: Sequence[int], test: ScoredPairs, store: Store, **shared: Any
) -> pd.DataFrame:
    """Step 2 with the encoder frozen or trained along (§4.3): scores, and frozen − joint as `frozen_gain`.

    The joint run continues both parts of the spliced model on the schedule of end-to-end training.

    Raises:
        InputError: for a sweep of another objective than SimCSE.
    """
    if sweep.config.objective != "simcse":
        raise InputError(f"objective is {sweep.config.objective!r}: the joint step 2 is written for 'simcse'")
    rows: list[dict[str, Any]] = []
    for d in dims:
        cell = _joint(sweep.cells[trained.opt[d]], sweep.cells[d], store)
        joint = states_of(cell, [*test.texts1, *test.texts2], store).map(cell.pooler.project)
        tables = {"frozen": stages_at(sweep, trained, d)[STEP_2], "joint": joint}
        rows += compared("frozen_gain", "encoder", tables, test, sweep, method=STEP_2, dim=d)
        cost = {"metric": "train_seconds", "value": cell.seconds, "seconds": cell.seconds}
        rows.append({**cost, "method": STEP_2, "dim": d, "setting": "encoder=joint"})
    return rows_of(sweep, rows, shared, readout="pooler", dataset=test.name)


def _joint(opt: TrainedCell, narrow: TrainedCell, store: Store) -> TrainedCell:
    """The spliced model after end-to-end training of both parts, kept in the store."""
    config = narrow.config

    def start() -> SentenceEncoder:
        encoder = splice(*deepcopy((opt.encoder, narrow.pooler)))  # the sweep's own stay as they were trained
        if config.dropout is not None:
            encoder.backbone.set_dropout(config.dropout)
        return encoder

    return train_cell(config, store, start=start, other={"trained along": [opt.key, narrow.key]})


def activation_rows(sweeps: Mapping[str, Sweep], test: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """End-to-end training with a tanh and with an identity pooler (Limitations): scores, and tanh − identity."""
    rows: list[dict[str, Any]] = []
    for d in sorted(set(sweeps["tanh"].cells) & set(sweeps["identity"].cells)):
        tables = {name: sweeps[name].embeddings(d, d) for name in ("tanh", "identity")}
        rows += compared("activation_gain", "activation", tables, test, sweeps["tanh"], method=END_TO_END, dim=d)
    return rows_of(sweeps["tanh"], rows, shared, readout="pooler", dataset=test.name)


def compared(
    metric: str, switch: str, tables: Mapping[str, TextTable], test: ScoredPairs, sweep: Sweep, **common: Any
) -> list[dict[str, Any]]:
    """Scores under both positions of a switch (settings `switch=position`), and the first less the second, paired."""
    rows: list[dict[str, Any]] = [
        {**common, "setting": f"{switch}={name}", "metric": "spearman", "value": spearman_of(table, test)}
        for name, table in tables.items()
    ]
    first, second = (cosines_of(table, test) for table in tables.values())
    gain = gain_over(first, second, test, seed=sweep.config.seed)
    return [*rows, {**common, **gain.columns, "metric": metric}]


def candidate_rows(
    sweep: Sweep, dev: ScoredPairs, test: ScoredPairs, config: StepTwoConfig, store: Store, **shared: Any
) -> pd.DataFrame:
    """Mean test score by the number of candidate dims (§4.4), over all candidate sets of each size.

    For a target d and a set S the trained encoders are those of S ∪ {d}; opt is the best of them on dev. All pairs of
    encoder and pooler are scored once, after step 1 and, with every pooler trained again on every encoder, after
    step 2, so that every set is a look-up. Setting `candidates=k`; metric `trainings` is the mean of |S ∪ {d}|.
    """
    dims = sorted(sweep.cells)
    alone = {i: spearman_of(sweep.embeddings(i), dev) for i in dims}
    final = {STEP_1: pair_scores(sweep, test), STEP_2: {}}
    for i in dims:
        new = step_two(sweep, i, dims, dev, config, store).new_poolers
        final[STEP_2] |= {(i, j): spearman_of(sweep.states[i].map(new[j].project), test) for j in dims}
    rows: list[dict[str, Any]] = []
    for size in range(len(dims) + 1):
        for d in dims:
            trained = [{*chosen, d} for chosen in combinations(dims, size)]
            opts = [choose({i: alone[i] for i in those}) for those in trained]
            common = {"dim": d, "setting": f"candidates={size}"}
            for stage, grid in final.items():
                score = float(np.mean([grid[i, d] for i in opts]))
                rows.append({**common, "method": stage, "metric": "spearman", "value": score})
            count = float(np.mean([len(those) for those in trained]))
            rows.append({**common, "method": END_TO_END, "metric": "trainings", "value": count})
    return rows_of(sweep, rows, shared, readout="pooler", dataset=test.name)


def cost_rows(sweep: Sweep, trained: TwoStep, dev: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """Seconds of Algorithm 1's lines 2–4 (all trainings), 5 (scoring the encoders) and 8 (step 2) (§4.4: |D|·C)."""
    started = perf_counter()
    for cell in sweep.cells.values():
        X = cell.encoder.encode([*dev.texts1, *dev.texts2], readout="encoder")
        sts_spearman(X[: len(dev)], X[len(dev) :], dev.scores)
    seconds = {
        "lines 2–4: one training per dim": sum(cell.seconds for cell in sweep.cells.values()),
        "line 5: score every encoder": perf_counter() - started,
        "line 8: step 2, all dims": trained.seconds,
    }
    rows = [{"method": line, "value": value, "seconds": value} for line, value in seconds.items()]
    setting = f"|D|={len(sweep.cells)}"
    return rows_of(sweep, rows, shared, metric="seconds", setting=setting, dataset=sweep.config.corpus)


def encode_cost_rows(
    sweep: Sweep, texts: Sequence[str], dims: Sequence[int], *, repeats: int = 5, **shared: Any
) -> pd.DataFrame:
    """Seconds per sentence of encoding with poolers of several widths (§2: the width costs almost nothing).

    One encoder, fresh poolers; rounds over the widths take turns, and the median round counts.
    """
    encoder = next(iter(sweep.cells.values())).encoder
    device = encoder.backbone.device
    widened = {d: splice(encoder, Pooler(encoder.hidden_dim, d).initialise(0).to(device)) for d in dims}
    taken: dict[int, list[float]] = {d: [] for d in dims}
    for _ in range(repeats):
        for d in dims:
            started = perf_counter()
            widened[d].encode(texts)
            taken[d].append((perf_counter() - started) / len(texts))
    rows = [
        {"dim": d, "value": float(np.median(times)), "ci_low": min(times), "ci_high": max(times)}
        for d, times in taken.items()
    ]
    about = {"method": END_TO_END, "metric": "encode_seconds", "readout": "pooler", "dataset": sweep.config.corpus}
    return rows_of(sweep, rows, shared, setting=f"{len(texts)} sentences, median of {repeats}", **about)
