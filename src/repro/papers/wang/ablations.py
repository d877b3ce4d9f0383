"""What Wang et al. (2023) say beside their tables, measured: §4.3, §4.4, Limitations.

Where step 2 starts, whether its encoder must stay frozen, whether the tanh matters, how many candidates pay, and what
each step costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from repro import data
from repro.config import StepTwoConfig
from repro.evaluation.sts import sts_spearman
from repro.methods import END_TO_END, STEP_1, STEP_2
from repro.models import Pooler
from repro.models.encoder import SentenceEncoder
from repro.papers.wang.grid import Grid, pair_scores
from repro.papers.wang.step_two import step_two
from repro.papers.wang.two_step import TwoStep, train_two_step
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.embeddings import TextTable
from repro.runs.sweep import Sweep, cosines_of, gain_over, spearman_of, states_of
from repro.store import Store
from repro.training.two_step import choose, splice
from repro.types import InputError


def start_rows(
    sweep: Sweep, dev: data.ScoredPairs, test: data.ScoredPairs, config: StepTwoConfig, store: Store, **shared: Any
) -> pd.DataFrame:
    """Step 2 from the pooler at hand and from fresh weights (§4.3): scores, and current − random as `start_gain`."""
    runs = {start: train_two_step(sweep, dev, replace(config, start=start), store) for start in ("current", "random")}
    rows: list[dict[str, Any]] = []
    for d in sorted(sweep.cells):
        tables = {start: sweep.states[run.opt[d]].map(run.new_poolers[d].project) for start, run in runs.items()}
        rows += _compared("start_gain", STEP_2, d, "start", tables, test, sweep.config.seed)
    return make_rows(rows, readout="pooler", dataset=test.name, **sweep.shared(), **shared)


def joint_rows(
    sweep: Sweep, trained: TwoStep, dims: Sequence[int], test: data.ScoredPairs, store: Store, **shared: Any
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
        tables = {
            "frozen": sweep.states[trained.opt[d]].map(trained.new_poolers[d].project),
            "joint": states_of(cell, [*test.texts1, *test.texts2], store).map(cell.pooler.project),
        }
        rows += _compared("frozen_gain", STEP_2, d, "encoder", tables, test, sweep.config.seed)
        rows.append(
            {
                "method": STEP_2,
                "dim": d,
                "setting": "encoder=joint",
                "metric": "train_seconds",
                "value": cell.seconds,
                "seconds": cell.seconds,
            }
        )
    return make_rows(rows, readout="pooler", dataset=test.name, **sweep.shared(), **shared)


def _joint(opt: TrainedCell, narrow: TrainedCell, store: Store) -> TrainedCell:
    """The spliced model after end-to-end training of both parts, kept in the store."""
    config = narrow.config

    def start() -> SentenceEncoder:
        encoder = splice(opt.encoder, narrow.pooler)
        if config.dropout is not None:
            encoder.backbone.set_dropout(config.dropout)
        return encoder

    return train_cell(config, store, start=start, other={"joint": [opt.key, narrow.key]})


def activation_rows(sweeps: Mapping[str, Sweep], test: data.ScoredPairs, **shared: Any) -> pd.DataFrame:
    """End-to-end training with a tanh and with an identity pooler (Limitations): scores, and tanh − identity."""
    tanh, identity = sweeps["tanh"], sweeps["identity"]
    rows: list[dict[str, Any]] = []
    for d in sorted(set(tanh.cells) & set(identity.cells)):
        tables = {"tanh": tanh.embeddings(d, d), "identity": identity.embeddings(d, d)}
        rows += _compared("activation_gain", END_TO_END, d, "activation", tables, test, tanh.config.seed)
    return make_rows(rows, readout="pooler", dataset=test.name, **tanh.shared(), **shared)


def candidate_rows(
    sweep: Sweep, dev: data.ScoredPairs, test: data.ScoredPairs, config: StepTwoConfig, store: Store, **shared: Any
) -> pd.DataFrame:
    """Mean test score by the number of candidate dims (§4.4), over all candidate sets of each size.

    For a target d and a set S the trained encoders are those of S ∪ {d}; opt is the best of them on dev. All pairs of
    encoder and pooler are scored once, after step 1 and, with every pooler trained again on every encoder, after
    step 2, so that every set is a look-up. Setting `candidates=k`; metric `trainings` is the mean of |S ∪ {d}|.
    """
    dims = sorted(sweep.cells)
    alone = {i: spearman_of(sweep.embeddings(i), dev) for i in dims}
    final: dict[str, Grid] = {STEP_1: pair_scores(sweep, test), STEP_2: {}}
    for i in dims:
        new = step_two(sweep, i, dims, dev, config, store).new_poolers
        final[STEP_2] |= {(i, j): spearman_of(sweep.states[i].map(new[j].project), test) for j in dims}
    rows: list[dict[str, Any]] = []
    for size in range(len(dims) + 1):
        sets = list(combinations(dims, size))
        for d in dims:
            trained = [{*chosen, d} for chosen in sets]
            opts = [choose({i: alone[i] for i in those}) for those in trained]
            common = {"dim": d, "setting": f"candidates={size}"}
            for stage, grid in final.items():
                mean = float(np.mean([grid[i, d] for i in opts]))
                rows.append({**common, "method": stage, "metric": "spearman", "value": mean})
            count = float(np.mean([len(those) for those in trained]))
            rows.append({**common, "method": END_TO_END, "metric": "trainings", "value": count})
    return make_rows(rows, readout="pooler", dataset=test.name, **sweep.shared(), **shared)


def cost_rows(sweep: Sweep, trained: TwoStep, dev: data.ScoredPairs, **shared: Any) -> pd.DataFrame:
    """Seconds of Algorithm 1's lines 2–4 (all trainings), 5 (scoring the encoders) and 8 (step 2) (§4.4: |D|·C)."""
    started = perf_counter()
    for i in sweep.cells:
        encoder = sweep.cells[i].encoder
        X = encoder.encode([*dev.texts1, *dev.texts2], readout="encoder")
        sts_spearman(X[: len(dev)], X[len(dev) :], dev.scores)
    scoring = perf_counter() - started
    seconds = {
        "lines 2–4: one training per dim": sum(cell.seconds for cell in sweep.cells.values()),
        "line 5: score every encoder": scoring,
        "line 8: step 2, all dims": trained.seconds,
    }
    rows = [
        {"method": line, "metric": "seconds", "value": value, "seconds": value, "setting": f"|D|={len(sweep.cells)}"}
        for line, value in seconds.items()
    ]
    return make_rows(rows, dataset=sweep.config.corpus, **sweep.shared(), **shared)


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
        {
            "method": END_TO_END,
            "dim": d,
            "metric": "encode_seconds",
            "value": float(np.median(times)),
            "ci_low": min(times),
            "ci_high": max(times),
            "setting": f"{len(texts)} sentences, median of {repeats}",
        }
        for d, times in taken.items()
    ]
    return make_rows(rows, readout="pooler", dataset=sweep.config.corpus, **sweep.shared(), **shared)


def _compared(
    metric: str, method: str, dim: int, switch: str, tables: Mapping[str, TextTable], test: data.ScoredPairs, seed: int
) -> list[dict[str, Any]]:
    """Scores under both positions of a switch (settings `switch=position`), and the first less the second, paired."""
    first, second = (cosines_of(table, test) for table in tables.values())
    common = {"method": method, "dim": dim}
    return [
        *(
            {**common, "setting": f"{switch}={name}", "metric": "spearman", "value": spearman_of(table, test)}
            for name, table in tables.items()
        ),
        {**common, **gain_over(first, second, test, seed=seed).columns, "metric": metric},
    ]
