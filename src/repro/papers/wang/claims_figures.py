"""What Figures 2 to 4 of Wang et al. (2023) claim, judged by their rows; `claims.py` has the
tables.

"At every dim" and "for every network" are judged where the claim is hardest to hold. The paper's
dims are read as shares of the network's full size, Figure 4's as printed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise
from math import log2

import numpy as np
import pandas as pd

from repro.evaluation.seeds import Estimate, estimate, estimates, of_parts, scaled
from repro.evaluation.stats import Floats
from repro.methods import AVERAGE
from repro.report.judge import (
    Judge,
    Measurement,
    Rule,
    effect,
    farthest,
    highest,
    judge,
    lowest,
    ratio,
    trend,
    whole,
)
from repro.report.tables import paper_values

SIZES = {"repro-tiny": 128, "repro-mini": 256, "all-MiniLM-L6-v2": 384, "e5-small-en": 384}
SIZES |= dict.fromkeys(("all-mpnet-base-v2", "roberta-base", "bert-base-uncased"), 768)
"""Full sizes of networks with rows; to ask the networks themselves would load torch."""
PAPER_HIDDEN = 768
PAPER_OPTIMAL = {"trec": 768, "stsb": 256, "cr": 256, "mrpc": 16}
"""Figure 2's smallest dims that keep the best score."""
SMALL_DIM = 64  # the largest dim that the paper's small ones, 64 to 8, hold
SCORES = "metric in ('spearman', 'accuracy') and readout == 'pooler'"


