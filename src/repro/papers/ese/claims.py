"""What Li et al. (2025) claim of depth and size, and what rows measure of it: Table 1, Figures 3 and 4.

A layer or size of the paper's backbone is read as the same share of ours: half of the layers, ESE's compressed size.
A backbone is judged where it has all of the paper's lines.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.stats import Floats
from repro.methods import AVERAGE, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.papers.ese.tables import ORDER, PRINTED_BACKBONE, by_backbone, only, printed
from repro.report.judge import Estimate, Judge, average, effect, estimate, farthest, judge, of_parts
from repro.report.verdict import Measurement
from repro.rows import parsed

RIVALS = (RAW, MRL)
"""what the paper compares ESE with; the control is ours"""
PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49
"""the score that layers are to pass, and the best of the same figure"""


def complete(
    rows: pd.DataFrame, *, falls: bool | None = None, layers: int = 0
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Backbones that have all of the paper's lines and so many layers, with their depth and full size.

    With `falls`, only those where the paper's MRL falls below RAW, or only all others.
    """
    for name, own in by_backbone(rows):
        last = int(own["layer"].max())
        has = {RAW, MRL, ESE} <= set(only(own, metric="spearman")["method"])
        if has and last >= layers and falls in (None, "UAE" in name):
            yield {"backbone": name, "last": last, "half": max(1, last // 2), "full": int(own["dim"].max())}, own


def lead(winner: str, rival: str, metric: str = "spearman_lead", dataset: str = AVERAGE) -> str:
    """Query for one line less another."""
    return f"metric == '{metric}' and dataset == '{dataset}' and winner == '{winner}' and rival == '{rival}'"


rule, deep_rule = (partial(Judge, each=partial(complete, layers=layers)) for layers in (0, 2))
AT_LAST = "layer == @last and dim == @full"
OVER_RIVALS = f"metric == 'spearman_lead' and dataset == '{AVERAGE}' and winner == '{ESE}' and rival in {RIVALS}"
CHANGE = f"metric == 'spearman_change' and dataset == '{AVERAGE}' and method == '{ESE}' and layer == @last"
OVER = ("rival", "layer", "dim")
FIRST = "{backbone}: last layer, ESE less {rival}, the better of the two"
BELOW = "{{backbone}}: mean of layers below the last, ESE less {}"
STEP = "{{backbone}}, {}: smallest step from a layer to the next (layer {{below}} to {{layer}})"
EVERYWHERE = "{backbone}: smallest lead of ESE over layers and sizes (over {rival}, layer {layer}, {dim} dims)"
LOWER = "{{backbone}}: lead of ESE over {}, mean of the lower half of the layers less that at the last"
LEVEL = "{backbone}: largest change of ESE's last layer beyond {against:.0f} dims (at {dim})"
HALF = "{backbone}: smallest lead of ESE at layers {half} and {last} (over {rival}, layer {layer}, {dim} dims)"
DROP = "{{backbone}}: drop from layer {{last}} to {{half}}, ESE's less {}'s, mean over sizes"


def measured(rules: list[Any], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows say of some rules; the untouched backbone draws nothing at random, so it has no seed noise."""
    rows = parsed(rows).assign(below=rows["layer"] - 1)
    return judge(rules, rows, fixed=lambda cell: cell["method"].iat[0] == RAW)


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-T1-1 … 4: the last layer, and the mean over the shallow ones."""
    at_last, below = lead(MRL, RAW) + f" and {AT_LAST}", [lead(ESE, r, dataset=SHALLOW_AVERAGE) for r in RIVALS]
    rules = [
        rule("ESE-T1-1", FIRST, f"{OVER_RIVALS} and {AT_LAST}", over=("rival",)),
        *(
            Judge(
                "ESE-T1-2",
                f"{{backbone}}: last layer, MRL less RAW (the paper: {'below' if falls else 'above'} 0)",
                at_last,
                each=partial(complete, falls=falls),
                direction=-1 if falls else 1,
            )
            for falls in (False, True)
        ),
        rule("ESE-T1-3", BELOW.format(RAW), f"{below[0]} and dim == @full", paper=printed_gain),
        rule("ESE-T1-3", BELOW.format(MRL), f"{below[1]} and dim == @full"),
        language_models,
    ]
    found = measured(rules, rows)
    if not any(complete(rows, falls=True)):
        found.append(absent("ESE-T1-2", "UAE-Large-V1, the backbone where MRL falls"))
    return found


def figure3(rows: pd.DataFrame, threshold: float | None = None) -> list[Measurement]:
    """ESE-F3-1 … 4: what every layer and size says.

    Args:
        rows: of `depth_rows`.
        threshold: score in points that layers are to pass; None is `threshold_of` each backbone's rows.
    """
    rules = [
        partial(first_layers, threshold=threshold),
        *(
            rule(
                "ESE-F3-2",
                STEP.format(method),
                f"metric == 'spearman_step' and dataset == '{AVERAGE}' and method == '{method}'",
                over=("below", "layer"),
                direction=1 if method == ESE else -1,
            )
            for method in (ESE, RAW, MRL)
        ),
        rule("ESE-F3-3", EVERYWHERE, f"{OVER_RIVALS} and layer > 0", over=OVER),
        *(rule("ESE-F3-3", LOWER.format(r), lead(ESE, r, "depth_lead"), over=("rival",)) for r in RIVALS),
        rule("ESE-F3-4", LEVEL, f"{CHANGE} and dim > against", farthest, ("dim", "against"), test="sameness"),
    ]
    return measured(rules, rows)


def figure4(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F4-1: the middle and the last layer at every size, for every backbone at hand in place of the 7B model."""
    at_both = f"{OVER_RIVALS} and (layer == @half or layer == @last)"
    drops = (deep_rule("ESE-F4-1", DROP.format(r), lead(ESE, r, "drop_lead"), average, direction=-1) for r in RIVALS)
    return measured([deep_rule("ESE-F4-1", HALF, at_both, over=OVER), *drops], rows)


def printed_gain() -> float:
    """ESE's printed lead over RAW on `≺ Avg.`, in points: 20.67."""
    at = only(printed("table1"), backbone=PRINTED_BACKBONE, dataset=SHALLOW_AVERAGE).set_index("method")["value"]
    return float(100 * (at[ESE] - at[RAW]))


def absent(claim: str, needs: str) -> Measurement:
    """A claim on a network of which no weights are at hand."""
    return Measurement(claim, "effect", nan, nan, nan, seeds=0, what=f"needs {needs} (profile `paper` fetches it)")


def language_models(rows: pd.DataFrame) -> Iterator[Measurement]:
    """The shallow gain of an adapter-tuned language model less the smallest of the others."""
    gains = {}
    for name, own in by_backbone(rows):
        gain = only(own, metric="spearman_lead", method=f"{ESE} − {RAW}", dataset=SHALLOW_AVERAGE, dim=own["dim"].max())
        if len(gain):
            gains[name] = estimate(gain)
    large = {name: e for name, e in gains.items() if "qwen" in name.lower() or "llama" in name.lower()}
    others = {name: e for name, e in gains.items() if name not in large}
    if not large or not others:
        yield absent("ESE-T1-4", "Qwen1.5-0.5B beside a BERT, both on the same pairs")
        return
    model, other = max(large, key=lambda name: large[name].value), min(others, key=lambda name: others[name].value)
    gap = large[model] - others[other]
    yield effect("ESE-T1-4", gap, f"shallow gain of {model} less that of {other}", direction=-1)


def threshold_of(rows: pd.DataFrame, dataset: str = AVERAGE) -> float:
    """The score in points that layers are to pass: the paper's 60 on real sets, where a line reaches it at all.

    Elsewhere it is the same share, 71 %, of the best score that any line of these rows has at its last layer; NaN where
    they hold no score of that set.
    """
    own = only(rows[rows["layer"] > 0], metric="spearman", dataset=dataset)
    if own.empty:  # one dataset has no average
        return nan
    at_last = only(own, layer=own["layer"].max(), dim=own["dim"].max())
    best = 100 * float(at_last.groupby("method")["value"].mean().max())
    real = set(own["data_source"].dropna()) <= {"local", "hub"}
    return PRINTED_THRESHOLD if real and best > PRINTED_THRESHOLD else PRINTED_THRESHOLD / PRINTED_BEST * best


def layer_scores(rows: pd.DataFrame, method: str, dataset: str = AVERAGE) -> dict[int, Estimate]:
    """A line's average at full size by layer."""
    own = only(rows[rows["layer"] > 0], metric="spearman", method=method, dim=rows["dim"].max(), dataset=dataset)
    return {int(layer): estimate(part, deterministic=method == RAW) for layer, part in own.groupby("layer")}


def first_above(layers: Iterable[int], scores: Floats, threshold: float) -> Floats:
    """The first layer whose score (…, layers) exceeds a threshold; one past the last for a line that never does."""
    known = [*layers]
    passed = np.concatenate([scores > threshold, np.ones_like(scores[..., :1], dtype=bool)], axis=-1)
    return np.array([*known, known[-1] + 1.0])[passed.argmax(-1)]


def first_layer(rows: pd.DataFrame, method: str, threshold: float, *, dataset: str = AVERAGE) -> Estimate | None:
    """The first layer of a line that exceeds a score, seed by seed; None without scores."""
    at = layer_scores(rows, method, dataset)
    return of_parts(list(at.values()), lambda scores: first_above(at, scores, threshold)) if at else None


def first_layers(rows: pd.DataFrame, threshold: float | None = None) -> Iterator[Measurement]:
    """How many layers later a rival passes the threshold than ESE; and MRL than RAW, where the paper has one layer."""
    for facts, own in complete(rows):
        backbone, last = facts["backbone"], facts["last"]
        passed = threshold_of(own) if threshold is None else threshold
        if isnan(passed):
            continue
        at = {method: layer_scores(own, method) for method in (RAW, MRL, ESE)}
        for later, earlier, null in ((RAW, ESE, 0.0), (MRL, ESE, 0.0), (RAW, MRL, -0.5)):  # RAW may pass with MRL
            a, b = at[later], at[earlier]
            if a and b:

                def gap_of(scores: Floats, a: Any = a, b: Any = b, passed: float = passed) -> Floats:
                    mine, theirs = np.split(scores, [len(a)], axis=-1)
                    return first_above(a, mine, passed) - first_above(b, theirs, passed)

                gap = of_parts([*a.values(), *b.values()], gap_of)
                what = f"layers that {later} needs more than {earlier} to pass {passed:.1f}, of {last}"
                yield effect("ESE-F3-1", gap, f"{backbone}: {what}", null=null)


def first_layer_table(rows: pd.DataFrame, thresholds: Mapping[str, float], *, dataset: str = AVERAGE) -> pd.DataFrame:
    """The first layer of every line that exceeds its backbone's threshold, the lines in their order."""
    lines = []
    for backbone, own in by_backbone(rows):
        last, threshold = own["layer"].max(), thresholds[backbone]
        for method in ORDER:
            e = first_layer(own, method, threshold, dataset=dataset)
            if e is not None:
                lines.append(
                    (backbone, f"{threshold:.1f}", method, "none" if e.value > last else f"{e.value:.0f}", last)
                )
    return pd.DataFrame(lines, columns=["backbone", "threshold", "line", "first layer above it", "of"])
