"""Table 3 of ESE: the answers that are found by search, by exact match where they were generated,
else by two proxies that have no printed size.
"""

import pandas as pd

from repro.methods import ESE, RAW
from repro.papers.ese.reading import printed
from repro.report.kinds import paper_values
from repro.rows import only

FOUND = {
    "exact_match": "exact match",
    "answer_in_context": "the first paragraph holds the answer",
    "hit@1": "the first paragraph is a supporting one",
}
"""Metrics of Table 3 that claims are judged by, each 0 or 1 for a question, in words."""
EXACT, *PROXIES = FOUND


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """What the claims on Table 3 are judged by."""
    return [EXACT] if (rows["metric"] == EXACT).any() else PROXIES


def printed_leads(winner: str, rival: str) -> list[float]:
    """Printed leads in points of exact match, sizes ascending."""
    scores = printed("table3").set_index(["method", "dim"])["value"]
    return [float(100 * (value - scores[rival, dim])) for dim, value in scores[winner].items()]


def printed_smallest(winner: str, rival: str) -> float:
    """The smallest printed lead."""
    return min(printed_leads(winner, rival))


def printed_drop(rival: str) -> float:
    """ESE's printed lead at the smallest size less the largest at the others."""
    smallest, *others = printed_leads(ESE, rival)
    return smallest - max(others)


def printed_half(rival: str) -> float:
    """ESE's printed lead with embeddings of layer 6, in points."""
    text = only(paper_values("ese2025", "text"), metric="exact_match_gain")
    gain_rows = text[text["method"].str.endswith(f"ESE vs {'RAW' if rival == RAW else '+ MRL'}")]
    gains = gain_rows.loc[gain_rows["dataset"].str.contains("half layer"), "value"]
    return float(100 * gains.iloc[0])
