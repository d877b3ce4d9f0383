"""Figure 3 of Wang et al. (2023): what the encoder loses at a narrow dim, and what the pooler."""

from collections.abc import Iterator

import pandas as pd

from repro.evaluation.of_rows import estimates
from repro.evaluation.seeds import Estimate
from repro.report.cells import lowest
from repro.report.measurements import effect, trend
from repro.report.verdict import Measurement
from repro.rows import only


def network_names(rows: pd.DataFrame) -> pd.Series:
    """The network of every row: the backbone, with `:blocks` where blocks were taken off."""
    cut = ":" + rows["layer"].astype("string")
    return (rows["backbone"].astype("string") + cut.fillna("")).rename("network")


def narrow_losses(rows: pd.DataFrame) -> dict[str, dict[int, Estimate]]:
    """By dim below the widest, what the encoder loses and what the pooler.

    Losses measured from the best encoder cannot be negative and judge nothing: the encoder's is
    then taken from the widest pooler's.
    """
    score_by_dim = estimates(rows.query("metric == 'spearman' and readout == 'encoder'"))
    loss = {}
    for readout in ("encoder", "pooler"):
        loss[readout] = estimates(only(rows, metric=f"{readout}_loss"))
    full = int(rows["setting"].str.extract(r"reference=(\d+)", expand=False).iloc[0])
    if rows["setting"].str.endswith("(best)").any():
        full = max(score_by_dim)
        loss["encoder"] = {d: score_by_dim[full] - e for d, e in score_by_dim.items()}
    narrow = [d for d in score_by_dim if d < full]
    return {readout: {d: loss_by_dim[d] for d in narrow} for readout, loss_by_dim in loss.items()}


def growing_loss(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """The encoder's losses, paired over items, grow as the dim falls; three dims at least."""
    losses = narrow_losses(rows)["encoder"]
    if len(losses) >= 3:
        yield trend(claim, losses, -1, what.format(network=rows["network"].iloc[0]))


def narrowest_loss(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """What the encoder loses at the paper's smallest dim."""
    if loss := narrow_losses(rows)["encoder"]:
        least = 8 if 8 in loss else min(loss)
        quantity = what.format(dim=least, network=rows["network"].iloc[0])
        yield effect(claim, loss[least], quantity)


def smallest_loss(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    readout: str,
    most: int,
) -> Iterator[Measurement]:
    """What the encoder or the pooler loses at small dims, where it is least."""
    loss = narrow_losses(rows)[readout]
    if small := {d: e for d, e in loss.items() if d <= most}:
        d, e = lowest(small)
        yield effect(claim, e, what.format(dim=d, network=rows["network"].iloc[0]))
