"""Table 1 and Figures 3 and 4 of ESE: how good each layer is, and where a line passes a score.

A backbone is judged where it has all of the paper's lines.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import Estimate, estimate, of_parts
from repro.evaluation.stats import Floats
from repro.methods import AVERAGE, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.papers.ese.reading import PRINTED_BACKBONE, RIVALS, only, printed, printed_lead
from repro.report.cells import farthest
from repro.report.measurements import absent, effect
from repro.report.verdict import Measurement

# The score that layers are to pass, and the best of the same figure
PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49


def complete(
    rows: pd.DataFrame,
    *,
    metric: str = "spearman",
    falls: bool | None = None,
    layers: int = 0,
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Backbones that have a score of all of the paper's lines and so many layers, with their depth
    and full size.

    With `falls`, only those where the paper's MRL falls below RAW, or only all others.
    """
    for name, own in rows.groupby("backbone", sort=False):
        last = int(own["layer"].max())
        has = {RAW, MRL, ESE} <= set(only(own, metric=metric)["method"])
        if has and last >= layers and falls in (None, "UAE" in name):
            yield (
                {
                    "backbone": name,
                    "last": last,
                    "half": max(1, last // 2),
                    "full": int(own["dim"].max()),
                },
                own,
            )


def without_one_that_falls(rows: pd.DataFrame, claim: str, why: str) -> Iterator[Measurement]:
    """That no backbone is at hand where the paper's MRL falls below RAW."""
    if not any(complete(rows, falls=True)):
        yield absent(claim, why)


def printed_over(rival: str) -> float:
    """The printed lead of ESE over a rival on `≺ Avg.`, such as 20.67 over RAW."""
    return printed_lead(only(printed("table1"), backbone=PRINTED_BACKBONE), ESE, rival)


def language_models(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    why: str,
) -> Iterator[Measurement]:
    """The shallow gain of an adapter-tuned language model less the smallest of the others."""
    gains = {}
    for name, own in rows.groupby("backbone", sort=False):
        gain = only(
            own,
            metric="spearman_lead",
            method=f"{ESE} − {RAW}",
            dataset=SHALLOW_AVERAGE,
            dim=own["dim"].max(),
        )
        if len(gain):
            gains[name] = estimate(gain)
    large = {
        name: e for name, e in gains.items() if "qwen" in name.lower() or "llama" in name.lower()
    }
    others = {name: e for name, e in gains.items() if name not in large}
    if large and others:
        model = max(large, key=lambda name: large[name].value)
        other = min(others, key=lambda name: others[name].value)
        gap = large[model] - others[other]
        yield effect(claim, gap, what.format(model=model, other=other), direction=-1)
    else:
        yield absent(claim, why)


def threshold_of(rows: pd.DataFrame, dataset: str = AVERAGE) -> float:
    """The score in points that layers are to pass: the paper's 60 on real sets, where a line
    reaches it at all.

    Elsewhere it is the same share, 71 %, of the best score that any line of these rows has at its
    last layer; NaN where they hold no score of that set.
    """
    own = only(rows[rows["layer"] > 0], metric="spearman", dataset=dataset)
    if own.empty:  # One dataset has no average
        return nan
    at_last = only(own, layer=own["layer"].max(), dim=own["dim"].max())
    best = 100 * float(at_last.groupby("method")["value"].mean().max())
    real = set(own["data_source"].dropna()) <= {"local", "hub"}
    return (
        PRINTED_THRESHOLD
        if real and best > PRINTED_THRESHOLD
        else PRINTED_THRESHOLD / PRINTED_BEST * best
    )


def layer_scores(rows: pd.DataFrame, method: str, dataset: str = AVERAGE) -> dict[int, Estimate]:
    """A line's score at full size by layer."""
    own = only(
        rows[rows["layer"] > 0],
        metric="spearman",
        method=method,
        dim=rows["dim"].max(),
        dataset=dataset,
    )
    return {
        int(layer): estimate(part, deterministic=method == RAW)
        for layer, part in own.groupby("layer")
    }


def first_above(layers: Iterable[int], scores: Floats, threshold: float) -> Floats:
    """The first layer whose score (…, layers) exceeds a threshold; one past the last for a line
    that never does.
    """
    known = [*layers]
    passed = np.concatenate(
        [scores > threshold, np.ones_like(scores[..., :1], dtype=bool)],
        axis=-1,
    )
    return np.array([*known, known[-1] + 1.0])[passed.argmax(-1)]


def first_layer(
    rows: pd.DataFrame,
    method: str,
    threshold: float,
    *,
    dataset: str = AVERAGE,
) -> Estimate | None:
    """The first layer of a line that exceeds a score, seed by seed; None without scores."""
    at = layer_scores(rows, method, dataset)
    return (
        of_parts(list(at.values()), lambda scores: first_above(at, scores, threshold))
        if at
        else None
    )


def first_layers(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    printed_after: Mapping[str, float],
    of_layers: int,
    unit: str,
) -> Iterator[Measurement]:
    """How many layers later a rival passes the threshold than ESE, beside the printed number on a
    network of as many layers as the paper's.
    """
    for facts, own in complete(rows):
        given = float(own["threshold"].iloc[0])
        passed = threshold_of(own) if isnan(given) else given
        at = {method: layer_scores(own, method) for method in (RAW, MRL, ESE)}
        as_deep = facts["last"] == of_layers
        for later in RIVALS:
            a, b = at[later], at[ESE]
            if a and b:

                def gap_of(
                    scores: Floats,
                    a: Any = a,
                    b: Any = b,
                    passed: float = passed,
                ) -> Floats:
                    mine, theirs = np.split(scores, [len(a)], axis=-1)
                    return first_above(a, mine, passed) - first_above(b, theirs, passed)

                gap = of_parts([*a.values(), *b.values()], gap_of)
                said = what.format(**facts, later=later, earlier=ESE, passed=passed)
                paper = printed_after[later] if as_deep else None
                fields: dict[str, Any] = {"paper": paper, "sized": not as_deep, "unit": unit}
                yield effect(claim, gap, said, network=facts["backbone"], **fields)


def level_from(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    least: int,
) -> Iterator[Measurement]:
    """How ESE's last layer changes beyond a printed size, where it changes most.

    Rows hold changes against one size, the same share of the network: those against the printed
    size are their differences, seed by seed. A network that has not got it is told by the share.
    """
    for facts, own in complete(rows):
        changes = only(own, metric="spearman_change", method=ESE, dataset=AVERAGE)
        changes = changes[(changes["layer"] == facts["last"]) & changes["against"].notna()]
        for share, cells in changes.groupby("against"):
            at = {int(dim): estimate(cell) for dim, cell in cells.groupby("dim")}
            size = least if least in at else int(share)
            start = at.get(size, Estimate({None: 0.0}, random=False))
            beyond = {dim: e - start for dim, e in at.items() if dim > size}
            if beyond:
                dim, e = farthest(beyond)
                said = what.format(**facts, least=size, dim=dim)
                yield effect(claim, e, said, test="sameness", network=facts["backbone"])
