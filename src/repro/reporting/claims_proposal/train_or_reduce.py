"""PROP-E-1 and PROP-Q-1: is it better to train the size or to reduce to it, and what does a smaller size cost?"""

import pandas as pd

from repro.methods import BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.reporting.estimates import Estimate, effect, estimates, sameness
from repro.reporting.verdict import Measurement

SIMILARITY = "spearman_lead"
CLOSE, SHORT = 1 / 3, 1 / 6
"""256 and 128 of BERT's 768, as shares of the full size: from the first on the claim expects hardly a loss, to the
second only of the two-step method"""


def leads(rows: pd.DataFrame, over: str, of: str = TRAINED_PROJECTION) -> dict[str, dict[int, Estimate]]:
    """Leads of one method over another with their intervals over items and seeds, by dataset and dim."""
    own = rows[(rows["method"] == f"{of} − {over}") & rows["metric"].str.endswith("_lead")]
    return {str(name): estimates(group) for name, group in own.groupby("dataset", sort=False)}


def trained_or_reduced(rows: pd.DataFrame) -> list[Measurement]:
    """The trained projection less the best reduction on similarity, at every dim and set.

    The proposal leaves the answer open. Judged is whether training wins: reproduced says yes, not reproduced says that
    reduction wins, within noise that the question stays open.
    """
    return [
        effect("PROP-E-1", e, f"{name}, dim {dim}: trained projection less best reduction")
        for name, at in leads(rows[rows["metric"] == SIMILARITY], BEST_REDUCED).items()
        for dim, e in at.items()
    ]


def size_kept(rows: pd.DataFrame) -> list[Measurement]:
    """Similarity at a third of the full size and above, and of two-step training at a sixth, less that at full size."""
    full = int(rows.loc[rows["method"] == FULL_SIZE, "dim"].dropna().iloc[0])
    similar = rows[rows["metric"] == SIMILARITY]
    found = []
    for name, at in leads(similar, FULL_SIZE).items():
        found += [
            sameness("PROP-Q-1", e, f"{name}, dim {dim} of {full}: trained projection less full size")
            for dim, e in at.items() if dim >= CLOSE * full
        ]  # fmt: skip
    for name, at in leads(similar, FULL_SIZE, TWO_STEP_PROJECTION).items():
        enough = [dim for dim in at if dim >= SHORT * full]
        if enough:
            what = f"{name}, dim {min(enough)} of {full}: two-step projection less full size"
            found.append(sameness("PROP-Q-1", at[min(enough)], what))
    return found


def scores_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per task and dim with the score of every method, ×100, seeds averaged; full size first."""
    own = rows[rows["metric"].isin(["spearman", "ndcg@10"])]
    lines = []
    for (dataset, metric), group in own.groupby(["dataset", "metric"], sort=False):
        for dim, at in sorted(group.groupby("dim"), key=lambda item: -int(item[0])):
            means = 100 * at.groupby("method", sort=False)["value"].mean()
            lines.append({"task": dataset, "score": metric, "dim": int(dim), **means.to_dict()})
    table = pd.DataFrame(lines)
    first = ["task", "score", "dim", FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION, BEST_REDUCED]
    known = [column for column in first if column in table]
    return table[[*known, *(column for column in table if column not in known)]]


def sign_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Per task and dim: which reduction dev chose, how far training is ahead of it, and who that says is ahead.

    Last, the smallest lead over any reduction that was tried: what a choice with hindsight, on the very test, would
    have left of it.
    """
    chosen = rows[rows["method"] == BEST_REDUCED].groupby(["dataset", "dim"])["setting"]
    names = chosen.agg(lambda s: ", ".join(dict.fromkeys(str(v).split(",")[0] for v in s))).to_dict()
    others = (FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION, BEST_REDUCED)
    tried = [str(m) for m in rows["method"].dropna().unique() if m not in others and " − " not in m]
    over = {method: leads(rows, method) for method in tried}
    lines = []
    for dataset, at in leads(rows, BEST_REDUCED).items():
        for dim, e in at.items():
            least = min(
                ((m, by[dataset][dim]) for m, by in over.items() if dim in by.get(dataset, {})),
                key=lambda found: found[1].value,
            )
            lines.append(
                {"task": dataset, "dim": dim, "best reduction": names[dataset, dim], "lead": _written(e),
                 "ahead": "training" if e.low > 0 else "reduction" if e.high < 0 else "open",
                 "least lead": _written(least[1]), "over": least[0]}
            )  # fmt: skip
    return pd.DataFrame(lines, columns=["task", "dim", "best reduction", "lead", "ahead", "least lead", "over"])


def _written(e: Estimate) -> str:
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
