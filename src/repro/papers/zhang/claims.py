"""What the table of Zhang et al. (2024), `papers/zhang.toml`, names: how rows are read, who stands
for the paper's encoders, and claims of score against size with arithmetic of their own.

A size of the paper's encoders is read as the same share of those that stand for them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.of_rows import estimate_cells, estimates
from repro.evaluation.seeds import Estimate, mean, of_parts, scaled
from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.papers.zhang import seconds
from repro.report.cells import lowest, together
from repro.report.claims import judges_of, table
from repro.report.judge import Group, Rule, Split, judge
from repro.report.measurements import effect
from repro.report.verdict import Measurement, answer
from repro.rows import only
from repro.types import InputError

NETWORKS = table("zhang")["networks"]
"""The paper's encoders by its short names, with those that may stand for them."""
# Metrics of the tasks to what figures call them
SCORES = {"spearman": "Spearman × 100", "accuracy": "accuracy × 100"}
AUTOENCODER = "Autoencoder"
TASKS = 3  # STS-B, TREC and SICK-E
# Metrics of a whole curve
RANKS = "ranks_behind_pca"
DISTANCE = "distance_from_pca"
RANDOM = {"GRP", AUTOENCODER}
"""Methods with a draw of their own; the others give one answer, so one seed of theirs has no noise,
but over folds, which are drawn.
"""
WITHIN = ("inductive", "transductive")  # The paper's settings
BETWEEN = "transductive − inductive"  # Setting of the rows that compare the two
SETTINGS = (*WITHIN, "wiki")
"""What a reducer is fitted on: training sentences, those and the test sentences, or sentences of
another kind.
"""


def encoders_of(rows: pd.DataFrame) -> list[str]:
    """All encoders that have a score at full size, as they first appear."""
    full_rows = only(rows, method=FULL_SIZE)
    return [str(name) for name in full_rows["backbone"].dropna().unique()]


def full_size(rows: pd.DataFrame, encoder: str) -> tuple[int, float]:
    """Full dim of an encoder, and its score there in points, averaged over seeds; an InputError
    without one.
    """
    score_rows = only(rows, backbone=encoder, method=FULL_SIZE)
    score_rows = score_rows[score_rows["metric"].isin(SCORES)]
    if score_rows.empty:
        raise InputError(f"no full-size score of {encoder!r}: nothing to measure a loss against")
    return int(score_rows["dim"].max()), 100 * float(score_rows["value"].mean())


def nothing_drawn(rows: pd.DataFrame) -> pd.Series:
    """Which rows another seed is thought to give again: the method has no draw of its own, and no
    folds were drawn. Rows of several seeds that differ say otherwise.
    """
    random = rows["method"].astype(str).str.contains("|".join(RANDOM))
    folds = rows["experiment"].astype(str).str.endswith("_folds")
    return ~(random | folds)


