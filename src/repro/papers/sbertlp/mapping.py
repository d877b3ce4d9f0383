"""The lines of the tables: systems at hand, and the mapping on top of some, its neighbours and dims from a grid."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from repro.models.encoder import merge_equal
from repro.papers.sbertlp.claims import lp
from repro.reducers import neighbour_sweep
from repro.runs.encoders import TextTable, as_published, encode_tasks
from repro.runs.lines import Line
from repro.sets import DataSet
from repro.store import Store
from repro.types import Array, InputError
from rivals import SYSTEMS, Loaded, Missing, SystemConfig, load_system

NEIGHBORS = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400)
"""the paper gives no grid; one that ended at 100 was best at its end nearly everywhere"""
DIMS = (16, 32, 64, 128, 256, 300)
FEW = {"embedded": ((10, 30, 100), (16, 32, 64, 128))}
"""the smallest grids of neighbours and dims that show the mechanism; recorded rows name theirs"""
CLEAR = 4  # sentences per dim at least, where a choice made on one set is carried over to another
GridScore = Callable[[TextTable, Sequence[int]], Array]  # of a table's prefixes, one number per dim


def load_systems(
    names: Sequence[str], config: SystemConfig, store: Store, *, progress: bool = True
) -> tuple[list[Loaded], pd.DataFrame]:
    """The systems whose weights are at hand, and a frame of those that are not: system, row, what is missing.

    Raises:
        InputError: for an unknown name, or none at hand.
    """
    found: list[Loaded] = []
    missing = []
    for name in dict.fromkeys(names):
        try:
            found.append(load_system(name, config, store, progress=progress))
        except Missing as error:
            missing.append({"system": name, "row": SYSTEMS[name].row or name, "missing": str(error)})
    if not found:
        raise InputError(f"systems is {list(names)}: none of them is at hand")
    return found, pd.DataFrame(missing, columns=["system", "row", "missing"])


def encode_systems(
    systems: Sequence[Loaded], parts: Mapping[str, Mapping[str, DataSet]], store: Store, *, progress: bool = True
) -> dict[str, Line]:
    """By name, every system as a line of a table, with the embeddings of all texts of some parts.

    Of several systems for one row of the paper the last, which is nearest to the paper's own, takes the row; the others
    go by their own names.
    """
    takes = {loaded.system.row: loaded.system.name for loaded in systems}
    lines = {}
    for loaded in systems:
        row, name = loaded.system.row, loaded.system.name
        table = encode_tasks(loaded.encoder, loaded.identity, parts, store, progress=progress)
        table = as_published(loaded.backbone, table)
        method, backbone = row if row and takes[row] == name else name, loaded.backbone or name
        lines[name] = Line(method, table.X.shape[1], table, backbone=backbone, n_train=loaded.n_train)
    return lines


@dataclass(frozen=True)
class Mapped:
    """Judged texts under the mapping at one number of neighbours, at the largest dim; smaller ones are prefixes."""

    table: TextTable
    null: int  # null directions: parts of the neighbour graph that hang free
    fitted: int  # distinct sentences that it was fitted on

    @property
    def dims(self) -> int:
        """The largest dim."""
        return int(self.table.X.shape[1])

    def at(self, dim: int) -> TextTable:
        """The first `dim` coordinates."""
        return prefix(self.table, dim)


@dataclass(frozen=True)
class Choice:
    """Neighbours and dims picked from a grid."""

    n_neighbors: int
    dim: int

    def reached(self, mapped: Mapping[int, Mapped]) -> tuple["Choice", Mapped]:
        """The choice with its mapping, or the nearest thing to it where the sentences are too few for it."""
        k = max((k for k in mapped if k <= self.n_neighbors), default=min(mapped))
        return Choice(k, min(self.dim, mapped[k].dims)), mapped[k]


Placed = Iterable[tuple[str, str, tuple[Choice, Mapped]]]
"""setting, dataset, and the choice taken with the dataset's sentences under the mapping"""


