"""Claims on Figures 2 to 5 of SBERT-LP (2021): the number of neighbours, and the dims that suit a task."""

import pandas as pd

from repro.report.judge import effect, estimate
from repro.report.verdict import Measurement

SENTIMENT = ("mr", "cr", "sst2")
STS = ("stsb", "sickr")
WORST = "grid − worst"
STATISTICS = ("grid − residual variance", "grid − Procrustes")
RANGE = "best in range"


def neighbours_and_dims(rows: pd.DataFrame) -> list[Measurement]:
    """Claims LP-F2-1, LP-S462-1 and LP-S462-2, each by the dataset where it is hardest to hold."""
    found: list[Measurement] = []
    what = {
        WORST: "best number of neighbours less the worst",
        STATISTICS[0]: "best number of neighbours less that of residual variance",
        STATISTICS[1]: "best number of neighbours less that of Procrustes statistics",
    }
    for method, said in what.items():
        found += _hardest("LP-F2-1", rows, method, said)
    for claim, names, said in (
        ("LP-S462-1", SENTIMENT, "best of 16 to 64 dims less the best of others"),
        ("LP-S462-2", STS, "best of 128 to 300 dims less the best of others"),
    ):
        found += _hardest(claim, rows[rows["dataset"].isin(names)], RANGE, said)
    return found


def _hardest(claim: str, rows: pd.DataFrame, method: str, what: str) -> list[Measurement]:
    kept = rows[(rows["method"] == method) & rows["metric"].str.endswith("_lead")]
    found = []
    for backbone, own in kept.groupby("backbone", sort=False):
        each = {
            name: estimate(part, deterministic=bool(part["n_train"].isna().all()))
            for name, part in own.groupby("dataset")
        }
        name, e = min(each.items(), key=lambda item: item[1].value)
        found.append(effect(claim, e, f"{what}, smallest of {len(each)} sets ({backbone}, {name})"))
    return found
