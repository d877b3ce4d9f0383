"""Claims on the grid of encoders and poolers: Figure 4, and the best encoder of Table 1's caption.

Encoders are ranked by what they score alone, on the dev pairs where the rows hold them, so that the pairs that rank
are not the pairs that judge. Dims are the printed ones; only the best encoder's is read relative to the widest.
"""

from math import sqrt

import numpy as np
import pandas as pd

from repro.evaluation.stats import seed_half_width, wilson
from repro.report.compare import paper_values
from repro.report.judge import effect, estimate
from repro.report.verdict import Measurement

PAPER_PAIR = (64, 16)
"""encoder and pooler of the paper's example, against encoder and pooler 16"""
PAPER_OPT = (256, 768)
"""dims of the best encoder and of the widest pooler under SimCSE"""


def grid_of(rows: pd.DataFrame, metric: str = "spearman") -> pd.DataFrame:
    """Encoders × poolers, means over seeds, wide ones first."""
    of_grid = rows["method"].str.startswith("encoder_")
    kept = rows[of_grid & (rows["metric"] == metric) & (rows["readout"] == "pooler")]
    table = kept.assign(encoder=_encoder(kept)).pivot_table(index="encoder", columns="dim", values="value")
    return table.sort_index(ascending=False).sort_index(axis=1, ascending=False)


def printed_cells() -> pd.DataFrame:
    """The two printed cells of the grid, as rows of methods `encoder_16` and `encoder_64` at dim 16."""
    text = paper_values("wang2023", "text")
    cells = text[(text["table"] == "fig4") & (text["metric"] == "spearman")]
    return cells.assign(method=cells["method"].str.split(" ").str[0], readout="pooler")


def figure4(rows: pd.DataFrame) -> list[Measurement]:
    """Claims WANG-F4-1 and F4-2, and WANG-F4-3 under SimCSE, from the rows of Figure 4.

    Args:
        rows: what `grid_rows` gives for the test pairs, and for the dev pairs too if they are to rank the encoders.
    """
    split = rows["setting"].str.split(",").str[0]
    test, dev = rows[split == "test"], rows[split == "dev"]
    ranks = _alone(dev if len(dev) else test)
    found = []
    share = _share_improving(test, ranks)
    if share is not None:
        low, high, value, seeds, pairs = share
        what = f"share of {pairs} exchanges for an encoder better alone that raise the score, in %"
        found.append(Measurement("WANG-F4-1", "effect", value, low, high, null=50.0, seeds=seeds, what=what))
    encoder, pooler = PAPER_PAIR
    gains = test[(test["metric"] == "spearman_gain") & (test["readout"] == "pooler")]
    ours = gains[(gains["method"] == f"encoder_{encoder}") & (gains["dim"] == pooler)]
    if len(ours):
        printed = 100 * printed_cells().set_index("method")["value"]
        gain = float(printed[f"encoder_{encoder}"] - printed[f"encoder_{pooler}"])
        what = f"gain of encoder_{encoder} over encoder_{pooler} under pooler_{pooler}"
        found.append(effect("WANG-F4-2", estimate(ours), what, paper=gain))
    return [*found, *_best_encoder(test, ranks)]


def _encoder(rows: pd.DataFrame) -> pd.Series:
    return rows["method"].str.removeprefix("encoder_").astype(int)


def _alone(rows: pd.DataFrame) -> pd.DataFrame:
    """Score of each encoder alone (seeds × dims)."""
    kept = rows[(rows["metric"] == "spearman") & (rows["readout"] == "encoder")]
    return kept.pivot_table(index="seed", columns="dim", values="value")


def _share_improving(test: pd.DataFrame, ranks: pd.DataFrame) -> tuple[float, float, float, int, int] | None:
    """Low, high, value in %, seeds, and pairs per seed.

    The interval is the wider of two: Wilson's over the pairs of one seed, and, from three seeds, t over the seeds'
    shares. Pairs share encoders, so Wilson's alone is somewhat narrow.
    """
    gains = test[(test["metric"] == "spearman_gain") & (test["readout"] == "pooler")]
    gains = gains.assign(encoder=_encoder(gains))
    shares, pairs = [], 0
    for seed, own in gains.groupby("seed"):
        if seed not in ranks.index:
            continue
        alone = ranks.loc[seed]
        better = own[alone.reindex(own["encoder"]).to_numpy() > alone.reindex(own["dim"]).to_numpy()]
        if len(better):
            shares.append(float((better["value"] > 0).mean()))
            pairs = max(pairs, len(better))
    if not shares:
        return None
    value = float(np.mean(shares))
    share = wilson(value * pairs, pairs)
    low, high = share.low, share.high
    if len(shares) >= 3:
        half = seed_half_width(shares)
        low, high = min(low, max(0.0, value - half)), max(high, min(1.0, value + half))
    return 100 * low, 100 * high, 100 * value, len(shares), pairs


def _best_encoder(test: pd.DataFrame, ranks: pd.DataFrame) -> list[Measurement]:
    """Does the best encoder come from a narrower pooler than the widest, and by how much does it lead on test?"""
    if len(ranks.columns) < 2 or ranks.empty:
        return []
    widest = int(max(ranks.columns))
    best = int(ranks.mean().sort_index(ascending=False).idxmax())
    share, seeds = best / widest, len(ranks)
    paper = PAPER_OPT[0] / PAPER_OPT[1]
    # dims halve from one candidate to the next: half a step either way is the resolution
    found = [
        Measurement(
            "WANG-F4-3",
            "ratio",
            share,
            share / sqrt(2),
            share * sqrt(2),
            paper=paper,
            null=1.0,
            seeds=seeds,
            what="dim of the best encoder / widest dim (SimCSE)",
        )
    ]
    if best != widest:
        leads = test[(test["metric"] == "spearman_gain") & (test["readout"] == "encoder") & (test["dim"] == best)]
        what = f"lead of encoder_{best}, the best on the ranking pairs, over encoder_{widest} (SimCSE)"
        found.append(effect("WANG-F4-3", estimate(leads), what))
    return found
