"""What Zhang et al. (2024) claim of score against size, ZHANG-S42-1 … 14 and ZHANG-C-1 … 3, judged
on rows.

Scores in points, losses in per cent of full size. A size of the paper's encoders is read as the
same share of ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import Estimate, estimate, estimates, mean, of_parts, scaled
from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.report.judge import (
    Judge,
    Measurement,
    Rule,
    Split,
    average,
    effect,
    highest,
    judge,
    lowest,
    together,
    whole,
)
from repro.rows import parsed
from repro.types import InputError

ENCODERS = {
    "mpnet": ("all-mpnet-base-v2", 768),
    "sbert-b": ("stsb-bert-base", 768),
    "roberta": ("msmarco-roberta-base-v2", 768),
    "xlm-r": ("paraphrase-xlm-r-multilingual-v1", 768),
    "sbert-l": ("stsb-bert-large", 1024),
    "simcse": ("sup-simcse-roberta-large", 1024),
}
"""The paper's encoders by the short names it gives them, with their full size."""
STAND_INS = {"mpnet": ("all-MiniLM-L6-v2",), "simcse": ("e5-small-en", "repro-tiny + SimCSE")}
"""Encoders made in a like way: on the same pairs; by the same contrastive loss, on other pairs or
on sentences alone.
"""
# Metrics of the tasks to what figures call them
SCORES = {"spearman": "Spearman × 100", "accuracy": "accuracy × 100"}
AUTOENCODER = "Autoencoder"
TASKS = 3  # STS-B, TREC and SICK-E
RANKS, DISTANCE = "ranks_behind_pca", "distance_from_pca"  # metrics of a whole curve
RANDOM = {"GRP", AUTOENCODER}
"""Methods with a draw of their own; the others give one answer, so one seed of theirs has no noise.
"""
WITHIN = ("inductive", "transductive")  # the paper's settings
BETWEEN = "transductive − inductive"  # setting of the rows that compare the two
SETTINGS = (*WITHIN, "wiki")
"""What a reducer is fitted on: training sentences, those and the test sentences, or sentences of
another kind.
"""
IN_EITHER = f"setting in {WITHIN}"
INDUCTIVE, TRANSDUCTIVE = (f"setting == '{setting}'" for setting in WITHIN)
FOLDED = ("ZHANG-S42-1", "ZHANG-S42-5", "ZHANG-S42-10")
"""Claims that a test split is too small for: recorded over ten folds of all items, in experiments
named `…_folds`.
"""
XLM_R = ENCODERS["xlm-r"][0]


def encoders_of(rows: pd.DataFrame) -> list[str]:
    """All encoders that have a score at full size, as they first appear."""
    return [
        str(name) for name in rows.loc[rows["method"] == FULL_SIZE, "backbone"].dropna().unique()
    ]


def full_size(rows: pd.DataFrame, encoder: str) -> tuple[int, float]:
    """Full dim of an encoder, and its score there in points, averaged over seeds; an InputError
    without one.
    """
    own = rows[
        (rows["backbone"] == encoder) & (rows["method"] == FULL_SIZE) & rows["metric"].isin(SCORES)
    ]
    if own.empty:
        raise InputError(f"no full-size score of {encoder!r}: nothing to measure a loss against")
    return int(own["dim"].max()), 100 * float(own["value"].mean())


def lead(rows: pd.DataFrame, encoder: str, method: str, setting: str) -> dict[int, Estimate]:
    """By dim, a method's score less that of full size in one setting, in points."""
    kept = rows[(rows["method"] == f"{method} − {FULL_SIZE}") & (rows["backbone"] == encoder)]
    return estimates(kept[kept["setting"] == setting], deterministic=method not in RANDOM)


