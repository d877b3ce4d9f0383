"""Wang et al. (2023): one encoder per pooler width, scored alone, spliced, and with poolers trained again.

Everything rests on a `Sweep`: the encoders of all dims, trained once, and the states h of all texts under
each, encoded once. Pairs of encoder and pooler, tasks and stages are then products of small matrices.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file

from repro import data
from repro.config import StepTwoConfig, TrainConfig, digest
from repro.data.sets import DataSet
from repro.evaluation import sts_spearman
from repro.evaluation.protocol import Score, all_texts, score_classification, score_sts
from repro.evaluation.stats import paired_spearman_difference
from repro.experiments.cell import PRODUCERS, TrainedCell
from repro.experiments.embeddings import TextTable, encode_once
from repro.experiments.grid import train_all
from repro.experiments.texts import training_sentences
from repro.models import Pooler
from repro.rows import make_rows
from repro.seeding import cpu_count
from repro.store import Store
from repro.training.two_step import choose, dropout_views, select, train_poolers
from repro.types import InputError

END_TO_END = "Encoder_d + pooler_d (end-to-end training)"
STEP_1 = "Encoder_opt + pooler_d (After step 1)"
STEP_2 = "Encoder_opt + new-pooler_d (After step 2)"
STAGES = (END_TO_END, STEP_1, STEP_2)
"""the three blocks of Tables 1 and 2, by their printed names"""
UNTRAINED = "untrained backbone"
FIGURE_2_TASKS = ("trec", "stsb", "cr", "mrpc")


@dataclass(frozen=True)
class Sweep:
    """Encoders of several dims under one seed, with the states of all texts under each."""

    cells: Mapping[int, TrainedCell]
    states: Mapping[int, TextTable]
    hits: int
    """cells found in the store, not trained, by this call"""

    @property
    def config(self) -> TrainConfig:
        """Settings the cells share; `dim` is the first cell's."""
        return next(iter(self.cells.values())).config

    def embeddings(self, encoder: int, pooler: int | None = None) -> TextTable:
        """Z of encoder_i with pooler_j, by the dims they were trained with; h where no pooler is given."""
        h = self.states[encoder]
        return h if pooler is None else h.map(self.cells[pooler].pooler.project)

    def shared(self) -> dict[str, Any]:
        """Row columns that all numbers of the sweep share."""
        c = self.config
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return {
            "backbone": c.backbone, "seed": c.seed, "data_source": c.source, "n_train": c.sentences, "device": device,
        }  # fmt: skip


def train_sweep(
    config: TrainConfig, dims: Sequence[int], sets: Sequence[DataSet], store: Store, *, progress: bool = True
) -> Sweep:
    """Train one encoder per dim (or find it) and encode all texts of `sets` under each, once.

    Raises:
        InputError: for no dim at all, or repeated ones.
    """
    if not dims or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected one or more different sizes")
    torch.set_num_threads(cpu_count())
    cells = train_all([replace(config, dim=dim) for dim in dims], store, progress=progress)
    texts = all_texts(sets)
    states = {
        cell.config.dim: encode_once(partial(getattr, cell, "encoder"), cell.key, texts, store)[0] for cell in cells
    }
    return Sweep({c.config.dim: c for c in cells}, states, sum(c.hit for c in cells))


def load_tasks(names: Sequence[str], source: str, *, text: str = "senteval") -> dict[str, dict[str, DataSet]]:
    """The splits each task needs: dev and test of scored pairs, all splits of the others."""
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source, text=text)
        first = next(iter(splits.values()))
        wanted = ("dev", "test") if isinstance(first, data.ScoredPairs) else tuple(splits)
        tasks[name] = {split: splits[split] for split in wanted if split in splits}
    return tasks


def sets_of(tasks: Mapping[str, Mapping[str, DataSet]]) -> list[DataSet]:
    """All sets of some tasks."""
    return [part for splits in tasks.values() for part in splits.values()]


def score_task(table: TextTable, splits: Mapping[str, DataSet], *, seed: int = 0) -> Score:
    """The task's own score: test Spearman of scored pairs, else accuracy of a linear probe."""
    last = splits.get("test", next(iter(splits.values())))
    if isinstance(last, data.ScoredPairs):
        return score_sts(table.__getitem__, last, seed=seed)
    form = data.get_spec(last.name).form if last.name in data.DATASETS else None
    return score_classification(table.__getitem__, splits, form=form, seed=seed)


