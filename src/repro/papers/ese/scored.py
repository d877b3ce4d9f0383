"""Every line at every layer and size on every set, scored from one pass per line, resampled together.

A difference of lines, a step from one layer to the next, a mean over layers: each is a function of one grid
(lines, layers, dims), so its interval is the same function of the resampled grids.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from repro.data.limit import take
from repro.evaluation.protocol import all_texts
from repro.evaluation.stats import Interval, percentiles, spearman_draws
from repro.evaluation.sts import prefix_cosines
from repro.methods import AVERAGE
from repro.papers.ese.lines import Line
from repro.runs.sweep import load_tasks
from repro.sets import ScoredPairs
from repro.store import Store
from repro.terminal import progress_bar
from repro.types import Array, InputError

SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
"""the seven of Table 1; only all seven have an average"""
ROWS = {"embedded": 300}
"""pairs of each set that a profile keeps; all where it names none"""
DEEPEST = 12
"""the paper reports the last twelve layers"""
Pick = Callable[[Array], Array]
"""a function of a grid (…, lines, layers, dims) that keeps the leading axes"""


@dataclass(frozen=True)
class Scored:
    """Spearman of lines × layers × dims on each dataset, and the same on shared resamples of its pairs."""

    lines: tuple[Line, ...]
    layers: tuple[int, ...]
    dims: tuple[int, ...]
    values: Mapping[str, Array]
    """dataset to (lines, layers, dims); the mean over the sets is a dataset of its own"""
    draws: Mapping[str, Array]
    """dataset to (resamples, lines, layers, dims); NaN where a cell was not resampled"""

    @property
    def deepest(self) -> int:
        """The last layer L."""
        return self.layers[-1]

    @property
    def hidden_dim(self) -> int:
        """The full size D."""
        return self.dims[-1]

    @property
    def shallow(self) -> list[int]:
        """The layers of `≺ Avg.`: those below the last, of the last twelve; never the embedding output, layer 0."""
        first = max(1, self.deepest - DEEPEST + 1)
        return [layer for layer in self.layers if first <= layer < self.deepest]

    def cell(self, line: int, layer: int, dim: int) -> Pick:
        """One cell, by the line's position, the layer and the size."""
        i, j = self.layers.index(layer), self.dims.index(dim)
        return lambda grid: grid[..., line, i, j]

    def shallow_mean(self, line: int, dim: int) -> Pick:
        """Mean over the shallow layers."""
        where, j = [self.layers.index(layer) for layer in self.shallow], self.dims.index(dim)
        return lambda grid: grid[..., line, :, j][..., where].mean(-1)

    def interval(self, dataset: str, pick: Pick) -> Interval:
        """A function of the grid with its 95 % interval; NaN ends where its cells were not resampled."""
        return percentiles(float(pick(self.values[dataset])), np.asarray(pick(self.draws[dataset]), np.float64))

    def lead(self, dataset: str, first: Pick, second: Pick) -> Interval:
        """One function of the grid less another, on the same resamples."""
        return self.interval(dataset, lambda grid: first(grid) - second(grid))


def kept(profile: str, rows: int | None) -> int | None:
    """Pairs kept of each set: as many as given, 0 for all; None is the profile's number."""
    return (ROWS.get(profile) if rows is None else rows) or None


def load_sets(
    names: Sequence[str], source: str, *, rows: int | None = None, text: str = "senteval"
) -> dict[str, ScoredPairs]:
    """The test pairs of some similarity sets, by name.

    Args:
        names: of datasets.
        source: local, hub or microworld.
        rows: pairs kept of each, drawn at random; None keeps all.
        text: form of the sets from local files, `senteval` or `raw`.

    Raises:
        InputError: for a set that does not hold scored pairs.
    """
    found = {}
    for name, splits in load_tasks(names, source, text=text).items():
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
    dims: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
    resampled_dims: Sequence[int] | None = None,
    resamples: int = 2_000,
    seed: int = 0,
    progress: bool = True,
) -> Scored:
    """Score lines of one backbone at every layer and size on all sets; one pass of the texts for each line.

    Args:
        lines: of one depth and one hidden size.
        sets: test pairs by name; all of `SETS` have an average.
        store: where states are kept.
        dims: prefix sizes; the full size is added. None takes only that.
        layers: 0 … L, ascending; None takes all. The last is L unless a line was cut.
        resampled_dims: sizes whose cells are resampled at every layer; None takes all of them. The last layer is
            resampled at every size, the embedding output never: under `cls` pooling it is one constant vector.
        resamples: of the pairs of each set.
        seed: of the resamples.
        progress: show progress bars.

    Raises:
        InputError: for lines of different networks, or a size above the full one.
    """
    texts = all_texts(list(sets.values()))
    tables = [line.states(texts, store, layers, progress=progress) for line in lines]
    shapes = {(table.layers, table.hidden_dim) for table in tables}
    if len(shapes) != 1:
        raise InputError(f"lines have layers and sizes {sorted(shapes)}: score networks of one shape together")
    ((read, hidden_dim),) = shapes
    sizes = sorted({*(dims or ()), hidden_dim})
    if sizes[0] < 1 or sizes[-1] > hidden_dim:
        raise InputError(f"dims is {sizes}: expected sizes from 1 to {hidden_dim}")
    shape = (len(lines), len(read), len(sizes))
    wanted = np.zeros(shape, bool)
    wanted[:, [i for i, layer in enumerate(read) if layer > 0]] = np.isin(sizes, resampled_dims or sizes)
    wanted[:, -1] = True
    values, draws = {}, {}
    bar = progress_bar(total=len(sets), desc="scoring", show=progress)
    for name, pairs in sets.items():
        cosines = np.empty((*shape, len(pairs)))
        for i, table in enumerate(tables):
            for j, layer in enumerate(read):
                states = table.at(layer)
                cosines[i, j] = prefix_cosines(states[pairs.texts1], states[pairs.texts2], sizes)
        values[name], draws[name] = np.full(shape, np.nan), np.full((resamples, *shape), np.nan)
        draw = partial(spearman_draws, gold=pairs.scores, subsets=pairs.subsets, seed=seed)
        values[name][wanted], draws[name][:, wanted] = draw(list(cosines[wanted]), resamples=resamples)
        rest = [cell for cell in np.argwhere(~wanted) if np.ptp(cosines[tuple(cell)]) > 0]
        if rest:
            at = tuple(np.transpose(rest))
            values[name][at] = draw(list(cosines[at]), resamples=1)[0]
        bar.update()
    bar.close()
    if set(sets) == set(SETS):
        values[AVERAGE] = np.mean(list(values.values()), axis=0)
        draws[AVERAGE] = np.mean(list(draws.values()), axis=0)
    return Scored(tuple(lines), read, tuple(sizes), values, draws)
