"""What Li et al. (2025) claim of the parts and the use of ESE: Tables 2 and 3, Figures 5 to 7.

A compressed size of the paper is read as the same share of the hidden size. Table 3 is judged by exact match where
answers were generated, else by two proxies that have no printed size. The claim on Figure 7 is made of distances in a
map and holds only if measures without a map agree (audit E16), so it is judged by both.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from repro.methods import ESE, ESE_DEFAULT, MRL, RAW, SHALLOW_AVERAGE
from repro.papers.ese.claims import RIVALS, lead, measured
from repro.papers.ese.tables import (
    MEASURES,
    PER_CENT,
    PLACES,
    by_backbone,
    only,
    printed,
    printed_variants,
    tried_sizes,
)
from repro.papers.ese.tables_use import MEAN, ratios
from repro.report.compare import paper_values
from repro.report.judge import Estimate, Judge, effect, estimate, lowest, scaled
from repro.report.verdict import Measurement

COMPRESSION = (ESE_DEFAULT, "embeddings", "max-k", "no compression")
"""targets of Table 2, from best to worst as printed"""
NONE = COMPRESSION[-1]
WEIGHTS = {
    "last layer": ("learned weights", ESE_DEFAULT, "uniform weights"),
    "≺ Avg.": (ESE_DEFAULT, "learned weights", "uniform weights"),
}
"""the same for its weights, by place"""
FOUND = {
    "exact_match": "exact match",
    "answer_in_context": "the first paragraph holds the answer",
    "hit@1": "the first paragraph is a supporting one",
}
"""metrics of Table 3 that claims are judged by, each 0 or 1 for a question, in words"""
EXACT, *PROXIES = FOUND


# Table 2 and Figure 5


def table2(rows: pd.DataFrame, coinciding: Mapping[str, str] | None = None) -> list[Measurement]:
    """ESE-T2-1, T2-2, F5-1 and F5-2: the order of targets, of weights and of compressed sizes, for every backbone.

    Args:
        rows: of the ablation.
        coinciding: variants that are one training with another on the network of these rows, because it has a single
            layer below the last; nothing is said of their order.
    """
    same, found = dict(coinciding or {}), []
    for backbone, own in by_backbone(rows):
        tried = [variant for variant in COMPRESSION if (own["method"] == variant).any()]
        for place in PLACES:
            orders = [("ESE-T2-1", *pair) for pair in pairwise(tried)]
            for claim, a, b in [*orders, *(("ESE-T2-2", *pair) for pair in pairwise(WEIGHTS[place]))]:
                what = f"{backbone}, {place}: {a} less {b}"
                e = variant_lead(own, a, b, place)
                if same.get(a, a) == same.get(b, b):
                    why = f"{what}: one training, for this network has a single layer below the last"
                    found.append(Measurement(claim, "effect", nan, nan, nan, seeds=0, what=why))
                elif e is not None:
                    paper = printed_cost(a) if (b, place) == (NONE, "≺ Avg.") else None
                    found.append(effect(claim, e, what, paper=paper))
        excess = variant_lead(own, tried[-2], NONE, metric="shallow_excess") if NONE in tried[1:] else None
        if excess is not None:
            what = f"{backbone}: what leaving compression out costs the shallow layers more than the last one"
            found.append(effect("ESE-T2-1", excess, what))
        found += sizes_judged(backbone, own)
    return found


def sizes_judged(backbone: str, rows: pd.DataFrame) -> Iterator[Measurement]:
    """The default's lead over the smallest and the largest size tried; the smallest lead over the baselines of all."""
    sizes = tried_sizes(rows)
    default = {method: size for size, method in sizes.items()}.get(ESE_DEFAULT)
    for side, size in (("smallest", min(sizes)), ("largest", max(sizes))) if default else ():
        e = None if size == default else variant_lead(rows, ESE_DEFAULT, sizes[size])
        if e is not None:
            yield effect("ESE-F5-1", e, f"{backbone}, last layer: k = {default} less k = {size}, the {side} tried")
    cells = {(size, rival): variant_lead(rows, method, rival) for size, method in sizes.items() for rival in RIVALS}
    at = {cell: e for cell, e in cells.items() if e is not None}
    if at:
        (size, rival), e = lowest(at)
        where = f"{rival}, k = {size}"
        what = f"{backbone}, last layer: smallest lead over the baselines of all sizes k ({where})"
        yield effect("ESE-F5-2", e, what)


def variant_lead(
    rows: pd.DataFrame, a: str, b: str, place: str = "last layer", metric: str = "spearman_lead"
) -> Estimate | None:
    """One variant less another at full size, read off the rows of the opposite where only those exist."""
    rows = only(rows, metric=metric, dataset=PLACES[place], dim=rows["dim"].max())
    for sign, method in ((1, f"{a} − {b}"), (-1, f"{b} − {a}")):
        own = only(rows, method=method)
        if len(own):
            return scaled(estimate(own), sign)
    return None


def printed_cost(variant: str) -> float:
    """Points that the shallow layers lose, as printed, from a variant to no compression."""
    at = only(printed_variants(), dataset=SHALLOW_AVERAGE).drop_duplicates("method").set_index("method")["value"]
    return float(100 * (at[variant] - at[NONE]))


# Table 3


