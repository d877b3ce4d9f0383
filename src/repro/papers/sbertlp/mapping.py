"""Tasks, systems at hand, and the mapping on top of some, its neighbours and dims from a grid
(method-fit-sets in the book).
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from repro import data
from repro.models.packing import merge_equal
from repro.papers.sbertlp.claims import lp
from repro.reducers import neighbour_sweep
from repro.runs.lines import Line, Task, TextTable
from repro.sets import DataSet, texts_of
from repro.store import Store
from repro.types import Array, InputError
from rivals import SYSTEMS, Loaded, Missing, SystemConfig, load_system

ROWS, GENERATED_ROWS = 250, 48
"""Rows of each split that the embedded profile keeps; fewer of generated sentences, which judge
nobody.
"""
SHARED_ROWS = dict.fromkeys(
    [("stsb", "train"), ("stsb", "test"), ("trec", "train"), ("trec", "test")],
    500,
)
"""Of splits that the pages on Zhang et al. encode as well."""
FOREIGN = "nli"  # Training sentences of sets that have none: those SBERT learned from
FOREIGN_ROWS = 2_500
"""Pairs of them that are kept at most: a mapping is fitted on their sentences, in memory that grows
with the square.
"""
NEIGHBORS = (5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 400)
"""The paper gives no grid; one that ended at 100 was best at its end nearly everywhere."""
DIMS = (16, 32, 64, 128, 256, 300)
FEW = {"embedded": ((10, 30, 100), (16, 32, 64, 128))}
"""The smallest grids of neighbours and dims that show the mechanism; recorded rows name theirs."""
FEWEST = ((10, 40), (16, 32))  # Those of generated sentences
# Systems that generated sentences are shown to
SHOWN = ("glove", "bert_avg", "sbert_flow", "sbert", "minilm")
CLEAR = 4  # Sentences per dim at least, where a choice made on one set is carried over to another


def load_tasks(
    names: Iterable[str],
    source: str,
    *,
    profile: str = "paper",
    rows: int | None = None,
) -> dict[str, Task]:
    """The splits of some datasets, with `rows` of each, drawn at random; 0 keeps all, None as many
    as the profile.
    """
    if rows is None and profile == "embedded" and source == "microworld":
        rows = GENERATED_ROWS
    tasks = {}
    for name in names:
        splits = data.load_splits(name, source=source)
        samples = {}
        available = {}
        for split, data_set in splits.items():
            samples[split] = data.take(data_set, kept(profile, name, split, rows))
            available[split] = len(data_set)
        tasks[name] = Task(name, samples, available)
    return tasks


def describe(tasks: Mapping[str, Task]) -> str:
    """How many rows of each dataset are judged, in words: of the test split, or the whole set
    without one.
    """
    clauses = []
    is_sample = False
    for name, task in tasks.items():
        n = len(task.judged)
        available = task.available[task.judged.split]
        clauses.append(f"{name} {n:,} of {available:,}" if n < available else f"{name} all {n:,}")
        is_sample = is_sample or n < available
    return ", ".join(clauses) + ("; drawn at random" if is_sample else "")


def kept(profile: str, name: str, split: str, rows: int | None) -> int | None:
    """Rows to keep of a split: as asked, all for 0, and the profile's number for None."""
    of_profile = SHARED_ROWS.get((name, split), ROWS) if profile == "embedded" else None
    count = of_profile if rows is None else rows or None
    return min(count or FOREIGN_ROWS, FOREIGN_ROWS) if name == FOREIGN else count


def sentences(*splits: DataSet) -> list[str]:
    """The distinct sentences of some splits, both sides of pairs, in order of first appearance."""
    return merge_equal([text for split in splits for text in texts_of(split)])[0]


def menu(source: str, mapped: Sequence[str]) -> list[str]:
    """The systems of a table, those that are mapped among them: all; on generated text, which
    judges nobody, a few.
    """
    listed = [name for name in SYSTEMS if source != "microworld" or name in (*SHOWN, *mapped)]
    return [*listed, *(name for name in mapped if name not in SYSTEMS)]  # Folders


def load_systems(
    names: Sequence[str],
    config: SystemConfig,
    store: Store,
) -> tuple[list[Loaded], pd.DataFrame]:
    """The systems whose weights are at hand, and a frame of those that are not: system, row, what
    is missing.
    """
    loaded: list[Loaded] = []
    missing = []
    for name in dict.fromkeys(names):
        try:
            loaded.append(load_system(name, config, store))
        except Missing as error:
            row = SYSTEMS[name].row or name
            missing.append({"system": name, "row": row, "missing": str(error)})
    if not loaded:
        reasons = "; ".join(f"{line['system']}: {line['missing']}" for line in missing)
        raise InputError(f"systems is {list(names)}: none of them is at hand ({reasons})")
    return loaded, pd.DataFrame(missing, columns=["system", "row", "missing"])


def encode_systems(
    systems: Sequence[Loaded],
    parts: Mapping[str, Mapping[str, DataSet]],
    store: Store,
) -> dict[str, Line]:
    """By name, every system as a line of a table, with the embeddings of all texts of some parts.

    Of several systems for one row of the paper the last, which is nearest to the paper's own, takes
    the row; the others go by their own names.
    """
    takes = {system.row: system.name for system in systems}
    lines = {}
    for system in systems:
        table = system.embed(parts, store)
        takes_row = system.row and takes[system.row] == system.name
        method = system.row if takes_row else Path(system.name).name
        lines[system.name] = Line(
            method,
            table.X.shape[1],
            table,
            backbone=system.backbone or system.name,
            n_train=system.n_train,
            read=system.read,
        )
    return lines


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
