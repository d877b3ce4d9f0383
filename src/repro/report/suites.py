"""Tables 3 and 4 for the reader: many methods on many datasets, as one wide table per kind of number."""

import pandas as pd

from repro.methods import AVERAGE, FULL, MAJORITY, REDUCED, TRAINED_NARROW, TWO_STEP, fitted_on, fitted_sentences
from repro.report.compare import DATASETS

NAMES = {FULL: "full size", TRAINED_NARROW: "end to end", TWO_STEP: "two-step", MAJORITY: MAJORITY}
ORDER = ("full size", "full size, encoder", "full size, pooler", *REDUCED, "end to end", "two-step", MAJORITY)
RIVALS = (*REDUCED, TRAINED_NARROW)
"""what the paper compares two-step training with, at equal dim"""


def scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The score rows of a suite, printed or ours, with a column `line`: the method as a reader names it.

    Ours tell the two readouts of the full-size model apart, and PCA by the number of sentences it was fitted on where
    that is not the smallest.
    """
    kept = frame[frame["metric"].isin(["spearman", "accuracy"])].copy()
    kept["line"] = kept["method"].replace(NAMES)
    if "readout" in kept:
        full = kept["method"] == FULL
        kept["line"] = kept["line"].where(~full, kept["line"] + ", " + kept["readout"].fillna(""))
        fits, smallest = kept["setting"].fillna("").map(fitted_sentences), fit_of(kept)
        kept["line"] = [
            f"{line}, {int(n):,}" if pd.notna(n) and fitted_on(int(n)) != smallest else line
            for line, n in zip(kept["line"], fits, strict=True)
        ]
    return kept


def fit_of(frame: pd.DataFrame) -> str:
    """The smallest fit set that reducers of these rows were fitted on, as their `setting`; empty if there is none."""
    sizes = [n for n in map(fitted_sentences, frame["setting"].dropna().unique()) if n is not None]
    return fitted_on(min(sizes)) if sizes else ""


def rank(line: str) -> float:
    """Where a line stands in a table, as the paper orders its methods."""
    first = line.split(",")[0]
    return float(ORDER.index(line)) if line in ORDER else ORDER.index(first) + 0.5 if first in ORDER else len(ORDER)


def wide(frame: pd.DataFrame, *, column: str = "value") -> pd.DataFrame:
    """One line per method and dim, a column per dataset, scores ×100 averaged over seeds."""
    kept = scores(frame)
    kept = kept.assign(dim=kept["dim"].fillna(0))
    table = 100 * kept.pivot_table(index=["line", "dim"], columns="dataset", values=column, aggfunc="mean")
    datasets = [name for name in [*DATASETS.values(), AVERAGE] if name in table]
    table = table[datasets].reset_index()
    table = (
        table.assign(order=table["line"].map(rank))
        .sort_values(["order", "dim"], ascending=[True, False])
        .drop(columns="order")
    )
    table["dim"] = table["dim"].astype("Int64").replace(0, pd.NA)
    titles = {name: title for title, name in DATASETS.items()}
    return table.rename(columns={"line": "method", **titles}).reset_index(drop=True)


def won_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per (dataset, dim) where two-step training meets all its rivals: its lead over the best, in points.

    Scores are averaged over seeds first. PCA counts as the paper fitted it, on the smallest fit set.
    """
    kept = scores(frame)
    kept = kept[(kept["dataset"] != AVERAGE) & kept["line"].isin([NAMES.get(m, m) for m in (*RIVALS, TWO_STEP)])]
    table = 100 * kept.pivot_table(index=["dataset", "dim"], columns="line", values="value", aggfunc="mean")
    if NAMES[TWO_STEP] not in table:
        return pd.DataFrame(columns=["dataset", "dim", "lead"])
    rivals = table.drop(columns=NAMES[TWO_STEP]).dropna()
    lead = (table[NAMES[TWO_STEP]] - rivals.max(axis=1)).dropna().rename("lead")
    return lead.reset_index()