def lead(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, a method's score less that of full size in one setting, in points."""
    lead_rows = only(rows, method=f"{method} − {FULL_SIZE}", backbone=encoder)
    of_setting = only(lead_rows, setting=setting)
    return estimates(of_setting, deterministic=bool(nothing_drawn(lead_rows).all()))


def encoders(rows: pd.DataFrame) -> Iterator[Group]:
    """Every encoder by itself."""
    for name in encoders_of(rows):
        yield of_encoder(rows, name)


def of_encoder(rows: pd.DataFrame, name: str) -> Group:
    """The rows of one encoder, and what is known of it."""
    rows_of_encoder = only(rows, backbone=name)
    full, score = full_size(rows_of_encoder, name)
    return {"encoder": name, "full": full, "score": score}, rows_of_encoder


def role(
    rows: pd.DataFrame,
    who: Sequence[str],
    above: int = 0,
) -> Iterator[Group]:
    """The encoders that stand for some of the paper's, its own first; `least` is the size `above`
    as the same share of ours.
    """
    present = encoders_of(rows)
    for name in who:
        place = NETWORKS[name]
        for encoder in (place["own"], *place.get("like", ())):
            if encoder in present:
                facts, rows_of_encoder = of_encoder(rows, encoder)
                yield {**facts, "least": above / place["full"] * facts["full"]}, rows_of_encoder


def judged(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """The measurements of rows; those of nothing drawn have no noise between seeds."""
    return judge(rules, rows, fixed=nothing_drawn)


def unmoved(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    method: str,
) -> Iterator[Measurement]:
    """Random directions are drawn before a sentence is seen: fitted on more of them they are the
    very same.
    """
    between = only(rows, setting=BETWEEN, method=f"{method} − {method}")
    for encoder, rows_of_encoder in between.groupby("backbone", sort=False):
        value = 100 * float(rows_of_encoder["value"].abs().max())
        yield Measurement(
            claim,
            "sameness",
            value,
            value,
            value,
            margin=0.0,
            what=what.format(encoder=encoder, n=len(rows_of_encoder)),
            network=str(encoder),
            seeds=int(rows_of_encoder["seed"].nunique()),
        )


def rougher(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How much rougher the autoencoder's curve over sizes is than the others' are on average, mean
    of both settings.
    """
    for facts, rows_of_encoder in encoders(rows):
        curves = only(rows_of_encoder, metric="roughness")
        leads = []
        for _, cells in curves.groupby("setting", sort=False):
            roughness_by_method = estimate_cells(cells, ["method"], nothing_drawn(cells))
            roughest = roughness_by_method.pop((AUTOENCODER,), None)
            others = list(roughness_by_method.values())
            if roughest and others:
                leads.append(roughest - mean(others))
        if leads:
            quantity = what.format(**facts)
            yield effect(claim, mean(leads), quantity, network=str(facts["encoder"]))


def ranks_behind(rows: pd.DataFrame) -> tuple[str, dict[str, Estimate]]:
    """The most encoders that were ranked together, and by method its mean rank less PCA's, with
    joint intervals.
    """
    rank_rows = only(rows, metric=RANKS)
    if rank_rows.empty:
        return "", {}
    # Ranks of near equals can move one way only: the farther end of an interval counts on both
    # sides
    value = rank_rows["value"]
    reach = np.maximum(value - rank_rows["ci_low"], rank_rows["ci_high"] - value)
    rank_rows = rank_rows.assign(ci_low=value - reach, ci_high=value + reach)
    seen = max(rank_rows["setting"].unique(), key=lambda names: names.count(", "))
    cells = estimate_cells(only(rank_rows, setting=seen), ["method"])
    ranks = {str(method): scaled(e, 0.01) for (method,), e in cells.items()}
    return seen, together(ranks)


def over_tasks(rows: pd.DataFrame) -> tuple[str, dict[str, Estimate]]:
    """`ranks_behind`, the mean of the three tasks; nothing where one is lacking."""
    rank_rows = only(rows, metric=RANKS)
    by_task = rank_rows.groupby("dataset", sort=False)
    rankings = [ranks_behind(rows_of_task) for _, rows_of_task in by_task]
    if len({seen for seen, _ in rankings}) != 1 or len(rankings) < TASKS:
        return "", {}
    seen, first = rankings[0]
    means = {}
    for method in first:
        of_tasks = [rank_by_method[method] for _, rank_by_method in rankings]
        means[method] = mean(of_tasks, same_items=False)
    return seen, together(means)


def first_of_five(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How many ranks PCA stands before each of the others, over all tasks: all of them are claimed
    to be behind.
    """
    seen, rank_by_method = over_tasks(rows)
    if rank_by_method:
        method, behind = lowest(rank_by_method)
        quantity = what.format(method=method)
        yield effect(claim, behind, quantity, network=seen, unit="ranks")


def levelled(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    each: Split,
    level: float,
    **compared: Any,
) -> Iterator[Measurement]:
    """How many of the five gain at most `level` points from the largest size up to `least` to their
    largest.

    Curves that are level from a smaller size on are so from there; of those that are not, a smaller
    size says nothing.
    """
    for facts, rows_of_encoder in each(rows):
        encoder = str(facts["encoder"])
        leads_by_method = {}
        for method in ZHANG_METHODS:
            leads_by_method[method] = lead(rows_of_encoder, encoder, method, "inductive")
        ends = {max(leads, default=0) for leads in leads_by_method.values()}
        everywhere = set.intersection(*(set(leads) for leads in leads_by_method.values()))
        shared = everywhere - ends
        below = [dim for dim in shared if dim <= facts["least"]]
        if not below:
            continue
        near = max(below)
        gains = {}
        for method, leads in leads_by_method.items():
            gains[method] = leads[max(leads)] - leads[near]
        count = of_parts(list(gains.values()), lambda gain: (gain <= level).sum(-1).astype(float))
        seen = ", ".join(f"{method} {e.value:.1f}" for method, e in gains.items())
        quantity = what.format(**facts, dim=near, gains=seen)
        m = effect(claim, count, quantity, network=encoder, **compared)
        needed = f"needs the curves at {facts['least']:.0f} dims"
        yield m if answer(m) == "yes" else replace(m, unknown=needed)


def negative_eigenvalues(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """The smallest eigenvalue over kernels, encoder by encoder; below rounding is the claim."""
    eigenvalue_rows = only(rows, metric="smallest_eigenvalue")
    for encoder, rows_of_encoder in eigenvalue_rows.groupby("backbone", sort=False):
        least = rows_of_encoder.loc[rows_of_encoder["value"].idxmin()]
        # A share of 1e-12 of the largest is what rounding can do: in units of it, so that a table
        # shows it
        above_rounding = max(abs(least["value"]) / 1e-12, 1.0)
        value = float(np.sign(least["value"]) * np.log10(above_rounding))
        yield Measurement(
            claim,
            "effect",
            value,
            value,
            value,
            direction=-1,
            unit="orders of magnitude",
            what=what.format(encoder=encoder, **least[["method", "value"]]),
            network=str(encoder),
            seeds=int(rows_of_encoder["seed"].nunique()),
        )


JUDGES = judges_of("zhang", vars(seconds), globals())
figure2, figure3, figure4, table1 = JUDGES.values()
"""Rows to what STS-B, the kernel's eigenvalues included, TREC, SICK-E and seconds can say."""
