"""Claims on Figures 3 and 4, ESE-F3-1 … 4 and ESE-F4-1: quality by depth and by size.

A layer or size of the paper's backbone is read as the same share of ours: half of the layers, ESE's compressed size.
"""

import math
from collections.abc import Mapping

import pandas as pd

from repro.methods import AVERAGE, ESE, MRL, RAW
from repro.report.claims_ese.leads import (
    RIVALS,
    by_backbone,
    estimate_of,
    full_dim,
    has,
    kept,
    last_layer,
    smallest_lead,
)
from repro.report.claims_ese.tables import rank
from repro.report.judge import Estimate, effect, estimate, mean, sameness
from repro.report.verdict import Measurement

PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49
"""the score that layers are to pass, and the best of the same figure"""
REAL = ("local", "hub")
FEWEST_LAYERS = 3
"""from which on the first layer above a score tells lines apart"""


def threshold_of(rows: pd.DataFrame, dataset: str = AVERAGE) -> float:
    """The score in points that layers are to pass: the paper's 60 on real sets, where a line reaches it at all.

    Elsewhere it is the same share, 71 %, of the best score that any line of these rows has at its last layer; NaN where
    they hold no score of that set.
    """
    own = rows[(rows["metric"] == "spearman") & (rows["dataset"] == dataset) & (rows["layer"] > 0)]
    if own.empty:  # one dataset has no average
        return float("nan")
    at_last = own[(own["layer"] == last_layer(own)) & (own["dim"] == full_dim(own))]
    best = 100 * float(at_last.groupby("method")["value"].mean().max())
    real = set(own["data_source"].dropna()) <= set(REAL)
    return PRINTED_THRESHOLD if real and best > PRINTED_THRESHOLD else PRINTED_THRESHOLD / PRINTED_BEST * best


def first_layer(rows: pd.DataFrame, method: str, threshold: float, *, dataset: str = AVERAGE) -> Estimate | None:
    """The first layer whose average at full size exceeds a score, and how far its interval lets it move.

    One past the last layer stands for a line that never exceeds it.
    """
    own = kept(rows, "spearman", method, dim=full_dim(rows), dataset=dataset)
    at = {int(layer): estimate(part, deterministic=method == RAW) for layer, part in own.groupby("layer")}
    if not at:
        return None
    beyond = max(at) + 1

    def first(passes: dict[int, bool]) -> int:
        return min((layer for layer, passed in passes.items() if passed), default=beyond)

    value = first({layer: e.value > threshold for layer, e in at.items()})
    low = first({layer: e.high > threshold for layer, e in at.items()})
    high = first({layer: e.low > threshold for layer, e in at.items()})
    return Estimate(float(value), max(value - low, high - value), min(e.seeds for e in at.values()))


def first_layer_table(rows: pd.DataFrame, thresholds: Mapping[str, float], *, dataset: str = AVERAGE) -> pd.DataFrame:
    """The first layer of every line that exceeds its backbone's threshold, the lines in their order."""
    lines = []
    for backbone, own in by_backbone(rows):
        scored = own[(own["metric"] == "spearman") & (own["dataset"] == dataset)]
        for method in sorted(scored["method"].unique(), key=rank):
            e = first_layer(scored, method, thresholds[backbone], dataset=dataset)
            if e is not None:
                first = "none" if e.value > last_layer(own) else f"{e.value:.0f}"
                lines.append((backbone, f"{thresholds[backbone]:.1f}", method, first, last_layer(own)))
    return pd.DataFrame(lines, columns=["backbone", "threshold", "line", "first layer above it", "of"])


def figure3(rows: pd.DataFrame, threshold: float | None = None) -> list[Measurement]:
    """What every layer and size says, for every backbone that has all of the paper's lines.

    Args:
        rows: of `depth_rows`.
        threshold: score in points that layers are to pass; None is `threshold_of` each backbone's rows.
    """
    found = []
    for backbone, own in by_backbone(rows):
        if has(own, RAW, MRL, ESE):
            passed = threshold_of(own) if threshold is None else threshold
            found += _first_layers(backbone, own, passed)
            found += [*_monotone(backbone, own), *_everywhere(backbone, own), *_level(backbone, own)]
    return found


