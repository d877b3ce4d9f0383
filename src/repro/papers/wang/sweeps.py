"""What the pages of Wang et al. (2023) train and score: sweeps of encoders, their stages, and whole suites of tasks."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import pandas as pd

from repro.config import Profile, override
from repro.config import profile as profile_named
from repro.evaluation.protocol import score_sts
from repro.methods import END_TO_END, FULL, REDUCED, STEP_1, STEP_2, TRAINED_NARROW, TWO_STEP, UNTRAINED, fitted_on
from repro.models.backbone import load_backbone
from repro.models.encoder import SentenceEncoder
from repro.objectives import TrainConfig
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, train_cell
from repro.runs.embeddings import TextTable
from repro.runs.lines import Line, reduced
from repro.runs.score import score_task
from repro.runs.sweep import Sweep, TwoStep, gain_over, spearman_of, states_of
from repro.runs.texts import training_sentences
from repro.seeding import make_rng
from repro.sets import DataSet, ScoredPairs
from repro.store import Store
from repro.training.two_step import splice
from repro.types import Array, InputError, check_dim

Tasks = Mapping[str, Mapping[str, DataSet]]
"""the splits of each task, by name"""


def rows_of(sweep: Sweep, rows: Sequence[Mapping[str, Any]], **shared: Any) -> pd.DataFrame:
    """Rows with the columns that all numbers of a sweep share, and further shared ones."""
    return make_rows(rows, **{**sweep.shared(), **shared})


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


def dims_rows(sweep: Sweep, tasks: Tasks, store: Store, **shared: Any) -> pd.DataFrame:
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
    return rows_of(sweep, rows, **{"paper_table": "fig2", "setting": "test", "method": END_TO_END, **shared})


# Algorithm 1: Tables 1 and 2


def stages_at(sweep: Sweep, trained: TwoStep, dim: int) -> dict[str, TextTable]:
    """Embeddings of all texts at one dim by stage: encoder_d + pooler_d, encoder_opt + pooler_d, the pooler anew."""
    opt = trained.opt[dim]
    return {
        END_TO_END: sweep.embeddings(dim, dim),
        STEP_1: sweep.embeddings(opt, dim),
        STEP_2: sweep.states[opt].map(trained.new_poolers[dim].project),
    }


def two_step_rows(sweep: Sweep, trained: TwoStep, pairs: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """The three blocks of Table 1 for one set of pairs, their gains with paired intervals, and the costs."""
    if trained.chosen_on == (pairs.name, pairs.split):
        raise InputError(f"{pairs.name} {pairs.split} chose opt and the poolers: report another split")
    rows: list[dict[str, Any]] = []
    seed = sweep.config.seed
    for d in sorted(sweep.cells):
        stages = stages_at(sweep, trained, d)
        scores = {stage: score_sts(z.__getitem__, pairs, seed=seed) for stage, z in stages.items()}
        own = [{**score.columns, "method": stage} for stage, score in scores.items()]
        alone = score_sts(sweep.embeddings(d).__getitem__, pairs, seed=seed)
        own.append({**alone.columns, "method": END_TO_END, "readout": "encoder"})
        steps = ((END_TO_END, STEP_1, "gain"), (STEP_1, STEP_2, "gain"), (END_TO_END, STEP_2, "gain_total"))
        for before, after, metric in steps:
            gain = gain_over(scores[after].items, scores[before].items, pairs, seed=seed)
            own.append({**gain.columns, "metric": f"spearman_{metric}", "method": after})
        own.append({"metric": "optimal_dim", "value": trained.opt[d], "method": STEP_1, "readout": "encoder"})
        cost = {END_TO_END: sweep.cells[d].seconds, STEP_2: trained.seconds / len(sweep.cells)}
        own += [{"metric": "train_seconds", "value": s, "seconds": s, "method": stage} for stage, s in cost.items()]
        rows += [{"readout": "pooler", "dim": d, **row} for row in own]
    setting = f"{pairs.split}, select_by={trained.select_by}"
    return rows_of(sweep, rows, dataset=pairs.name, setting=setting, **shared)


def before_after_rows(sweep: Sweep, dev: ScoredPairs, **shared: Any) -> pd.DataFrame:
    """Dev Spearman of the encoder readout: of the untrained backbone, and of every encoder after training."""
    untrained = next(iter(sweep.cells.values())).dev_before  # the same for all: the pooler is not read
    rows: list[dict[str, Any]] = [{"value": untrained, "method": UNTRAINED}]
    rows += [{"value": spearman_of(sweep.embeddings(d), dev), "method": END_TO_END, "dim": d} for d in sweep.cells]
    return rows_of(sweep, rows, metric="spearman", readout="encoder", dataset=dev.name, setting="dev", **shared)


def train_along(opt: TrainedCell, narrow: TrainedCell, store: Store) -> TrainedCell:
    """Step 2 with the encoder in training too: the spliced model on the schedule of end-to-end training, stored."""
    config = narrow.config
    if config.objective != "simcse":
        raise InputError(f"objective is {config.objective!r}: the joint step 2 is written for 'simcse'")

    def start() -> SentenceEncoder:
        encoder = splice(*deepcopy((opt.encoder, narrow.pooler)))  # the sweep's own stay as they were trained
        if config.dropout is not None:
            encoder.backbone.set_dropout(config.dropout)
        return encoder

    return train_cell(config, store, start=start, other={"trained along": [opt.key, narrow.key]})


# Tables 3 and 4: training against reducing afterwards


def fit_sets_of(sweep: Sweep, encoder: int, sizes: Sequence[int], store: Store) -> dict[int, Array]:
    """States h (n, hidden_dim) of n training sentences drawn at random, by n; smaller sets lie within larger ones.

    The paper takes the first 2,000 lines of a file that is itself a random sample of Wikipedia.
    """
    cell = sweep.cells[encoder]
    texts = training_sentences(replace(cell.config, sentences=max(sizes)), store)
    table = states_of(cell, texts, store)
    order = make_rng(cell.config.seed, "fit set").permutation(len(texts))
    return {n: table[[texts[row] for row in order[:n]]] for n in sizes}


def suite_lines(
    sweep: Sweep,
    trained: TwoStep,
    fit_sets: Mapping[int, Array],
    dims: Sequence[int],
    store: Store,
    *,
    n_neighbors: int = 5,
) -> Iterator[Line]:
    """Every line of the tables: the full size in both readouts, then the reducers and both trainings at every dim.

    Each reducer is fitted once, on the states of the encoder trained at full size, at the largest dim it can give: PCA
    on every fit set, Isomap and LLE on the smallest.
    """
    full = next(iter(sweep.cells.values())).pooler.hidden_dim
    if missing := [d for d in (full, *dims) if d not in sweep.cells]:
        held = ", ".join(map(str, sorted(sweep.cells)))
        raise InputError(f"dim {missing[0]} was not trained: the sweep holds {held}")
    states = sweep.embeddings(full)
    yield Line(FULL, full, states)
    yield Line(FULL, full, sweep.embeddings(full, full), readout="pooler")
    for label, name in REDUCED.items():
        options = {} if name == "pca" else {"n_neighbors": n_neighbors}
        for n in sorted(fit_sets) if name == "pca" else [min(fit_sets)]:
            for d, Y in reduced(name, fit_sets[n], states.X, dims, store, **options):
                yield Line(label, d, TextTable(states.index, Y), fitted_on(n))
    for d in dims:
        yield Line(TRAINED_NARROW, d, sweep.embeddings(d, d), readout="pooler")
        yield Line(TWO_STEP, d, stages_at(sweep, trained, d)[STEP_2], readout="pooler")


def is_compared(line: Line, other: Line) -> bool:
    """Two-step training and PCA with the others of their dim, two-step training with the full size too."""
    same = other.dim == line.dim and other.method not in (TWO_STEP, FULL)
    if line.method == TWO_STEP:
        return same or other.method == FULL
    return line.method == "PCA" and other.method in ("Isomap", "LLE") and same and line.setting == other.setting


# Figure 3: several networks

SMALL = ("repro-tiny:1", "repro-tiny", "all-MiniLM-L6-v2:3", "all-MiniLM-L6-v2")
NETWORKS: dict[str, tuple[str, ...]] = {
    "embedded": SMALL,
    "gpu": SMALL,
    "paper": ("bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large"),
}
"""the four networks of Figure 3 by profile, as `name` or `name:blocks`; without a hub, two networks at two depths"""
# MiniLM costs far more than repro-tiny. With one check, at the end, the validation pairs choose nothing, so the
# smallest set of them does.
BRIEF: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "repro-tiny:1": ({}, (128, 32, 8)),
}
"""network, or backbone at any depth, to settings and dims that fit the profile `embedded` to two cores"""


@dataclass(frozen=True)
class Network:
    """One of the figure's networks: what is trained, and with which dims."""

    name: str
    """`name`, or `name:blocks` where blocks were taken off"""
    blocks: int
    hidden_dim: int
    config: TrainConfig
    dims: tuple[int, ...]


