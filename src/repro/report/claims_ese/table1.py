"""Claims on Table 1, ESE-T1-1 … 4: the last layer, and the mean over the shallow ones."""

import pandas as pd

from repro.methods import ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.report.claims_ese.leads import PRINTED_BACKBONE, RIVALS, absent, by_backbone, has, last_lead, shallow_lead
from repro.report.claims_ese.tables import printed
from repro.report.judge import effect
from repro.report.verdict import Measurement

LANGUAGE_MODELS = ("qwen", "llama")
"""parts of the names of backbones that are language models, tuned by adapters"""


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """What the rows of Table 1 say of the paper's order, for every backbone that has all of its lines."""
    found = []
    for backbone, own in by_backbone(rows):
        if not has(own, RAW, MRL, ESE):
            continue
        leads = {rival: e for rival in RIVALS if (e := last_lead(own, ESE, rival)) is not None}
        if leads:
            rival, e = min(leads.items(), key=lambda item: item[1].value)
            found.append(effect("ESE-T1-1", e, f"{backbone}: last layer, ESE less {rival}, the better of the two"))
        falls = "UAE" in backbone
        e = last_lead(own, MRL, RAW)
        if e is not None:
            what = f"{backbone}: last layer, MRL less RAW (the paper: {'below' if falls else 'above'} 0)"
            found.append(effect("ESE-T1-2", e, what, direction=-1 if falls else 1))
        for rival in RIVALS:
            e = shallow_lead(own, ESE, rival)
            if e is not None:
                size = printed_gain(rival) if rival == RAW else None
                found.append(
                    effect("ESE-T1-3", e, f"{backbone}: mean of layers below the last, ESE less {rival}", paper=size)
                )
    found += _language_models(rows)
    if not any("UAE" in m.what for m in found):
        found.append(absent("ESE-T1-2", "UAE-Large-V1, the backbone where MRL falls"))
    return found


def printed_gain(rival: str) -> float:
    """ESE's printed lead on `≺ Avg.`, in points: over RAW 20.67."""
    at = printed("table1").set_index(["backbone", "method", "dataset"])["value"]
    return float(100 * (at[PRINTED_BACKBONE, ESE, SHALLOW_AVERAGE] - at[PRINTED_BACKBONE, rival, SHALLOW_AVERAGE]))


def _language_models(rows: pd.DataFrame) -> list[Measurement]:
    """The shallow gain of an adapter-tuned language model less the smallest of the others."""
    gains = {b: shallow_lead(own, ESE, RAW) for b, own in by_backbone(rows)}
    known = {b: e for b, e in gains.items() if e is not None}
    deep = {b: e for b, e in known.items() if any(part in b.lower() for part in LANGUAGE_MODELS)}
    others = {b: e for b, e in known.items() if b not in deep}
    if not deep or not others:
        return [absent("ESE-T1-4", "Qwen1.5-0.5B beside a BERT, both on the same pairs")]
    model, e = max(deep.items(), key=lambda item: item[1].value)
    other, smallest = min(others.items(), key=lambda item: item[1].value)
    what = f"shallow gain of {model} less that of {other}"
    return [effect("ESE-T1-4", e - smallest, what, direction=-1)]
