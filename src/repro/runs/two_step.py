"""Two-step training (Wang et al., 2023, Algorithm 1) on one sweep of end-to-end trained encoders, kept in the store."""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file

from repro import data
from repro.digests import digest
from repro.models import Pooler
from repro.models.packing import merge_equal
from repro.objectives import StepTwoConfig
from repro.runs.cell import OBJECTIVES, training_code
from repro.runs.sweep import Sweep, spearman_of
from repro.runs.texts import training_pairs, training_sentences
from repro.seeding import threads
from repro.store import Store
from repro.training.two_step import SELECT_BY, PoolerRun, dropout_views, select, train_nli_pooler, train_poolers
from repro.types import InputError, one_of

Grid = dict[tuple[int, int], float]
"""score of encoder_i with pooler_j, by (i, j)"""


@dataclass(frozen=True)
class StepTwo:
    """New poolers of some dims on one encoder, how each was found, and what that took."""

    new_poolers: Mapping[int, Pooler]
    runs: Mapping[int, Mapping[str, float]]
    """by dim: learning rate and step that dev chose, dev score before and after"""
    seconds: float
    hit: bool


@dataclass(frozen=True)
class TwoStep(StepTwo):
    """Two-step training of one seed: opt for every dim, the poolers of step 2, and what they cost."""

    opt: Mapping[int, int]
    select_by: str
    chosen_on: tuple[str, str]
    """name and split of the pairs that chose opt and stopped step 2"""


def pair_scores(sweep: Sweep, pairs: data.ScoredPairs) -> Grid:
    """Spearman of every encoder_i with every pooler_j: N² small matrix products on states encoded N times."""
    return {(i, j): spearman_of(sweep.embeddings(i, j), pairs) for i in sweep.cells for j in sweep.cells}


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
        {d: pooler for part in parts for d, pooler in part.new_poolers.items()},
        {d: run for part in parts for d, run in part.runs.items()},
        sum(part.seconds for part in parts),
        all(part.hit for part in parts),
        opt,
        select_by,
        (dev.name, dev.split),
    )


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
        code=(*training_code(OBJECTIVES[cell.config.objective]), "repro.training.two_step"),
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
        texts = merge_equal(data.texts_of(pairs))[0]
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
