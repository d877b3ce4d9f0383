"""What Zhang et al. (2024) claim of score against size, ZHANG-S42-1 … 14 and ZHANG-C-1 … 3, judged on rows.

Scores in points, losses in per cent of full size. A size of the paper's encoders is read as the same share of ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from repro.evaluation.stats import Floats
from repro.methods import FULL_SIZE, ZHANG_METHODS
from repro.papers.zhang.losses import (
    AUTOENCODER,
    BETWEEN,
    ENCODERS,
    RANDOM,
    WITHIN,
    encoder_for_role,
    encoders_of,
    full_size,
    lead,
)
from repro.report.estimates import average, average_size, estimate, highest, of_parts
from repro.report.judge import Facts, Judge, Rule, Split, effect, judge
from repro.report.verdict import Measurement

IN_EITHER = f"setting in {WITHIN}"
OVER_FULL = f"winner in {ZHANG_METHODS} and rival == '{FULL_SIZE}'"
NAMED_ENCODERS = "msmarco-roberta-base-v2 and paraphrase-xlm-r-multilingual-v1"


def encoders(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
    """Every encoder by itself."""
    for name in encoders_of(rows):
        full, score = full_size(rows, name)
        yield {"encoder": name, "full": full, "score": score}, rows[rows["backbone"] == name]


def role(*roles: str, least: int = 0) -> Split:
    """The encoders that stand for some of the paper's; `least` is a size of the paper's, as the same share of ours."""

    def split(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
        known = {str(facts["encoder"]): (facts, own) for facts, own in encoders(rows)}
        for name in roles:
            if encoder := encoder_for_role(rows, name):
                facts, own = known[encoder]
                yield {**facts, "least": least / ENCODERS[name][1] * facts["full"]}, own

    return split


def per_cent_lost(facts: Facts) -> float:
    """A lead over full size as a loss in per cent of it; the score it is divided by is taken as exact."""
    return -100 / float(facts["score"])


def turned_round(facts: Facts) -> float:
    """A lead as the other's lead."""
    return -1.0


def on_every_task(task: str) -> list[Rule]:
    """What the paper says of all three tasks."""
    return [
        Judge(
            "ZHANG-S42-1",
            task + ", {encoder}: per cent lost by PCA at {dim} of {full} dims ({setting})",
            f"winner == 'PCA' and rival == '{FULL_SIZE}' and {IN_EITHER}",
            highest,
            ("setting", "dim"),
            encoders,
            near=0.5,
            scale=per_cent_lost,
            null=1.0,
            direction=-1,
        ),
        Judge(
            "ZHANG-S42-8",
            task + ", {encoder}: largest lead of GRP over full size ({dim} dims)",
            f"winner == 'GRP' and rival == '{FULL_SIZE}' and setting == 'inductive'",
            highest,
            each=role("simcse"),
            direction=-1,
        ),
        lambda rows: random_projection_is_blind(rows, task),
        *(
            Judge(
                "ZHANG-S42-11",
                f"{task}, {{encoder}}, {method}: transductive less inductive, mean over sizes",
                f"winner == rival == '{method}' and setting == '{BETWEEN}'",
                average,
                each=encoders,
            )
            for method in ("PCA", "SVD", "KPCA", AUTOENCODER)
        ),
        lambda rows: first_of_five(rows, task),
    ]


def like_pca(claim: str, method: str, task: str, each: Split) -> Judge:
    """A method whose scores are those of PCA."""
    return Judge(
        claim,
        f"{task}, {{encoder}}: mean absolute difference of {method} and PCA",
        f"winner == '{method}' and rival == 'PCA' and {IN_EITHER}",
        average_size,
        ("setting", "dim"),
        each,
        test="sameness",
    )


def best_of_all(task: str, *roles: str) -> Judge:
    """A gain over full size by any method."""
    return Judge(
        "ZHANG-S42-12",
        task + ", {encoder}: best of all reduced less full size ({winner}, {setting}, {dim} dims)",
        f"{OVER_FULL} and {IN_EITHER}",
        highest,
        ("winner", "setting", "dim"),
        role(*roles),
    )


