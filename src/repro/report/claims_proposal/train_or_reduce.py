"""PROP-E-1 and PROP-Q-1: is it better to train the size or to reduce to it, and what does a smaller size cost?"""

from dataclasses import dataclass
from statistics import NormalDist

import pandas as pd

from repro.methods import BEST_REDUCED, FULL_SIZE, TRAIN_OR_REDUCE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.report.judge import Estimate, estimates, sameness
from repro.report.verdict import Measurement

SIMILARITY = "spearman_lead"
TASKS = ("stsb", "sickr", "hotpotqa")
"""in the order of tables and figures"""
CLOSE, SHORT = 1 / 3, 1 / 6
"""256 and 128 of BERT's 768, as shares of the full size: from the first on the claim expects hardly a loss, to the
second only of the two-step method"""


def in_task_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows by task, those of one task in their old order; recorded rows come sorted by name."""
    known = {task: i for i, task in enumerate(TASKS)}
    return rows.sort_values("dataset", key=lambda names: names.map(known).fillna(len(known)), kind="stable")


def leads(rows: pd.DataFrame, over: str, of: str = TRAINED_PROJECTION) -> dict[str, dict[int, Estimate]]:
    """Leads of one method over another with their intervals over items and seeds, by dataset and dim."""
    own = rows[(rows["method"] == f"{of} − {over}") & rows["metric"].str.endswith("_lead")]
    return {str(name): estimates(group) for name, group in in_task_order(own).groupby("dataset", sort=False)}


@dataclass(frozen=True)
class Least:
    """The lead over the closest of several rivals, in points, with a 95 % interval that allows for the choice."""

    value: float
    low: float
    high: float
    over: str
    seeds: int

    @property
    def ahead(self) -> str:
        """Who the interval says is ahead."""
        return "training" if self.low > 0 else "reduction" if self.high < 0 else "open"


def least_leads(rows: pd.DataFrame) -> dict[str, dict[int, Least]]:
    """How far the trained projection is ahead of every reduction, by dataset and dim.

    To be ahead of the best is to be ahead of all, so nothing has to be chosen: the lower end is the lowest of the lower
    ends. To be behind one is enough to be behind, so each upper end is widened for the number of reductions
    (Bonferroni) before the lowest is taken.
    """
    others = (FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION, BEST_REDUCED)
    tried = [str(m) for m in rows["method"].dropna().unique() if m not in others and " − " not in m]
    over = {method: leads(rows, method) for method in tried}
    found: dict[str, dict[int, Least]] = {}
    for dataset in dict.fromkeys(name for by in over.values() for name in by):
        dims = sorted({dim for by in over.values() for dim in by.get(dataset, {})})
        found[dataset] = {
            dim: _least({m: by[dataset][dim] for m, by in over.items() if dim in by.get(dataset, {})}) for dim in dims
        }
    return found


def _least(at: dict[str, Estimate]) -> Least:
    normal = NormalDist()
    wider = normal.inv_cdf(1 - 0.025 / len(at)) / normal.inv_cdf(0.975)
    closest = min(at, key=lambda method: at[method].value)
    low, high = min(e.low for e in at.values()), min(e.value + wider * e.half for e in at.values())
    return Least(at[closest].value, low, high, closest, min(e.seeds for e in at.values()))


def trained_or_reduced(rows: pd.DataFrame) -> list[Measurement]:
    """The trained projection less the closest reduction on similarity, at every dim and set.

    The proposal leaves the answer open. Judged is whether training wins: reproduced says yes, not reproduced says that
    reduction wins, within noise that the question stays open.
    """
    return [
        Measurement(
            "PROP-E-1",
            "effect",
            e.value,
            e.low,
            e.high,
            null=0.0,
            direction=1,
            seeds=e.seeds,
            what=f"{_network(rows)}, {name}, dim {dim}: trained projection less the closest reduction, {e.over}",
        )
        for name, at in least_leads(rows[(rows["metric"] == SIMILARITY) | (rows["metric"] == "spearman")]).items()
        for dim, e in at.items()
    ]


def size_kept(rows: pd.DataFrame) -> list[Measurement]:
    """Similarity at a third of the full size and above, and of two-step training at a sixth, less that at full size."""
    full = int(rows.loc[rows["method"] == FULL_SIZE, "dim"].dropna().iloc[0])
    similar, network = rows[rows["metric"] == SIMILARITY], _network(rows)
    found = []
    for name, at in leads(similar, FULL_SIZE).items():
        found += [
            sameness("PROP-Q-1", e, f"{network}, {name}, dim {dim} of {full}: trained projection less full size")
            for dim, e in at.items()
            if dim >= CLOSE * full
        ]
    for name, at in leads(similar, FULL_SIZE, TWO_STEP_PROJECTION).items():
        enough = [dim for dim in at if dim >= SHORT * full]
        if enough:
            what = f"{network}, {name}, dim {min(enough)} of {full}: two-step projection less full size"
            found.append(sameness("PROP-Q-1", at[min(enough)], what))
    return found


def _network(rows: pd.DataFrame) -> str:
    return str(rows["backbone"].iloc[0])


def scores_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per task and dim with the score of every method, ×100, seeds averaged; full size first."""
    own = in_task_order(rows[rows["metric"].isin(["spearman", "ndcg@10"])])
    lines = []
    for (dataset, metric), group in own.groupby(["dataset", "metric"], sort=False):
        for dim, at in sorted(group.groupby("dim"), key=lambda item: -int(item[0])):
            means = 100 * at.groupby("method", sort=False)["value"].mean()
            lines.append({"task": dataset, "score": metric, "dim": int(dim), **means.to_dict()})
    table = pd.DataFrame(lines)
    return table[["task", "score", "dim", *(method for method in TRAIN_OR_REDUCE if method in table)]]


def sign_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per task and dim: who is ahead, by the lead over the closest reduction; and the lead over the one dev chose."""
    chosen = rows[rows["method"] == BEST_REDUCED].groupby(["dataset", "dim"])["setting"]
    names = chosen.agg(lambda s: ", ".join(dict.fromkeys(str(v).split(",")[0] for v in s))).to_dict()
    dev = leads(rows, BEST_REDUCED)
    lines = [
        {
            "task": dataset,
            "dim": dim,
            "ahead": e.ahead,
            "lead over the closest": _written(e),
            "closest": e.over,
            "over dev's choice": _written(dev[dataset][dim]),
            "dev's choice": names[dataset, dim],
        }
        for dataset, at in least_leads(rows).items()
        for dim, e in at.items()
    ]
    return pd.DataFrame(
        lines, columns=["task", "dim", "ahead", "lead over the closest", "closest", "over dev's choice", "dev's choice"]
    )


def _written(e: Estimate | Least) -> str:
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
