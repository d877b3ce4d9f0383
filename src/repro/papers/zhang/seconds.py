"""Table 1 and depth: seconds of fitting and of reducing, printed and in rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from repro.evaluation.seeds import doublings
from repro.report.kinds import paper_values
from repro.report.measurements import ratio
from repro.report.verdict import Measurement
from repro.rows import only

OURS, PEER = "this package", "scikit-learn"  # Settings: whose reducers were timed
SHALLOW, DEEP = "Autoencoder, 1 hidden layer", "Autoencoder, 3 hidden layers"
KERNEL = "KPCA"
METHODS = ("PCA", "KPCA", "SVD", "Autoencoder", "GRP")  # In the order of the printed table
OPERATIONS = {
    "fit": ("training", "Training Time (s)"),
    "transform": ("inference", "Inference time (s)"),
}
"""What is timed, in words and as the printed column."""
# Fitted, from which seconds of kernel PCA speak: the paper's 11,498, and they grow with the square
ENOUGH_ROWS = 5_000


def printed_seconds(operation: str) -> dict[str, float]:
    """Table 1's seconds of `fit` or `transform` by method."""
    _, column = OPERATIONS[operation]
    printed = only(paper_values("zhang2024", "table1"), column=column)
    return printed.set_index("method")["value"].astype(float).to_dict()


def seconds_of(
    rows: pd.DataFrame,
    operation: str,
    method: str,
    setting: str | None = None,
) -> float | None:
    """Median of a method, mean over runs; scikit-learn's if it has one."""
    seconds_rows = only(rows, metric=f"{operation}_seconds", method=method)
    setting = setting or (PEER if (seconds_rows["setting"] == PEER).any() else OURS)
    seconds_rows = only(seconds_rows, setting=setting)
    return None if seconds_rows.empty else float(seconds_rows["value"].mean())


def by_run(
    rows: pd.DataFrame,
    operation: str,
    methods: Sequence[str],
    setting: str | None = None,
) -> pd.DataFrame:
    """Median seconds of some methods, a line per run and a column per method, all of one
    implementation: scikit-learn's if it has each of them, else this package's.
    """
    seconds_rows = rows[(rows["metric"] == f"{operation}_seconds") & rows["method"].isin(methods)]
    by_peer = set(only(seconds_rows, setting=PEER)["method"])
    setting = setting or (PEER if by_peer == set(methods) else OURS)
    seconds_rows = only(seconds_rows, setting=setting)
    return seconds_rows.pivot_table(index="seed", columns="method", values="value")


def spread(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    operation: str,
    methods: Sequence[str],
    **compared: Any,
) -> Iterator[Measurement]:
    """How many times the slowest of some methods takes of the quickest, run by run."""
    took = by_run(rows, operation, methods)
    if set(methods) <= set(took):
        ordered = took[[*methods]].mean().sort_values()
        quickest, slowest = ordered.index[0], ordered.index[-1]
        e = doublings((took[slowest] / took[quickest]).dropna().to_dict())
        yield ratio(claim, e, what.format(slowest=slowest, quickest=quickest), **compared)


def times(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    operation: str,
    longer: str,
    shorter: Sequence[str],
    setting: str | None = None,
) -> Iterator[Measurement]:
    """How many times one method takes of another, of several the slowest, run by run."""
    took = by_run(rows, operation, [longer, *shorter], setting)
    timed_methods = [method for method in shorter if method in took]
    if longer not in took or not timed_methods:
        return
    slowest = max(timed_methods, key=lambda method: float(took[method].mean()))
    e = doublings((took[longer] / took[slowest]).dropna().to_dict())
    quantity = what.format(shorter=slowest)
    # The paper states an order; how many times is its machine
    m = ratio(claim, e, quantity, null=1.0)
    # Of few rows kernel PCA is quicker than it should be: it can be found slow all the same, never
    # fast
    fitted = only(rows, metric="fit_seconds")["n_train"].min()
    slow = longer == KERNEL and m.low > 1
    if KERNEL in (longer, slowest) and fitted < ENOUGH_ROWS and not slow:
        needed = f"{quantity} (of {fitted:,} fitted rows; {ENOUGH_ROWS:,} are needed)"
        m = replace(m, missing=needed, what=needed)
    yield m
