"""Figure 6 of ESE: how long encoding and search take."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from repro.evaluation.seeds import Estimate, doublings
from repro.methods import ESE, MRL
from repro.report.cells import farthest, lowest
from repro.report.claims import record_of
from repro.report.measurements import change, ratio
from repro.report.verdict import Measurement
from repro.rows import only

MEAN = "mean over sizes"  # End of the setting of the ratios that are averaged over sizes
PER_CENT = record_of("ESE-F6-1")["parts"][0]["margin"]
"""What counts as equal time: runs on one idle machine differ by several per cent."""


def ratios(rows: pd.DataFrame, metric: str, by: Sequence[str], **where: Any) -> dict[Any, Estimate]:
    """Ratios of one kind in doublings, run by run, of every cell."""
    cells = only(rows, metric=metric, **where).groupby(list(by), sort=False, dropna=False)
    return {key: doublings(cell.groupby("seed")["value"].mean().to_dict()) for key, cell in cells}


def equal_time(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    margin: float,
    unit: str,
) -> Iterator[Measurement]:
    """How ESE's seconds differ from MRL's at equal depth, where they differ most."""
    ratio_by_layer = ratios(rows, "encode_ratio", ["layer"], method=f"{ESE} / {MRL}")
    if ratio_by_layer:
        (layer,), e = farthest(ratio_by_layer)
        quantity = what.format(backbone=rows["backbone"].iloc[0], layer=layer)
        yield change(claim, e, quantity, margin=margin, unit=unit)


def sooner_at_fewer_dims(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How much longer encoding and search take at full size, of the lines where it is least."""
    ratio_by_cell = ratios(rows, "size_ratio", ["method", "layer", "dim", "setting"])
    if ratio_by_cell and f"{ESE} / {MRL}" in set(rows["method"]):
        (method, _, dim, _), e = lowest(ratio_by_cell)
        quantity = what.format(backbone=rows["backbone"].iloc[0], dim=int(dim), method=method)
        yield ratio(claim, e, quantity, null=1.0)


def sooner_by_ese(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    rival: str,
) -> Iterator[Measurement]:
    """How long encoding and search take by ESE against a rival, on average over sizes."""
    ratio_by_cell = ratios(rows, "total_ratio", ["layer", "setting"], method=f"{ESE} / {rival}")
    for (_, setting), e in ratio_by_cell.items():
        if setting.endswith(MEAN):
            quantity = what.format(backbone=rows["backbone"].iloc[0])
            yield ratio(claim, e, quantity, null=1.0, direction=-1)
