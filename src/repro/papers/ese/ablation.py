"""Table 2 and Figure 5 of ESE: its parts left out or exchanged, and its compressed sizes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

import pandas as pd

from repro.evaluation.of_rows import estimate
from repro.evaluation.seeds import Estimate, scaled
from repro.methods import ESE_DEFAULT
from repro.papers.ese.reading import (
    PLACES,
    RIVALS,
    printed_lead,
    printed_variants,
    tried_sizes,
)
from repro.report.cells import lowest
from repro.report.claims import record_of
from repro.report.measurements import absent, effect
from repro.report.verdict import Measurement
from repro.rows import only

COMPRESSION = tuple(record_of("ESE-T2-1")["parts"][0]["names"])
"""Targets of Table 2, from best to worst as printed."""
NONE = COMPRESSION[-1]
WEIGHTS = {part["place"]: tuple(part["names"]) for part in record_of("ESE-T2-2")["parts"]}
"""The same for its weights, by place."""

Same = Mapping[str, str]  # Variants that are one training with another, to that other


def in_order(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    place: str,
    names: Sequence[str],
    same: Same,
    gaps: bool = False,
    from_first: bool = False,
    printed_over: str = "",
) -> Iterator[Measurement]:
    """Each variant of an order less the next, or the first less each other; with `gaps` only those
    that were tried.

    The lead over `printed_over` stands beside the printed one.
    """
    tried = [name for name in names if not gaps or (rows["method"] == name).any()]
    pairs = product(tried[:1], tried[1:]) if from_first else pairwise(tried)
    for a, b in pairs:
        quantity = what.format(backbone=rows["backbone"].iloc[0], a=a, b=b)
        e = variant_lead(rows, a, b, place)
        if same.get(a, a) == same.get(b, b):
            reason = "one training, for a single layer is below the last"
            yield absent(claim, f"{quantity}: {reason}")
        elif e is not None:
            paper = printed_lead(printed_variants(), a, b) if b == printed_over else None
            yield effect(claim, e, quantity, paper=paper)


def excess(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
) -> Iterator[Measurement]:
    """What leaving compression out costs the shallow layers more, against the nearest target that
    was tried.
    """
    tried = [name for name in COMPRESSION if (rows["method"] == name).any()]
    if NONE in tried[1:]:
        e = variant_lead(rows, tried[-2], NONE, metric="shallow_excess")
        if e is not None:
            yield effect(claim, e, what.format(backbone=rows["backbone"].iloc[0]))


def above_ends(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
    sized: bool,
) -> Iterator[Measurement]:
    """The default's lead over the smallest and the largest size tried."""
    sizes = tried_sizes(rows)
    default = {method: size for size, method in sizes.items()}.get(ESE_DEFAULT)
    for side, size in (("smallest", min(sizes)), ("largest", max(sizes))) if default else ():
        # None of the default with itself
        if (e := variant_lead(rows, ESE_DEFAULT, sizes[size])) is not None:
            names = {"default": default, "size": size, "side": side}
            quantity = what.format(backbone=rows["backbone"].iloc[0], **names)
            yield effect(claim, e, quantity, sized=sized)


def above_baselines(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
) -> Iterator[Measurement]:
    """The smallest lead over the baselines of all sizes tried."""
    lead_by_cell = {}
    for size, method in tried_sizes(rows).items():
        for rival in RIVALS:
            if (e := variant_lead(rows, method, rival)) is not None:
                lead_by_cell[rival, size] = e
    if lead_by_cell:
        (rival, size), e = lowest(lead_by_cell)
        quantity = what.format(backbone=rows["backbone"].iloc[0], rival=rival, size=size)
        yield effect(claim, e, quantity)


def variant_lead(
    rows: pd.DataFrame,
    a: str,
    b: str,
    place: str = "last layer",
    metric: str = "spearman_lead",
) -> Estimate | None:
    """One variant less another at full size, read off the rows of the opposite where only those
    exist.
    """
    rows = only(rows, metric=metric, dataset=PLACES[place], dim=rows["dim"].max())
    for sign, method in ((1, f"{a} − {b}"), (-1, f"{b} − {a}")):
        lead_rows = only(rows, method=method)
        if len(lead_rows):
            return scaled(estimate(lead_rows), sign)
    return None