def figure4(rows: pd.DataFrame) -> list[Measurement]:
    """The middle and the last layer at every size, for every backbone at hand in place of the 7B model."""
    found = []
    for backbone, own in by_backbone(rows):
        if not has(own, RAW, MRL, ESE) or last_layer(own) < 2:
            continue
        half, last = max(1, last_layer(own) // 2), last_layer(own)
        least = smallest_lead(own, [half, last])
        if least is not None:
            rival, layer, dim, e = least
            where = f"over {rival}, layer {layer}, {dim} dims"
            found.append(
                effect("ESE-F4-1", e, f"{backbone}: smallest lead of ESE at layers {half} and {last} ({where})")
            )
        for rival in RIVALS:
            drops = [estimate(part) for _, part in kept(own, "drop_lead", f"{ESE} − {rival}").groupby("dim")]
            if drops:
                what = f"{backbone}: drop from layer {last} to {half}, ESE's less {rival}'s, mean over sizes"
                found.append(effect("ESE-F4-1", mean(drops), what, direction=-1))
    return found


def _first_layers(backbone: str, rows: pd.DataFrame, threshold: float) -> list[Measurement]:
    """How many layers later a rival passes the threshold than ESE; and MRL than RAW, where the paper has one layer.

    A network of two layers has no room for it.
    """
    if math.isnan(threshold):
        return []
    if last_layer(rows) < FEWEST_LAYERS:
        nan, why = float("nan"), f"{backbone}: {last_layer(rows)} layers, of which one is below the last"
        return [Measurement("ESE-F3-1", "effect", nan, nan, nan, seeds=0, what=why)]
    at = {method: first_layer(rows, method, threshold) for method in (RAW, MRL, ESE)}
    found = []
    for later, earlier in ((RAW, ESE), (MRL, ESE), (RAW, MRL)):
        a, b = at[later], at[earlier]
        if a is None or b is None:
            continue
        seeds = min(a.seeds, b.seeds)
        what = (
            f"{backbone}: first layer above {threshold:.1f}, {later} {a.value:g} less {earlier} {b.value:g} "
            f"of {last_layer(rows)}"
        )
        # RAW may pass with MRL, but not before it; ESE must pass before both
        null = 0.0 if earlier == ESE else -0.5
        found.append(effect("ESE-F3-1", Estimate(a.value - b.value, a.half + b.half, seeds), what, null=null))
    return found


def _monotone(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    """The smallest step from one layer to the next: above 0 for ESE, below 0 for the others."""
    found = []
    for method, direction in ((ESE, 1), (RAW, -1), (MRL, -1)):
        steps = {
            int(layer): estimate(own, deterministic=method == RAW)
            for layer, own in kept(rows, "spearman_step", method).groupby("layer")
        }
        if steps:
            layer, e = min(steps.items(), key=lambda item: item[1].value)
            what = f"{backbone}, {method}: smallest step from a layer to the next (layer {layer - 1} to {layer})"
            found.append(effect("ESE-F3-2", e, what, direction=direction))
    return found


def _everywhere(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    found = []
    least = smallest_lead(rows, list(range(1, last_layer(rows) + 1)))
    if least is not None:
        rival, layer, dim, e = least
        what = f"{backbone}: smallest lead of ESE over layers and sizes (over {rival}, layer {layer}, {dim} dims)"
        found.append(effect("ESE-F3-3", e, what))
    for rival in RIVALS:
        excess = estimate_of(rows, "depth_lead", f"{ESE} − {rival}")
        if excess is not None:
            what = f"{backbone}: lead of ESE over {rival}, mean of the lower half of the layers less that at the last"
            found.append(effect("ESE-F3-3", excess, what))
    return found


def _level(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    """The largest change of ESE's last layer beyond the compressed size."""
    own = kept(rows, "spearman_change", ESE, layer=last_layer(rows))
    against = own["setting"].str.extract(r"against (\d+) dims")[0].astype(float)
    beyond = {int(dim): estimate(part) for dim, part in own[own["dim"] > against].groupby("dim")}
    if not beyond:
        return []
    dim, e = max(beyond.items(), key=lambda item: abs(item[1].value))
    what = f"{backbone}: largest change of ESE's last layer beyond {against.iloc[0]:.0f} dims (at {dim})"
    return [sameness("ESE-F3-4", e, what)]
