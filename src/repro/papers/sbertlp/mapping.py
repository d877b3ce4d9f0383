"""The mapping on top of some systems, with neighbours and dims from a grid (method-fit-sets in the
book).
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd

from repro.models.packing import merge_equal
from repro.papers.sbertlp.terms import lp
from repro.reducers import neighbour_sweep
from repro.runs.lines import Line, TextTable
from repro.types import Array, InputError

NEIGHBORS = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400)
"""The paper gives no grid; one that ended at 100 was best at its end nearly everywhere."""
DIMS = (16, 32, 64, 128, 256, 300)
FEW = {"embedded": ((10, 30, 100), (16, 32, 64, 128))}
"""The smallest grids of neighbours and dims that show the mechanism; recorded rows name theirs."""
FEWEST = ((10, 40), (16, 32))  # Those of generated sentences
CLEAR = 4  # Sentences per dim at least, where a choice made on one set is carried over to another


@dataclass(frozen=True)
class Mapped:
    """Judged texts under the mapping at one number of neighbours, at the largest dim; smaller ones
    are prefixes.
    """

    table: TextTable
    null: int  # null directions: parts of the neighbour graph that hang free
    fitted: int  # Distinct sentences that it was fitted on

    @property
    def dims(self) -> int:
        """The largest dim."""
        return int(self.table.X.shape[1])


class Choice(NamedTuple):
    """Neighbours and dims picked from a grid."""

    n_neighbors: int
    dim: int

    def reached(self, mapped: Mapping[int, Mapped]) -> tuple["Choice", Mapped]:
        """The choice with its mapping, or the nearest thing to it where the sentences are too few
        for it.
        """
        k = max((k for k in mapped if k <= self.n_neighbors), default=min(mapped))
        return Choice(k, min(self.dim, mapped[k].dims)), mapped[k]


def prefix(table: TextTable, dim: int) -> TextTable:
    """The same texts with the first `dim` coordinates."""
    return table.map(lambda Y: Y[:, :dim])


def map_texts(
    table: TextTable,
    fit: Sequence[str],
    judged: Sequence[str],
    neighbors: Sequence[int],
    dim: int,
) -> dict[int, Mapped]:
    """The judged texts under the mapping fitted on `fit`, by number of neighbours.

    Of the fitted sentences equal ones, and those with equal embeddings, count once, and judged ones
    among them get the very coordinates that fitting gave them. Neighbours and dims beyond the reach
    of the fitted are left out or cut.
    """
    X = table[merge_equal(list(fit))[0]]
    n = distinct_rows(X)
    reachable = [k for k in neighbors if k < n]
    if not reachable:
        raise out_of_reach(neighbors, n)
    texts = merge_equal(list(judged))[0]
    index, Q = {text: i for i, text in enumerate(texts)}, table[texts]
    with warnings.catch_warnings():
        # Counted in `null` instead
        warnings.filterwarnings("ignore", message=".*eigenvalues below")
        fitted = neighbour_sweep(X, reachable, min(dim, n - 1))
    return {
        k: Mapped(TextTable(index, reducer.transform(Q)), reducer.null_eigenvalues_, n)
        for k, reducer in fitted.items()
    }


def distinct_rows(X: Array) -> int:
    """How many rows of X (n, D) differ: each may have one neighbour less."""
    return len({row.tobytes() for row in X})


def out_of_reach(neighbors: Iterable[int], n: int) -> InputError:
    """What is said where so many sentences have none of these numbers of neighbours."""
    return InputError(
        f"neighbors is {[int(k) for k in neighbors]}: {n} distinct sentences allow at most {n - 1}"
    )


def within_reach(dims: Sequence[int], mapped: Mapped) -> list[int]:
    """Those of some dims that a mapping has.

    Raises:
        InputError: if it has none of them: so few sentences were mapped.
    """
    if not (reachable := [dim for dim in dims if dim <= mapped.dims]):
        expected = f"the sentences here allow at most {mapped.dims}"
        raise InputError(f"dims is {[int(dim) for dim in dims]}: {expected}")
    return reachable


def grids(
    profile: str,
    source: str,
    neighbors: Sequence[int] | None,
    dims: Sequence[int] | None,
) -> tuple[list[int], list[int]]:
    """Neighbours and dims to try: as given, else the profile's."""
    ks, ps = (
        FEWEST if profile in FEW and source == "microworld" else FEW.get(profile, (NEIGHBORS, DIMS))
    )
    return sorted(neighbors or ks), sorted(dims or ps)


def grid_scores(
    mapped: Mapping[int, Mapped],
    dims: Sequence[int],
    score: Callable[[TextTable, Sequence[int]], Array],
) -> pd.DataFrame:
    """Score of every combination, dims beyond reach left out: columns n_neighbors, dim, value.

    `score` gives one number for each of some dims of a table.
    """
    lines = []
    for k, mapping in mapped.items():
        reachable = within_reach(dims, mapping)
        values = score(mapping.table, reachable)
        lines += [
            {"n_neighbors": k, "dim": d, "value": v} for d, v in zip(reachable, values, strict=True)
        ]
    return pd.DataFrame(lines)


def best(grid: pd.DataFrame, n: int | None = None) -> Choice:
    """The best combination; of equal ones the first, with the fewest neighbours and dims.

    With n, of those that can be carried over to n sentences: k < n, and dims well below n. In n − 1
    dims the coordinates of n sentences are a whole basis, and every two sentences are equally far
    apart whatever they say; dims up to a quarter of n keep clear of that. The smallest dim is
    always left.
    """
    eligible = grid
    if n is not None:
        most_dims = max(n // CLEAR, int(grid["dim"].min()))
        eligible = grid[(grid["n_neighbors"] < n) & (grid["dim"] <= most_dims)]
        if eligible.empty:
            raise out_of_reach(grid["n_neighbors"].unique(), n)
    top = eligible.loc[eligible["value"].idxmax()]
    return Choice(int(top["n_neighbors"]), int(top["dim"]))


def with_mappings(
    systems: Mapping[str, Line],
    mapped_on: Sequence[str],
    place: Callable[[Line], Iterable[tuple[str, str, tuple[Choice, Mapped]]]],
) -> tuple[list[Line], pd.DataFrame]:
    """Every line of a table, and the neighbours and dims that each mapped line took on each set.

    `place` yields a system's settings and sets, each with a choice and the set's sentences under
    the mapping.
    """
    lines, chosen = [], []
    for name, system in systems.items():
        lines.append(system)
        by_setting: dict[str, dict[str, TextTable]] = {}
        for setting, dataset, (choice, mapped) in place(system) if name in mapped_on else ():
            by_setting.setdefault(setting, {})[dataset] = prefix(mapped.table, choice.dim)
            columns = {"method": lp(system.method), "setting": setting, "dataset": dataset}
            taken = {
                "neighbours": choice.n_neighbors,
                "dims": choice.dim,
                "fitted on": mapped.fitted,
            }
            chosen.append({**columns, **taken, "loose parts": mapped.null})
        for setting, tables in by_setting.items():
            dim = next(iter(tables.values())).X.shape[1] if len(tables) == 1 else None
            lines.append(
                replace(system, method=lp(system.method), dim=dim, tables=tables, setting=setting)
            )
    return lines, pd.DataFrame(chosen)


def over_own_system(line: Line, other: Line) -> bool:
    """Every mapped line with its own system."""
    return line.method == lp(other.method)
