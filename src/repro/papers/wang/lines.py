"""Tables 3 and 4 for the reader: what their lines are called, and the cells that two-step training wins."""

from collections.abc import Mapping

import pandas as pd

from repro.methods import AVERAGE, FULL, MAJORITY, REDUCED, TRAINED_NARROW, TWO_STEP, fitted_on, fitted_sentences
from repro.report.compare import DATASETS
from repro.report.wide import MISSING, wide

SUITES = {
    "table3": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table4": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""the seven datasets of each table; only all seven have an average"""
NAMES = {FULL: "full size", TRAINED_NARROW: "end to end", TWO_STEP: "two-step"}
ORDER = ("full size", *REDUCED, "end to end", "two-step", MAJORITY)
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
        fits, smallest = kept["setting"].fillna("").map(fitted_sentences), smallest_fit(kept)
        kept["line"] = [
            f"{line}, {int(n):,}" if pd.notna(n) and fitted_on(int(n)) != smallest else line
            for line, n in zip(kept["line"], fits, strict=True)
        ]
    return kept


def smallest_fit(frame: pd.DataFrame) -> str:
    """The `setting` of the smallest set that reducers of these rows were fitted on; empty if there is none."""
    sizes = [n for n in map(fitted_sentences, frame["setting"].dropna().unique()) if n is not None]
    return fitted_on(min(sizes)) if sizes else ""


def rank(line: str) -> tuple[int, str]:
    """Where a line stands in a table, as the paper orders its methods."""
    return ORDER.index(line.split(",")[0]), line


def table_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per method and dim, a column per dataset, scores ×100 averaged over seeds."""
    kept = scores(frame)
    dims = sorted(kept["dim"].dropna().unique(), reverse=True)
    orders = {
        "line": sorted(set(kept["line"]), key=rank),
        "dim": list(map(str, dims)),
        "dataset": [*DATASETS.values(), AVERAGE],
    }
    names = {"line": "method", **{name: title for title, name in DATASETS.items()}}
    return wide(kept.assign(dim=kept["dim"].astype("string")), ["line", "dim"], "dataset", orders=orders, names=names)


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


def won_table(kinds: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """On how many datasets two-step training is first, a line per dim and a column per kind of number."""
    leads = {kind: won_cells(frame).groupby("dim")["lead"] for kind, frame in kinds.items()}
    counted = {kind: {dim: f"{(lead > 0).sum()} of {len(lead)}" for dim, lead in by} for kind, by in leads.items()}
    return pd.DataFrame(counted).rename_axis("dim").sort_index(ascending=False).fillna(MISSING).reset_index()
