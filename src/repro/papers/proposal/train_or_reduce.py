"""Train a projection to the wanted size, or train at full size and reduce: the proposal's experiment (PROTOCOLS §7.8).

Both sides share the network, the sentences, the number of steps and the seed. The encoder is the proposal's: mean of
the states, a linear map without bias, unit length, InfoNCE. Reducers are fitted on training sentences. A third way lies
between the two: Wang et al.'s second step, a projection trained on a frozen encoder.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from repro.config import StepTwoConfig, TrainConfig
from repro.digests import digest
from repro.methods import BEST_REDUCED, FULL_SIZE, REDUCER_NAMES, TRAINED_PROJECTION, TWO_STEP_PROJECTION, fitted_on
from repro.models import Pooler
from repro.models.encoder import SentenceEncoder, merge_equal
from repro.reducers import reduced
from repro.runs.cell import TrainedCell, hidden_dim_of, scorer_on, train_cell
from repro.runs.lines import Line, TextTable, spearman_of
from repro.runs.sweep import Sweep, states_of, train_two_step
from repro.sets import DataSet, ScoredPairs, all_texts
from repro.store import Store
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError, one_of

POOLER: dict[str, Any] = {"activation": "identity", "bias": False, "normalize": True}
"""the proposal's projection: z = Wv, divided by its length"""


def train_projections(
    config: TrainConfig, dims: Sequence[int], dev: ScoredPairs, sets: Sequence[DataSet], store: Store
) -> Sweep:
    """An encoder with its projection at full size D and at every dim below, with the states of all texts under each.

    The dev pairs pick every checkpoint; `sets` are what else is encoded.
    """
    full = hidden_dim_of(config)
    sizes = sorted((d for d in dims if 0 < d < full), reverse=True)
    if not sizes or len(set(dims)) != len(dims):
        raise InputError(f"dims is {list(dims)}: expected different sizes below the {full} of {config.backbone}")
    other = {"pooler": POOLER, "dev": digest([dev.texts1, dev.texts2, dev.scores.tolist()])}

    def trained(dim: int) -> TrainedCell:
        own = replace(config, dim=dim, pooling="mean", activation="identity")

        def start() -> SentenceEncoder:
            encoder = fresh_encoder(own)
            pooler = Pooler(encoder.hidden_dim, dim, **POOLER).initialise(own.seed)
            encoder.pooler = pooler.to(encoder.backbone.device)
            return encoder

        return train_cell(own, store, dev=scorer_on(dev), start=start, other=other)

    cells = {d: trained(d) for d in (full, *sizes)}
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

    The dev pairs choose among the reductions, and the encoder and checkpoint of step 2. Equal sentences of `fit`, what
    reducers learn from, count once.
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
