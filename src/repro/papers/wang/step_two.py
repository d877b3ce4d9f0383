"""Step 2 of Algorithm 1: poolers trained again on one frozen encoder, kept in the store."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file

from repro import data
from repro.config import StepTwoConfig, digest
from repro.models import Pooler
from repro.runs.cell import OBJECTIVES, threads, training_code
from repro.runs.sweep import Sweep, spearman_of
from repro.runs.texts import training_pairs, training_sentences
from repro.store import Store
from repro.training.two_step import PoolerRun, dropout_views, train_poolers
from repro.training.two_step_nli import distinct_texts, train_nli_pooler


@dataclass(frozen=True)
class StepTwo:
    """New poolers of some dims on one encoder, how each was found, and what that took."""

    new_poolers: Mapping[int, Pooler]
    runs: Mapping[int, Mapping[str, float]]
    """by dim: learning rate and step that dev chose, dev score before and after"""
    seconds: float
    hit: bool


def step_two(
    sweep: Sweep, encoder: int, dims: list[int], dev: data.ScoredPairs, config: StepTwoConfig, store: Store
) -> StepTwo:
    """Train the poolers of `dims` on the frozen encoder that was trained with dim `encoder`, or find them.

    Args:
        sweep: encoders and poolers; its states must cover the texts of `dev`.
        encoder: dim of the encoder.
        dims: whose poolers are trained.
        dev: pairs that stop the training and choose its learning rate.
        config: of step 2.
        store: where the poolers are kept.
    """
    cell = sweep.cells[encoder]
    key = digest(
        {
            "encoder": cell.key,
            "poolers": [sweep.cells[d].key for d in dims],
            "step_two": asdict(config),
            "dev": [dev.texts1, dev.texts2, dev.scores.tolist()],
        },
        code=(
            *training_code(OBJECTIVES[cell.config.objective]),
            "repro.training.two_step",
            "repro.training.two_step_nli",
        ),
    )

    @threads(cell.config.threads)
    def make(target: Path, work: Path) -> None:
        notes = {}
        for d, run in _train(sweep, encoder, dims, dev, config, store).items():
            save_file({k: v.contiguous() for k, v in run.pooler.state_dict().items()}, target / f"{d}.safetensors")
            notes[d] = {
                "learning_rate": run.learning_rate,
                "step": run.step,
                "dev_before": run.dev_before,
                "dev_after": run.dev_after,
            }
        (target / "runs.json").write_text(json.dumps(notes), encoding="utf-8")

    made = store.get_or_make("poolers", key, make, config={"encoder": cell.key, "step_two": asdict(config)})
    notes = json.loads((made.folder / "runs.json").read_text(encoding="utf-8"))
    poolers = {}
    for d in dims:
        poolers[d] = deepcopy(sweep.cells[d].pooler)
        poolers[d].load_state_dict(load_file(made.folder / f"{d}.safetensors"))
    return StepTwo(poolers, {d: notes[str(d)] for d in dims}, made.seconds, made.hit)


def _train(
    sweep: Sweep, encoder: int, dims: list[int], dev: data.ScoredPairs, config: StepTwoConfig, store: Store
) -> dict[int, PoolerRun]:
    cell, table = sweep.cells[encoder], sweep.states[encoder]
    frozen = cell.encoder
    if cell.config.dropout is not None:
        frozen.backbone.set_dropout(cell.config.dropout)

    def dev_score(pooler: Pooler) -> float:
        return spearman_of(table.map(pooler.project), dev)

    options = {"views": config.views, "seed": config.seed, "max_length": cell.config.max_length}
    poolers = [sweep.cells[d].pooler for d in dims]
    if cell.config.objective == "nli":
        pairs = training_pairs(cell.config)
        texts = distinct_texts(pairs)
        views = dropout_views(frozen, texts, **options)
        return {
            d: train_nli_pooler(
                views, texts, pairs, pooler, sweep.cells[d].head, dev_score, config, difference=cell.config.difference
            )
            for d, pooler in zip(dims, poolers, strict=True)
        }
    sentences = training_sentences(cell.config, store)
    views = dropout_views(frozen, sentences, **options)
    return dict(zip(dims, train_poolers(views, poolers, dev_score, config, texts=sentences), strict=True))
