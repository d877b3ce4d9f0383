"""Tables 3 and 4 of Wang et al. (2023), training against reducing afterwards: their lines for the reader, and claims.

"At every dim" is judged at the dim where the claim is hardest to hold. Where a claim names a dim of the paper's 768,
ours is the one at the same share of the full size, unless methods are compared at that dim.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from repro.evaluation.seeds import Estimate, of_parts
from repro.methods import AVERAGE, FULL, MAJORITY, REDUCED, TRAINED_NARROW, TWO_STEP, fitted_on, fitted_sentences
from repro.papers.wang.claims_figures import PAPER_HIDDEN, judged, trending
from repro.report.judge import Cells, Judge, Measurement, Rule, effect, farthest, highest, lowest, together
from repro.report.tables import DATASETS, MISSING, wide

SUITES = {
    "table3": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table4": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""the seven datasets of each table; only all seven have an average"""
NAMES = {FULL: "full size", TRAINED_NARROW: "end to end", TWO_STEP: "two-step"}
ORDER = ("full size", *REDUCED, "end to end", "two-step", MAJORITY)
RIVALS = (*REDUCED, TRAINED_NARROW)
"""what the paper compares two-step training with, at equal dim"""


def named_scores(frame: pd.DataFrame) -> pd.DataFrame:
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
    kept = named_scores(frame)
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
    kept, own = named_scores(frame), NAMES[TWO_STEP]
    kept = kept[(kept["dataset"] != AVERAGE) & kept["line"].isin([own, *(NAMES.get(m, m) for m in RIVALS)])]
    table = 100 * kept.pivot_table(index=["dataset", "dim"], columns="line", values="value", aggfunc="mean")
    if own not in table:
        return pd.DataFrame(columns=["dataset", "dim", "lead"])
    rivals = table.drop(columns=own).dropna()
    return (table[own] - rivals.max(axis=1)).dropna().rename("lead").reset_index()


def won_table(kinds: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """On how many datasets two-step training is first, a line per dim and a column per kind of number."""
    leads = {kind: won_cells(frame).groupby("dim")["lead"] for kind, frame in kinds.items()}
    counted = {kind: {dim: f"{(lead > 0).sum()} of {len(lead)}" for dim, lead in by} for kind, by in leads.items()}
    return (
        pd.DataFrame(counted, dtype=object).rename_axis("dim").sort_index(ascending=False).fillna(MISSING).reset_index()
    )


def leads(winner: str, rivals: Sequence[str], dataset: str = AVERAGE) -> str:
    """The query of one method's leads over others, on a suite's average or on one dataset."""
    names = [f"{winner} − {rival}" for rival in rivals]
    return f"metric.str.endswith('_lead') and method in {names} and dataset == '{dataset}'"


NEIGHBOURS = ("Isomap", "LLE")
"""the reducers that look at nearest neighbours"""
at_each = partial(Judge, over=("dim", "method"))
SMALLEST = partial(
    at_each, what="smallest lead over the best rival's average (dim {dim})", rows=leads(TWO_STEP, RIVALS)
)
PCA_FIRST = partial(
    at_each, what="smallest lead of PCA over Isomap and LLE on the average (dim {dim})", rows=leads("PCA", NEIGHBOURS)
)
AT_32 = partial(at_each, "WANG-S53-1", rows=f"{leads(TWO_STEP, list(REDUCED))} and dim == 32")
# the paper mixes readouts here; ours compares pooler with pooler
LESS_FULL = f"{leads(TWO_STEP, [FULL])} and readout == 'pooler' and dim < full"
A_THIRD = partial(Judge, "WANG-T3-6", rows=f"{LESS_FULL} and dim >= full / 3", pick=farthest, test="sameness")


def largest_nearest(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """The dim whose nearest rival is farthest behind."""
    known = together(at)
    dims = dict.fromkeys(dim for dim, _ in known)
    return highest(dict(lowest({key: e for key, e in known.items() if key[0] == dim}) for dim in dims))


def highest_of_shared(at: Cells) -> tuple[tuple[Any, ...], Estimate]:
    """The largest lead over either rival, among the dims that both reach."""
    dims = [dim for dim, _ in at]
    return highest({key: e for key, e in at.items() if dims.count(key[0]) == len(NEIGHBOURS)})


def cells_won(claim: str, printed: int, rows: pd.DataFrame) -> Iterator[Measurement]:
    """Share of cells that two-step training wins in each seed; most of them is the claim."""
    each = {seed: won_cells(own).set_index(["dataset", "dim"])["lead"] for seed, own in rows.groupby("seed")}
    table = pd.DataFrame(each).dropna()  # cells × seeds
    if table.empty:
        return
    # the lead over the best rival has no interval of its own in the rows: that of the leads over each, on average
    widths = rows[rows["method"].isin([f"{TWO_STEP} − {rival}" for rival in RIVALS])]
    items = 100 * (widths["ci_high"] - widths["ci_low"]).groupby([widths["dataset"], widths["dim"]]).mean() / 3.92
    errors = items.reindex(table.index).fillna(0.0)
    parts = [Estimate(lead.to_dict(), errors[cell]) for cell, lead in table.iterrows()]
    share = of_parts(parts, lambda leads: 100 * (leads > 0).mean(-1))
    what = f"per cent of {len(table)} cells that two-step training wins"
    yield effect(claim, share, what, paper=100 * printed / 35, null=50.0)


TABLE3: list[Rule] = [
    partial(cells_won, "WANG-T3-2", 34),
    SMALLEST("WANG-T3-1"),
    Judge(
        "WANG-T3-3",
        "two-step at {dim} dims less full size, {full} (pooler)",
        LESS_FULL,
        each=lambda rows: [({"full": rows["full"].iloc[0]}, rows)],
        near=128 / PAPER_HIDDEN,
        test="sameness",
    ),
    A_THIRD(what="STS: two-step less full size, largest change to a third of it (dim {dim})"),
    PCA_FIRST("WANG-T3-4"),
    trending("WANG-T3-5", leads(TWO_STEP, [TRAINED_NARROW]), -1, "lead over end-to-end training against dim"),
    AT_32(what="STS: lead over the best reducer at 32 dims", paper=lambda: 5.73),
]
TABLE4: list[Rule] = [
    partial(cells_won, "WANG-T4-2", 31),
    SMALLEST("WANG-T4-1", paper=lambda: 1.50),
    at_each(
        "WANG-T4-1",
        "largest lead over the best rival's average (dim {dim})",
        leads(TWO_STEP, RIVALS),
        largest_nearest,
        paper=lambda: 4.92,
    ),
    A_THIRD(what="classification: two-step less full size, largest change to a third of it (dim {dim})"),
    PCA_FIRST("WANG-T4-3"),
    # below the lower of the two: the lead over it is the larger one
    at_each(
        "WANG-T4-4",
        "PCA less the lower of Isomap and LLE on MRPC, largest (dim {dim})",
        leads("PCA", NEIGHBOURS, "mrpc"),
        highest_of_shared,
        direction=-1,
    ),
    AT_32(what="classification: lead over the best reducer at 32 dims", paper=lambda: 8.96),
]


def _suite(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """Tables 3 and 4, reducers as the paper fitted them, on the smallest fit set."""
    return judged(rules, rows[rows["setting"].fillna("").isin(["", smallest_fit(rows)])], full)


table3 = partial(_suite, TABLE3)
table4 = partial(_suite, TABLE4)
