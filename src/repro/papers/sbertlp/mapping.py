"""SBERT-LP on top of a system: one sweep over neighbours serves every choice of neighbours and dims."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.evaluation.sts import sts_spearman
from repro.models.encoder import merge_equal
from repro.papers.sbertlp.claims import lp
from repro.papers.sbertlp.systems import Encoded
from repro.reducers import neighbour_sweep
from repro.runs.embeddings import TextTable
from repro.runs.suite import Contender
from repro.sets import ScoredPairs, texts_of
from repro.types import Array, InputError

NEIGHBORS = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400)
"""the paper gives no grid; one that ended at 100 was best at its end nearly everywhere"""
DIMS = (16, 32, 64, 128, 256, 300)
FEW = {"embedded": ((10, 30, 100), (16, 32, 64, 128))}
"""the smallest grids of neighbours and dims that show the mechanism; recorded rows name theirs"""
CLEAR = 4
"""sentences per dim at least, where a choice made on one set is carried over to another"""
Score = Callable[[TextTable, Sequence[int]], Array]
"""of a table's prefixes, one number per dim"""


@dataclass(frozen=True)
class Mapped:
    """Judged texts under the mapping at one number of neighbours, at the largest dim; smaller ones are prefixes."""

    table: TextTable
    null: int
    """null directions: parts of the neighbour graph that hang free"""
    fitted: int
    """distinct sentences that it was fitted on"""

    @property
    def dims(self) -> int:
        """The largest dim."""
        return int(self.table.X.shape[1])

    def at(self, dim: int) -> TextTable:
        """The first `dim` coordinates."""
        return prefix(self.table, dim)


@dataclass(frozen=True)
class Choice:
    """Neighbours and dims picked from a grid, and the score they had there."""

    n_neighbors: int
    dim: int
    score: float

    def reached(self, mapped: Mapping[int, Mapped]) -> tuple["Choice", Mapped]:
        """The choice with its mapping, or the nearest thing to it where the sentences are too few for it."""
        k = max((k for k in mapped if k <= self.n_neighbors), default=min(mapped))
        return Choice(k, min(self.dim, mapped[k].dims), self.score), mapped[k]


Placed = Iterable[tuple[str, str, tuple[Choice, Mapped]]]
"""setting, dataset, and the choice taken with the dataset's sentences under the mapping"""


def contenders(
    systems: Sequence[Encoded], mapped_on: Sequence[str], place: Callable[[TextTable], Placed]
) -> tuple[list[Contender], pd.DataFrame]:
    """Every line of a table, and the neighbours and dims that each mapped line took on each set.

    Args:
        systems: with the embeddings of all texts.
        mapped_on: names of the systems that the mapping is put on.
        place: a system's embeddings to its sentences under the mapping, by setting and dataset.
    """
    lines: list[Contender] = []
    chosen: list[dict[str, object]] = []
    for system in systems:
        lines.append(system.line)
        if system.loaded.system.name not in mapped_on:
            continue
        by_setting: dict[str, dict[str, TextTable]] = {}
        for setting, dataset, (choice, mapped) in place(system.table):
            by_setting.setdefault(setting, {})[dataset] = mapped.at(choice.dim)
            taken = {"neighbours": choice.n_neighbors, "dims": choice.dim, "fitted on": mapped.fitted}
            own = {"method": lp(system.method), "setting": setting, "dataset": dataset}
            chosen.append({**own, **taken, "loose parts": mapped.null})
        lines += [system.mapped(setting, by_task) for setting, by_task in by_setting.items()]
    return lines, pd.DataFrame(chosen)


