"""Rows of one sweep of encoders: score by dim (Figure 2), and the stages of two-step training (Tables 1 and 2)."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import pandas as pd

from repro.evaluation.protocol import score_sts
from repro.methods import END_TO_END, STEP_1, STEP_2, UNTRAINED
from repro.rows import make_rows
from repro.runs.embeddings import TextTable
from repro.runs.score import score_task
from repro.runs.sweep import Sweep, TwoStep, gain_over, spearman_of
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.types import InputError


def rows_of(sweep: Sweep, rows: Sequence[Mapping[str, Any]], shared: Mapping[str, Any], **about: Any) -> pd.DataFrame:
    """Rows with the columns that all numbers of a sweep share.

    Args:
        sweep: whose network, seed and training sentences the rows are of.
        rows: what tells them apart.
        shared: columns of the page.
        about: columns of these rows alone, unless `shared` has them.
    """
    return make_rows(rows, **{**about, **sweep.shared(), **shared})


def trained_line(sweep: Sweep) -> str:
    """What was trained, on what, and what of it lay in the store, in two lines for the reader."""
    c, n = sweep.config, len(sweep.cells)
    return (
        f"{c.backbone}, {c.pooling} pooling, {c.sentences:,} examples of {c.corpus} ({c.source}), "
        f"batch {c.batch_size}, "
        f"learning rate {c.learning_rate:g}, dropout {'as shipped' if c.dropout is None else c.dropout}\n"
        f"{n} encoders: {sweep.hits} found in the store, {n - sweep.hits} trained now; training took "
        f"{sum(cell.seconds for cell in sweep.cells.values()):.0f} s"
    )


def dims_rows(sweep: Sweep, tasks: Mapping[str, Mapping[str, DataSet]], store: Store, **shared: Any) -> pd.DataFrame:
    """Score of every task for every trained dim, in both readouts (Figure 2)."""
    rows: list[dict[str, Any]] = []
    for dim, cell in sweep.cells.items():
        for readout, table in (("pooler", sweep.embeddings(dim, dim)), ("encoder", sweep.embeddings(dim))):
            for name, splits in tasks.items():
                started, common = perf_counter(), {"dim": dim, "readout": readout, "dataset": name}
                score = score_task(table, name, splits, store, seed=sweep.config.seed)
                rows.append({**common, **score.columns, "seconds": perf_counter() - started})
                if score.floor is not None and readout == "pooler":
                    rows.append({**common, "metric": "majority_floor", "value": score.floor})
        cost = {"metric": "train_seconds", "value": cell.seconds, "seconds": cell.seconds}
        rows.append({**cost, "dim": dim, "dataset": sweep.config.corpus, "readout": "pooler"})
    return rows_of(sweep, rows, shared, paper_table="fig2", setting="test", method=END_TO_END)


def stages_at(sweep: Sweep, trained: TwoStep, dim: int) -> dict[str, TextTable]:
    """Embeddings of all texts at one dim by stage: encoder_d + pooler_d, encoder_opt + pooler_d, the pooler anew."""
    opt = trained.opt[dim]
    return {
        END_TO_END: sweep.embeddings(dim, dim),
        STEP_1: sweep.embeddings(opt, dim),
        STEP_2: sweep.states[opt].map(trained.new_poolers[dim].project),
    }


def two_step_rows(sweep: Sweep, trained: TwoStep, pairs: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """The three blocks of Table 1 for one set of pairs, their gains with paired intervals, and the costs.

    Raises:
        InputError: if these are the pairs that opt and step 2 were chosen on.
    """
    if trained.chosen_on == (pairs.name, pairs.split):
        raise InputError(f"{pairs.name} {pairs.split} chose opt and the poolers: report another split")
    rows: list[dict[str, Any]] = []
    seed = sweep.config.seed
    for d in sorted(sweep.cells):
        own: list[dict[str, Any]] = []
        scores = {
            stage: score_sts(z.__getitem__, pairs, seed=seed) for stage, z in stages_at(sweep, trained, d).items()
        }
        own += [{**score.columns, "method": stage} for stage, score in scores.items()]
        alone = score_sts(sweep.embeddings(d).__getitem__, pairs, seed=seed)
        own.append({**alone.columns, "method": END_TO_END, "readout": "encoder"})
        for before, after in ((END_TO_END, STEP_1), (STEP_1, STEP_2), (END_TO_END, STEP_2)):
            gain = gain_over(scores[after].items, scores[before].items, pairs, seed=seed)
            metric = "spearman_gain_total" if (before, after) == (END_TO_END, STEP_2) else "spearman_gain"
            own.append({**gain.columns, "metric": metric, "method": after})
        own.append({"metric": "optimal_dim", "value": trained.opt[d], "method": STEP_1, "readout": "encoder"})
        cost = {END_TO_END: sweep.cells[d].seconds, STEP_2: trained.seconds / len(sweep.cells)}
        own += [{"metric": "train_seconds", "value": s, "seconds": s, "method": stage} for stage, s in cost.items()]
        rows += [{"readout": "pooler", "dim": d, **row} for row in own]
    setting = f"{pairs.split}, select_by={trained.select_by}"
    return rows_of(sweep, rows, shared, dataset=pairs.name, setting=setting)


def before_after_rows(sweep: Sweep, dev: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """Dev Spearman of the encoder readout: of the untrained backbone, and of every encoder after training."""
    untrained = next(iter(sweep.cells.values())).dev_before  # the same for all: the pooler is not read
    rows: list[dict[str, Any]] = [{"value": untrained, "method": UNTRAINED}]
    rows += [{"value": spearman_of(sweep.embeddings(d), dev), "method": END_TO_END, "dim": d} for d in sweep.cells]
    return rows_of(sweep, rows, shared, metric="spearman", readout="encoder", dataset=dev.name, setting="dev")