def judged(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """What the rows of each network say of the rules of a figure or table; they get a column
    `full`, its full size.

    A network that is not in `SIZES` has the size given, or its largest dim. What a rule says
    without naming anybody is said of the network whose rows it read.
    """
    found = []
    for name, own in rows.groupby("backbone", sort=False, dropna=False):
        size = SIZES.get(str(name)) or full or int(own["dim"].max())
        found += [
            replace(m, network=m.network or str(name)) for m in judge(rules, own.assign(full=size))
        ]
    return found


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Without STS-B's test rows of networks whose average over the seven sets is known, which is
    surer.
    """
    surer = rows["backbone"].isin(rows.loc[rows["dataset"] == AVERAGE, "backbone"].unique())
    scores = (rows["dataset"] == "stsb") & (rows["metric"] != "train_seconds")
    return rows[~(surer & scores & ~rows["setting"].fillna("").str.startswith("dev"))]


def surest(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """What the surest scores say of some rules."""
    return judged(rules, averaged(rows), full)


def trending(claim: str, query: str, direction: int, what: str, paper: float | None = None) -> Rule:
    """A rule: the values rise (1) or fall (-1) with the dim, by Kendall's tau; three dims at
    least.
    """

    def rule(rows: pd.DataFrame) -> Iterator[Measurement]:
        own = rows.query(query, engine="python")
        if own["dim"].nunique() >= 3:
            yield trend(claim, own, direction, what, paper=paper)

    return rule


# Figure 2: score against dim


def changes_of_score(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F2-1 above the full size; F2-2, F2-3 and F2-4 below it; paired over items where rows
    hold such changes.
    """
    full = int(rows["full"].iloc[0])
    for task, scores in rows.query(SCORES).groupby("dataset"):
        at = dict(reversed(estimates(scores).items()))
        if full not in at:
            continue
        changes = rows[rows["metric"].str.endswith("_change") & (rows["dataset"] == task)]
        loss = {(w, d): at[w] - at[d] for w, d in combinations(at, 2)}
        for (wider, d), cell in changes.groupby(["setting", "dim"]):
            loss[int(wider.removeprefix("from ")), int(d)] = scaled(estimate(cell), -1.0)
        wide, narrow = (
            {d: loss[d, full] for d in at if d > full},
            {d: loss[full, d] for d in at if d < full},
        )
        if wide:
            yield effect(
                "WANG-F2-1",
                farthest(wide)[1],
                f"{task}: largest change above {full} dims",
                test="sameness",
            )
        if task == "trec" and narrow:
            d, e = lowest({d: loss[w, d] for w, d in pairwise([full, *narrow])})
            yield effect(
                "WANG-F2-2",
                e,
                f"smallest loss of trec accuracy at a step down (to dim {d})",
            )
        if task in ("stsb", "cr") and (third := third_of(narrow, full)):
            smallest = 8 if 8 in narrow else min(narrow)
            what = f"{task}: loss from {full} to {third} dims, claimed to be less than 1 point"
            yield effect("WANG-F2-3", loss[full, third], what, null=1.0, direction=-1)
            if smallest < third:
                what = (
                    f"{task}: loss from {third} to {smallest} dims, "
                    "claimed to be more than 3 points"
                )
                yield effect("WANG-F2-3", loss[third, smallest], what, null=3.0)
        if task == "mrpc" and narrow:
            what = f"mrpc: largest loss below {full} dims"
            yield effect("WANG-F2-4", farthest(narrow)[1], what, test="sameness", margin=3.0)


def third_of(dims: Iterable[int], full: int) -> int | None:
    """The dim that stands for the paper's 256 of 768: nearest to a third, within a factor of the
    root of 2.
    """
    near = [d for d in dims if abs(log2(3 * d / full)) <= 0.5]
    return min(near, key=lambda d: abs(log2(3 * d / full)), default=None)


def log_optimal(dims: Sequence[int], full: int, scores: Floats) -> Floats:
    """log₂ of the smallest dim whose score (…, C), at ascending dims, is within a point of the best
    (method-optimal-dim in the book).

    The dim is counted as a share of the full size.
    """
    good = scores >= scores.max(-1, keepdims=True) - 1.0
    return np.log2(np.asarray(dims, float))[good.argmax(-1)] - log2(full)


def optimal_dims_judged(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F2-5, as shares of the full size, and F2-6: the optimal dim of every seed, moved by the
    items.

    Without a dim near a third there is nowhere between for an optimum to be.
    """
    full = int(rows["full"].iloc[0])
    tasks = {str(task): estimates(own) for task, own in rows.query(SCORES).groupby("dataset")}
    tasks = {task: at for task, at in tasks.items() if full in at and third_of(at, full)}
    for task, printed in PAPER_OPTIMAL.items():
        if task not in tasks:
            continue
        at = tasks[task]
        best = of_parts(list(at.values()), partial(log_optimal, list(at), full))
        if printed == PAPER_HIDDEN:
            yield effect(
                "WANG-F2-5",
                best,
                f"{task}: log2(optimal dim / hidden size)",
                test="sameness",
            )
        else:
            what = f"{task}: optimal dim / hidden size"
            yield ratio("WANG-F2-5", best, what, null=1.0, paper=printed / PAPER_HIDDEN)
    if len(tasks) >= 4:
        ends = np.cumsum([len(at) for at in tasks.values()])[:-1]

        def below(scores: Floats) -> Floats:
            parts = zip(tasks.values(), np.split(scores, ends, axis=-1), strict=True)
            return np.sum(
                [log_optimal(list(at), full, part) < 0 for at, part in parts],
                axis=0,
                dtype=float,
            )

        count = of_parts([e for at in tasks.values() for e in at.values()], below)
        what = f"tasks of {len(tasks)} whose optimal dim is below the hidden size"
        yield effect("WANG-F2-6", count, what, null=2.5)


TREC = f"{SCORES} and dataset == 'trec' and dim <= full"
FIGURE2: list[Rule] = [
    changes_of_score,
    trending("WANG-F2-2", TREC, 1, "trec accuracy against dim"),
    optimal_dims_judged,
]
# On MRPC, whose test split is small
figure2 = partial(whole, partial(judged, FIGURE2), ["WANG-F2-4"])


# Figure 3: losses of the encoder and of the pooler


def network_names(rows: pd.DataFrame) -> pd.Series:
    """The network of every row: the backbone, with `:blocks` where blocks were taken off."""
    cut = ":" + rows["layer"].astype("string")
    return (rows["backbone"].astype("string") + cut.fillna("")).rename("network")


def figure3(rows: pd.DataFrame) -> list[Measurement]:
    """WANG-F3-1 and F3-2 for every network, F3-2 at the small dim where it is weakest.

    Losses measured from the best encoder cannot be negative and judge nothing: the encoder's is
    then taken from the widest pooler's.
    """
    found: list[Measurement] = []
    for network, own in averaged(rows).groupby(network_names(rows), sort=False):
        alone = "metric == 'spearman' and readout == 'encoder'"
        found += judge(
            [trending("WANG-F3-1", alone, 1, f"encoder score against dim, {network}")],
            own,
        )
        at = estimates(own.query(alone))
        loss = {
            part: estimates(own[own["metric"] == f"{part}_loss"]) for part in ("encoder", "pooler")
        }
        full = int(own["setting"].str.extract(r"reference=(\d+)", expand=False).iloc[0])
        if own["setting"].str.endswith("(best)").any():
            full = max(at)
            loss["encoder"] = {d: at[full] - e for d, e in at.items()}
        narrow = [d for d in at if d < full]
        if narrow:
            least = 8 if 8 in narrow else min(narrow)
            found.append(
                effect(
                    "WANG-F3-1",
                    loss["encoder"][least],
                    f"encoder loss at {least} dims, {network}",
                )
            )
        for part, at_dims in loss.items():
            if small := {d: at_dims[d] for d in narrow if d <= SMALL_DIM}:
                d, e = lowest(small)
                what = f"smallest {part} loss at {SMALL_DIM} dims or fewer ({network}, dim {d})"
                found.append(effect("WANG-F3-2", e, what))
    return found


# Figure 4: encoders are ranked by what they score alone, on the dev pairs where the rows hold them,
# so that the pairs that rank are not the pairs that judge

EXCHANGED = "setting.str.startswith('test') and metric == 'spearman_gain' and readout == 'pooler'"
"""What an encoder gains over the pooler's own."""


def printed_cells() -> pd.DataFrame:
    """The two printed cells of the grid, as rows of methods `encoder_16` and `encoder_64` at dim
    16.
    """
    cells = paper_values("wang2023", "text").query("table == 'fig4' and metric == 'spearman'")
    return cells.assign(method=cells["method"].str.split(" ").str[0], readout="pooler")


def on_dev(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the dev pairs, or all where there are none."""
    dev = rows["setting"].fillna("").str.startswith("dev")
    return rows[dev if dev.any() else ~dev]


def ranking(rows: pd.DataFrame) -> pd.DataFrame:
    """Score of each encoder alone (seeds × dims), on dev if there is one."""
    kept = on_dev(rows).query("metric == 'spearman' and readout == 'encoder'")
    return kept.pivot_table(index="seed", columns="dim", values="value")


def exchanges(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F4-1: of all exchanges for an encoder that is better alone, the share that raise the
    score, seed by seed.
    """
    gains = rows.query(EXCHANGED, engine="python")
    gains = gains.assign(encoder=gains["method"].str.removeprefix("encoder_").astype(int))
    ranks = ranking(rows).dropna()
    gains = gains[
        gains["encoder"].isin(ranks) & gains["dim"].isin(ranks) & gains["seed"].isin(ranks.index)
    ]
    cells = {key: estimate(own) for key, own in gains.groupby(["encoder", "dim"])}
    alone = [Estimate(scores.to_dict()) for _, scores in ranks.items()]
    encoder, own = ([list(ranks).index(key[side]) for key in cells] for side in (0, 1))

    def raised(numbers: Floats) -> Floats:
        gain, score = np.split(numbers, [len(cells)], axis=-1)
        better = score[..., encoder] > score[..., own]
        return 100 * (better & (gain > 0)).sum(-1) / np.maximum(better.sum(-1), 1)

    if cells:
        share = of_parts([*cells.values(), *alone], raised)
        what = "share of exchanges for an encoder better alone that raise the score, in %"
        yield effect("WANG-F4-1", share, what, null=50.0)


def exchanged_example(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F4-2, which supposes that encoder_64 is better alone than encoder_16."""
    what, query = (
        "gain of encoder_64 over encoder_16 under pooler_16",
        "method == 'encoder_64' and dim == 16",
    )
    printed = 100 * printed_cells().set_index("method")["value"]
    paper = float(printed["encoder_64"] - printed["encoder_16"])
    rule = Judge("WANG-F4-2", what, f"{EXCHANGED} and {query}", paper=paper)
    alone = ranking(rows).mean()
    worse = alone.get(64, 0.0) <= alone.get(16, 0.0)
    for m in rule.measure(rows):
        yield (
            replace(m, unmet="the premise: encoder_64 is not better alone than encoder_16 here")
            if worse
            else m
        )


BEST = "lead of encoder_{dim}, the best of the narrower, over that of the widest pooler (SimCSE)"
ALONE = "metric == 'spearman_gain' and readout == 'encoder'"  # on the pairs that rank
FIGURE4: list[Rule] = [
    exchanges,
    exchanged_example,
    Judge("WANG-F4-3", BEST, ALONE, highest, each=lambda rows: [({}, on_dev(rows))]),
]
figure4 = partial(surest, FIGURE4)
