"""Table 1 and Figures 3 and 4: every line at every layer and size, and what the paper reads off the scores.

One pass of each network gives all layers; sizes are prefixes. All cells are scored on shared resamples of the pairs, so
a difference of lines, a step between layers or a mean over sizes has the interval of the same arithmetic on them.

Metrics: `spearman` of every cell; `spearman_lead` of one line over another; `spearman_step` from a layer to the next;
`spearman_change` of a size against another; `spearman_drop` from the last layer to the middle one, and `drop_lead`,
one line's drop less another's; `depth_lead`, how much larger a lead is over the lower half of the layers than at the
last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd

from repro.data.sampling import take
from repro.evaluation.protocol import all_texts
from repro.evaluation.stats import Resampled, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import AVERAGE, SHALLOW_AVERAGE
from repro.papers.ese.lines import Line
from repro.rows import make_rows
from repro.runs.lines import load_tasks
from repro.sets import ScoredPairs
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import InputError

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
"""the seven of Table 1; only all seven have an average"""
DEEPEST = 12
"""the paper reports the last twelve layers"""
Rows = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Grid:
    """Spearman of lines × layers × dims on each dataset; the mean over the sets is a dataset of its own."""

    lines: tuple[Line, ...]
    layers: tuple[int, ...]
    """0 … L; the embedding output, layer 0, is not resampled"""
    dims: tuple[int, ...]
    """ascending, the full size last"""
    scores: Mapping[str, Resampled]

    @property
    def judged(self) -> list[str]:
        """The average where all sets are there, else every set."""
        return [AVERAGE] if AVERAGE in self.scores else list(self.scores)

    @property
    def shallow(self) -> list[int]:
        """The layers of `≺ Avg.`: those below the last, of the last twelve; never the embedding output, layer 0."""
        return list(range(max(1, self.layers[-1] - DEEPEST + 1), self.layers[-1]))

    def shallow_mean(self, dataset: str) -> Resampled:
        """Mean over the shallow layers (lines, dims)."""
        return self.scores[dataset][:, self.shallow].mean(-2)


def load_sets(names: Sequence[str], source: str, *, rows: int | None = None) -> dict[str, ScoredPairs]:
    """The test pairs of some similarity sets, by name; of each as many as `rows`, drawn at random, None keeps all.

    Raises:
        InputError: for a set that does not hold scored pairs.
    """
    found = {}
    for name, splits in load_tasks(names, source).items():
        test = take(splits["test"], rows) if "test" in splits else None
        if not isinstance(test, ScoredPairs):
            raise InputError(f"{name!r} is not a set of scored pairs: choose from {', '.join(SETS)}")
        found[name] = test
    return found


def score_lines(
    lines: Sequence[Line],
    sets: Mapping[str, ScoredPairs],
    store: Store,
    *,
    dims: Sequence[int] = (),
    resamples: int = 2_000,
    seed: int = 0,
    progress: bool = True,
) -> Grid:
    """Score lines of one backbone at every layer and size on all sets; one pass of the texts for each line.

    Args:
        lines: of one depth and one hidden size.
        sets: test pairs by name; all of `SETS` have an average.
        store: where states are kept.
        dims: prefix sizes; the full size is added.
        resamples: of the pairs of each set.
        seed: of the resamples.
        progress: show progress bars.

    Raises:
        InputError: for lines of different networks, or a size above the full one.
    """
    tables = [line.states(all_texts(list(sets.values())), store, progress=progress) for line in lines]
    shapes = {(table.layers, table.hidden_dim) for table in tables}
    if len(shapes) != 1:
        raise InputError(f"lines have layers and sizes {sorted(shapes)}: score networks of one shape together")
    ((layers, hidden_dim),) = shapes
    sizes = sorted({*dims, hidden_dim})
    if sizes[0] < 1 or sizes[-1] > hidden_dim:
        raise InputError(f"dims is {sizes}: expected sizes from 1 to {hidden_dim}")
    scores = {}
    for name, pairs in progress_bar(sets.items(), desc="scoring", show=progress):
        cosines = np.array(
            [
                [prefix_cosines(table.at(i)[pairs.texts1], table.at(i)[pairs.texts2], sizes) for i in layers]
                for table in tables
            ]
        )  # (lines, layers, dims, pairs)
        draw = partial(spearman_draws, gold=pairs.scores, subsets=pairs.subsets, seed=seed)
        value, draws = np.full(cosines.shape[:3], np.nan), np.full((resamples, *cosines.shape[:3]), np.nan)
        above = cosines[:, 1:]
        at, drawn = draw(list(above.reshape(-1, len(pairs))), resamples=resamples)
        value[:, 1:], draws[:, :, 1:] = at.reshape(above.shape[:3]), drawn.reshape(-1, *above.shape[:3])
        for cell in np.argwhere(np.ptp(cosines[:, 0], axis=-1) > 0):  # under `cls` pooling it is one constant vector
            value[cell[0], 0, cell[1]] = draw([cosines[cell[0], 0, cell[1]]], resamples=1)[0][0]
        scores[name] = Resampled(value, draws)
    if set(sets) == set(SETS):
        each = [(s.value, s.draws) for s in scores.values()]
        scores[AVERAGE] = Resampled(*(np.mean(part, axis=0) for part in zip(*each, strict=True)))
    return Grid(tuple(lines), layers, tuple(sizes), scores)


def depth_rows(grid: Grid, *, reference: int | None = None, **shared: Any) -> pd.DataFrame:
    """All scores of some lines, and their comparisons on the average of the sets.

    Args:
        grid: lines of one backbone on some sets.
        reference: size that `spearman_change` compares with, ESE's compressed size; None is the full size.
        shared: columns common to all rows.

    Raises:
        InputError: for a reference size that was not scored.
    """
    against = grid.dims[-1] if reference is None else reference
    if against not in grid.dims:
        raise InputError(f"reference is {against}: choose one of the sizes scored, {', '.join(map(str, grid.dims))}")
    rows = [*score_rows(grid)]
    for dataset in grid.scores:
        rows += _compared(grid, dataset) if dataset in grid.judged else _last_leads(grid, dataset)
        rows += _within(grid, dataset, against) if dataset in grid.judged else ()
    return make_rows(rows, readout="encoder", **shared)


def score_rows(grid: Grid) -> Rows:
    """Every cell, and the mean over the shallow layers."""
    for dataset, scores in grid.scores.items():
        for i, line in enumerate(grid.lines):
            for j, layer in enumerate(grid.layers):
                common = {**line.columns, "dataset": dataset, "layer": layer, "metric": "spearman"}
                yield from by_size(grid, scores[i, j], common)
            if grid.shallow and dataset in grid.judged:
                common = {**line.columns, "dataset": shallow_name(dataset), "metric": "spearman"}
                yield from by_size(grid, grid.shallow_mean(dataset)[i], common)


def by_size(grid: Grid, scores: Resampled, common: dict[str, Any]) -> Rows:
    """A row for every size of some scores (dims,)."""
    yield from ({**common, "dim": dim, **scores[i].columns} for i, dim in enumerate(grid.dims))


def shallow_name(dataset: str) -> str:
    """Dataset of the rows that hold a mean over the shallow layers."""
    return SHALLOW_AVERAGE if dataset == AVERAGE else f"<{dataset}"


def _pairs(grid: Grid) -> Iterator[tuple[int, int]]:
    """Every two lines, the later one first, as in `ESE − RAW`."""
    yield from ((a, b) for b, a in combinations(range(len(grid.lines)), 2))


def _last_leads(grid: Grid, dataset: str) -> Rows:
    """Leads on one set at the last layer and full size."""
    for a, b in _pairs(grid):
        lead = grid.scores[dataset][a, -1, -1] - grid.scores[dataset][b, -1, -1]
        at = {"dataset": dataset, "layer": grid.layers[-1], "dim": grid.dims[-1], "metric": "spearman_lead"}
        yield {**grid.lines[a].less(grid.lines[b]), **at, **lead.columns}


def _compared(grid: Grid, dataset: str) -> Rows:
    """Leads at every layer and size; the drop to half depth against another line's; where a lead is larger."""
    half = half_depth(grid)
    for a, b in _pairs(grid):
        lead, common = grid.scores[dataset][a] - grid.scores[dataset][b], grid.lines[a].less(grid.lines[b])
        for layer in grid.layers[1:]:
            at = {"dataset": dataset, "layer": layer, "metric": "spearman_lead"}
            yield from by_size(grid, lead[layer], {**common, **at})
        if grid.shallow:
            means = grid.shallow_mean(dataset)
            at = {"dataset": shallow_name(dataset), "metric": "spearman_lead"}
            yield from by_size(grid, means[a] - means[b], {**common, **at})
        if half < grid.layers[-1]:
            at = {"dataset": dataset, "layer": half}
            yield from by_size(grid, lead[-1] - lead[half], {**common, **at, "metric": "drop_lead"})
            excess = lead.mean()[1 : half + 1].mean() - lead.mean()[-1]
            yield {**common, **at, "metric": "depth_lead", "setting": "mean over sizes", **excess.columns}


def _within(grid: Grid, dataset: str, reference: int) -> Rows:
    """A line against itself: from layer to layer, from size to size, from the last layer to the middle one."""
    half = half_depth(grid)
    for i, line in enumerate(grid.lines):
        own, common = grid.scores[dataset][i], {**line.columns, "dataset": dataset}
        for below, layer in pairwise(grid.layers[1:]):
            step = (own[layer, -1] - own[below, -1]).columns
            yield {**common, "layer": layer, "dim": grid.dims[-1], "metric": "spearman_step", **step}
        at = {"layer": grid.layers[-1], "metric": "spearman_change", "setting": f"against {reference} dims"}
        for j, dim in enumerate(grid.dims):
            if dim != reference:
                yield {**common, **at, "dim": dim, **(own[-1, j] - own[-1, grid.dims.index(reference)]).columns}
        if half < grid.layers[-1]:
            yield from by_size(grid, own[-1] - own[half], {**common, "layer": half, "metric": "spearman_drop"})


def half_depth(grid: Grid) -> int:
    """The middle layer, L/2 rounded down, at least 1."""
    return max(1, grid.layers[-1] // 2)
