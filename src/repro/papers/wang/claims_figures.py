"""What Figures 2 to 4 of Wang et al. (2023) claim, judged by their rows; `claims.py` has the tables.

"At every dim" and "for every network" are judged where the claim is hardest to hold. The paper's dims are read as
shares of the network's full size, Figure 4's as printed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log2, sqrt

import numpy as np
import pandas as pd

from repro.evaluation.stats import seed_half_width, wilson
from repro.report.compare import paper_values
from repro.report.judge import MARGIN_POINTS, Judge, Rule, effect, estimate, estimates, judge, sameness, trend
from repro.report.verdict import Measurement
from repro.types import InputError

SIZES = {"repro-tiny": 128, "repro-mini": 256, "all-MiniLM-L6-v2": 384, "roberta-base": 768, "bert-base-uncased": 768}
"""full sizes of networks with rows; to ask the networks themselves would load torch"""
PAPER_HIDDEN = 768
PAPER_OPTIMAL = {"trec": 768, "stsb": 256, "cr": 256, "mrpc": 16}
"""Figure 2's smallest dims that keep the best score"""
PAPER_OPT = (256, 768)
"""dims of the best encoder and of the widest pooler under SimCSE"""
SMALL_DIM = 64
"""the largest dim that the paper's small ones, 64 to 8, hold"""
SCORES = "metric in ('spearman', 'accuracy') and readout == 'pooler'"


def judged(rules: Sequence[Rule], rows: pd.DataFrame, full: int | None = None) -> list[Measurement]:
    """What the rows of each network say of the rules; they get a column `full`, the network's full size.

    Args:
        rules: of one figure or table.
        rows: of that figure or table.
        full: full size of a network that is not in `SIZES`.
    """
    found = []
    for name, own in rows.groupby("backbone", sort=False, dropna=False):
        size = full or SIZES.get(str(name)) or int(own["dim"].max())
        found += judge(rules, own.assign(full=size))
    return found


def trending(
    claim: str, query: str, direction: int, what: str, paper: Callable[[], float | None] = lambda: None
) -> Rule:
    """A rule: the values rise (1) or fall (-1) with the dim, by Kendall's tau; three dims at least."""

    def rule(rows: pd.DataFrame) -> Iterator[Measurement]:
        own = rows.query(query, engine="python")
        if len(at := estimates(own)) >= 3:
            yield trend(claim, own, at, direction, what, paper=paper())

    return rule


# Figure 2: score against dim


def optimal_dim(scores: Mapping[int, float], *, margin: float = MARGIN_POINTS) -> int:
    """The smallest dim whose score, in points, is within `margin` of the best (PROTOCOLS §3.6).

    Raises:
        InputError: for no score at all.
    """
    if not scores:
        raise InputError("no scores to choose an optimal dim from")
    best = max(scores.values())
    return min(dim for dim, score in scores.items() if score >= best - margin)


def optimal_dims(rows: pd.DataFrame) -> dict[str, int]:
    """Optimal dim of every task, from the pooler readout's scores averaged over seeds."""
    return {
        str(task): optimal_dim({d: e.value for d, e in estimates(group).items()})
        for task, group in rows.query(SCORES).groupby("dataset")
    }