def classified(task: str, *kernel_gains: str) -> list[Rule]:
    """What the paper says of both classification tasks; `kernel_gains` are the encoders that kernel PCA improves."""
    return [
        Judge(
            "ZHANG-S42-10",
            task + ": roughness of the autoencoder less the roughest other, smallest ({backbone}, {setting})",
            "metric == 'roughness_lead'",
            over=("backbone", "setting"),
        ),
        Judge(
            "ZHANG-S42-6",
            task + ", {encoder}: PCA less KPCA, mean over sizes, beyond a point",
            f"winner == 'KPCA' and rival == 'PCA' and {IN_EITHER}",
            average,
            ("setting", "dim"),
            role("mpnet"),
            scale=turned_round,
            null=1.0,
        ),
        best_of_all(task, "roberta", "xlm-r"),
        Judge(
            "ZHANG-C-2",
            task + ", {encoder}: best of KPCA less full size ({setting}, {dim} dims)",
            f"winner == 'KPCA' and rival == '{FULL_SIZE}' and {IN_EITHER}",
            highest,
            ("setting", "dim"),
            role(*kernel_gains),
            needs=NAMED_ENCODERS,
        ),
    ]


FIGURE2: list[Rule] = [
    *on_every_task("STS-B"),
    lambda rows: negative_eigenvalues(rows),
    Judge(
        "ZHANG-S42-2",
        "STS-B, {encoder}: smallest lead of PCA over full size above {least:.0f} dims ({dim}, {setting})",
        f"winner == 'PCA' and rival == '{FULL_SIZE}' and {IN_EITHER} and dim > @least",
        over=("dim", "setting"),
        each=role("simcse", least=150),
    ),
    like_pca("ZHANG-S42-5", "KPCA", "STS-B", role("simcse")),
    lambda rows: levelled(rows),
    Judge(
        "ZHANG-S42-4",
        "STS-B, {encoder}: SVD less PCA, mean over sizes",
        f"winner == 'SVD' and rival == 'PCA' and {IN_EITHER}",
        average,
        ("setting", "dim"),
        role("mpnet", "simcse"),
        direction=-1,
    ),
    best_of_all("STS-B", "mpnet", "simcse"),
    Judge(
        "ZHANG-C-3",
        "STS-B, {encoder}: largest loss of GRP above {least:.0f} dims ({dim} dims)",
        f"winner == 'GRP' and rival == '{FULL_SIZE}' and setting == 'inductive' and dim > @least",
        highest,
        each=role("mpnet", least=200),
        scale=turned_round,
        null=3.0,
        direction=-1,
    ),
    Judge(
        "ZHANG-C-3",
        "STS-B, {encoder}: GRP less the lowest of PCA, SVD and KPCA, largest ({dim} dims)",
        "winner == 'GRP' and rival in ('PCA', 'SVD', 'KPCA') and setting == 'inductive' and dim > @least",
        highest,
        ("dim", "rival"),
        role("mpnet", least=200),
        direction=-1,
    ),
]
FIGURE3: list[Rule] = [
    *on_every_task("TREC"),
    like_pca("ZHANG-S42-3", "SVD", "TREC", encoders),
    like_pca("ZHANG-S42-5", "KPCA", "TREC", role("simcse")),
    *classified("TREC", "roberta"),
]
FIGURE4: list[Rule] = [
    *on_every_task("SICK-E"),
    *classified("SICK-E", "roberta", "xlm-r"),
    *(
        Judge(
            "ZHANG-C-1",
            f"SICK-E, {{encoder}}: best of SVD less full size ({setting}, {{dim}} dims)",
            f"winner == 'SVD' and rival == '{FULL_SIZE}' and setting == '{setting}'",
            highest,
            each=role("xlm-r"),
            needs="paraphrase-xlm-r-multilingual-v1" if setting == "inductive" else "",
        )
        for setting in WITHIN
    ),
    lambda rows: others_below_pca(rows),
]


