"""Table 1 and Figures 3 and 4 of ESE: how good each layer is, and where a line passes a score.

A backbone is judged where it has all of the paper's lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.of_rows import estimate, estimates
from repro.evaluation.seeds import Estimate, of_parts
from repro.evaluation.stats import Floats
from repro.methods import AVERAGE, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.papers.ese.reading import PRINTED_BACKBONE, RIVALS, printed, printed_lead
from repro.report.cells import farthest
from repro.report.judge import Group
from repro.report.measurements import absent, effect
from repro.report.verdict import Measurement
from repro.rows import only

# The score that layers are to pass, and the best of the same figure
PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49


def complete(
    rows: pd.DataFrame,
    *,
    metric: str = "spearman",
    falls: bool | None = None,
    layers: int = 0,
) -> Iterator[Group]:
    """Backbones that have a score of all of the paper's lines and so many layers, with their depth
    and full size.

    With `falls`, only those where the paper's MRL falls below RAW, or only all others.
    """
    for name, rows_of_backbone in rows.groupby("backbone", sort=False):
        last = int(rows_of_backbone["layer"].max())
        scored = only(rows_of_backbone, metric=metric)["method"]
        has = {RAW, MRL, ESE} <= set(scored)
        if has and last >= layers and falls in (None, "UAE" in name):
            yield (
                {
                    "backbone": name,
                    "last": last,
                    "half": max(1, last // 2),
                    "full": int(rows_of_backbone["dim"].max()),
                },
                rows_of_backbone,
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
    for name, rows_of_backbone in rows.groupby("backbone", sort=False):
        gain = only(
            rows_of_backbone,
            metric="spearman_lead",
            method=f"{ESE} − {RAW}",
            dataset=SHALLOW_AVERAGE,
            dim=rows_of_backbone["dim"].max(),
        )
        if len(gain):
            gains[name] = estimate(gain)
    by_gain = sorted(gains, key=lambda name: gains[name].value)
    large = [name for name in by_gain if re.search("qwen|llama", name.lower())]
    others = [name for name in by_gain if name not in large]
    if large and others:
        model, other = large[-1], others[0]
        gap = gains[model] - gains[other]
        yield effect(claim, gap, what.format(model=model, other=other), direction=-1)
    else:
        yield absent(claim, why)


def threshold_of(rows: pd.DataFrame, dataset: str = AVERAGE) -> float:
    """The score in points that layers are to pass: the paper's 60 on real sets, where a line
    reaches it at all.

    Elsewhere it is the same share, 71 %, of the best score that any line of these rows has at its
    last layer; NaN where they hold no score of that set.
    """
    score_rows = only(rows[rows["layer"] > 0], metric="spearman", dataset=dataset)
    if score_rows.empty:  # One dataset has no average
        return nan
    at_last = only(score_rows, layer=score_rows["layer"].max(), dim=score_rows["dim"].max())
    best = 100 * float(at_last.groupby("method")["value"].mean().max())
    real = set(score_rows["data_source"].dropna()) <= {"local", "hub"}
    return (
        PRINTED_THRESHOLD
        if real and best > PRINTED_THRESHOLD
        else PRINTED_THRESHOLD / PRINTED_BEST * best
    )


def layer_scores(rows: pd.DataFrame, method: str, dataset: str = AVERAGE) -> dict[int, Estimate]:
    """A line's score at full size by layer."""
    score_rows = only(
        rows[rows["layer"] > 0],
        metric="spearman",
        method=method,
        dim=rows["dim"].max(),
        dataset=dataset,
    )
    return estimates(score_rows, "layer", deterministic=method == RAW)


def first_above(layers: Iterable[int], scores: Floats, threshold: float) -> Floats:
    """The first layer whose score (…, layers) exceeds a threshold; one past the last for a line
    that never does.
    """
    numbers = np.array([*layers], float)
    passed = scores > threshold
    return np.where(passed.any(-1), numbers[passed.argmax(-1)], numbers[-1] + 1)


def first_layer(
    rows: pd.DataFrame,
    method: str,
    threshold: float,
    *,
    dataset: str = AVERAGE,
) -> Estimate | None:
    """The first layer of a line that exceeds a score, seed by seed; None without scores."""
    score_by_layer = layer_scores(rows, method, dataset)
    if not score_by_layer:
        return None
    first = partial(first_above, score_by_layer, threshold=threshold)
    return of_parts(list(score_by_layer.values()), first)


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
    for facts, rows_of_backbone in complete(rows):
        threshold = float(rows_of_backbone["threshold"].iloc[0])
        passed = threshold_of(rows_of_backbone) if isnan(threshold) else threshold
        as_deep = facts["last"] == of_layers
        for later in RIVALS:
            gap = layers_later(rows_of_backbone, later, passed)
            if gap is not None:
                quantity = what.format(**facts, later=later, earlier=ESE, passed=passed)
                paper = printed_after[later] if as_deep else None
                fields: dict[str, Any] = {"paper": paper, "sized": not as_deep, "unit": unit}
                yield effect(claim, gap, quantity, network=facts["backbone"], **fields)


def layers_later(rows: pd.DataFrame, rival: str, threshold: float) -> Estimate | None:
    """How many layers later a rival passes a threshold than ESE, seed by seed; None where one of
    them has no scores.
    """
    of_rival, of_ese = (layer_scores(rows, method) for method in (rival, ESE))
    if not (of_rival and of_ese):
        return None

    def gap(scores: Floats) -> Floats:
        rival_scores, ese_scores = np.split(scores, [len(of_rival)], axis=-1)
        first_of_ese = first_above(of_ese, ese_scores, threshold)
        return first_above(of_rival, rival_scores, threshold) - first_of_ese

    return of_parts([*of_rival.values(), *of_ese.values()], gap)


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
    for facts, rows_of_backbone in complete(rows):
        changes = only(rows_of_backbone, metric="spearman_change", method=ESE, dataset=AVERAGE)
        changes = changes[(changes["layer"] == facts["last"]) & changes["against"].notna()]
        for share, cells in changes.groupby("against"):
            change_by_dim = estimates(cells)
            size = least if least in change_by_dim else int(share)
            start = change_by_dim.get(size, Estimate({None: 0.0}, random=False))
            beyond = {dim: e - start for dim, e in change_by_dim.items() if dim > size}
            if beyond:
                dim, e = farthest(beyond)
                quantity = what.format(**facts, least=size, dim=dim)
                yield effect(claim, e, quantity, test="sameness", network=facts["backbone"])
