"""Two-step training (Wang et al., 2023, Algorithm 1; Tables 1 and 2) from one sweep of end-to-end trained encoders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro import data
from repro.config import StepTwoConfig
from repro.evaluation.protocol import score_sts
from repro.methods import END_TO_END, STEP_1, STEP_2, UNTRAINED
from repro.models import Pooler
from repro.papers.wang.grid import pair_scores
from repro.papers.wang.step_two import step_two
from repro.rows import make_rows
from repro.runs.sweep import Sweep, gain_over, spearman_of
from repro.store import Store
from repro.training.two_step import SELECT_BY, select
from repro.types import InputError, one_of


@dataclass(frozen=True)
class TwoStep:
    """Two-step training of one seed: opt for every dim, the poolers of step 2, and what they cost."""

    opt: Mapping[int, int]
    new_poolers: Mapping[int, Pooler]
    runs: Mapping[int, Mapping[str, float]]
    seconds: float
    hit: bool
    select_by: str
    chosen_on: tuple[str, str]
    """name and split of the pairs that chose opt and stopped step 2"""


def train_two_step(
    sweep: Sweep,
    dev: data.ScoredPairs,
    config: StepTwoConfig,
    store: Store,
    *,
    select_by: str = "encoder",
    oracle: data.ScoredPairs | None = None,
) -> TwoStep:
    """Algorithm 1, lines 5 to 8, for all dims of the sweep: choose opt on dev, splice, train the poolers again.

    Args:
        sweep: end-to-end trained encoders of all candidate dims.
        dev: the validation set E; must not be the pairs that are reported.
        config: of step 2.
        store: where the poolers are kept.
        select_by: one of `SELECT_BY`.
        oracle: for `select_by="oracle"` only, the test pairs that choose opt; step 2 still uses dev.

    Raises:
        InputError: for a select_by that does not exist, or an oracle without its pairs.
    """
    one_of(select_by, SELECT_BY, "select_by")
    if (select_by == "oracle") != (oracle is not None):
        raise InputError(f"select_by is {select_by!r}: give the test pairs as `oracle` for 'oracle', and only for it")
    dims = sorted(sweep.cells)
    judge = oracle or dev
    encoder_scores = {i: spearman_of(sweep.embeddings(i), judge) for i in dims}
    grid = {} if select_by == "encoder" else pair_scores(sweep, judge)
    opt = {d: select(encoder_scores, grid, d, select_by=select_by) for d in dims}
    parts = [
        step_two(sweep, encoder, [d for d in dims if opt[d] == encoder], dev, config, store)
        for encoder in sorted(set(opt.values()))
    ]
    return TwoStep(
        select_by=select_by,
        chosen_on=(dev.name, dev.split),
        opt=opt,
        new_poolers={d: pooler for part in parts for d, pooler in part.new_poolers.items()},
        runs={d: run for part in parts for d, run in part.runs.items()},
        seconds=sum(part.seconds for part in parts),
        hit=all(part.hit for part in parts),
    )


def two_step_rows(
    sweep: Sweep, trained: TwoStep, pairs: data.ScoredPairs, *, experiment: str, paper_table: str, profile: str
) -> pd.DataFrame:
    """The three blocks of Table 1 for one set of pairs, their gains with paired intervals, and the costs.

    Raises:
        InputError: if these are the pairs that opt and step 2 were chosen on.
    """
    if trained.chosen_on == (pairs.name, pairs.split):
        raise InputError(f"{pairs.name} {pairs.split} chose opt and the poolers: report another split")
    rows: list[dict[str, Any]] = []
    seed = sweep.config.seed
    for d in sorted(sweep.cells):
        opt = trained.opt[d]
        tables = {
            END_TO_END: sweep.embeddings(d, d),
            STEP_1: sweep.embeddings(opt, d),
            STEP_2: sweep.states[opt].map(trained.new_poolers[d].project),
        }
        scores = {stage: score_sts(table.__getitem__, pairs, seed=seed) for stage, table in tables.items()}
        scores_h = score_sts(sweep.embeddings(d).__getitem__, pairs, seed=seed)
        rows += [{**score.columns, "dim": d, "method": stage, "readout": "pooler"} for stage, score in scores.items()]
        rows.append({**scores_h.columns, "dim": d, "method": END_TO_END, "readout": "encoder"})
        for before, after in ((END_TO_END, STEP_1), (STEP_1, STEP_2), (END_TO_END, STEP_2)):
            gain = gain_over(scores[after].items, scores[before].items, pairs, seed=seed)
            total = before == END_TO_END and after == STEP_2
            rows.append(
                {
                    **gain.columns,
                    "metric": "spearman_gain_total" if total else "spearman_gain",
                    "dim": d,
                    "method": after,
                    "readout": "pooler",
                }
            )
        rows.append({"metric": "optimal_dim", "value": opt, "dim": d, "method": STEP_1, "readout": "encoder"})
        cost = {END_TO_END: sweep.cells[d].seconds, STEP_2: trained.seconds / len(sweep.cells)}
        rows += [
            {"metric": "train_seconds", "value": s, "seconds": s, "dim": d, "method": stage, "readout": "pooler"}
            for stage, s in cost.items()
        ]
    return make_rows(
        rows,
        experiment=experiment,
        paper_table=paper_table,
        dataset=pairs.name,
        profile=profile,
        setting=f"{pairs.split}, select_by={trained.select_by}",
        **sweep.shared(),
    )


def before_after_rows(
    sweep: Sweep, dev: data.ScoredPairs, *, experiment: str, paper_table: str, profile: str
) -> pd.DataFrame:
    """Dev Spearman of the encoder readout: of the untrained backbone, and of every encoder after training."""
    untrained = next(iter(sweep.cells.values())).dev_before  # the same for all: the pooler is not read
    after = {d: spearman_of(sweep.embeddings(d), dev) for d in sweep.cells}
    rows = [{"metric": "spearman", "value": untrained, "method": UNTRAINED, "readout": "encoder"}]
    rows += [
        {"metric": "spearman", "value": value, "method": END_TO_END, "readout": "encoder", "dim": d}
        for d, value in after.items()
    ]
    return make_rows(
        rows,
        experiment=experiment,
        paper_table=paper_table,
        dataset=dev.name,
        setting="dev",
        profile=profile,
        **sweep.shared(),
    )