def encoders(rows: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Every encoder by itself."""
    for name in encoders_of(rows):
        full, score = full_size(rows, name)
        yield {"encoder": name, "full": full, "score": score}, rows[rows["backbone"] == name]


def role(*roles: str, least: int = 0) -> Split:
    """The encoders that stand for some of the paper's, its own first; `least` is a size as the same
    share of ours.
    """

    def split(rows: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        known = {str(facts["encoder"]): (facts, own) for facts, own in encoders(rows)}
        for name in roles:
            if encoder := next(
                (e for e in (ENCODERS[name][0], *STAND_INS.get(name, ())) if e in known),
                None,
            ):
                facts, own = known[encoder]
                yield {**facts, "least": least / ENCODERS[name][1] * facts["full"]}, own

    return split


def lead_of(
    winner: str,
    task: str,
    claim: str,
    what: str,
    who: Split,
    pick: Any = highest,
    **options: Any,
) -> Judge:
    """A claim on the lead of a method over a `rival`, or full size, at every size, in both settings
    or `where`.
    """
    rival, where = options.pop("rival", FULL_SIZE), options.pop("where", IN_EITHER)
    query = f"winner == '{winner}' and rival == '{rival}' and {where}"
    return Judge(
        claim,
        f"{task}, {{encoder}}: {what}",
        query,
        pick,
        ("setting", "dim"),
        who,
        **options,
    )


def on_every_task(task: str) -> list[Rule]:
    """What the paper says of all three tasks."""
    lost = "per cent lost by PCA at {dim} of {full} dims ({setting})"
    change = "transductive less inductive, mean over sizes (at least as good: not a point less)"
    who, between = f"{task}, {{encoder}}", f"winner == rival == '{{}}' and setting == '{BETWEEN}'"
    # a lead over full size as a loss in per cent of it; the score it is divided by is taken as
    # exact
    loss: dict[str, Any] = {
        "scale": lambda facts: -100 / float(facts["score"]),
        "null": 1.0,
        "direction": -1,
    }
    grp = "largest lead of GRP over full size ({dim} dims; never better: not by a point)"
    return [
        lead_of("PCA", task, "ZHANG-S42-1", lost, encoders, near=0.5, **loss),
        lead_of(
            "GRP",
            task,
            "ZHANG-S42-8",
            grp,
            role("simcse"),
            where=INDUCTIVE,
            null=1.0,
            direction=-1,
        ),
        lambda rows: random_projection_is_blind(rows, task),
        *(
            Judge(
                "ZHANG-S42-11",
                f"{who}, {m}: {change}",
                between.format(m),
                average,
                each=encoders,
                null=-1.0,
            )
            for m in ("PCA", "SVD", "KPCA", AUTOENCODER)
        ),
    ]


def like_pca(method: str, task: str, claim: str, who: Split) -> Judge:
    """A method whose scores are those of PCA."""
    what = f"{task}, {{encoder}}: mean absolute difference of {method} and PCA"
    query = f"method == '{method}' and metric == '{DISTANCE}' and {IN_EITHER}"
    return Judge(claim, what, query, average, ("setting",), who, test="sameness")


def best_of_all(task: str, *roles: str, needs: str = "") -> Judge:
    """A gain over full size by any method."""
    what = (
        task + ", {encoder}: best of all reduced less full size ({winner}, {setting}, {dim} dims)"
    )
    query = f"winner in {ZHANG_METHODS} and rival == '{FULL_SIZE}' and {IN_EITHER}"
    return Judge(
        "ZHANG-S42-12",
        what,
        query,
        highest,
        ("winner", "setting", "dim"),
        role(*roles),
        needs=needs,
    )


def classified(task: str, *kernel_gains: str) -> list[Rule]:
    """What the paper says of both classification tasks; `kernel_gains` are the encoders that kernel
    PCA improves.
    """
    jumps = (
        task
        + ": roughness of the autoencoder less the roughest other, smallest ({backbone}, {setting})"
    )
    options: dict[str, Any] = {"rival": "PCA", "scale": lambda facts: -1.0, "null": 1.0}
    worse = "PCA less KPCA, mean over sizes, beyond a point"
    best, both = (
        "best of KPCA less full size ({setting}, {dim} dims)",
        f"{ENCODERS['roberta'][0]} and {XLM_R}",
    )
    return [
        Judge("ZHANG-S42-10", jumps, "metric == 'roughness_lead'", over=("backbone", "setting")),
        lead_of("KPCA", task, "ZHANG-S42-6", worse, role("mpnet"), average, **options),
        best_of_all(task, "roberta", "xlm-r", needs=both),
        lead_of("KPCA", task, "ZHANG-C-2", best, role(*kernel_gains), needs=both),
    ]


BELOW: dict[str, Any] = {"rival": "PCA", "direction": -1}
# A lead as a loss
TURNED: dict[str, Any] = {"scale": lambda facts: -1.0, "null": 3.0, "direction": -1}
ABOVE = "dim > @least"
GAIN = "smallest lead of PCA over full size above {least:.0f} dims ({dim}, {setting})"
LOSS = "largest loss of GRP above {least:.0f} dims ({dim} dims)"
LOWEST = "STS-B, {encoder}: GRP less the lowest of PCA, SVD and KPCA, largest ({dim} dims)"
BELOW_ALL = f"winner == 'GRP' and rival in ('PCA', 'SVD', 'KPCA') and {INDUCTIVE} and {ABOVE}"
FIGURE2: list[Rule] = [
    *on_every_task("STS-B"),
    lambda rows: negative_eigenvalues(rows),
    lead_of(
        "PCA",
        "STS-B",
        "ZHANG-S42-2",
        GAIN,
        role("simcse", least=150),
        lowest,
        where=f"{IN_EITHER} and {ABOVE}",
    ),
    like_pca("KPCA", "STS-B", "ZHANG-S42-5", role("simcse")),
    lambda rows: levelled(rows),
    lead_of(
        "SVD",
        "STS-B",
        "ZHANG-S42-4",
        "SVD less PCA, mean over sizes",
        role("mpnet", "simcse"),
        average,
        **BELOW,
    ),
    best_of_all("STS-B", "mpnet", "simcse"),
    lead_of(
        "GRP",
        "STS-B",
        "ZHANG-C-3",
        LOSS,
        role("mpnet", least=200),
        where=f"{INDUCTIVE} and {ABOVE}",
        **TURNED,
    ),
    Judge(
        "ZHANG-C-3",
        LOWEST,
        BELOW_ALL,
        highest,
        ("dim", "rival"),
        role("mpnet", least=200),
        direction=-1,
    ),
]
FIGURE3: list[Rule] = [
    *on_every_task("TREC"),
    like_pca("SVD", "TREC", "ZHANG-S42-3", encoders),
    like_pca("KPCA", "TREC", "ZHANG-S42-5", role("simcse")),
    *classified("TREC", "roberta"),
]
BEST_SVD = "best of SVD less full size ({setting}, {dim} dims)"
FIGURE4: list[Rule] = [
    *on_every_task("SICK-E"),
    *classified("SICK-E", "roberta", "xlm-r"),
    lead_of("SVD", "SICK-E", "ZHANG-C-1", BEST_SVD, role("xlm-r"), where=INDUCTIVE, needs=XLM_R),
    lead_of("SVD", "SICK-E", "ZHANG-C-1", BEST_SVD, role("xlm-r"), where=TRANSDUCTIVE),
    lambda rows: others_below_pca(rows),
    lambda rows: first_of_five(rows),
]


def judged(
    rules: Sequence[Rule],
    rows: pd.DataFrame,
    folded: Sequence[str] = FOLDED,
) -> list[Measurement]:
    """The measurements of rows, methods with a draw of their own aside without noise between
    seeds.
    """
    fixed = partial(
        judge, rules, fixed=lambda cell: not any(name in cell["method"].iat[0] for name in RANDOM)
    )
    return whole(fixed, folded, parsed(rows))


figure2 = partial(judged, FIGURE2, folded=["ZHANG-C-3"])
figure3, figure4 = (partial(judged, rules) for rules in (FIGURE3, FIGURE4))
"""Rows to what STS-B, the kernel's eigenvalues included, TREC and SICK-E can say."""


def random_projection_is_blind(rows: pd.DataFrame, task: str) -> Iterable[Measurement]:
    """Random directions are drawn before a sentence is seen: fitted on more of them they are the
    very same.
    """
    between = rows[(rows["setting"] == BETWEEN) & (rows["method"] == "GRP − GRP")]
    if len(between):
        largest, runs = 100 * float(between["value"].abs().max()), int(between["seed"].nunique())
        what = f"{task}: largest difference of GRP between the settings, {len(between)} cells"
        yield Measurement(
            "ZHANG-S42-9",
            "sameness",
            largest,
            largest,
            largest,
            margin=0.0,
            seeds=runs,
            what=what,
        )


def ranks_behind(rows: pd.DataFrame) -> tuple[str, dict[str, Estimate]]:
    """The most encoders that were ranked together, and by method its mean rank less PCA's, with
    joint intervals.
    """
    kept = rows[rows["metric"] == RANKS]
    if kept.empty:
        return "", {}
    # ranks of near equals can move one way only: the farther end of an interval counts on both
    # sides
    reach = np.maximum(kept["value"] - kept["ci_low"], kept["ci_high"] - kept["value"])
    kept = kept.assign(ci_low=kept["value"] - reach, ci_high=kept["value"] + reach)
    seen = max(kept["setting"].unique(), key=lambda names: names.count(", "))
    own = kept[kept["setting"] == seen].groupby("method", sort=False)
    return seen, together({str(name): scaled(estimate(cell), 0.01) for name, cell in own})


def over_tasks(rows: pd.DataFrame) -> tuple[str, dict[str, Estimate]]:
    """`ranks_behind`, the mean of the three tasks; nothing where one is lacking."""
    kept = rows[rows["metric"] == RANKS]
    found = [ranks_behind(own) for _, own in kept.groupby("dataset", sort=False)]
    if len({seen for seen, _ in found}) != 1 or len(found) < TASKS:
        return "", {}
    parts = {method: [at[method] for _, at in found] for method in found[0][1]}
    return found[0][0], together({m: mean(own, same_items=False) for m, own in parts.items()})


def first_of_five(rows: pd.DataFrame) -> Iterable[Measurement]:
    """How many ranks PCA stands before each of the others, over all tasks: all of them are claimed
    to be behind.
    """
    seen, at = over_tasks(rows)
    if at:
        method, behind = lowest(at)
        what = (
            f"mean rank of {method} of five methods less PCA's, over {TASKS} tasks, "
            "the smallest of four such leads"
        )
        yield effect("ZHANG-S42-13", behind, what, network=seen)


def levelled(rows: pd.DataFrame) -> Iterable[Measurement]:
    """How many of the five lose at most a point from their largest size to 300 of the paper's
    1,024.
    """
    for facts, own in role("simcse", least=300)(rows):
        encoder = str(facts["encoder"])
        at = {method: lead(own, encoder, method, "inductive") for method in ZHANG_METHODS}
        shared = set.intersection(*(set(leads) for leads in at.values()))
        if len(shared) < 2:
            return
        near = min(shared, key=lambda d: abs(d - facts["least"]))
        gains = {method: leads[max(leads)] - leads[near] for method, leads in at.items()}
        level = of_parts(list(gains.values()), lambda gain: (gain <= 1.0).sum(-1).astype(float))
        seen = ", ".join(f"{method} {e.value:.1f}" for method, e in gains.items())
        what = (
            f"STS-B, {encoder}: methods of five level at {near} of {facts['full']} "
            f"dims (gain beyond: {seen})"
        )
        yield effect("ZHANG-S42-14", level, what, null=2.5, network=encoder)


def negative_eigenvalues(rows: pd.DataFrame) -> Iterable[Measurement]:
    """The smallest eigenvalue over kernels, encoder by encoder; below rounding is the claim."""
    kept = rows[rows["metric"] == "smallest_eigenvalue"]
    for encoder, own in kept.groupby("backbone", sort=False):
        least = own.loc[own["value"].idxmin()]
        # a share of 1e-12 of the largest is what rounding can do: in units of it, so that a table
        # shows it
        value = float(np.sign(least["value"]) * np.log10(max(abs(least["value"]) / 1e-12, 1.0)))
        said = (
            f"smallest eigenvalue of {least['method']} on {encoder} "
            f"({least['value']:.1e} of the largest)"
        )
        fields: dict[str, Any] = {"network": str(encoder), "seeds": int(own["seed"].nunique())}
        fields["what"] = f"{said}: sign × orders of magnitude above rounding (1e-12)"
        yield Measurement("ZHANG-S42-7", "effect", value, value, value, direction=-1, **fields)


def others_below_pca(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On the multilingual encoder, the method that stays farthest below PCA, fitted
    transductively.
    """
    what, options = (
        "{}, the lowest of the others, less PCA",
        {"rival": "PCA", "where": TRANSDUCTIVE},
    )
    others = {method: what.format(method) for method in ZHANG_METHODS[1:]}
    rules = [
        lead_of(m, "SICK-E", "ZHANG-C-1", said, role("xlm-r"), average, **options)
        for m, said in others.items()
    ]
    return sorted(judged(rules, rows), key=lambda m: m.value)[:1]