def table3(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-T3-1 … 3: the order of the lines at every size, where the lead is largest, and the lead at half depth."""
    return measured([rule for metric in FOUND for rule in searched(metric)], rows)


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """What the claims are judged by."""
    return [EXACT] if (rows["metric"] == EXACT).any() else PROXIES


def searched(metric: str) -> Iterator[Judge]:
    """The rules for one metric; printed sizes are those of exact match."""

    def each(rows: pd.DataFrame) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        for backbone, own in by_backbone(rows[rows["setting"].isna()]):
            if {f"{ESE} − {rival}" for rival in RIVALS} <= set(own["method"]) and metric in metrics_of(own):
                half, last = int(own["layer"].min()), int(own["layer"].max())
                yield {"backbone": backbone, "half": half, "last": last, "full": int(own["dim"].max())}, own

    rule, name = partial(Judge, each=each), f"{{backbone}}, {FOUND[metric]}"
    query = partial(lead, metric=f"{metric}_lead", dataset="hotpotqa")
    for winner, rival in ((ESE, MRL), (MRL, RAW)):
        what = f"{name}: smallest lead of {winner} over {rival} ({{dim}} dims)"
        paper = partial(smallest_printed, winner, rival) if metric == EXACT else None
        yield rule("ESE-T3-1", what, f"{query(winner, rival)} and layer == @last", paper=paper)
    for rival in RIVALS:
        what = f"{name}: lead of ESE over {rival} at the smallest size less that at {{dim}} dims, the largest other"
        at_last = f"{query(ESE, rival, metric=f'{metric}_lead_drop')} and layer == @last"
        yield rule("ESE-T3-2", what, at_last, paper=partial(printed_drop, rival) if metric == EXACT else None)
    for rival in RIVALS:
        what = f"{name}: layer {{half}} of {{last}}, ESE less {rival}"
        at_half = f"{query(ESE, rival)} and layer == @half and layer < @last and dim == @full"
        yield rule("ESE-T3-3", what, at_half, paper=partial(printed_half, rival) if metric == EXACT else None)


def printed_leads(winner: str, rival: str) -> dict[int, float]:
    """Printed leads in points of exact match by size."""
    at = printed("table3").set_index(["method", "dim"])["value"]
    return {int(dim): float(100 * (value - at[rival, dim])) for dim, value in at[winner].items()}


def smallest_printed(winner: str, rival: str) -> float:
    """The smallest printed lead."""
    return min(printed_leads(winner, rival).values())


def printed_drop(rival: str) -> float:
    """How much the printed lead of ESE is larger at the smallest size than at any other."""
    first, *rest = printed_leads(ESE, rival).values()
    return first - max(rest)


def printed_half(rival: str) -> float:
    """The printed lead of ESE with embeddings of layer 6, in points."""
    text = only(paper_values("ese2025", "text"), metric="exact_match_gain")
    own = text[text["method"].str.endswith(f"ESE vs {'RAW' if rival == RAW else '+ MRL'}")]
    return float(100 * own.loc[own["dataset"].str.contains("half layer"), "value"].iloc[0])


# Figures 6 and 7


def figure6(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F6-1 and F6-2: equal time at equal depth, less for shorter embeddings, and whether ESE's are found sooner."""
    found = []
    for backbone, own in by_backbone(rows):
        seeds = int(own["seed"].nunique())
        depth, size = ratios(own, "encode_ratio", f"{ESE} / {MRL}"), ratios(own, "size_ratio")
        if len(depth):
            worst = depth.loc[np.log(depth["value"]).abs().idxmax()]
            value, low, high = (100 * (float(worst[c]) - 1) for c in ("value", "ci_low", "ci_high"))
            where = f"where they differ most (layer {worst['layer']})"
            what = f"{backbone}: encoding, ESE's seconds less MRL's in per cent, {where}"
            found.append(Measurement("ESE-F6-1", "sameness", value, low, high, margin=PER_CENT, seeds=seeds, what=what))
        faster = []
        if len(size) and f"{ESE} / {MRL}" in set(own["method"]):
            least = size.loc[size["value"].idxmin()]
            where = f"{int(least['dim'])} dims, smallest of the lines ({least['method']})"
            faster.append((least, f"encoding and search at full size by the same at {where}, times", 1))
        for rival in RIVALS:
            total = ratios(own, "total_ratio", f"{ESE} / {rival}")
            for _, mean in total[total["setting"].str.endswith(MEAN)].iterrows():
                faster.append((mean, f"encoding and search, ESE by {rival}, mean over sizes, times", -1))
        for row, what, side in faster:
            value, low, high = (float(row[c]) for c in ("value", "ci_low", "ci_high"))
            options: dict[str, Any] = {"null": 1.0, "direction": side, "seeds": seeds, "what": f"{backbone}: {what}"}
            found.append(Measurement("ESE-F6-2", "ratio", value, low, high, **options))
    return found


def figure7(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F7-1: distances in the map, and agreement without one, at the map's prefix, against both rivals."""
    found = []
    for backbone, own in by_backbone(rows):
        for rival in RIVALS:
            pair = only(own, method=f"{ESE} − {rival}")
            maps = only(pair, metric="map_distance_lead")
            for (dim, setting), at in maps.groupby(["dim", "setting"], sort=False):
                what = f"{backbone}: distance of full and first {dim} in the map, ESE less {rival} ({setting})"
                found.append(effect("ESE-F7-1", scaled(estimate(at), 0.01), what, direction=-1))
            for metric, words in MEASURES.items():
                at = only(pair, metric=f"{metric}_lead")
                for dim, cell in at[at["dim"].isin(maps["dim"])].groupby("dim"):
                    what = f"{backbone}: {words} of full and first {dim} ×100, ESE less {rival}"
                    found.append(effect("ESE-F7-1", estimate(cell), what))
    return found
