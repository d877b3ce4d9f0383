"""Table 1 and depth: seconds of fitting and of reducing, printed and in rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from repro.report.judge import Measurement
from repro.report.tables import paper_values

OURS, PEER = "this package", "scikit-learn"  # settings: whose reducers were timed
SHALLOW, DEEP = "Autoencoder, 1 hidden layer", "Autoencoder, 3 hidden layers"
KERNEL = "KPCA"
METHODS = ("PCA", "KPCA", "SVD", "Autoencoder", "GRP")  # in the order of the printed table
OPERATIONS = {
    "fit": ("training", "Training Time (s)"),
    "transform": ("inference", "Inference time (s)"),
}
"""What is timed, in words and as the printed column."""
# Fitted, from which seconds of kernel PCA speak: the paper's 11,498, and they grow with the square
ENOUGH_ROWS = 5_000
Seconds = tuple[float, float, float]


def printed_seconds(what: str) -> dict[str, float]:
    """Table 1's seconds of `fit` or `transform` by method."""
    table = paper_values("zhang2024", "table1")
    return (
        table[table["column"] == OPERATIONS[what][1]]
        .set_index("method")["value"]
        .astype(float)
        .to_dict()
    )


def seconds_of(
    rows: pd.DataFrame,
    what: str,
    method: str,
    setting: str | None = None,
) -> Seconds | None:
    """Median, fastest and slowest round of a method, means over runs; scikit-learn's if it has
    one.
    """
    own = rows[(rows["metric"] == f"{what}_seconds") & (rows["method"] == method)]
    setting = setting or (PEER if (own["setting"] == PEER).any() else OURS)
    own = own[own["setting"] == setting]
    value, low, high = (float(own[column].mean()) for column in ("value", "ci_low", "ci_high"))
    return None if own.empty else (value, low, high)


def times(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    operation: str,
    longer: str,
    shorter: Sequence[str],
    setting: str | None = None,
) -> Iterator[Measurement]:
    """How many times one method takes of another, of several the slowest.

    The interval reaches from the fastest round by the slowest to the slowest by the fastest.
    """
    over = seconds_of(rows, operation, longer, setting)
    others = {method: seconds_of(rows, operation, method, setting) for method in shorter}
    known = {method: seconds for method, seconds in others.items() if seconds}
    if not over or not known:
        return
    slowest = max(known, key=lambda method: known[method][0])
    under = known[slowest]
    value, low, high = over[0] / under[0], over[1] / under[2], over[2] / under[1]
    seeds, said = int(rows["seed"].nunique()), what.format(shorter=slowest)
    # of few rows kernel PCA is quicker than it should be: it can be found slow all the same, never
    # fast
    fitted = rows.loc[rows["metric"] == "fit_seconds", "n_train"].min()
    slow = longer == KERNEL and low > 1
    if KERNEL in (longer, slowest) and fitted < ENOUGH_ROWS and not slow:
        seeds, said = 0, f"{said} (of {fitted:,} fitted rows; {ENOUGH_ROWS:,} are needed)"
    printed = printed_seconds(operation)
    paper = printed[longer] / max(printed[m] for m in known) if longer in printed else None
    fields: dict[str, Any] = {"paper": paper, "null": 1.0, "seeds": seeds, "what": said}
    yield Measurement(claim, "ratio", value, low, high, **fields)
