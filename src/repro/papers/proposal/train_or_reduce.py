"""Train a projection to the wanted size, or train at full size and reduce: the proposal's experiment (PROTOCOLS §7.8).

Both sides share the network, the sentences, the number of steps and the seed. The encoder is the proposal's: mean of
the states, a linear map without bias, unit length, InfoNCE. Reducers are fitted on training sentences. A third way lies
between the two: Wang et al.'s second step, a projection trained on a frozen encoder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from repro.config import Profile, StepTwoConfig, TrainConfig
from repro.config import profile as profile_named
from repro.digests import digest
from repro.evaluation.protocol import all_texts
from repro.evaluation.retrieve import retrieve
from repro.methods import BEST_REDUCED, FULL_SIZE, REDUCER_NAMES, TRAINED_PROJECTION, TWO_STEP_PROJECTION, fitted_on
from repro.models import Pooler
from repro.models.encoder import SentenceEncoder, merge_equal
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, hidden_dim_of, scorer_on, train_cell
from repro.runs.embeddings import TextTable
from repro.runs.lines import Line, Task
from repro.runs.reduce import reduced
from repro.runs.score import Judged, Means, score_rows, similarity
from repro.runs.sweep import Sweep, spearman_of, states_of, train_two_step
from repro.sets import DataSet, Retrieval, ScoredPairs
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError, one_of

TOP = 10
"""documents that nDCG looks at"""
POOLER: dict[str, Any] = {"activation": "identity", "bias": False, "normalize": True}
"""the proposal's projection: z = Wv, divided by its length"""
PROPOSED = (128, 200, 256, 384)
"""sizes that the proposal names"""
QUICK: dict[str, Any] = {"sentences": 1_600}
"""of the embedded profile: half of what other pages train, as every size is a training of its own"""
SETTINGS: dict[tuple[str, str], dict[str, Any]] = {
    # The recipe of this network on real text was found with [CLS]. The mean of its states starts higher, at 54.2 on
    # STS-B dev, and every rate tried takes something away: 25 steps at full size end at 52.7 at 3e-5, 50.0 at 1e-4 and
    # 45.7 at 3e-4, 50 steps at the recipe's 1e-3 at 40.0. The smallest hardly moves the projection either.
    ("repro-tiny", "local"): {"learning_rate": 1e-4, "dropout": 0.4},
    ("repro-tiny", "hub"): {"learning_rate": 1e-4, "dropout": 0.4},
}
"""(backbone, source) to settings that differ from its recipe"""


def projection_profile(name: str, *, backbone: str | None = None, source: str | None = None, **train: Any) -> Profile:
    """The named profile as this experiment trains it; fields of `TrainConfig` that are given win, None keeps them.

    Args:
        name: embedded, gpu or paper.
        backbone: another network than the profile's.
        source: local, hub or microworld.
        train: fields of `TrainConfig`.
    """
    plain = profile_named(name, backbone=backbone, source=source).train
    own = (QUICK if name == "embedded" else {}) | SETTINGS.get((plain.backbone, plain.source), {})
    given = {field: value for field, value in train.items() if value is not None}
    chosen = profile_named(name, backbone=backbone, source=source, **(own | given))
    return replace(chosen, train=as_proposed(chosen.train))