def parse_network(name: str) -> tuple[str, int | None]:
    """`backbone:blocks` as its two parts; None without a colon: all blocks."""
    backbone, colon, blocks = name.partition(":")
    if not backbone or (colon and not (blocks.isdecimal() and int(blocks) > 0)):
        raise InputError(f"unknown backbone {name!r}: expected a name, or name:blocks such as repro-tiny:1")
    return backbone, int(blocks) if colon else None


def plan_networks(
    profile: Profile,
    names: Sequence[str] | None = None,
    dims: Sequence[int] | None = None,
    *,
    reference: int | str | None = None,
    **train: Any,
) -> list[Network]:
    """What to train for Figure 3: every network with its recipe and its dims, which the reference of the losses joins.

    Without dims: the hidden size, which is also the usual reference, and the profile's candidates below it. `train` are
    fields of `TrainConfig` that replace all recipes; None keeps them.
    """
    planned: dict[str, Network] = {}
    for name in names or NETWORKS[profile.name]:
        backbone, blocks = parse_network(name)
        network = load_backbone(backbone, device="cpu")
        hidden_dim, whole = network.hidden_dim, network.n_layers
        blocks = whole if blocks is None else check_dim(blocks, limit=whole, what=f"number of blocks of {backbone}")
        brief = BRIEF if profile.name == "embedded" else {}
        settings, few = brief.get(name) or brief.get(backbone) or ({}, ())
        layers = None if blocks == whole else blocks
        config = profile_named(profile.name, backbone=backbone, source=profile.source, layers=layers).train
        widths = set(dims or few or {hidden_dim, *(d for d in profile.candidates if d < hidden_dim)})
        full = hidden_dim if reference is None else reference
        widths |= {full} if isinstance(full, int) else set()
        label = backbone if layers is None else f"{backbone}:{layers}"
        if label in planned:
            raise InputError(f"backbones name {label} twice: expected different ones")
        config = override(override(config, **settings), **train)
        planned[label] = Network(label, blocks, hidden_dim, config, tuple(sorted(widths)))
    return list(planned.values())
