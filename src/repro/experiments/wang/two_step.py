"""Wang et al. (2023): scores by dim (Figure 2), and two-step training (Algorithm 1, Table 1), from one sweep."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
from safetensors.torch import load_file, save_file

from repro import data
from repro.config import StepTwoConfig, digest
from repro.data.sets import DataSet
from repro.evaluation import sts_spearman
from repro.evaluation.protocol import Score, score_sts
from repro.evaluation.stats import paired_spearman_difference
from repro.experiments.cell import PRODUCERS, threads
from repro.experiments.embeddings import TextTable
from repro.experiments.sweep import Sweep, load_tasks, score_task, sets_of, train_sweep
from repro.experiments.texts import training_sentences
from repro.methods import END_TO_END, STAGES, STEP_1, STEP_2, UNTRAINED
from repro.models import Pooler
from repro.rows import make_rows
from repro.store import Store
from repro.training.two_step import SELECT_BY, dropout_views, select, train_poolers
from repro.types import InputError, one_of

__all__ = [
    "END_TO_END", "STAGES", "STEP_1", "STEP_2", "UNTRAINED", "Sweep", "TwoStep", "before_after_rows", "dims_rows",
    "load_tasks", "score_task", "sets_of", "train_sweep", "train_two_step", "two_step_rows",
]  # fmt: skip


def dims_rows(
    sweep: Sweep, tasks: Mapping[str, Mapping[str, DataSet]], *, experiment: str, profile: str
) -> pd.DataFrame:
    """Score of every task for every trained dim, in both readouts (Figure 2)."""
    rows = []
    for dim, cell in sweep.cells.items():
        for readout, table in (("pooler", sweep.embeddings(dim, dim)), ("encoder", sweep.embeddings(dim))):
            for name, splits in tasks.items():
                started = perf_counter()
                score = score_task(table, name, splits, seed=sweep.config.seed)
                rows.append(
                    {**_of(score), "dim": dim, "readout": readout, "dataset": name, "method": END_TO_END,
                     "seconds": perf_counter() - started}
                )  # fmt: skip
                if score.floor is not None and readout == "pooler":
                    rows.append(
                        {"metric": "majority_floor", "value": score.floor, "dim": dim, "dataset": name,
                         "method": END_TO_END, "readout": readout}
                    )  # fmt: skip
        rows.append(
            {"metric": "train_seconds", "value": cell.seconds, "seconds": cell.seconds, "dim": dim,
             "method": END_TO_END, "dataset": sweep.config.corpus, "readout": "pooler"}
        )  # fmt: skip
    return make_rows(rows, experiment=experiment, paper_table="fig2", setting="test", profile=profile, **sweep.shared())


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
    encoder_scores = {i: _spearman(sweep.embeddings(i), judge) for i in dims}
    pairs = [(i, j) for i in dims for j in dims] if select_by != "encoder" else []
    grid = {(i, j): _spearman(sweep.embeddings(i, j), judge) for i, j in pairs}
    opt = {d: select(encoder_scores, grid, d, select_by=select_by) for d in dims}
    parts = [_step_two(sweep, encoder, [d for d in dims if opt[d] == encoder], dev, config, store)
             for encoder in sorted(set(opt.values()))]  # fmt: skip
    return TwoStep(
        select_by=select_by,
        chosen_on=(dev.name, dev.split),
        opt=opt,
        new_poolers={d: pooler for part in parts for d, pooler in part.new_poolers.items()},
        runs={d: run for part in parts for d, run in part.runs.items()},
        seconds=sum(part.seconds for part in parts),
        hit=all(part.hit for part in parts),
    )


@dataclass(frozen=True)
class _Part:
    """Step 2 of the dims that share one encoder."""

    new_poolers: Mapping[int, Pooler]
    runs: Mapping[int, Mapping[str, float]]
    seconds: float
    hit: bool


def _step_two(
    sweep: Sweep, encoder: int, dims: list[int], dev: data.ScoredPairs, config: StepTwoConfig, store: Store
) -> _Part:
    """Step 2 of the dims that share one encoder, kept in the store."""
    cell = sweep.cells[encoder]
    key = digest(
        {
            "encoder": cell.key,
            "poolers": [sweep.cells[d].key for d in dims],
            "step_two": asdict(config),
            "dev": [dev.texts1, dev.texts2, dev.scores.tolist()],
        },
        code=(*PRODUCERS, "repro.training.two_step"),
    )

    @threads(cell.config.threads)
    def make(target: Path, work: Path) -> None:
        sentences = training_sentences(cell.config, store)
        frozen = cell.encoder
        if cell.config.dropout is not None:
            frozen.backbone.set_dropout(cell.config.dropout)
        views = dropout_views(
            frozen, sentences, views=config.views, seed=config.seed, max_length=cell.config.max_length
        )
        table = sweep.states[encoder]
        runs = train_poolers(
            views,
            [sweep.cells[d].pooler for d in dims],
            lambda pooler: _spearman(table.map(pooler.project), dev),
            config,
            texts=sentences,
        )
        notes = {}
        for d, run in zip(dims, runs, strict=True):
            save_file({k: v.contiguous() for k, v in run.pooler.state_dict().items()}, target / f"{d}.safetensors")
            notes[d] = {
                "learning_rate": run.learning_rate, "step": run.step,
                "dev_before": run.dev_before, "dev_after": run.dev_after,
            }  # fmt: skip
        (target / "runs.json").write_text(json.dumps(notes), encoding="utf-8")

    made = store.get_or_make("poolers", key, make, config={"encoder": cell.key, "step_two": asdict(config)})
    notes = json.loads((made.folder / "runs.json").read_text(encoding="utf-8"))
    poolers = {}
    for d in dims:
        poolers[d] = deepcopy(sweep.cells[d].pooler)
        poolers[d].load_state_dict(load_file(made.folder / f"{d}.safetensors"))
    return _Part(poolers, {d: notes[str(d)] for d in dims}, made.seconds, made.hit)


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
        rows += [{**_of(score), "dim": d, "method": stage, "readout": "pooler"} for stage, score in scores.items()]
        rows.append({**_of(scores_h), "dim": d, "method": END_TO_END, "readout": "encoder"})
        for before, after in ((END_TO_END, STEP_1), (STEP_1, STEP_2), (END_TO_END, STEP_2)):
            gain = paired_spearman_difference(
                scores[after].items, scores[before].items, pairs.scores, subsets=pairs.subsets, seed=seed
            )
            total = before == END_TO_END and after == STEP_2
            rows.append(
                {"metric": "spearman_gain_total" if total else "spearman_gain", "value": gain.value,
                 "ci_low": gain.low, "ci_high": gain.high, "dim": d, "method": after, "readout": "pooler"}
            )  # fmt: skip
        rows.append({"metric": "optimal_dim", "value": opt, "dim": d, "method": STEP_1, "readout": "encoder"})
        cost = {END_TO_END: sweep.cells[d].seconds, STEP_2: trained.seconds / len(sweep.cells)}
        rows += [
            {"metric": "train_seconds", "value": s, "seconds": s, "dim": d, "method": stage, "readout": "pooler"}
            for stage, s in cost.items()
        ]
    return make_rows(
        rows, experiment=experiment, paper_table=paper_table, dataset=pairs.name, profile=profile,
        setting=f"{pairs.split}, select_by={trained.select_by}", **sweep.shared(),
    )  # fmt: skip


def before_after_rows(
    sweep: Sweep, dev: data.ScoredPairs, *, experiment: str, paper_table: str, profile: str
) -> pd.DataFrame:
    """Dev Spearman of the encoder readout: of the untrained backbone, and of every encoder after SimCSE."""
    untrained = next(iter(sweep.cells.values())).dev_before  # the same for all: the pooler is not read
    after = {d: _spearman(sweep.embeddings(d), dev) for d in sweep.cells}
    rows = [{"metric": "spearman", "value": untrained, "method": UNTRAINED, "readout": "encoder"}]
    rows += [
        {"metric": "spearman", "value": value, "method": END_TO_END, "readout": "encoder", "dim": d}
        for d, value in after.items()
    ]
    return make_rows(
        rows, experiment=experiment, paper_table=paper_table, dataset=dev.name, setting="dev", profile=profile,
        **sweep.shared(),
    )  # fmt: skip


def _spearman(table: TextTable, pairs: data.ScoredPairs) -> float:
    return float(sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores))


def _of(score: Score) -> dict[str, Any]:
    return {"metric": score.metric, "value": score.value, "ci_low": score.ci_low, "ci_high": score.ci_high}
