"""The lines of ESE's comparison, and their scores at every layer and size: Tables 1 and 2, Figures
3 and 4.

RAW is the backbone untouched. `RAW + NLI` is the control that the paper lacks: AnglE on the pairs
that MRL and ESE see, but without any scaling, so that what the pairs teach can be told from what
the scaling does (audit E10).

One pass of each network gives all layers; sizes are prefixes. All cells are scored on shared
resamples of the pairs, so a difference of lines, a step between layers or a mean over sizes has the
interval of the same arithmetic on them.

Metrics: `spearman` of every cell; `spearman_lead` of one line over another; `spearman_step` from a
layer to the next; `spearman_change` of a size against another; `spearman_drop` from the last layer
to the middle one, `drop_lead` of two lines' drops; `depth_lead`, how much larger a lead is over the
lower half of the layers than at the last.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from math import log2
from typing import Any

import numpy as np
import pandas as pd

from repro.digests import digest
from repro.evaluation.shared import shared_weights, spearman_with
from repro.evaluation.stats import Resampled, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import AVERAGE, CONTROL, ESE_CODE, ESE_METHODS, MRL, RAW, SHALLOW_AVERAGE
from repro.models import SentenceEncoder
from repro.objectives import trained_columns
from repro.rows import make_rows
from repro.runs.cell import TrainedCell, hidden_dim_of, train_all
from repro.runs.encoders import LayerTable, Named, encode_layers_once, states_identity
from repro.runs.lines import SEVEN_SETS
from repro.sets import ScoredPairs, all_texts
from repro.settings import ESPRESSO_FORMS, EspressoConfig, TrainConfig
from repro.store import Store
from repro.terminal import progress_bar
from repro.training.end_to_end import fresh_encoder
from repro.types import InputError, check_dim, one_of

PAPER_SHARE = 128 / 768  # of the hidden size that ESE compresses to
PRINTED_DIMS = (64, 128, 256, 512, 768)  # the sizes that Table 3 and Figure 6 search with
DEEPEST = 12  # the paper reports the last twelve layers
Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class LayeredEncoder(Named):
    """An encoder that is read at every layer; its name is the method of its rows."""

    make: Callable[[], SentenceEncoder]
    cell: TrainedCell | None = None  # its training; None for the untouched backbone

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of its rows; `n_train` counts training pairs, none for the untouched backbone."""
        named = {"method": self.name, "backbone": self.backbone, "n_train": self.n_train}
        return named | (trained_columns(self.cell.config) if self.cell else {})

    def less(self, rival: "LayeredEncoder", sign: str = "−") -> dict[str, Any]:
        """Columns of the rows that compare it with another line, as in `ESE − RAW`."""
        return {**self.columns, "method": f"{self.name} {sign} {rival.name}"}

    def states(self, texts: Iterable[str], store: Store) -> LayerTable:
        """Pooled states of texts at all layers, from one pass or from the store."""
        return encode_layers_once(self.make, self.identity, texts, store)


def compression_size(hidden_dim: int) -> int:
    """ESE's k for a backbone: the power of two nearest to the paper's share of the hidden size, 128
    of 768.
    """
    return max(2, int(2 ** round(log2(hidden_dim * PAPER_SHARE))))