def dims_rows(
    sweep: Sweep, tasks: Mapping[str, Mapping[str, DataSet]], *, experiment: str, profile: str
) -> pd.DataFrame:
    """Score of every task for every trained dim, in both readouts (Figure 2)."""
    rows = []
    for dim, cell in sweep.cells.items():
        for readout, table in (("pooler", sweep.embeddings(dim, dim)), ("encoder", sweep.embeddings(dim))):
            for name, splits in tasks.items():
                started = perf_counter()
                score = score_task(table, splits, seed=sweep.config.seed)
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


def train_two_step(
    sweep: Sweep, dev: data.ScoredPairs, config: StepTwoConfig, store: Store, *, select_by: str = "encoder"
) -> TwoStep:
    """Algorithm 1, lines 5 to 8, for all dims of the sweep: choose opt on dev, splice, train the poolers again."""
    dims = sorted(sweep.cells)
    encoder_scores = {i: _dev(sweep.embeddings(i), dev) for i in dims}
    grid = {(i, j): _dev(sweep.embeddings(i, j), dev) for i in dims for j in dims} if select_by != "encoder" else {}
    opt = {d: select(encoder_scores, grid, d, select_by=select_by) for d in dims}
    parts = [_step_two(sweep, encoder, [d for d in dims if opt[d] == encoder], dev, config, store)
             for encoder in sorted(set(opt.values()))]  # fmt: skip
    return TwoStep(
        opt=opt,
        new_poolers={d: pooler for part in parts for d, pooler in part.new_poolers.items()},
        runs={d: run for part in parts for d, run in part.runs.items()},
        seconds=sum(part.seconds for part in parts),
        hit=all(part.hit for part in parts),
    )


def _step_two(
    sweep: Sweep, encoder: int, dims: list[int], dev: data.ScoredPairs, config: StepTwoConfig, store: Store
) -> TwoStep:
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

    def make(target: Path, work: Path) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(cell.config.threads)
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
            lambda pooler: _dev(table.map(pooler.project), dev),
            config,
            texts=sentences,
        )
        torch.set_num_threads(threads)
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
        old = sweep.cells[d].pooler
        poolers[d] = Pooler(old.hidden_dim, d, activation=old.activation)
        poolers[d].load_state_dict(load_file(made.folder / f"{d}.safetensors"))
    return TwoStep({d: encoder for d in dims}, poolers, {d: notes[str(d)] for d in dims}, made.seconds, made.hit)


def two_step_rows(
    sweep: Sweep, trained: TwoStep, pairs: data.ScoredPairs, *, experiment: str, paper_table: str, profile: str,
    select_by: str = "encoder",
) -> pd.DataFrame:  # fmt: skip
    """The three blocks of Table 1 for one set of pairs, their gains with paired intervals, and the costs."""
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
        setting=f"{pairs.split}, select_by={select_by}", **sweep.shared(),
    )  # fmt: skip


def before_after_rows(sweep: Sweep, *, experiment: str, paper_table: str, profile: str) -> pd.DataFrame:
    """Dev Spearman of the encoder readout before SimCSE, and of the best encoder after it."""
    scores = {d: max(score for _, score in cell.history.checks) for d, cell in sweep.cells.items()}
    cell = sweep.cells[choose(scores)]
    dev = data.load(sweep.config.validation, split="dev", source=sweep.config.source)
    assert isinstance(dev, data.ScoredPairs)
    after = {d: _dev(sweep.embeddings(d), dev) for d in sweep.cells}
    rows = [{"metric": "spearman", "value": cell.dev_before, "method": UNTRAINED, "readout": "encoder"}]
    rows += [
        {"metric": "spearman", "value": value, "method": END_TO_END, "readout": "encoder", "dim": d}
        for d, value in after.items()
    ]
    return make_rows(
        rows, experiment=experiment, paper_table=paper_table, dataset=dev.name, setting="dev", profile=profile,
        **sweep.shared(),
    )  # fmt: skip


def optimal_dim(scores: Mapping[int, float], *, margin: float = 0.01) -> int:
    """The smallest dim whose score is within `margin` of the best (PROTOCOLS §3.6).

    Raises:
        InputError: for no score at all.
    """
    if not scores:
        raise InputError("no scores to choose an optimal dim from")
    best = max(scores.values())
    return min(d for d, score in scores.items() if score >= best - margin)


def _dev(table: TextTable, pairs: data.ScoredPairs) -> float:
    return float(sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores))


def _of(score: Score) -> dict[str, Any]:
    return {"metric": score.metric, "value": score.value, "ci_low": score.ci_low, "ci_high": score.ci_high}