def grids(
    profile: str, neighbors: Sequence[int] | None = None, dims: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Neighbours and dims to try: as given, else the profile's."""
    ks, ps = FEW.get(profile, (NEIGHBORS, DIMS))
    return sorted(neighbors or ks), sorted(dims or ps)


def prefix(table: TextTable, dim: int) -> TextTable:
    """The same texts with the first `dim` coordinates."""
    return table.map(lambda Y: Y[:, :dim])


def map_texts(
    table: TextTable, fit: Sequence[str], judged: Sequence[str], neighbors: Sequence[int], dim: int
) -> dict[int, Mapped]:
    """The judged texts under the mapping fitted on `fit`, by number of neighbours.

    Numbers of neighbours and dims beyond the reach of the fitted sentences are left out or cut.

    Args:
        table: embeddings of all texts.
        fit: sentences to fit on; equal ones, and those with equal embeddings, count once.
        judged: sentences to map; those fitted get the very coordinates that fitting gave them.
        neighbors: numbers of neighbours.
        dim: largest number of coordinates.

    Raises:
        InputError: if no number of neighbours is within reach.
    """
    X = table[merge_equal(list(fit))[0]]
    n, reachable = within_reach(neighbors, X)
    texts = merge_equal(list(judged))[0]
    index, Q = {text: i for i, text in enumerate(texts)}, table[texts]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*eigenvalues below")  # counted in `null` instead
        fitted = neighbour_sweep(X, reachable, min(dim, n - 1))
    return {
        k: Mapped(TextTable(index, reducer.transform(Q)), reducer.null_eigenvalues_, n) for k, reducer in fitted.items()
    }


def within_reach(neighbors: Sequence[int], X: Array) -> tuple[int, list[int]]:
    """How many rows of X (n, D) differ, and the numbers of neighbours that so many have."""
    n = len({row.tobytes() for row in X})
    reachable = [k for k in neighbors if k < n]
    if not reachable:
        raise InputError(f"neighbors is {list(neighbors)}: {n} distinct sentences allow at most {n - 1}")
    return n, reachable


def grid_scores(mapped: Mapping[int, Mapped], dims: Sequence[int], score: Score) -> pd.DataFrame:
    """Score of every combination, dims beyond reach left out: columns n_neighbors, dim, value."""
    lines = []
    for k, one in mapped.items():
        reachable = [d for d in dims if d <= one.dims]
        values = score(one.table, reachable)
        lines += [{"n_neighbors": k, "dim": d, "value": v} for d, v in zip(reachable, values, strict=True)]
    return pd.DataFrame(lines)


def sts_score(pairs: ScoredPairs) -> Score:
    """Spearman of some pairs, for `grid_scores`."""

    def score(table: TextTable, dims: Sequence[int]) -> Array:
        return np.asarray(sts_spearman(table[pairs.texts1], table[pairs.texts2], pairs.scores, dims=dims))

    return score


def best(grid: pd.DataFrame) -> Choice:
    """The best combination; of equal ones the first, with the fewest neighbours and dims."""
    top = grid.loc[grid["value"].idxmax()]
    return Choice(int(top["n_neighbors"]), int(top["dim"]), float(top["value"]))


def within(grid: pd.DataFrame, n: int) -> pd.DataFrame:
    """The combinations of a grid that can be carried over to n sentences: k < n, and dims well below n.

    In n − 1 dims the coordinates of n sentences are a whole basis, and every two sentences are equally far apart
    whatever they say; dims up to a quarter of n keep clear of that. The smallest dim is always left.
    """
    ceiling = max(n // CLEAR, int(grid["dim"].min()))
    return grid[(grid["n_neighbors"] < n) & (grid["dim"] <= ceiling)]


def choose_on(
    table: TextTable, dev: ScoredPairs, texts: Sequence[str], *, neighbors: Sequence[int], dims: Sequence[int]
) -> Choice:
    """The best neighbours and dims on dev pairs, the mapping fitted on their own sentences, that `texts` allow too.

    Raises:
        InputError: if no number of neighbours is within reach of both.
    """
    own = texts_of(dev)
    n, reachable = within_reach(neighbors, table[texts])
    return best(within(grid_scores(map_texts(table, own, own, reachable, max(dims)), dims, sts_score(dev)), n))