def sizes(hidden_dim: int, dims: Sequence[int] | None = None) -> list[int]:
    """The sizes to search with: those given that a network has, its full size added.

    None takes the printed ones where the network reaches them, else as many by halving its own.
    """
    if dims is None:
        halved = [hidden_dim // 2**i for i in range(len(PRINTED_DIMS))]
        dims = PRINTED_DIMS if hidden_dim >= max(PRINTED_DIMS) else [d for d in halved if d > 1]
    return sorted({check_dim(d) for d in dims if d < hidden_dim} | {hidden_dim})


def line_config(base: TrainConfig, method: str, *, size: int | None = None) -> TrainConfig:
    """The training behind a method: `base` with the method's objective, and nothing that the
    objective does not read.

    A `size` of None is the paper's share of the hidden size.
    """
    one_of(method, [*ESE_METHODS[1:], ESE_CODE], "trained method")
    hidden_dim = hidden_dim_of(base)
    # a setting that is not read must not name another cell, or pages would train what the store
    # already holds
    plain = replace(base, objective="angle", dim=hidden_dim, prefixes=(), espresso=EspressoConfig())
    if method == CONTROL:
        return plain
    if method == MRL:
        return replace(plain, objective="matryoshka", prefixes=base.prefixes)
    form = ESPRESSO_FORMS["code"] if method == ESE_CODE else base.espresso
    return replace(plain, objective="ese", dim=size or compression_size(hidden_dim), espresso=form)


def ese_lines(
    base: TrainConfig,
    store: Store,
    *,
    methods: Sequence[str] = ESE_METHODS,
    size: int | None = None,
) -> list[LayeredEncoder]:
    """The lines of some methods, in their order; those that the store does not hold are trained,
    side by side.

    Of `base` the objective and the dim are not read; `size` is ESE's compressed size k.
    """
    configs = {method: line_config(base, method, size=size) for method in methods if method != RAW}
    trained = {line.name: line for line in trained_lines(configs, store)}
    return [raw_line(base) if method == RAW else trained[method] for method in methods]


def trained_lines(configs: dict[str, TrainConfig], store: Store) -> list[LayeredEncoder]:
    """A line for every named configuration; equal ones share a training."""
    return [
        LayeredEncoder(
            name,
            partial(getattr, cell, "encoder"),
            cell.key,
            config.backbone,
            config.sentences,
            cell=cell,
        )
        for (name, config), cell in zip(
            configs.items(),
            train_all(list(configs.values()), store),
            strict=True,
        )
    ]


def raw_line(base: TrainConfig) -> LayeredEncoder:
    """The untouched backbone, read with the pooling and down to the depth that the others are
    trained with.
    """
    # What their trainings start from
    plain = replace(base, objective="angle", lora=None, dropout=None)
    identity, read = (
        states_identity(base.backbone, base.pooling),
        ("bidirectional", "final_norm", "layers"),
    )
    if any(getattr(base, name) != getattr(TrainConfig(), name) for name in read):
        identity = digest({"states": identity, **{name: getattr(base, name) for name in read}})
    return LayeredEncoder(RAW, partial(fresh_encoder, plain, pooler=False), identity, base.backbone)


# Every layer and size


@dataclass(frozen=True)
class LayerScores:
    """Spearman of lines × layers × dims on each dataset; the mean over the sets is a dataset of its
    own.
    """

    lines: tuple[LayeredEncoder, ...]
    layers: tuple[int, ...]  # 0 … L; the embedding output, layer 0, is not resampled
    dims: tuple[int, ...]  # ascending, the full size last
    scores: Mapping[str, Resampled]

    @property
    def judged(self) -> list[str]:
        """The average where all sets are there, else every set."""
        return [AVERAGE] if AVERAGE in self.scores else list(self.scores)

    @property
    def half(self) -> int:
        """The middle layer, L/2 rounded down, at least 1."""
        return max(1, self.layers[-1] // 2)

    @property
    def shallow(self) -> list[int]:
        """The layers of `≺ Avg.`: those below the last, of the last twelve; never the embedding
        output, layer 0.
        """
        return list(range(max(1, self.layers[-1] - DEEPEST + 1), self.layers[-1]))

    def by_size(self, scores: Resampled, **common: Any) -> Rows:
        """A row for every size of some scores (dims,)."""
        common |= {"resamples": len(scores.draws)}
        yield from ({**common, "dim": dim, **scores[i].columns} for i, dim in enumerate(self.dims))

    def at(self, layers: Sequence[int], scores: Resampled, dataset: str, **common: Any) -> Rows:
        """A line or lead (layers, dims) at some layers and, where the dataset is judged, over the
        shallow ones.
        """
        for layer in layers:
            yield from self.by_size(scores[layer], dataset=dataset, layer=layer, **common)
        if self.shallow and dataset in self.judged:
            below = SHALLOW_AVERAGE if dataset == AVERAGE else f"<{dataset}"
            yield from self.by_size(scores[self.shallow].mean(-2), dataset=below, **common)

    def rows(self, layers: Sequence[int]) -> Rows:
        """The scores of every line on every dataset at some layers, and their means over the
        shallow ones.
        """
        for dataset, scores in self.scores.items():
            for i, line in enumerate(self.lines):
                yield from self.at(layers, scores[i], dataset, metric="spearman", **line.columns)


def score_lines(
    lines: Sequence[LayeredEncoder],
    sets: Mapping[str, ScoredPairs],
    store: Store,
    *,
    dims: Sequence[int] = (),
    resamples: int = 2_000,
    seed: int = 0,
) -> LayerScores:
    """Score lines of one shape at every layer and size on all sets; one pass of the texts for each
    line.

    The full size is added to `dims`; all of `SEVEN_SETS` have an average.
    """
    tables = [line.states(all_texts(list(sets.values())), store) for line in lines]
    shapes = {(table.layers, table.hidden_dim) for table in tables}
    if len(shapes) != 1:
        raise InputError(
            f"lines have layers and sizes {sorted(shapes)}: score networks of one shape together"
        )
    ((layers, hidden_dim),) = shapes
    sizes = sorted({*dims, hidden_dim})
    scores = {}
    whole = set(sets) == set(SEVEN_SETS)
    weights = shared_weights(sets, resamples=resamples, seed=seed) if whole else {}
    for name, pairs in progress_bar(sets.items(), desc="scoring", show=True):
        cosines = np.array(
            [
                [
                    prefix_cosines(table.at(i)[pairs.texts1], table.at(i)[pairs.texts2], sizes)
                    for i in layers
                ]
                for table in tables
            ]
        )  # (lines, layers, dims, pairs)
        draw = partial(spearman_draws, gold=pairs.scores, subsets=pairs.subsets, seed=seed)
        value, draws = (
            np.full(cosines.shape[:3], np.nan),
            np.full((resamples, *cosines.shape[:3]), np.nan),
        )
        above, shape = list(cosines[:, 1:].reshape(-1, len(pairs))), cosines[:, 1:].shape[:3]
        if whole:
            drawn = spearman_with(weights[name], above, pairs.scores)
        else:
            drawn = draw(above, resamples=resamples)
        value[:, 1:], draws[:, :, 1:] = drawn.value.reshape(shape), drawn.draws.reshape(-1, *shape)
        # Under `cls` pooling it is one constant vector
        for cell in np.argwhere(np.ptp(cosines[:, 0], axis=-1) > 0):
            value[cell[0], 0, cell[1]] = draw([cosines[cell[0], 0, cell[1]]], resamples=1).value[0]
        scores[name] = Resampled(value, draws, len(pairs))
    if whole:
        scores[AVERAGE] = Resampled.averaged([*scores.values()])
    return LayerScores(tuple(lines), layers, tuple(sizes), scores)


def depth_rows(scored: LayerScores, *, reference: int | None = None, **shared: Any) -> pd.DataFrame:
    """All scores of some lines, and their comparisons on the average of the sets.

    `spearman_change` compares with the size `reference`, ESE's compressed one; None is the full
    size.
    """
    against = scored.dims[-1] if reference is None else reference
    if against not in scored.dims:
        raise InputError(
            f"reference is {against}: choose one of the sizes scored, "
            f"{', '.join(map(str, scored.dims))}"
        )
    rows = [*scored.rows(scored.layers)]
    for dataset in scored.scores:
        rows += _leads(scored, dataset)
        rows += _within(scored, dataset, against) if dataset in scored.judged else ()
    return make_rows(rows, readout="encoder", **shared)


def _leads(scored: LayerScores, dataset: str) -> Rows:
    """Every line less each earlier one, as in `ESE − RAW`: everywhere if the dataset is judged,
    else at the last layer.

    And where it is judged, the drop to half depth against the other's, and where the lead is
    larger.
    """
    scores, last, half = scored.scores[dataset], scored.layers[-1], scored.half
    for b, a in combinations(range(len(scored.lines)), 2):
        lead, common = scores[a] - scores[b], scored.lines[a].less(scored.lines[b])
        if dataset not in scored.judged:
            at = {
                "dataset": dataset,
                "layer": last,
                "dim": scored.dims[-1],
                "metric": "spearman_lead",
            }
            yield {**common, **at, **lead[-1, -1].columns}
            continue
        yield from scored.at(scored.layers[1:], lead, dataset, metric="spearman_lead", **common)
        if half < last:
            common |= {"dataset": dataset, "layer": half}
            yield from scored.by_size(lead[-1] - lead[half], metric="drop_lead", **common)
            excess = lead.mean()[1 : half + 1].mean() - lead.mean()[-1]
            yield {**common, "metric": "depth_lead", "setting": "mean over sizes", **excess.columns}


def _within(scored: LayerScores, dataset: str, reference: int) -> Rows:
    """A line against itself: from layer to layer, from size to size, from the last layer to the
    middle one.
    """
    last, half, full = scored.layers[-1], scored.half, scored.dims[-1]
    for i, line in enumerate(scored.lines):
        own, common = scored.scores[dataset][i], {**line.columns, "dataset": dataset}
        for below, layer in pairwise(scored.layers[1:]):
            step = (own[layer, -1] - own[below, -1]).columns
            yield {**common, "layer": layer, "dim": full, "metric": "spearman_step", **step}
        change = {
            "layer": last,
            "metric": "spearman_change",
            "setting": f"against {reference} dims",
        }
        for j, dim in enumerate(scored.dims):
            if dim != reference:
                less = own[-1, j] - own[-1, scored.dims.index(reference)]
                yield {**common, **change, "dim": dim, **less.columns}
        if half < last:
            yield from scored.by_size(
                own[-1] - own[half],
                layer=half,
                metric="spearman_drop",
                **common,
            )
