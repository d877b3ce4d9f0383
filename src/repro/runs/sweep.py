"""A sweep: one encoder per pooler width, trained once, with the states of all texts under each,
encoded once.

Pairs of encoder and pooler, tasks and stages are then products of small matrices. Two-step training
(Wang et al., 2023, Algorithm 1) works on a sweep; its poolers are kept in the store too.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from repro.data.samples import training_pairs, training_sentences
from repro.digests import digest
from repro.models import Pooler
from repro.models.packing import merge_equal
from repro.reading import read_json
from repro.runs.cell import TrainedCell, train_all, training_code
from repro.runs.encoders import encode_once
from repro.runs.lines import TextTable
from repro.runs.scorers import spearman_of
from repro.seeding import cpu_count, threads
from repro.sets import DataSet, ScoredPairs, all_texts, texts_of
from repro.settings import StepTwoConfig, TrainConfig
from repro.store import Store
from repro.training.two_step import (
    PoolerRun,
    dropout_views,
    select,
    train_nli_pooler,
    train_poolers,
)
from repro.types import InputError


@dataclass(frozen=True)
class Sweep:
    """Encoders of several dims under one seed, with the states of all texts under each."""

    cells: Mapping[int, TrainedCell]
    states: Mapping[int, TextTable]
    hits: int  # Cells found in the store, not trained, by this call

    @property
    def config(self) -> TrainConfig:
        """Settings the cells share; `dim` is the first cell's."""
        return next(iter(self.cells.values())).config

    def embeddings(self, encoder: int, pooler: int | None = None) -> TextTable:
        """Z of encoder_i with pooler_j, by the dims they were trained with; h where no pooler is
        given.
        """
        h = self.states[encoder]
        return h if pooler is None else h.map(self.cells[pooler].pooler.project)


def train_sweep(
    config: TrainConfig,
    dims: Sequence[int],
    sets: Sequence[DataSet],
    store: Store,
) -> Sweep:
    """One encoder per dim, end to end, and the states of the texts of `sets` under each."""
    if not dims or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected one or more different sizes")
    torch.set_num_threads(cpu_count())
    cells = train_all([replace(config, dim=dim) for dim in dims], store)
    texts = all_texts(sets)
    states = {cell.config.dim: states_of(cell, texts, store) for cell in cells}
    return Sweep({c.config.dim: c for c in cells}, states, sum(c.hit for c in cells))


def states_of(cell: TrainedCell, texts: Iterable[str], store: Store) -> TextTable:
    """States h of texts under a cell's encoder, which is loaded only if the store does not hold
    them.
    """
    return encode_once(partial(getattr, cell, "encoder"), cell.key, texts, store)


@dataclass(frozen=True)
class TwoStep:
    """Two-step training of one seed: the new poolers of some dims, what they cost, and opt for
    each.
    """

    new_poolers: Mapping[int, Pooler]
    # By dim: learning rate and step that dev chose, dev score before and after
    runs: Mapping[int, Mapping[str, float]]
    seconds: float
    hit: bool
    opt: Mapping[int, int]
    chosen_on: tuple[str, str]  # Name and split of the pairs that chose opt and stopped step 2
    select_by: str = ""  # Empty where the encoder was given


def pair_scores(sweep: Sweep, pairs: ScoredPairs) -> dict[tuple[int, int], float]:
    """Spearman of every encoder_i with every pooler_j: N² small matrix products on states encoded N
    times.
    """
    projections = {j: cell.pooler.project for j, cell in sweep.cells.items()}
    scores = {}
    for i in sweep.cells:
        for j, project in projections.items():
            scores[i, j] = spearman_of(sweep.states[i], pairs, project)
    return scores


