"""Claims on Table 3, ESE-T3-1 … 3, and its tables: exact match where answers were generated, else what stands for it.

Without one the claims, which allow a retrieval proxy, are judged by two: whether the first paragraph holds the answer,
and whether it is a supporting one. Neither has the printed size, so the size is compared for exact match alone.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from repro.methods import ESE, MRL, RAW
from repro.report.claims_ese.leads import RIVALS, by_backbone, estimate_of, full_dim, kept, last_layer
from repro.report.claims_ese.tables import estimate_plain, printed, rank, shown
from repro.report.compare import paper_values
from repro.report.judge import Estimate, effect, estimate
from repro.report.verdict import Measurement

DATASET = "hotpotqa"
EXACT = "exact_match"
KEYS = ["backbone", "layer", "method", "dim"]
PROXIES = ("answer_in_context", "hit@1")
WORDS = {
    EXACT: "exact match",
    "answer_in_context": "the first paragraph holds the answer",
    "hit@1": "the first paragraph is a supporting one",
}
"""what a metric says, for the reader"""


def metrics_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """What the claims are judged by."""
    return (EXACT,) if (rows["metric"] == EXACT).any() else PROXIES


def table3(rows: pd.DataFrame) -> list[Measurement]:
    """The order of the lines at every size, where the lead is largest, and the lead at half depth."""
    found = []
    for backbone, own in by_backbone(rows):
        own = own[own["setting"].isna()]
        if not {f"{ESE} − {rival}" for rival in RIVALS} <= set(own["method"]):
            continue
        for metric in metrics_of(own):
            name = f"{backbone}, {WORDS[metric]}"
            found += [*_order(own, metric, name), *_largest(own, metric, name), *_half(own, metric, name)]
    return found


def _order(rows: pd.DataFrame, metric: str, name: str) -> list[Measurement]:
    """Where the order is hardest to hold: the smallest lead over sizes, of ESE over MRL and of MRL over RAW."""
    found = []
    for winner, rival in ((ESE, MRL), (MRL, RAW)):
        at = _by_dim(rows, f"{metric}_lead", winner, rival)
        if at:
            dim, e = min(at.items(), key=lambda item: item[1].value)
            paper = min(printed_leads(winner, rival).values()) if metric == EXACT else None
            what = f"{name}: smallest lead of {winner} over {rival} ({dim} dims)"
            found.append(effect("ESE-T3-1", e, what, paper=paper))
    return found


def _largest(rows: pd.DataFrame, metric: str, name: str) -> list[Measurement]:
    """How much the lead at the smallest size exceeds the largest at any other."""
    found = []
    for rival in RIVALS:
        at = _by_dim(rows, f"{metric}_lead_drop", ESE, rival)
        if at:
            dim, e = min(at.items(), key=lambda item: item[1].value)
            paper = None
            if metric == EXACT:
                first, *rest = printed_leads(ESE, rival).values()
                paper = first - max(rest)
            what = f"{name}: lead of ESE over {rival} at the smallest size less that at {dim} dims, the largest other"
            found.append(effect("ESE-T3-2", e, what, paper=paper))
    return found


def _half(rows: pd.DataFrame, metric: str, name: str) -> list[Measurement]:
    layers = sorted({int(layer) for layer in rows["layer"].dropna()})
    if len(layers) < 2:
        return []
    found = []
    for rival in RIVALS:
        e = estimate_of(
            rows, f"{metric}_lead", f"{ESE} − {rival}", dataset=DATASET, layer=layers[0], dim=full_dim(rows)
        )
        if e is not None:
            paper = printed_half(rival) if metric == EXACT else None
            what = f"{name}: layer {layers[0]} of {layers[-1]}, ESE less {rival}"
            found.append(effect("ESE-T3-3", e, what, paper=paper))
    return found


def _by_dim(rows: pd.DataFrame, metric: str, winner: str, rival: str) -> dict[int, Estimate]:
    """At the last layer."""
    own = kept(rows, metric, f"{winner} − {rival}", dataset=DATASET, layer=last_layer(rows))
    return {int(dim): estimate(part) for dim, part in own.groupby("dim")}


def printed_leads(winner: str, rival: str) -> dict[int, float]:
    """Printed leads in points of exact match by size."""
    at = printed("table3").set_index(["method", "dim"])["value"]
    return {int(dim): float(100 * (value - at[rival, dim])) for dim, value in at[winner].items()}


def printed_half(rival: str) -> float:
    """The printed lead of ESE with embeddings of layer 6, in points."""
    text = paper_values("ese2025", "text")
    name = "RAW" if rival == RAW else "+ MRL"
    own = text[(text["metric"] == "exact_match_gain") & text["method"].str.endswith(f"ESE vs {name}")]
    return float(100 * own.loc[own["dataset"].str.contains("half layer"), "value"].iloc[0])


def printed_table3() -> pd.DataFrame:
    """The printed exact match ×100: a line per method, a column per size."""
    table = 100 * printed("table3").pivot(index="method", columns="dim", values="value")
    table.columns = [str(dim) for dim in table.columns]
    return table.loc[sorted(table.index, key=rank)].reset_index()


def found_table(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One metric ×100 by backbone, layer and method, averaged over seeds, a column per size."""
    own = rows[(rows["metric"] == metric) & rows["setting"].isna()]
    cells = (100 * own.groupby(KEYS, sort=False)["value"].mean()).to_dict()
    return _wide(cells)


