"""Claims that Zhang et al. make of every task alike: ZHANG-S42-1, -8, -9, -11 and -13."""

import pandas as pd

from repro.evaluation.stats import seed_half_width
from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.report.claims_zhang.leads import BETWEEN, WITHIN, encoders_of, full_size, lead, loss, playing
from repro.report.judge import effect, mean
from repro.report.verdict import Measurement

LEARNED = ("PCA", "SVD", "KPCA", "Autoencoder")
PER_CENT = 1.0
"""what the paper allows PCA to lose"""


def on_every_task(rows: pd.DataFrame, task: str) -> list[Measurement]:
    """PCA at half the dims, random projection, the two settings, and who is first."""
    found = []
    for encoder in encoders_of(rows):
        full, _ = full_size(rows, encoder)
        at = {s: loss(rows, encoder, "PCA", s) for s in WITHIN}
        half = {s: min(e, key=lambda d: abs(d - full / 2)) for s, e in at.items() if e}
        if half:
            s = max(half, key=lambda s: at[s][half[s]].value)
            what = f"{task}, {encoder}: per cent lost by PCA at {half[s]} of {full} dims ({s})"
            found.append(effect("ZHANG-S42-1", at[s][half[s]], what, null=PER_CENT, direction=-1))
    if simcse := playing(rows, "simcse"):
        leads = lead(rows, simcse, "GRP", FULL_SIZE, "inductive")
        if leads:
            d, e = max(leads.items(), key=lambda item: item[1].value)
            what = f"{task}, {simcse}: largest lead of GRP over full size ({d} dims)"
            found.append(effect("ZHANG-S42-8", e, what, direction=-1))
    between = rows[(rows["setting"] == BETWEEN) & (rows["method"] == "GRP − GRP")]
    if len(between):
        largest = 100 * float(between["value"].abs().max())
        found.append(
            Measurement(
                "ZHANG-S42-9",
                "sameness",
                largest,
                largest,
                largest,
                margin=0.0,
                seeds=int(between["seed"].nunique()),
                what=f"{task}: largest difference of GRP between the settings, {len(between)} cells",
            )
        )
    for method in LEARNED:
        gains = [lead(rows, encoder, method, method, BETWEEN) for encoder in encoders_of(rows)]
        each = [e for at in gains for e in at.values()]
        if each:
            what = f"{task}, {method}: transductive less inductive, mean over sizes and encoders"
            found.append(effect("ZHANG-S42-11", mean(each), what))
    return [*found, *_first_of_five(rows, task)]


def _first_of_five(rows: pd.DataFrame, task: str) -> list[Measurement]:
    """How many ranks PCA stands before the next best of the five, over encoders, settings and sizes that all have.

    The interval is Student's over those cells, as if they were unrelated; of one encoder alone nothing is said.
    """
    kept = rows[rows["metric"].isin(["spearman", "accuracy"]) & rows["setting"].isin(WITHIN)]
    table = kept.pivot_table(index=["backbone", "setting", "dim"], columns="method", values="value", aggfunc="mean")
    if not set(ZHANG_METHODS) <= set(table):
        return []
    ranks = table[list(ZHANG_METHODS)].dropna().rank(axis=1, ascending=False)
    if len(ranks) < 3 or ranks.index.get_level_values("backbone").nunique() < 2:
        return []  # sizes of one encoder move together: they are one cell, not several
    means = ranks.mean()
    second = str(means.drop("PCA").idxmin())
    ahead = (ranks[second] - ranks["PCA"]).to_numpy(float)
    half, value = seed_half_width(ahead), float(ahead.mean())
    what = f"{task}: mean rank of {second}, the best of the others, less PCA's {means['PCA']:.2f} ({len(ranks)} cells)"
    seeds = int(kept["seed"].nunique())
    return [Measurement("ZHANG-S42-13", "effect", value, value - half, value + half, seeds=seeds, what=what)]