def default_dims(hidden_dim: int) -> list[int]:
    """The proposal's sizes below the full one; of a network too small for any of them a half, a quarter, an eighth."""
    return [d for d in PROPOSED if d < hidden_dim] or [hidden_dim // 8, hidden_dim // 4, hidden_dim // 2]


def as_proposed(config: TrainConfig) -> TrainConfig:
    """A configuration with the proposal's pooling and its linear projection."""
    return replace(config, pooling="mean", activation="identity")


def train_projection(config: TrainConfig, dev: ScoredPairs, store: Store, *, progress: bool = True) -> TrainedCell:
    """Train encoder and projection together, or find them; as `train_cell`, with the pooler above.

    Args:
        config: what to train and how; its `validation` is not read.
        dev: pairs that pick the checkpoint.
        store: where it is kept.
        progress: show a progress bar.

    Raises:
        InputError: for another pooling or activation than the proposal's.
    """
    if config != as_proposed(config):
        raise InputError(f"pooling is {config.pooling}, activation {config.activation}: expected `as_proposed(config)`")

    def start() -> SentenceEncoder:
        encoder = fresh_encoder(config)
        pooler = Pooler(encoder.hidden_dim, config.dim, **POOLER).initialise(config.seed)
        encoder.pooler = pooler.to(encoder.backbone.device)
        return encoder

    other = {"pooler": POOLER, "dev": digest([dev.texts1, dev.texts2, dev.scores.tolist()])}
    return train_cell(config, store, dev=scorer_on(dev), start=start, other=other, progress=progress)


def train_projections(
    config: TrainConfig,
    dims: Sequence[int],
    dev: ScoredPairs,
    sets: Sequence[DataSet],
    store: Store,
    *,
    progress: bool = True,
) -> Sweep:
    """An encoder at full size D and one at every dim below, with the states of all texts under each.

    Args:
        config: what to train and how; pooling, activation and dim are set here.
        dims: sizes; those that are not below D are left out.
        dev: pairs that pick every checkpoint.
        sets: what else is encoded.
        store: where trained encoders and states are kept.
        progress: show progress bars.

    Raises:
        InputError: if no dim lies below the full size, or one comes twice.
    """
    full = hidden_dim_of(config)
    sizes = sorted((d for d in dims if 0 < d < full), reverse=True)
    if not sizes or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected different sizes below the {full} of {config.backbone}")
    own = as_proposed(config)
    cells = {d: train_projection(replace(own, dim=d), dev, store, progress=progress) for d in (full, *sizes)}
    texts = all_texts([dev, *sets])
    return Sweep(cells, {d: states_of(c, texts, store) for d, c in cells.items()}, sum(c.hit for c in cells.values()))


def lines_of(
    sweep: Sweep,
    dev: ScoredPairs,
    fit: Sequence[str],
    store: Store,
    *,
    methods: Sequence[str] = ("pca", "grp", "truncate"),
    step_two: StepTwoConfig | None = None,
) -> Iterator[Line]:
    """Full size, then at every dim the trained projection, the reductions, the best of them on dev, and step 2.

    Args:
        sweep: of `train_projections`.
        dev: pairs that choose among the reductions, and the encoder and checkpoint of step 2.
        fit: sentences that reducers are fitted on; equal ones count once.
        store: where slow reductions and the projections of step 2 are kept.
        methods: reducers by name.
        step_two: schedule of step 2; None leaves it out.

    Raises:
        InputError: for no method, or an unknown one.
    """
    if not methods:
        raise InputError("methods is empty: expected at least one reducer")
    for name in methods:
        one_of(name, list(REDUCER_NAMES), "method")
    full, *dims = sweep.cells  # the full size first
    table, cell = sweep.embeddings(full, full), sweep.cells[full]
    yield Line(FULL_SIZE, full, table, readout="pooler")
    distinct = merge_equal(fit)[0]
    learned = states_of(cell, distinct, store).map(cell.pooler.project)[distinct]
    by_dim: dict[int, list[Line]] = {d: [] for d in dims}
    for name in methods:
        for d, Y in reduced(name, learned, table.X, dims, store, seed=sweep.config.seed):
            setting = fitted_on(len(distinct))
            by_dim[d].append(Line(REDUCER_NAMES[name], d, TextTable(table.index, Y), setting, "pooler"))
    two = None if step_two is None else train_two_step(sweep, dev, step_two, store)
    for d in dims:
        yield Line(TRAINED_PROJECTION, d, sweep.embeddings(d, d), readout="pooler")
        yield from by_dim[d]
        if by_dim[d]:
            best = max(by_dim[d], key=lambda line: spearman_of(line.table, dev))
            yield replace(best, method=BEST_REDUCED, setting=f"{best.method}, chosen on {dev.name} {dev.split}")
        if two is not None:
            z = sweep.states[two.opt[d]].map(two.new_poolers[d].project)
            yield Line(TWO_STEP_PROJECTION, d, z, f"on the encoder trained at {two.opt[d]}", "pooler")


def train_or_reduce_rows(
    lines: Sequence[Line], judged: Mapping[str, ScoredPairs | Retrieval], sweep: Sweep, **shared: Any
) -> pd.DataFrame:
    """Score of every line, and leads on shared items: `spearman` and `ndcg@10`, with `_lead` for differences.

    Leads: the trained projection over every other line of its dim, and everything over full size.

    Args:
        lines: of `lines_of`.
        judged: sets, by name.
        sweep: whose columns rows take.
        shared: further columns common to all rows.
    """
    columns = {**sweep.shared(), **shared}
    tasks = {name: Task(name, {"test": part}) for name, part in judged.items()}
    contrasts = (
        lambda a, b: b.method == FULL_SIZE and a.method != FULL_SIZE,
        lambda a, b: a.method == TRAINED_PROJECTION and a.dim == b.dim,
    )
    scores = score_rows(lines, tasks, _similarity_or_retrieval, contrasts=contrasts, progress=False, **columns)
    spent = [
        {
            "method": FULL_SIZE if dim == lines[0].dim else TRAINED_PROJECTION,
            "dim": dim,
            "metric": "train_seconds",
            "value": cell.seconds,
            "seconds": cell.seconds,
            "dataset": sweep.config.corpus,
        }
        for dim, cell in sweep.cells.items()
    ]
    return pd.concat([scores, make_rows(spent, **columns)], ignore_index=True)


def _similarity_or_retrieval(lines: Sequence[Line], task: Task, seed: int) -> Iterator[Judged]:
    """Spearman of pairs, or nDCG of questions."""
    asked = task.judged
    if not isinstance(asked, Retrieval):
        yield from similarity(lines, task, seed)
        return
    ids = {"query_ids": asked.query_ids, "corpus_ids": asked.document_ids}
    tables = (line.table for line in lines)
    found = [retrieve(t[asked.queries], t[asked.documents], asked.qrels, **ids).ndcg(TOP) for t in tables]
    yield Judged(f"ndcg@{TOP}", Means(np.stack(found), seed))