def judged(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """The measurements of rows whose method is one, or `winner − rival`."""
    sides = rows["method"].str.split(" − ", expand=True).reindex(columns=[0, 1])
    rows = rows.assign(winner=sides[0].astype(object), rival=sides[1].astype(object))
    return judge(rules, rows, fixed=lambda cell: not {cell["winner"].iat[0], cell["rival"].iat[0]} & RANDOM)


figure2, figure3, figure4 = (partial(judged, rules) for rules in (FIGURE2, FIGURE3, FIGURE4))
"""rows to what STS-B, the kernel's eigenvalues included, TREC and SICK-E can say"""


def random_projection_is_blind(rows: pd.DataFrame, task: str) -> Iterable[Measurement]:
    """Random directions are drawn before a sentence is seen: fitted on more of them they are the very same."""
    between = rows[(rows["setting"] == BETWEEN) & (rows["method"] == "GRP − GRP")]
    if len(between):
        largest = 100 * float(between["value"].abs().max())
        what = f"{task}: largest difference of GRP between the settings, {len(between)} cells"
        runs = int(between["seed"].nunique())
        yield Measurement("ZHANG-S42-9", "sameness", largest, largest, largest, margin=0.0, seeds=runs, what=what)


def first_of_five(rows: pd.DataFrame, task: str) -> Iterable[Measurement]:
    """How many ranks PCA stands before the next best of the five, over encoders, settings and sizes that all have.

    The next best is the best of the others over all seeds; of one encoder alone nothing is said.
    """
    kept = rows[rows["metric"].isin(["spearman", "accuracy"]) & rows["setting"].isin(WITHIN)]
    kept = kept[kept["method"].isin(ZHANG_METHODS)]
    cells = {
        key: {str(method): own for method, own in cell.groupby("method")}
        for key, cell in kept.groupby(["backbone", "setting", "dim"])
    }
    cells = {key: own for key, own in cells.items() if len(own) == len(ZHANG_METHODS)}
    encoders_seen = dict.fromkeys(str(backbone) for backbone, _, _ in cells)
    if len(cells) < 3 or len(encoders_seen) < 2:
        return  # sizes of one encoder move together: they are one cell, not several
    parts = [
        estimate(own[method], deterministic=method not in RANDOM) for own in cells.values() for method in ZHANG_METHODS
    ]

    def ranks(scores: Floats) -> Floats:
        at = scores.reshape(*scores.shape[:-1], len(cells), len(ZHANG_METHODS))
        return rankdata(-at, axis=-1).mean(-2)

    overall = ranks(np.array([e.value for e in parts]))
    second = 1 + int(overall[1:].argmin())
    ahead = of_parts(parts, lambda scores: ranks(scores)[..., second] - ranks(scores)[..., 0])
    what = (
        f"{task}: mean rank of {ZHANG_METHODS[second]}, the best of the others, less PCA's {overall[0]:.2f} "
        f"({len(cells)} cells)"
    )
    yield replace(effect("ZHANG-S42-13", ahead, what), network=", ".join(encoders_seen))


def levelled(rows: pd.DataFrame) -> Iterable[Measurement]:
    """How many of the five lose at most a point from their largest size to 300 of the paper's 1,024."""
    for facts, own in role("simcse", least=300)(rows):
        encoder = str(facts["encoder"])
        at = {method: lead(own, encoder, method, FULL_SIZE, "inductive") for method in ZHANG_METHODS}
        shared = set.intersection(*(set(leads) for leads in at.values()))
        if len(shared) < 2:
            return
        near = min(shared, key=lambda d: abs(d - facts["least"]))
        gains = {method: leads[max(leads)] - leads[near] for method, leads in at.items()}
        level = of_parts(list(gains.values()), lambda gain: (gain <= 1.0).sum(-1).astype(float))
        seen = ", ".join(f"{method} {e.value:.1f}" for method, e in gains.items())
        size = f"{near} of {facts['full']} dims"
        what = f"STS-B, {encoder}: methods of five that are level at {size} (gain beyond: {seen})"
        yield replace(effect("ZHANG-S42-14", level, what, null=2.5), network=encoder)


def negative_eigenvalues(rows: pd.DataFrame) -> Iterable[Measurement]:
    """The smallest eigenvalue over encoders and kernels; below rounding is the claim."""
    kept = rows[rows["metric"] == "smallest_eigenvalue"]
    if kept.empty:
        return
    worst = kept.loc[kept["value"].idxmin()]
    # a share of 1e-12 of the largest is what rounding can do: in units of it, so that a table shows it
    value = float(np.sign(worst["value"]) * np.log10(max(abs(worst["value"]) / 1e-12, 1.0)))
    what = (
        f"smallest eigenvalue of {worst['method']} on {worst['backbone']} ({worst['value']:.1e} of the largest): "
        "sign × orders of magnitude above rounding (1e-12)"
    )
    runs = int(kept["seed"].nunique())
    yield Measurement("ZHANG-S42-7", "effect", value, value, value, direction=-1, seeds=runs, what=what)


def others_below_pca(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On the multilingual encoder, the method that stays farthest below PCA, fitted transductively."""
    found = judged(
        [
            Judge(
                "ZHANG-C-1",
                f"SICK-E, {{encoder}}: {method}, the lowest of the others, less PCA",
                f"winner == '{method}' and rival == 'PCA' and setting == 'transductive'",
                average,
                each=role("xlm-r"),
            )
            for method in ZHANG_METHODS[1:]
        ],
        rows,
    )
    return sorted(found, key=lambda m: m.value)[:1]