def leads_table(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Leads of ESE in points with paired intervals by backbone, layer and rival, a column per size."""
    own = rows[(rows["metric"] == f"{metric}_lead") & rows["method"].str.startswith(f"{ESE} − ")]
    cells = {key: shown(estimate_plain(part)) for key, part in own.groupby(KEYS, sort=False)}
    return _wide(cells).rename(columns={"method": "lead"})


def _wide(cells: Mapping[tuple[Any, ...], Any]) -> pd.DataFrame:
    """A line per backbone, layer and method, a column per size; networks of other sizes leave gaps."""
    dims = sorted({int(dim) for *_, dim in cells})
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (backbone, layer, method, dim), cell in cells.items():
        line = lines.setdefault((backbone, layer, method), {"backbone": backbone, "layer": layer, "method": method})
        line[str(dim)] = cell
    backbones = list(dict.fromkeys(backbone for backbone, _, _ in lines))
    methods = list(dict.fromkeys(method for *_, method in lines))
    ordered = sorted(lines, key=lambda k: (backbones.index(k[0]), k[1], rank(k[2]), methods.index(k[2])))
    return pd.DataFrame([lines[key] for key in ordered], columns=["backbone", "layer", "method", *map(str, dims)])


def flat_table(rows: pd.DataFrame, flat: pd.DataFrame) -> pd.DataFrame:
    """By backbone, method and size: the supporting paragraph first, with prefixes normalised anew and as they are.

    Args:
        rows: of scores.
        flat: of `ese.rag.flat_rows`.
    """
    lines = []
    for key, own in flat.groupby(["backbone", "method", "dim"], sort=False):
        backbone, method, dim = key
        exact = rows[(rows["metric"] == "hit@1") & (rows["backbone"] == backbone) & (rows["method"] == method)]
        exact = exact[(exact["dim"] == dim) & (exact["layer"] == own["layer"].max())]
        plain = own["setting"].notna()
        same, hits = own["metric"] == "same_first", own["metric"] == "hit@1"
        lines.append(
            {
                "backbone": backbone,
                "method": method,
                "dims": int(dim),
                "faiss finds what exact cosines find, %": 100 * own.loc[same & ~plain, "value"].mean(),
                "first is supporting, %": 100 * exact["value"].mean(),
                "the same, prefixes as they are, %": 100 * own.loc[hits & plain, "value"].mean(),
                "another first paragraph, %": 100 * (1 - own.loc[same & plain, "value"].mean()),
            }
        )
    return pd.DataFrame(lines)