def train_two_step(
    sweep: Sweep,
    dev: ScoredPairs,
    config: StepTwoConfig,
    store: Store,
    *,
    select_by: str = "encoder",
    oracle: ScoredPairs | None = None,
) -> TwoStep:
    """Algorithm 1, lines 5 to 8, for all dims of the sweep: choose opt on dev, splice, train the
    poolers again.

    `dev`, the validation set E, must not be the pairs that are reported; only with
    `select_by="oracle"` do other pairs, those of test, choose opt.
    """
    if (select_by == "oracle") != (oracle is not None):
        raise InputError(
            f"select_by is {select_by!r}: give the test pairs as `oracle` for 'oracle', and only "
            "for it"
        )
    dims = sorted(sweep.cells)
    judge = oracle or dev
    encoder_scores = {i: spearman_of(sweep.embeddings(i), judge) for i in dims}
    grid = {} if select_by == "encoder" else pair_scores(sweep, judge)
    opt = {d: select(encoder_scores, grid, d, select_by=select_by) for d in dims}
    new_poolers: dict[int, Pooler] = {}
    runs: dict[int, Mapping[str, float]] = {}
    seconds, hit = 0.0, True
    for encoder in sorted(set(opt.values())):
        of_encoder = [d for d in dims if opt[d] == encoder]
        trained = step_two(sweep, encoder, of_encoder, dev, config, store)
        new_poolers |= trained.new_poolers
        runs |= trained.runs
        seconds += trained.seconds
        hit = hit and trained.hit
    return TwoStep(new_poolers, runs, seconds, hit, opt, (dev.name, dev.split), select_by)


def step_two(
    sweep: Sweep,
    encoder: int,
    dims: list[int],
    dev: ScoredPairs,
    config: StepTwoConfig,
    store: Store,
) -> TwoStep:
    """Train the poolers of `dims` on the frozen encoder that was trained with dim `encoder`, or
    find them.

    The pairs of `dev`, whose states the sweep must hold, stop the training and choose its learning
    rate.
    """
    cell = sweep.cells[encoder]
    named = {
        "encoder": cell.key,
        "poolers": [sweep.cells[d].key for d in dims],
        "step_two": asdict(config),
        "dev": [dev.texts1, dev.texts2, dev.scores.tolist()],
    }
    key = digest(
        named,
        code=(*training_code(cell.config), "repro.training.two_step"),
    )
    noted = ("learning_rate", "step", "dev_before", "dev_after")

    @threads(cell.config.threads)
    def make(target: Path, work: Path) -> None:
        notes = {}
        for d, run in _train_poolers(sweep, encoder, dims, dev, config, store).items():
            save_file(
                {k: v.contiguous() for k, v in run.pooler.state_dict().items()},
                target / f"{d}.safetensors",
            )
            notes[d] = {name: getattr(run, name) for name in noted}
        (target / "runs.json").write_text(json.dumps(notes), encoding="utf-8")

    entry = store.get_or_make(
        "poolers",
        key,
        make,
        config={"encoder": cell.key, "step_two": asdict(config)},
    )
    notes = read_json(entry.folder / "runs.json")
    poolers, runs = {}, {}
    for d in dims:
        poolers[d] = deepcopy(sweep.cells[d].pooler)
        poolers[d].load_state_dict(load_file(entry.folder / f"{d}.safetensors"))
        runs[d] = notes[str(d)]
    opt, chosen_on = dict.fromkeys(dims, encoder), (dev.name, dev.split)
    return TwoStep(poolers, runs, entry.seconds, entry.hit, opt, chosen_on)


def _train_poolers(
    sweep: Sweep,
    encoder: int,
    dims: list[int],
    dev: ScoredPairs,
    config: StepTwoConfig,
    store: Store,
) -> dict[int, PoolerRun]:
    cell, table = sweep.cells[encoder], sweep.states[encoder]
    frozen = cell.encoder
    if cell.config.dropout is not None:
        frozen.backbone.set_dropout(cell.config.dropout)

    def dev_score(pooler: Pooler) -> float:
        return spearman_of(table, dev, pooler.project)

    options = {"views": config.views, "seed": config.seed, "max_length": cell.config.max_length}
    poolers = {d: sweep.cells[d].pooler for d in dims}
    if cell.config.objective == "nli":
        pairs = training_pairs(cell.config)
        views = dropout_views(frozen, merge_equal(texts_of(pairs))[0], **options)
        return {
            d: train_nli_pooler(
                views,
                pairs,
                pooler,
                sweep.cells[d].head,
                dev_score,
                config,
                difference=cell.config.difference,
                description=f"step 2, dim {d}",
            )
            for d, pooler in poolers.items()
        }
    sentences = training_sentences(cell.config, store)
    views = dropout_views(frozen, sentences, **options)
    runs = train_poolers(views, sentences, list(poolers.values()), dev_score, config)
    return dict(zip(dims, runs, strict=True))
