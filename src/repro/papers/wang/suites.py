"""Tables 3 and 4 of Wang et al. (2023), training against reducing afterwards: for the reader, and
for the claims.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from repro import methods
from repro.evaluation.of_rows import estimate_cells
from repro.evaluation.seeds import Estimate
from repro.methods import AVERAGE, FULL, MAJORITY, REDUCED, TRAINED_NARROW, TWO_STEP
from repro.report.cells import highest, together
from repro.report.judge import Group
from repro.report.kinds import DATASETS, TITLES
from repro.report.measurements import effect
from repro.report.tables import MISSING, wide
from repro.report.verdict import Measurement

NAMES = {FULL: "full size", TRAINED_NARROW: "end to end", TWO_STEP: "two-step"}
ORDER = ("full size", *REDUCED, "end to end", "two-step", MAJORITY)
RIVALS = (*REDUCED, TRAINED_NARROW)  # What the paper compares two-step training with, at equal dim


def named_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """The score rows of a suite, printed or ours, with a column `line`: the method as a reader
    names it.

    Ours tell the two readouts of the full-size model apart, and PCA by the number of sentences it
    was fitted on where that is not the smallest.
    """
    score_rows = frame[frame["metric"].isin(["spearman", "accuracy"])]
    line = score_rows["method"].replace(NAMES)
    if "readout" in score_rows:
        with_readout = line + ", " + score_rows["readout"].fillna("")
        line = line.mask(score_rows["method"] == FULL, with_readout)
        fits = score_rows["setting"].fillna("").map(methods.fitted_sentences).astype(float)
        with_fit = line + fits.map(", {:,.0f}".format).astype(line.dtype)  # Text, even of no rows
        line = line.mask(fits > fits.min(), with_fit)
    return score_rows.assign(line=line)


def smallest_fit(frame: pd.DataFrame) -> str:
    """The `setting` of the smallest set that reducers of these rows were fitted on; empty if there
    is none.
    """
    counts = map(methods.fitted_sentences, frame["setting"].dropna().unique())
    sizes = [n for n in counts if n is not None]
    return methods.fitted_on(min(sizes)) if sizes else ""


def rank(line: str) -> tuple[int, str]:
    """Where a line stands in a table, as the paper orders its methods."""
    return ORDER.index(line.split(",")[0]), line


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per method and dim, a column per dataset, scores ×100 averaged over seeds."""
    score_rows = named_scores(frame)
    dims = list(map(str, sorted(score_rows["dim"].dropna().unique(), reverse=True)))
    orders = {
        "line": sorted(set(score_rows["line"]), key=rank),
        "dim": dims,
        "dataset": [*DATASETS.values(), AVERAGE],
    }
    names = {"line": "method", **TITLES}
    return wide(
        score_rows.astype({"dim": "string"}),
        ["line", "dim"],
        "dataset",
        orders=orders,
        names=names,
    )


def won_table(kinds: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """On how many datasets two-step training is above all its rivals, a line per dim and a column
    per kind of number.

    Scores are averaged over seeds first. PCA counts as the paper fitted it, on the smallest fit
    set.
    """
    two_step = NAMES[TWO_STEP]
    rivals = [NAMES.get(method, method) for method in RIVALS]
    counted = dict[str, dict[Any, str]]()
    for kind, frame in kinds.items():
        score_rows = named_scores(frame)
        score_rows = score_rows[score_rows["dataset"] != AVERAGE]
        score_rows = score_rows[score_rows["line"].isin([two_step, *rivals])]
        table = score_rows.pivot_table(
            index=["dim", "dataset"],
            columns="line",
            values="value",
            aggfunc="mean",
        )
        counted[kind] = {}
        if two_step not in table:
            continue
        best_rival = table.drop(columns=two_step).dropna().max(axis=1)
        lead = (table[two_step] - best_rival).dropna()
        for dim, leads_of_dim in lead.groupby(level=0):
            counted[kind][dim] = f"{(leads_of_dim > 0).sum()} of {len(leads_of_dim)}"
    table = pd.DataFrame(counted, dtype=object).rename_axis("dim").sort_index(ascending=False)
    return table.fillna(MISSING).reset_index()


def with_full(rows: pd.DataFrame) -> Iterator[Group]:
    """All rows of a network, with its full size."""
    yield {"full": rows["full"].iloc[0]}, rows


NEIGHBOURS = ("Isomap", "LLE")  # The reducers that look at nearest neighbours


def highest_of_shared(
    lead_by_cell: Mapping[tuple[Any, ...], Estimate],
) -> tuple[tuple[Any, ...], Estimate]:
    """The largest lead over either rival, among the dims that both reach."""
    dims = [dim for dim, _ in lead_by_cell]
    shared = [key for key in lead_by_cell if dims.count(key[0]) == len(NEIGHBOURS)]
    return highest({key: lead_by_cell[key] for key in shared})


def cells_won(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    paper: int,
) -> Iterator[Measurement]:
    """The lead over the best rival in the worst cell but those that the printed count, of 35,
    leaves to rivals.

    As many cells as printed are won if it is above 0, and surely fewer if its joint upper end is
    below.
    """
    over_rivals = [f"{TWO_STEP} − {rival}" for rival in RIVALS]
    lead_rows = rows[rows["method"].isin(over_rivals) & (rows["dataset"] != AVERAGE)]
    leads = estimate_cells(lead_rows, ["dataset", "dim", "method"])
    cells: dict[tuple[Any, ...], list[Estimate]] = {}
    for (dataset, dim, _), e in together(leads).items():
        cells.setdefault((dataset, dim), []).append(e)
    if not cells:
        return
    lost = (35 - paper) * len(cells) // 35

    def least(of: Callable[[Estimate], float]) -> tuple[float, tuple[Any, ...]]:
        return sorted((min(map(of, estimates)), cell) for cell, estimates in cells.items())[lost]

    _, (dataset, dim) = least(lambda e: e.value)
    e = min(cells[dataset, dim], key=lambda e: e.value)
    low, _ = least(lambda e: e.low)
    high, _ = least(lambda e: e.high)
    e = replace(e, ends=(low, high))
    won = sum(min(e.value for e in estimates) > 0 for estimates in cells.values())
    names = {"n": len(cells), "lost": lost, "dataset": dataset, "dim": dim, "won": won}
    yield effect(claim, e, what.format(**names))
