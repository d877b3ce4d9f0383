"""Claims on two-step training against reducing afterwards: Tables 3 (similarity) and 4 (classification).

Where a claim names a dim of the paper's 768, ours is the one at the same share of the hidden size, unless it is a
comparison of methods at one dim, which keeps the printed dim.
"""

from collections.abc import Mapping, Sequence
from math import log2

import pandas as pd

from repro.evaluation.stats import wilson
from repro.methods import AVERAGE, FULL, TRAINED_NARROW, TWO_STEP
from repro.report.claims_wang.figure2 import PAPER_HIDDEN
from repro.report.judge import Estimate, effect, estimates, lowest, sameness, trend
from repro.report.suites import RIVALS, fit_of, won_cells
from repro.report.verdict import Measurement


def table3(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    """Claims WANG-T3-1 … 6 and the first half of WANG-S53-1; without all seven datasets only the count of cells."""
    found = [_cells("WANG-T3-2", rows, printed=34)]
    nearest = _nearest_rival(rows)
    if nearest:
        d, e = lowest(nearest)
        found.append(effect("WANG-T3-1", e, f"smallest lead over the best rival's average (dim {d})"))
    # the paper mixes readouts here; ours compares pooler with pooler
    full = _leads(rows, TWO_STEP, FULL, readout="pooler")
    small = {d: e for d, e in full.items() if d < hidden_dim}
    if small:
        d = min(small, key=lambda d: abs(log2(d) - log2(hidden_dim * 128 / PAPER_HIDDEN)))
        found.append(sameness("WANG-T3-3", small[d], f"two-step at {d} dims less full size, {hidden_dim} (pooler)"))
    near = {d: e for d, e in small.items() if d >= hidden_dim / 3}
    if near:
        d, e = max(near.items(), key=lambda item: abs(item[1].value))
        found.append(
            sameness("WANG-T3-6", e, f"STS: two-step less full size, largest change to a third of it (dim {d})")
        )
    found += _pca_beats("WANG-T3-4", rows)
    lead = _lead_rows(rows, TWO_STEP, TRAINED_NARROW)
    at = estimates(lead)
    if len(at) >= 3:
        found.append(trend("WANG-T3-5", lead, at, -1, "lead over end-to-end training against dim"))
    return [*found, *_at_32(rows, 5.73, "STS")]


def table4(rows: pd.DataFrame, hidden_dim: int) -> list[Measurement]:
    """Claims WANG-T4-1 … 4, the second half of WANG-S53-1 and of WANG-T3-6."""
    found = [_cells("WANG-T4-2", rows, printed=31)]
    nearest = _nearest_rival(rows)
    if nearest:
        d, e = lowest(nearest)
        found.append(effect("WANG-T4-1", e, f"smallest lead over the best rival's average (dim {d})", paper=1.50))
        d, e = max(nearest.items(), key=lambda item: item[1].value)
        found.append(effect("WANG-T4-1", e, f"largest lead over the best rival's average (dim {d})", paper=4.92))
    full = _leads(rows, TWO_STEP, FULL, readout="pooler")
    near = {d: e for d, e in full.items() if hidden_dim / 3 <= d < hidden_dim}
    if near:
        d, e = max(near.items(), key=lambda item: abs(item[1].value))
        what = f"classification: two-step less full size, largest change to a third of it (dim {d})"
        found.append(sameness("WANG-T3-6", e, what))
    found += _pca_beats("WANG-T4-3", rows)
    leads = [_leads(rows, "PCA", rival, dataset="mrpc") for rival in ("Isomap", "LLE")]
    shared = set(leads[0]) & set(leads[1])
    if shared:
        # below the lower of the two: the lead over it is the larger one
        over = {d: max((at[d] for at in leads), key=lambda e: e.value) for d in shared}
        d, e = max(over.items(), key=lambda item: item[1].value)
        found.append(
            effect("WANG-T4-4", e, f"PCA less the lower of Isomap and LLE on MRPC, largest (dim {d})", direction=-1)
        )
    return [*found, *_at_32(rows, 8.96, "classification")]


def _lead_rows(
    rows: pd.DataFrame, winner: str, rival: str, *, dataset: str = AVERAGE, readout: str | None = None
) -> pd.DataFrame:
    kept = rows[rows["metric"].str.endswith("_lead") & (rows["method"] == f"{winner} − {rival}")]
    kept = kept[(kept["dataset"] == dataset) & kept["setting"].fillna("").isin(["", fit_of(rows)])]
    return kept if readout is None else kept[kept["readout"] == readout]


def _leads(rows: pd.DataFrame, winner: str, rival: str, **options: str) -> dict[int, Estimate]:
    return estimates(_lead_rows(rows, winner, rival, **options))


def _nearest_rival(rows: pd.DataFrame) -> dict[int, Estimate]:
    """By dim, the lead of two-step training over whichever rival comes nearest, on the suite's average."""
    return _smallest([_leads(rows, TWO_STEP, rival) for rival in RIVALS])


def _smallest(leads: Sequence[Mapping[int, Estimate]]) -> dict[int, Estimate]:
    dims = {d for at in leads for d in at}
    return {d: min((at[d] for at in leads if d in at), key=lambda e: e.value) for d in sorted(dims)}


def _pca_beats(claim: str, rows: pd.DataFrame) -> list[Measurement]:
    leads = _smallest([_leads(rows, "PCA", rival) for rival in ("Isomap", "LLE")])
    if not leads:
        return []
    d, e = lowest(leads)
    return [effect(claim, e, f"smallest lead of PCA over Isomap and LLE on the average (dim {d})")]


def _at_32(rows: pd.DataFrame, printed: float, what: str) -> list[Measurement]:
    leads = _smallest([_leads(rows, TWO_STEP, rival) for rival in ("PCA", "Isomap", "LLE")])
    if 32 not in leads:
        return []
    return [effect("WANG-S53-1", leads[32], f"{what}: lead over the best reducer at 32 dims", paper=printed)]


def _cells(claim: str, rows: pd.DataFrame, *, printed: int) -> Measurement:
    """Share of cells that two-step training wins, with Wilson's interval over cells; most of them is the claim."""
    lead = won_cells(rows)["lead"].to_numpy(float)
    n, wins = len(lead), int((lead > 0).sum())
    share = wilson(wins, n).times(100)
    return Measurement(
        claim,
        "effect",
        share.value,
        share.low,
        share.high,
        null=50.0,
        paper=100 * printed / 35,
        seeds=int(rows["seed"].nunique()),
        what=f"per cent of {n} cells that two-step training wins ({wins})",
    )
