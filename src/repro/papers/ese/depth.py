"""Scores of ESE's lines at every layer and size: Tables 1 and 2, Figures 3 and 4.

One pass of each network gives all layers; sizes are prefixes. All cells are scored on shared
resamples of the pairs, so a difference of lines, a step between layers or a mean over sizes has the
interval of the same arithmetic on them.

Metrics: `spearman` of every cell; `spearman_lead` of one line over another; `spearman_step` from a
layer to the next; `spearman_change` of a size against another; `spearman_drop` from the last layer
to the middle one, `drop_lead` of two lines' drops; `depth_lead`, how much larger a lead is over the
lower half of the layers than at the last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.shared import shared_weights, spearman_with
from repro.evaluation.stats import Resampled, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import AVERAGE, SHALLOW_AVERAGE
from repro.papers.ese.lines import LayeredEncoder
from repro.rows import Row, make_rows
from repro.runs.lines import SEVEN_SETS
from repro.sets import ScoredPairs, all_texts
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import InputError

DEEPEST = 12  # The paper reports the last twelve layers
Rows = Iterator[Row]


@dataclass(frozen=True)
class LayerScores:
    """Spearman of lines × layers × dims on each dataset; the mean over the sets is a dataset of its
    own.
    """

    lines: tuple[LayeredEncoder, ...]
    layers: tuple[int, ...]  # 0 … L; the embedding output, layer 0, is not resampled
    dims: tuple[int, ...]  # Ascending, the full size last
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
        for i, dim in enumerate(self.dims):
            yield {**common, "dim": dim, **scores[i].columns}

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
    all_seven = set(sets) == set(SEVEN_SETS)
    weights = shared_weights(sets, resamples=resamples, seed=seed) if all_seven else {}
    for name, pairs in progress_bar(sets.items(), desc="scoring", show=True):
        of_lines = []
        for table in tables:
            states = [table.at(layer) for layer in layers]
            of_layers = [prefix_cosines(X[pairs.texts1], X[pairs.texts2], sizes) for X in states]
            of_lines.append(of_layers)
        cosines = np.array(of_lines)  # (lines, layers, dims, pairs)
        draw = partial(spearman_draws, gold=pairs.scores, subsets=pairs.subsets, seed=seed)
        value = np.full(cosines.shape[:3], np.nan)
        draws = np.full((resamples, *cosines.shape[:3]), np.nan)
        above = cosines[:, 1:]
        shape = above.shape[:3]
        predictions = list(above.reshape(-1, len(pairs)))
        if all_seven:
            resampled = spearman_with(weights[name], predictions, pairs.scores)
        else:
            resampled = draw(predictions, resamples=resamples)
        value[:, 1:] = resampled.value.reshape(shape)
        draws[:, :, 1:] = resampled.draws.reshape(-1, *shape)
        # Under `cls` pooling layer 0 is one constant vector
        for line, dim in np.argwhere(np.ptp(cosines[:, 0], axis=-1) > 0):
            lowest = draw([cosines[line, 0, dim]], resamples=1)
            value[line, 0, dim] = lowest.value[0]
        scores[name] = Resampled(value, draws, len(pairs))
    if all_seven:
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
        lead = scores[a] - scores[b]
        common = scored.lines[a].less(scored.lines[b])
        if dataset not in scored.judged:
            columns = {
                "dataset": dataset,
                "layer": last,
                "dim": scored.dims[-1],
                "metric": "spearman_lead",
            }
            yield {**common, **columns, **lead[-1, -1].columns}
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
        scores = scored.scores[dataset][i]
        common = {**line.columns, "dataset": dataset}
        for below, layer in pairwise(scored.layers[1:]):
            step = (scores[layer, -1] - scores[below, -1]).columns
            yield {**common, "layer": layer, "dim": full, "metric": "spearman_step", **step}
        change = {
            "layer": last,
            "metric": "spearman_change",
            "setting": f"against {reference} dims",
        }
        for j, dim in enumerate(scored.dims):
            if dim != reference:
                difference = scores[-1, j] - scores[-1, scored.dims.index(reference)]
                yield {**common, **change, "dim": dim, **difference.columns}
        if half < last:
            yield from scored.by_size(
                scores[-1] - scores[half],
                layer=half,
                metric="spearman_drop",
                **common,
            )
