"""How rows of ESE are judged by the table of its claims, `papers/ese.toml`; what its parts name is
in the file of its table or figure, and here for Figure 7.

A trained line is held against the untouched one only where the control, the same training without
the method, costs nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

import pandas as pd

from repro.evaluation.of_rows import estimate
from repro.evaluation.seeds import scaled
from repro.methods import (
    ESE,
    RAW,
)
from repro.papers.ese import ablation, answers, layers, seconds
from repro.papers.ese.answers import EXACT, PROXIES
from repro.report.claims import judges_of
from repro.report.judge import Rule, judge
from repro.report.measurements import effect
from repro.report.verdict import Measurement
from repro.rows import only

MEASURES = {"cosine_agreement": "rank correlation of pair cosines", "linear_cka": "linear CKA"}
"""Agreement of a prefix with the whole, without a map."""
AS_THEY_ARE = "as they are"  # Beginning of the setting of embeddings that are not centred


def measured(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows say of some rules; the untouched backbone draws nothing at random, so it has no
    seed noise.
    """
    return judge(
        rules,
        rows.assign(below=rows["layer"] - 1),
        fixed=lambda cells: cells["method"] == RAW,
    )


def depth(
    rules: Sequence[Rule],
    rows: pd.DataFrame,
    threshold: float | None = None,
) -> list[Measurement]:
    """The same of every layer; a threshold of None is `threshold_of` each backbone's rows."""
    return measured(rules, rows.assign(threshold=nan if threshold is None else threshold))


def searched(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """The same of Table 3, of a backbone with exact matches without its proxies."""
    exact = rows["backbone"].isin(only(rows, metric=EXACT)["backbone"])
    return measured(rules, rows[~(exact & rows["metric"].isin(PROXIES))])


def by_backbone(
    rules: Sequence[Callable[..., Iterable[Measurement]]],
    rows: pd.DataFrame,
    **options: Any,
) -> list[Measurement]:
    """What the rows of each backbone say."""
    measurements: list[Measurement] = []
    for _, rows_of_backbone in rows.groupby("backbone", sort=False):
        for rule in rules:
            measurements += rule(rows_of_backbone, **options)
    return measurements


def variants(
    rules: Sequence[Callable[..., Iterable[Measurement]]],
    rows: pd.DataFrame,
    coinciding: Mapping[str, str] | None = None,
) -> list[Measurement]:
    """The same of Table 2: nothing is said of the order of `coinciding` variants, which are one
    training with another on this network.
    """
    return by_backbone(rules, rows, same=coinciding or {})


def closer(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    rival: str,
) -> Iterator[Measurement]:
    """Distances of the full and the cut embedding in the map, against a rival: the paper's measure,
    of embeddings as they are.

    Centred ones, and agreement without a map, are this book's and stand on the page.
    """
    distance_rows = only(rows, method=f"{ESE} − {rival}", metric="map_distance_lead")
    distance_rows = distance_rows[distance_rows["setting"].str.startswith(AS_THEY_ARE)]
    for (dim, setting), cell in distance_rows.groupby(["dim", "setting"], sort=False):
        quantity = what.format(backbone=rows["backbone"].iloc[0], dim=dim, setting=setting)
        distance = scaled(estimate(cell), 0.01)
        yield effect(claim, distance, quantity, direction=-1, unit="of the map")


FILES = (layers, ablation, answers, seconds)
JUDGES = judges_of("ese", *map(vars, FILES), globals())
table1, table2, table3, figure3, figure6, figure7 = JUDGES.values()
"""Rows to what they say of the claims of one page; that of Figure 3 judges Figure 4 too."""
