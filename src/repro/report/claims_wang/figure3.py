"""Claims on where a narrow pooler loses: Figure 3, with what the paper prints of the same quantities elsewhere.

A network is a backbone at a depth. "At every dim" and "for every network" are judged where the claim is weakest.
"""

import pandas as pd

from repro.methods import ENCODER_ALONE, END_TO_END, FULL
from repro.report.compare import paper_values
from repro.report.judge import effect, estimates, trend
from repro.report.verdict import Measurement

SMALL_DIM = 64
"""the largest dim that the paper's small ones, 64 to 8, hold"""
SOFTMAX = "roberta-base, softmax, Table 2"
"""what the printed losses of Table 2 are called: the same split under Sentence-BERT's objective"""


def network_names(rows: pd.DataFrame) -> pd.Series:
    """The network of every row: the backbone, with `:blocks` where blocks were taken off."""
    cut = ":" + rows["layer"].astype("string")
    return (rows["backbone"].astype("string") + cut.fillna("")).rename("network")


def figure3(rows: pd.DataFrame) -> list[Measurement]:
    """Claims WANG-F3-1 and F3-2 from the rows of Figure 3.

    Losses that are measured from the best encoder cannot be negative: they judge nothing, and the encoder's loss is
    then taken from the widest pooler's.
    """
    found: list[Measurement] = []
    small: dict[str, list[Measurement]] = {"encoder": [], "pooler": []}
    for network, of_one in rows.groupby(network_names(rows), sort=False):
        alone = of_one[(of_one["metric"] == "spearman") & (of_one["readout"] == "encoder")]
        at = estimates(alone)
        if len(at) >= 3:
            found.append(trend("WANG-F3-1", alone, at, 1, f"encoder score against dim, {network}"))
        loss = {part: estimates(of_one[of_one["metric"] == f"{part}_loss"]) for part in small}
        full = int(of_one["setting"].str.extract(r"reference=(\d+)", expand=False).iloc[0])
        if of_one["setting"].str.endswith("(best)").any():
            full = max(at)
            loss["encoder"] = {d: at[full] - e for d, e in at.items()}
        narrow = [d for d in at if d < full]
        if narrow:
            least = 8 if 8 in narrow else min(narrow)
            found.append(effect("WANG-F3-1", loss["encoder"][least], f"encoder loss at {least} dims, {network}"))
        for part, lines in small.items():
            for dim in narrow:
                if dim <= SMALL_DIM:
                    what = f"smallest {part} loss at {SMALL_DIM} dims or fewer ({network}, dim {dim})"
                    lines.append(effect("WANG-F3-2", loss[part][dim], what))
    return [*found, *(min(lines, key=lambda m: m.value) for lines in small.values() if lines)]


def printed_readouts() -> pd.DataFrame:
    """The printed scores that are points of Figure 3, panel RoBERTa-base, as rows with network and readout.

    The pooler's curve is the first block of Table 1. Of the encoder's curve one point is printed, in Table 3, where it
    is SimCSE's published score.
    """
    first = paper_values("wang2023", "table1")
    pooler = first[(first["method"] == END_TO_END) & (first["metric"] == "spearman")].assign(readout="pooler")
    third = paper_values("wang2023", "table3")
    encoder = third[(third["method"] == FULL) & (third["dataset"] == "stsb")].assign(readout="encoder")
    return pd.concat([encoder, pooler], ignore_index=True).assign(network="roberta-base")


def printed_losses() -> pd.DataFrame:
    """Both readouts of Table 2 and how their loss splits: the one place where the paper prints both curves."""
    second = paper_values("wang2023", "table2")
    second = second[second["metric"] == "spearman"]
    h = second[second["method"] == ENCODER_ALONE].set_index("dim")["value"]
    z = second[second["method"] == END_TO_END].set_index("dim")["value"]
    full = h[h.index.max()]
    columns = {
        ("spearman", "encoder"): h,
        ("spearman", "pooler"): z,
        ("encoder_loss", "encoder"): full - h,
        ("pooler_loss", "pooler"): h - z,
        ("total_loss", "pooler"): full - z,
    }
    parts = [
        pd.DataFrame({"dim": of.index, "value": of.to_numpy(), "metric": metric, "readout": readout})
        for (metric, readout), of in columns.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(network=SOFTMAX)
