"""Lines of Table 4 on the same items: exact McNemar tests, Holm-adjusted over datasets, and what a scale does."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.evaluation.stats import holm, mcnemar
from repro.papers.wang.suite import Contender
from repro.runs.score import stored_classification
from repro.sets import DataSet
from repro.store import Store
from repro.types import InputError

Tasks = Mapping[str, Mapping[str, DataSet]]


def line_of(lines: Sequence[Contender], method: str, dim: int) -> Contender:
    """The first line of a method at a dim: for PCA the one with the smallest fit set.

    Raises:
        InputError: if there is none.
    """
    for line in lines:
        if (line.method, line.dim) == (method, dim):
            return line
    known = ", ".join(sorted({f"{line.method} at {line.dim}" for line in lines}))
    raise InputError(f"no line of {method!r} at dim {dim}: there are {known}")


def mcnemar_table(
    first: Contender, second: Contender, tasks: Tasks, store: Store, *, protocol: str = "logreg", seed: int = 0
) -> pd.DataFrame:
    """Per dataset: items only `first` gets right, items only `second` does, the exact p-value, and Holm's."""
    found = []
    for name, splits in tasks.items():
        a, b = (
            stored_classification(line.table, name, splits, store, protocol=protocol, seed=seed).items
            for line in (first, second)
        )
        found.append(
            {"dataset": name, "only first": int((a & ~b).sum()), "only second": int((b & ~a).sum()), "p": mcnemar(a, b)}
        )
    table = pd.DataFrame(found)
    table["p, Holm"] = holm(table["p"].to_numpy())
    return table


def scale_table(
    line: Contender, norm: float, tasks: Tasks, store: Store, *, protocols: Sequence[str], seed: int = 0
) -> pd.DataFrame:
    """Accuracy ×100 of embeddings as they are and divided by `norm`, by protocol, beside the majority class.

    With coordinates of unit variance and norm √n this gives the coordinates of unit norm over n fitted points that
    scikit-learn's locally linear embedding returns.
    """
    small = line.table.map(lambda X: np.asarray(X / norm, X.dtype))
    rows = []
    for name, splits in tasks.items():
        row: dict[str, object] = {"dataset": name}
        for protocol in protocols:
            for title, table in (("unit variance", line.table), ("unit norm", small)):
                score = stored_classification(table, name, splits, store, protocol=protocol, seed=seed)
                row[f"{protocol}, {title}"] = 100 * score.value
                row["majority class"] = 100 * (score.floor or 0.0)
        rows.append(row)
    return pd.DataFrame(rows)
