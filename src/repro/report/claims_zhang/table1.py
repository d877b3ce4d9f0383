"""Claims on seconds: Table 1, and one hidden layer against three (ZHANG-T1-1, -2, ZHANG-S3-1)."""

from dataclasses import replace
from itertools import pairwise

import pandas as pd

from repro.report.compare import paper_values
from repro.report.judge import effect, estimates, mean
from repro.report.verdict import Measurement

RISING = ("GRP", "PCA", "SVD", "KPCA", "Autoencoder")
"""methods by their printed training time"""
COLUMNS = {"fit": "Training Time (s)", "transform": "Inference time (s)"}
SHALLOW, DEEP = "Autoencoder, 1 hidden layer", "Autoencoder, 3 hidden layers"
PEER, OURS = "scikit-learn", "this package"
Seconds = tuple[float, float, float]
ENOUGH_ROWS = 5_000
"""fitted rows from which seconds of kernel PCA speak: the paper's are 11,498, and they grow with the square"""


def printed_seconds(what: str) -> dict[str, float]:
    """Table 1's seconds of `fit` or `transform` by method."""
    table = paper_values("zhang2024", "table1")
    own = table[table["column"] == COLUMNS[what]]
    return dict(zip(own["method"], own["value"].astype(float), strict=True))


def seconds_of(rows: pd.DataFrame, what: str, method: str, setting: str | None = None) -> Seconds | None:
    """Median, fastest and slowest round of a method, means over runs; scikit-learn's if it has one."""
    own = rows[(rows["metric"] == f"{what}_seconds") & (rows["method"] == method)]
    if setting is None:
        setting = PEER if (own["setting"] == PEER).any() else OURS
    own = own[own["setting"] == setting]
    if own.empty:
        return None
    return float(own["value"].mean()), float(own["ci_low"].mean()), float(own["ci_high"].mean())


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """The order of training times, the order of inference times, and what depth costs and brings."""
    found = []
    fit, transform = printed_seconds("fit"), printed_seconds("transform")
    runs = int(rows["seed"].nunique())
    for a, b in pairwise(RISING):
        times = seconds_of(rows, "fit", a), seconds_of(rows, "fit", b)
        found += _ratio("ZHANG-T1-1", times[1], times[0], f"training: {b} by {a}", runs, fit[b] / fit[a])
    quick = [(m, s) for m in ("PCA", "SVD", "GRP") if (s := seconds_of(rows, "transform", m))]
    encoder, kernel = (seconds_of(rows, "transform", m) for m in ("Autoencoder", "KPCA"))
    if quick:
        name, slowest = max(quick, key=lambda item: item[1][0])
        paper = transform["Autoencoder"] / max(transform[m] for m in ("PCA", "SVD", "GRP"))
        what = f"inference: Autoencoder by {name}, the slowest product"
        found += _ratio("ZHANG-T1-2", encoder, slowest, what, runs, paper)
    paper = transform["KPCA"] / transform["Autoencoder"]
    found += _ratio("ZHANG-T1-2", kernel, encoder, "inference: KPCA by Autoencoder", runs, paper)
    fitted = rows.loc[rows["metric"] == "fit_seconds", "n_train"].min()
    return [*(m if fitted >= ENOUGH_ROWS else _of_few(m, int(fitted)) for m in found), *_depth(rows, runs)]


def _of_few(m: Measurement, fitted: int) -> Measurement:
    """With few fitted rows kernel PCA is quicker than it should be: it can be found slow all the same, never fast."""
    if "KPCA" not in m.what or (m.low > 1 and ": KPCA by" in m.what):
        return m
    return replace(m, seeds=0, what=f"{m.what} (of {fitted:,} fitted rows; {ENOUGH_ROWS:,} are needed)")


def _depth(rows: pd.DataFrame, runs: int) -> list[Measurement]:
    leads = estimates(rows[(rows["metric"] == "spearman_lead") & (rows["method"] == f"{DEEP} − {SHALLOW}")])
    found = []
    if leads:
        e = mean(list(leads.values()))
        what = f"STS-B: three hidden layers less one, mean over {len(leads)} sizes"
        found.append(effect("ZHANG-S3-1", e, what, null=1.0, direction=-1))
    for word, what in (("training", "fit"), ("inference", "transform")):
        deep, shallow = (seconds_of(rows, what, m, OURS) for m in (DEEP, SHALLOW))
        found += _ratio("ZHANG-S3-1", deep, shallow, f"{word}: three hidden layers by one", runs)
    return found


def _ratio(
    claim: str, a: Seconds | None, b: Seconds | None, what: str, runs: int, paper: float | None = None
) -> list[Measurement]:
    """How many times a takes of b; from the fastest a and slowest b to the slowest a and fastest b."""
    if a is None or b is None:
        return []
    value, low, high = a[0] / b[0], a[1] / b[2], a[2] / b[1]
    return [Measurement(claim, "ratio", value, low, high, paper=paper, null=1.0, seeds=runs, what=f"{what}, times")]
