"""What Li et al. (2025) claim of the use of ESE, and what rows measure of it: Table 3, Figures 6
and 7.

Table 3 is judged by exact match where answers were generated, else by two proxies that have no
printed size. The claim on Figure 7 is made of distances in a map and holds only if measures without
a map agree (audit E16), so both judge it.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import estimate, scaled
from repro.methods import ESE, MRL, RAW
from repro.papers.ese.claims import RIVALS, complete, lead, measured, only, printed
from repro.report.judge import Judge, Measurement, effect
from repro.report.tables import over_seeds, paper_values

FOUND = {
    "exact_match": "exact match",
    "answer_in_context": "the first paragraph holds the answer",
    "hit@1": "the first paragraph is a supporting one",
}
"""Metrics of Table 3 that claims are judged by, each 0 or 1 for a question, in words."""
EXACT, *PROXIES = FOUND
MEAN = "mean over sizes"  # end of the setting of the ratios that are averaged over sizes
PER_CENT = 10.0  # what counts as equal time: runs on one idle machine differ by several per cent
MEASURES = {"cosine_agreement": "rank correlation of pair cosines", "linear_cka": "linear CKA"}
"""Agreement of a prefix with the whole, without a map."""


def table3(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-T3-1 … 3: the order of the lines at every size, where the lead is largest, and the lead
    at half depth.
    """
    networks = [own for _, own in rows.groupby("backbone", sort=False)]
    judged = {metric: [own for own in networks if metric in metrics_of(own)] for metric in FOUND}
    return [
        m
        for metric, own in judged.items()
        if own
        for m in measured(list(searched(metric)), pd.concat(own))
    ]


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """What the claims on Table 3 are judged by."""
    return [EXACT] if (rows["metric"] == EXACT).any() else PROXIES


def searched(metric: str) -> Iterator[Judge]:
    """The rules for one metric; printed sizes are those of exact match."""

    def rule(claim: str, what: str, query: str, paper: float) -> Judge:
        said, size = f"{{backbone}}, {FOUND[metric]}: {what}", paper if metric == EXACT else None
        return Judge(claim, said, query, each=partial(complete, metric=metric), paper=size)

    searches = {"metric": f"{metric}_lead", "dataset": "hotpotqa"}
    for winner, rival in ((ESE, MRL), (MRL, RAW)):
        what, query = (
            f"smallest lead of {winner} over {rival} ({{dim}} dims)",
            lead(winner, rival, **searches),
        )
        yield rule(
            "ESE-T3-1",
            what,
            f"{query} and layer == @last",
            min(printed_leads(winner, rival)),
        )
    for rival in RIVALS:
        what = (
            f"lead of ESE over {rival} at the smallest size less that at {{dim}} "
            "dims, the largest other"
        )
        query = lead(ESE, rival, f"{metric}_lead_drop", "hotpotqa")
        smallest, *others = printed_leads(ESE, rival)
        yield rule("ESE-T3-2", what, f"{query} and layer == @last", smallest - max(others))
    for rival in RIVALS:
        what, query = f"layer {{half}} of {{last}}, ESE less {rival}", lead(ESE, rival, **searches)
        at_half = "layer == @half and layer < @last and dim == @full"
        yield rule("ESE-T3-3", what, f"{query} and {at_half}", printed_half(rival))


def printed_leads(winner: str, rival: str) -> list[float]:
    """Printed leads in points of exact match, sizes ascending."""
    at = printed("table3").set_index(["method", "dim"])["value"]
    return [float(100 * (value - at[rival, dim])) for dim, value in at[winner].items()]


def printed_half(rival: str) -> float:
    """ESE's printed lead with embeddings of layer 6, in points."""
    text = only(paper_values("ese2025", "text"), metric="exact_match_gain")
    own = text[text["method"].str.endswith(f"ESE vs {'RAW' if rival == RAW else '+ MRL'}")]
    return float(100 * own.loc[own["dataset"].str.contains("half layer"), "value"].iloc[0])


def ratios(rows: pd.DataFrame, metric: str, **where: Any) -> pd.DataFrame:
    """Ratios of one kind, means over runs: method, layer, dim, setting, value, ci_low and
    ci_high.
    """
    return over_seeds(only(rows, metric=metric, **where), ["method", "layer", "dim", "setting"])


def figure6(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F6-1 and F6-2: equal time at equal depth, less for shorter embeddings, and whether ESE's
    are found sooner.
    """
    found = []
    for backbone, own in rows.groupby("backbone", sort=False):
        seeds, pair = int(own["seed"].nunique()), f"{ESE} / {MRL}"
        depth, size = ratios(own, "encode_ratio", method=pair), ratios(own, "size_ratio")
        if len(depth):
            worst = depth.loc[np.log(depth["value"]).abs().idxmax()]
            value, low, high = (100 * (float(worst[c]) - 1) for c in ("value", "ci_low", "ci_high"))
            what = (
                "encoding, ESE's seconds less MRL's in per cent, where they differ most "
                f"(layer {worst['layer']})"
            )
            said: dict[str, Any] = {
                "margin": PER_CENT,
                "seeds": seeds,
                "what": f"{backbone}: {what}",
            }
            found.append(Measurement("ESE-F6-1", "sameness", value, low, high, **said))
        faster = []
        if len(size) and pair in set(own["method"]):
            least = size.loc[size["value"].idxmin()]
            where = f"{int(least['dim'])} dims, smallest of the lines ({least['method']})"
            faster.append(
                (least, f"encoding and search at full size by the same at {where}, times", 1)
            )
        for rival in RIVALS:
            total = ratios(own, "total_ratio", method=f"{ESE} / {rival}")
            for _, mean in total[total["setting"].str.endswith(MEAN)].iterrows():
                faster.append(
                    (mean, f"encoding and search, ESE by {rival}, mean over sizes, times", -1)
                )
        for row, what, side in faster:
            value, low, high = (float(row[c]) for c in ("value", "ci_low", "ci_high"))
            said = {"null": 1.0, "direction": side, "seeds": seeds, "what": f"{backbone}: {what}"}
            found.append(Measurement("ESE-F6-2", "ratio", value, low, high, **said))
    return found


def figure7(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F7-1: distances in the map, and agreement without one, at the map's prefix, against both
    rivals.
    """
    found = []
    for backbone, own in rows.groupby("backbone", sort=False):
        for rival in RIVALS:
            pair = only(own, method=f"{ESE} − {rival}")
            maps = only(pair, metric="map_distance_lead")
            for (dim, setting), at in maps.groupby(["dim", "setting"], sort=False):
                what = (
                    f"{backbone}: distance of full and first {dim} in the map, ESE less "
                    f"{rival} ({setting})"
                )
                found.append(effect("ESE-F7-1", scaled(estimate(at), 0.01), what, direction=-1))
            for metric, words in MEASURES.items():
                at = only(pair, metric=f"{metric}_lead")
                for dim, cell in at[at["dim"].isin(maps["dim"])].groupby("dim"):
                    what = f"{backbone}: {words} of full and first {dim} ×100, ESE less {rival}"
                    found.append(effect("ESE-F7-1", estimate(cell), what))
    return found