def changes_of_score(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F2-1 above the full size; F2-3 and F2-4 below it."""
    full = int(rows["full"].iloc[0])
    for task, scores in rows.query(SCORES).groupby("dataset"):
        at = estimates(scores)
        if full not in at:
            continue
        change = {d: at[d] - at[full] for d in at if d != full}
        wide, narrow = [e for d, e in change.items() if d > full], [e for d, e in change.items() if d < full]
        if wide:
            yield sameness(
                "WANG-F2-1", max(wide, key=lambda e: abs(e.value)), f"{task}: largest change above {full} dims"
            )
        if task in ("stsb", "cr") and len(narrow) >= 2:
            third = min((d for d in at if d <= full), key=lambda d: abs(log2(d) - log2(full / 3)))
            smallest = 8 if 8 in at else min(at)
            yield sameness("WANG-F2-3", at[full] - at[third], f"{task}: loss from {full} to {third} dims")
            if smallest < third:
                what = f"{task}: loss from {third} to {smallest} dims, beyond 3 points"
                yield effect("WANG-F2-3", at[third] - at[smallest], what, null=3.0)
        if task == "mrpc" and narrow:
            what = f"mrpc: largest change below {full} dims"
            yield sameness("WANG-F2-4", max(narrow, key=lambda e: abs(e.value)), what, margin=3.0)


def optimal_dims_judged(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F2-5, as shares of the full size, and F2-6. Dims halve, so a factor of two is their resolution."""
    full, best, seeds = int(rows["full"].iloc[0]), optimal_dims(rows), int(rows["seed"].nunique())
    for task, printed in PAPER_OPTIMAL.items():
        if task not in best or not (rows["dim"] == full).any():
            continue
        share = best[task] / full
        if printed == PAPER_HIDDEN:
            value, what = log2(share), f"{task}: log2(optimal dim / hidden size)"
            yield Measurement("WANG-F2-5", "sameness", value, value - 0.5, value + 0.5, seeds=seeds, what=what)
        else:
            yield _ratio(
                "WANG-F2-5", share, sqrt(2), f"{task}: optimal dim / hidden size", seeds, printed / PAPER_HIDDEN
            )
    if len(best) >= 4:
        below = sum(dim < full for dim in best.values())
        what = f"tasks of {len(best)} whose optimal dim is below the hidden size"
        yield Measurement("WANG-F2-6", "effect", below, below, below, null=2.5, seeds=seeds, what=what)


def _ratio(claim: str, value: float, by: float, what: str, seeds: int, paper: float) -> Measurement:
    return Measurement(claim, "ratio", value, value / by, value * by, null=1.0, seeds=seeds, paper=paper, what=what)


FIGURE2: list[Rule] = [
    changes_of_score,
    trending("WANG-F2-2", f"{SCORES} and dataset == 'trec' and dim <= full", 1, "trec accuracy against dim"),
    optimal_dims_judged,
]


# Figure 3: losses of the encoder and of the pooler


def network_names(rows: pd.DataFrame) -> pd.Series:
    """The network of every row: the backbone, with `:blocks` where blocks were taken off."""
    cut = ":" + rows["layer"].astype("string")
    return (rows["backbone"].astype("string") + cut.fillna("")).rename("network")


def figure3(rows: pd.DataFrame) -> list[Measurement]:
    """WANG-F3-1 for every network, and F3-2 at the small dim and network where it is weakest.

    Losses that are measured from the best encoder cannot be negative: they judge nothing, and the encoder's loss is
    then taken from the widest pooler's.
    """
    found: list[Measurement] = []
    small: dict[str, list[Measurement]] = {"encoder": [], "pooler": []}
    for network, own in rows.groupby(network_names(rows), sort=False):
        alone = "metric == 'spearman' and readout == 'encoder'"
        found += judge([trending("WANG-F3-1", alone, 1, f"encoder score against dim, {network}")], own)
        at = estimates(own.query(alone))
        loss = {part: estimates(own[own["metric"] == f"{part}_loss"]) for part in small}
        full = int(own["setting"].str.extract(r"reference=(\d+)", expand=False).iloc[0])
        if own["setting"].str.endswith("(best)").any():
            full = max(at)
            loss["encoder"] = {d: at[full] - e for d, e in at.items()}
        narrow = [d for d in at if d < full]
        if narrow:
            least = 8 if 8 in narrow else min(narrow)
            found.append(effect("WANG-F3-1", loss["encoder"][least], f"encoder loss at {least} dims, {network}"))
        for part, lines in small.items():
            what = f"smallest {part} loss at {SMALL_DIM} dims or fewer ({network}, dim {{}})"
            lines += [effect("WANG-F3-2", loss[part][d], what.format(d)) for d in narrow if d <= SMALL_DIM]
    return [*found, *(min(lines, key=lambda m: m.value) for lines in small.values() if lines)]


# Figure 4: encoders are ranked by what they score alone, on the dev pairs where the rows hold them, so that the pairs
# that rank are not the pairs that judge

EXCHANGED = "setting.str.startswith('test') and metric == 'spearman_gain' and readout == 'pooler'"
"""what an encoder gains over the pooler's own"""


def printed_cells() -> pd.DataFrame:
    """The two printed cells of the grid, as rows of methods `encoder_16` and `encoder_64` at dim 16."""
    cells = paper_values("wang2023", "text").query("table == 'fig4' and metric == 'spearman'")
    return cells.assign(method=cells["method"].str.split(" ").str[0], readout="pooler")


def ranking(rows: pd.DataFrame) -> pd.DataFrame:
    """Score of each encoder alone (seeds × dims), on dev if there is one."""
    dev = rows["setting"].str.startswith("dev")
    kept = rows[dev if dev.any() else ~dev].query("metric == 'spearman' and readout == 'encoder'")
    return kept.pivot_table(index="seed", columns="dim", values="value")


def exchanges(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F4-1: of all exchanges for an encoder that is better alone, the share that raise the score.

    The interval is the wider of two: Wilson's over the pairs of one seed, and, from three seeds, t over the seeds'
    shares. Pairs share encoders, so Wilson's alone is somewhat narrow.
    """
    gains = rows.query(EXCHANGED, engine="python")
    gains = gains.assign(encoder=gains["method"].str.removeprefix("encoder_").astype(int))
    ranks, shares, pairs = ranking(rows), [], 0
    for seed, own in gains.groupby("seed"):
        if seed not in ranks.index:
            continue
        alone = ranks.loc[seed]
        better = own[alone.reindex(own["encoder"]).to_numpy() > alone.reindex(own["dim"]).to_numpy()]
        if len(better):
            shares.append(float((better["value"] > 0).mean()))
            pairs = max(pairs, len(better))
    if not shares:
        return
    value = float(np.mean(shares))
    share = wilson(value * pairs, pairs)
    low, high = share.low, share.high
    if len(shares) >= 3:
        half = seed_half_width(shares)
        low, high = min(low, max(0.0, value - half)), max(high, min(1.0, value + half))
    what = f"share of {pairs} exchanges for an encoder better alone that raise the score, in %"
    yield Measurement(
        "WANG-F4-1", "effect", 100 * value, 100 * low, 100 * high, null=50.0, seeds=len(shares), what=what
    )


def best_encoder(rows: pd.DataFrame) -> Iterator[Measurement]:
    """WANG-F4-3: does the best encoder come from a narrower pooler than the widest, and by how much does it lead?"""
    ranks = ranking(rows)
    if len(ranks.columns) < 2:
        return
    widest, best = int(max(ranks.columns)), int(ranks.mean().sort_index(ascending=False).idxmax())
    what = "dim of the best encoder / widest dim (SimCSE)"
    # dims halve from one candidate to the next: half a step either way is the resolution
    yield _ratio("WANG-F4-3", best / widest, sqrt(2), what, len(ranks), PAPER_OPT[0] / PAPER_OPT[1])
    if best != widest:
        leads = rows.query("metric == 'spearman_gain' and readout == 'encoder' and dim == @best")
        leads = leads[leads["setting"].str.startswith("test")]
        what = f"lead of encoder_{best}, the best on the ranking pairs, over encoder_{widest} (SimCSE)"
        yield effect("WANG-F4-3", estimate(leads), what)


def printed_gain() -> float:
    """What the exchange of the paper's example gains, in points."""
    printed = 100 * printed_cells().set_index("method")["value"]
    return float(printed["encoder_64"] - printed["encoder_16"])


FIGURE4: list[Rule] = [
    exchanges,
    Judge(
        "WANG-F4-2",
        "gain of encoder_64 over encoder_16 under pooler_16",
        f"{EXCHANGED} and method == 'encoder_64' and dim == 16",
        paper=printed_gain,
    ),
    best_encoder,
]
