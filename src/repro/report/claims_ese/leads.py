"""Rows of ESE's comparison as estimates: leads, steps and drops at a layer, a size or over the shallow layers.

Every function takes rows of one backbone, see `by_backbone`.
"""

from collections.abc import Iterator

import pandas as pd

from repro.methods import AVERAGE, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.report.judge import Estimate, estimate
from repro.report.verdict import Measurement

RIVALS = (RAW, MRL)
"""what the paper compares ESE with; the control is ours"""
PRINTED_BACKBONE = "bge-base-en-v1.5"
"""whose printed numbers stand beside ours: a BERT of twelve layers, trained contrastively before"""


def by_backbone(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Backbones in the order of first appearance, with their rows."""
    for name in rows["backbone"].dropna().unique():
        yield str(name), rows[rows["backbone"] == name]


def full_dim(rows: pd.DataFrame) -> int:
    """The hidden size."""
    return int(rows["dim"].max())


def last_layer(rows: pd.DataFrame) -> int:
    """The last layer L."""
    return int(rows["layer"].max())


def has(rows: pd.DataFrame, *methods: str) -> bool:
    """Whether these rows hold scores of all the methods."""
    return set(methods) <= set(rows.loc[rows["metric"] == "spearman", "method"])


def kept(
    rows: pd.DataFrame,
    metric: str,
    method: str,
    *,
    dataset: str = AVERAGE,
    layer: int | None = None,
    dim: int | None = None,
    above: int = 0,
) -> pd.DataFrame:
    """Rows of one metric, method and dataset, at a layer or a size where one is given, at layers above `above`."""
    own = rows[(rows["metric"] == metric) & (rows["method"] == method) & (rows["dataset"] == dataset)]
    own = own if layer is None else own[own["layer"] == layer]
    own = own if dim is None else own[own["dim"] == dim]
    return own[own["layer"].isna() | (own["layer"] > above)]


def estimate_of(rows: pd.DataFrame, metric: str, method: str, **where: object) -> Estimate | None:
    """One number in points over its seeds; None where the rows do not hold it.

    The untouched backbone draws nothing at random, so it has no seed noise, and its repeats under other seeds are one.
    """
    own = kept(rows, metric, method, **where)  # type: ignore[arg-type]
    own = own[own["value"].notna()]
    if own.empty:
        return None
    fixed = set(method.split(" − ")) == {RAW}
    return estimate(own.drop_duplicates(["layer", "dim"]) if fixed else own, deterministic=fixed)


def lead(rows: pd.DataFrame, winner: str, rival: str, **where: object) -> Estimate | None:
    """A line's score less another's, on shared pairs."""
    return estimate_of(rows, "spearman_lead", f"{winner} − {rival}", **where)


def last_lead(rows: pd.DataFrame, winner: str, rival: str) -> Estimate | None:
    """The lead on the average at the last layer and full size."""
    return lead(rows, winner, rival, layer=last_layer(rows), dim=full_dim(rows))


def shallow_lead(rows: pd.DataFrame, winner: str, rival: str) -> Estimate | None:
    """The lead on the mean over the shallow layers, at full size."""
    return lead(rows, winner, rival, dataset=SHALLOW_AVERAGE, dim=full_dim(rows))


def smallest_lead(rows: pd.DataFrame, layers: list[int]) -> tuple[str, int, int, Estimate] | None:
    """Where ESE's lead over the paper's rivals is smallest, over all sizes of some layers: rival, layer, dim, lead."""
    found = [
        (rival, int(layer), int(dim), estimate(own))
        for rival in RIVALS
        for (layer, dim), own in kept(rows, "spearman_lead", f"{ESE} − {rival}").groupby(["layer", "dim"])
        if layer in layers
    ]
    return min(found, key=lambda item: item[3].value) if found else None


def absent(claim: str, needs: str) -> Measurement:
    """A claim on a network of which no weights are at hand."""
    nan = float("nan")
    return Measurement(claim, "effect", nan, nan, nan, seeds=0, what=f"needs {needs} (profile `paper` fetches it)")