def with_mappings(
    systems: Mapping[str, Line], mapped_on: Sequence[str], place: Callable[[TextTable], Placed]
) -> tuple[list[Line], pd.DataFrame]:
    """Every line of a table, and the neighbours and dims that each mapped line took on each set.

    Args:
        systems: lines by name.
        mapped_on: names of those that the mapping is put on.
        place: a system's embeddings to its sentences under the mapping, by setting and dataset.
    """
    lines, chosen = [], []
    for name, system in systems.items():
        lines.append(system)
        by_setting: dict[str, dict[str, TextTable]] = {}
        for setting, dataset, (choice, mapped) in place(system.table) if name in mapped_on else ():
            by_setting.setdefault(setting, {})[dataset] = mapped.at(choice.dim)
            own = {"method": lp(system.method), "setting": setting, "dataset": dataset}
            taken = {"neighbours": choice.n_neighbors, "dims": choice.dim, "fitted on": mapped.fitted}
            chosen.append({**own, **taken, "loose parts": mapped.null})
        for setting, tables in by_setting.items():
            dim = next(iter(tables.values())).X.shape[1] if len(tables) == 1 else None
            lines.append(replace(system, method=lp(system.method), dim=dim, tables=tables, setting=setting))
    return lines, pd.DataFrame(chosen)


def over_own_system(line: Line, other: Line) -> bool:
    """Every mapped line with its own system."""
    return line.method == lp(other.method)


def grids(profile: str, neighbors: Sequence[int] | None, dims: Sequence[int] | None) -> tuple[list[int], list[int]]:
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

    Of the fitted sentences equal ones, and those with equal embeddings, count once, and judged ones among them get the
    very coordinates that fitting gave them. Neighbours and dims beyond the reach of the fitted are left out or cut.

    Raises:
        InputError: if no number of neighbours is within reach.
    """
    X = table[merge_equal(list(fit))[0]]
    n = distinct_rows(X)
    reachable = [k for k in neighbors if k < n]
    if not reachable:
        raise out_of_reach(neighbors, n)
    texts = merge_equal(list(judged))[0]
    index, Q = {text: i for i, text in enumerate(texts)}, table[texts]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*eigenvalues below")  # counted in `null` instead
        fitted = neighbour_sweep(X, reachable, min(dim, n - 1))
    return {k: Mapped(TextTable(index, own.transform(Q)), own.null_eigenvalues_, n) for k, own in fitted.items()}


def distinct_rows(X: Array) -> int:
    """How many rows of X (n, D) differ: each may have one neighbour less."""
    return len({row.tobytes() for row in X})


def out_of_reach(neighbors: Iterable[int], n: int) -> InputError:
    """What is said where so many sentences have none of these numbers of neighbours."""
    return InputError(f"neighbors is {list(neighbors)}: {n} distinct sentences allow at most {n - 1}")


def grid_scores(mapped: Mapping[int, Mapped], dims: Sequence[int], score: GridScore) -> pd.DataFrame:
    """Score of every combination, dims beyond reach left out: columns n_neighbors, dim, value."""
    lines = []
    for k, one in mapped.items():
        reachable = [d for d in dims if d <= one.dims]
        values = score(one.table, reachable)
        lines += [{"n_neighbors": k, "dim": d, "value": v} for d, v in zip(reachable, values, strict=True)]
    return pd.DataFrame(lines)


def best(grid: pd.DataFrame, n: int | None = None) -> Choice:
    """The best combination; of equal ones the first, with the fewest neighbours and dims.

    With n, of those that can be carried over to n sentences: k < n, and dims well below n. In n − 1 dims the
    coordinates of n sentences are a whole basis, and every two sentences are equally far apart whatever they say; dims
    up to a quarter of n keep clear of that. The smallest dim is always left.

    Raises:
        InputError: if n sentences allow none of the numbers of neighbours.
    """
    kept = grid
    if n is not None:
        kept = grid[(grid["n_neighbors"] < n) & (grid["dim"] <= max(n // CLEAR, int(grid["dim"].min())))]
        if kept.empty:
            raise out_of_reach(grid["n_neighbors"].unique(), n)
    top = kept.loc[kept["value"].idxmax()]
    return Choice(int(top["n_neighbors"]), int(top["dim"]))
