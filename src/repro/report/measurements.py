"""Estimates as what a claim is judged by: a difference, a ratio, a change, a trend, or nothing."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import log, nan
from typing import Any

import numpy as np

from repro.evaluation import seeds
from repro.evaluation.seeds import Estimate
from repro.report.verdict import Measurement, Test


def effect(
    claim: str,
    e: Estimate,
    what: str,
    *,
    test: Test = "effect",
    **fields: Any,
) -> Measurement:
    """An estimate as what a claim is judged by: unless another test is named, a difference or an
    order.
    """
    spread = {
        "seed_sd": e.seed_sd,
        "item_error": e.item_error,
        "deciding": e.errors,
        "cells": e.cells,
        "extreme": e.extreme,
        "centres": e.centres,
    }
    return Measurement(
        claim,
        test,
        e.value,
        e.low,
        e.high,
        seeds=e.seeds,
        what=what,
        **{**spread, **fields},
    )


def ratio(claim: str, doublings: Estimate, what: str, **fields: Any) -> Measurement:
    """How many times, from an estimate on log₂."""
    m = effect(claim, doublings, what, test="ratio", **{"unit": "times", **fields})
    centres = m.centres and (2 ** m.centres[0], 2 ** m.centres[1])
    return replace(m, value=2**m.value, low=2**m.low, high=2**m.high, centres=centres)


def change(claim: str, doublings: Estimate, what: str, **fields: Any) -> Measurement:
    """A change in per cent, from an estimate on log₂."""
    m = ratio(claim, doublings, what, **{"unit": "%", **fields})
    numbers = ("value", "low", "high")
    ends: dict[str, Any] = {name: 100 * (getattr(m, name) - 1) for name in numbers}
    ends["centres"] = None
    per_cent = 100 * log(2)
    deciding = m.deciding and (per_cent * m.deciding[0], m.deciding[1])
    ends |= {"seed_sd": per_cent * m.seed_sd, "deciding": deciding}
    return replace(m, test="sameness", **ends)


def absent(claim: str, why: str) -> Measurement:
    """A part of a claim of which no row speaks, and why."""
    return Measurement(claim, "effect", nan, nan, nan, seeds=0, what=why, missing=why)


def trend(
    claim: str,
    at: Mapping[int, Estimate],
    direction: int,
    what: str,
    paper: float | None = None,
) -> Measurement:
    """Kendall's τ_b of numbers over their dims, one ranking per seed."""
    dims = np.array(list(at), float)
    e = seeds.of_parts(list(at.values()), partial(seeds.kendall, dims))
    return effect(
        claim,
        e,
        f"Kendall tau of {what}",
        test="trend",
        paper=paper,
        direction=direction,
        unit="Kendall's tau",
    )
