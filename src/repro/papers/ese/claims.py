"""How rows of ESE are read, and what they measure of its claims on depth and size: Tables 1 and 2,
Figures 3 to 5.

A layer or size of the paper's backbone is read as the same share of ours: half of the layers, ESE's
compressed size. A backbone is judged where it has all of the paper's lines.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial, reduce
from itertools import pairwise
from math import nan
from operator import and_
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import FEWEST_SEEDS, Estimate, estimate, of_parts, scaled
from repro.evaluation.stats import Floats
from repro.methods import (
    AVERAGE,
    ESE,
    ESE_DEFAULT,
    ESE_PRINTED,
    ESE_VARIANTS,
    MRL,
    RAW,
    SHALLOW_AVERAGE,
)
from repro.report.judge import Judge, Measurement, absent, average, effect, farthest, judge, lowest
from repro.report.tables import paper_values
from repro.rows import parsed

RIVALS = (RAW, MRL)  # what the paper compares ESE with; the control is ours
PRINTED_BACKBONE = "bge-base-en-v1.5"
"""Whose printed numbers stand beside ours: a BERT of twelve layers, trained contrastively before.
"""
# The score that layers are to pass, and the best of the same figure
PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49
PLACES = {"last layer": AVERAGE, "≺ Avg.": SHALLOW_AVERAGE}
"""Where scores are averaged over the seven sets, as tables call it."""
COMPRESSION = (ESE_DEFAULT, "embeddings", "max-k", "no compression")
"""Targets of Table 2, from best to worst as printed."""
NONE = COMPRESSION[-1]
WEIGHTS = {
    "last layer": ("learned weights", ESE_DEFAULT, "uniform weights"),
    "≺ Avg.": (ESE_DEFAULT, "learned weights", "uniform weights"),
}
"""The same for its weights, by place."""


# How rows are read


def only(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows whose columns have these values."""
    return rows[reduce(and_, (rows[column] == value for column, value in where.items()))]


def printed(table: str) -> pd.DataFrame:
    """Printed numbers of a table of ESE with columns backbone and method, methods named as here."""
    frame = paper_values("ese2025", table)
    lines = frame["method"].str.partition(" / ")  # such as `bge-base-en-v1.5 / + MRL`
    return frame.assign(backbone=lines[0], method=lines[2].replace(ESE_PRINTED))


def printed_variants() -> pd.DataFrame:
    """Table 2 as printed, a line per row with the variant it is here."""
    frame = paper_values("ese2025", "table2")
    rows = frame["method"].str.split(" / ").str[1]
    return frame.assign(printed=rows, method=rows.map(ESE_VARIANTS))


def table1_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that Table 1 shows: the last layer at full size on every set, and the mean over the
    shallow layers.
    """
    parts = [rows.iloc[:0]]
    for _, own in rows.groupby("backbone", sort=False):
        scores = only(own, metric="spearman", dim=own["dim"].max())
        parts.append(
            scores[(scores["layer"] == own["layer"].max()) | (scores["dataset"] == SHALLOW_AVERAGE)]
        )
    return pd.concat(parts)


def tried_sizes(rows: pd.DataFrame) -> dict[int, str]:
    """Compressed sizes that were tried, ascending, with their variants; the default's is among
    them.
    """
    sized = (rows["method"] == ESE_DEFAULT) | rows["method"].str.startswith("k = ")
    own = only(rows[sized], metric="compressed_size")
    return dict(
        sorted(
            (int(size), str(method))
            for size, method in zip(own["value"], own["method"], strict=True)
        )
    )


def at_places(
    rows: pd.DataFrame,
    metric: str = "spearman",
    *,
    every_size: bool = False,
) -> pd.DataFrame:
    """Averages over the sets at the last layer and over the shallow ones, with their `place`; at
    full size alone.
    """
    parts = [rows.iloc[:0].assign(place="")]
    for _, own in rows.groupby("backbone", sort=False):
        at = only(own, metric=metric)
        at = at[(at["layer"].isna() | (at["layer"] == own["layer"].max()))]
        at = at if every_size else only(at, dim=own["dim"].max())
        parts += [
            only(at, dataset=dataset).assign(place=place) for place, dataset in PLACES.items()
        ]
    return pd.concat(parts, ignore_index=True)


def difference(cell: pd.DataFrame) -> str:
    """Mean over seeds, in points, with its 95 % interval over items; from three seeds on over the
    seeds, too.
    """
    return str(estimate(cell, deterministic=cell["seed"].nunique() < FEWEST_SEEDS))


# Table 1, Figures 3 and 4


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


def lead(winner: str, rival: str, metric: str = "spearman_lead", dataset: str = AVERAGE) -> str:
    """Query for one line less another."""
    return (
        f"metric == '{metric}' and dataset == '{dataset}' and winner == "
        f"'{winner}' and rival == '{rival}'"
    )


rule, deep_rule = (partial(Judge, each=partial(complete, layers=layers)) for layers in (0, 2))
AT_LAST = "layer == @last and dim == @full"
OVER_RIVALS = (
    f"metric == 'spearman_lead' and dataset == '{AVERAGE}' and winner == "
    f"'{ESE}' and rival in {RIVALS}"
)
OVER = ("rival", "layer", "dim")
WHERE = "(over {rival}, layer {layer}, {dim} dims)"


def measured(rules: list[Any], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows say of some rules; the untouched backbone draws nothing at random, so it has no
    seed noise.
    """
    return judge(
        rules,
        parsed(rows).assign(below=rows["layer"] - 1),
        fixed=lambda cell: cell["method"].iat[0] == RAW,
    )


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-T1-1 … 4: the last layer, and the mean over the shallow ones."""
    first = "{backbone}: last layer, ESE less {rival}, the better of the two"
    rules: list[Any] = [rule("ESE-T1-1", first, f"{OVER_RIVALS} and {AT_LAST}", over=("rival",))]
    for falls, side in ((True, "below"), (False, "above")):
        what = f"{{backbone}}: last layer, MRL less RAW (the paper: {side} 0)"
        at_last = f"{lead(MRL, RAW)} and {AT_LAST}"
        rules.append(
            rule(
                "ESE-T1-2",
                what,
                at_last,
                each=partial(complete, falls=falls),
                direction=-1 if falls else 1,
            )
        )
    over_raw = printed_lead(only(printed("table1"), backbone=PRINTED_BACKBONE), ESE, RAW)
    for rival, paper in ((RAW, over_raw), (MRL, None)):
        what = f"{{backbone}}: mean of layers below the last, ESE less {rival}"
        below = f"{lead(ESE, rival, dataset=SHALLOW_AVERAGE)} and dim == @full"
        rules.append(rule("ESE-T1-3", what, below, paper=paper))
    found = measured([*rules, language_models], rows)
    if not any(complete(rows, falls=True)):
        found.append(
            absent("ESE-T1-2", "needs UAE-Large-V1, where MRL falls: profile `paper` fetches it")
        )
    return found


def figure3(rows: pd.DataFrame, threshold: float | None = None) -> list[Measurement]:
    """ESE-F3-1 … 4: what every layer and size says; a threshold of None is `threshold_of` each
    backbone's rows.
    """
    step = "{{backbone}}, {}: smallest step from a layer to the next (layer {{below}} to {{layer}})"
    steps = f"metric == 'spearman_step' and dataset == '{AVERAGE}' and method == '{{}}'"
    least = f"{{backbone}}: smallest lead of ESE over layers and sizes {WHERE}"
    lower = (
        "{{backbone}}: lead of ESE over {}, mean of the lower half of the layers "
        "less that at the last"
    )
    level = "{backbone}: largest change of ESE's last layer beyond {against:.0f} dims (at {dim})"
    change = (
        f"metric == 'spearman_change' and dataset == '{AVERAGE}' and method == "
        f"'{ESE}' and layer == @last"
    )
    rules = [
        partial(first_layers, threshold=threshold),
        *(
            rule(
                "ESE-F3-2",
                step.format(m),
                steps.format(m),
                over=("below", "layer"),
                direction=1 if m == ESE else -1,
            )
            for m in (ESE, RAW, MRL)
        ),
        rule("ESE-F3-3", least, f"{OVER_RIVALS} and layer > 0", over=OVER),
        *(
            rule("ESE-F3-3", lower.format(r), lead(ESE, r, "depth_lead"), over=("rival",))
            for r in RIVALS
        ),
        rule(
            "ESE-F3-4",
            level,
            f"{change} and dim > against",
            farthest,
            ("dim", "against"),
            test="sameness",
        ),
    ]
    return measured(rules, rows)


def figure4(rows: pd.DataFrame) -> list[Measurement]:
    """ESE-F4-1: the middle and the last layer at every size, for every backbone at hand in place of
    the 7B model.
    """
    least = f"{{backbone}}: smallest lead of ESE at layers {{half}} and {{last}} {WHERE}"
    drop = "{{backbone}}: drop from layer {{last}} to {{half}}, ESE's less {}'s, mean over sizes"
    at_both = f"{OVER_RIVALS} and (layer == @half or layer == @last)"
    drops = (
        deep_rule("ESE-F4-1", drop.format(r), lead(ESE, r, "drop_lead"), average, direction=-1)
        for r in RIVALS
    )
    return measured([deep_rule("ESE-F4-1", least, at_both, over=OVER), *drops], rows)


def printed_lead(rows: pd.DataFrame, winner: str, rival: str) -> float:
    """A printed lead on `≺ Avg.`, in points, such as ESE's 20.67 over RAW."""
    at = only(rows, dataset=SHALLOW_AVERAGE).drop_duplicates("method").set_index("method")["value"]
    return float(100 * (at[winner] - at[rival]))


def language_models(rows: pd.DataFrame) -> Iterator[Measurement]:
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
        model, other = (
            max(large, key=lambda name: large[name].value),
            min(others, key=lambda name: others[name].value),
        )
        gap = large[model] - others[other]
        yield effect("ESE-T1-4", gap, f"shallow gain of {model} less that of {other}", direction=-1)
    else:
        yield absent(
            "ESE-T1-4",
            "needs Qwen1.5-0.5B beside a BERT, on the same pairs: profile `paper` fetches it",
        )


def threshold_of(rows: pd.DataFrame, dataset: str = AVERAGE) -> float:
    """The score in points that layers are to pass: the paper's 60 on real sets, where a line
    reaches it at all.

    Elsewhere it is the same share, 71 %, of the best score that any line of these rows has at its
    last layer; NaN where they hold no score of that set.
    """
    own = only(rows[rows["layer"] > 0], metric="spearman", dataset=dataset)
    if own.empty:  # one dataset has no average
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


def first_layers(rows: pd.DataFrame, threshold: float | None = None) -> Iterator[Measurement]:
    """How many layers later a rival passes the threshold than ESE; and MRL than RAW, where the
    paper has one layer.
    """
    for facts, own in complete(rows):
        passed = threshold_of(own) if threshold is None else threshold
        at = {method: layer_scores(own, method) for method in (RAW, MRL, ESE)}
        # RAW may pass with MRL
        for later, earlier, null in ((RAW, ESE, 0.0), (MRL, ESE, 0.0), (RAW, MRL, -0.5)):
            a, b = at[later], at[earlier]
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
                what = (
                    f"layers that {later} needs more than {earlier} to pass {passed:.1f}, of "
                    f"{facts['last']}"
                )
                yield effect("ESE-F3-1", gap, f"{facts['backbone']}: {what}", null=null)


# Table 2 and Figure 5


def table2(rows: pd.DataFrame, coinciding: Mapping[str, str] | None = None) -> list[Measurement]:
    """ESE-T2-1, T2-2, F5-1 and F5-2: the order of targets, of weights and of compressed sizes, for
    every backbone.

    Nothing is said of the order of `coinciding` variants, which are one training with another on
    this network.
    """
    same, found = dict(coinciding or {}), []
    for backbone, own in rows.groupby("backbone", sort=False):
        tried = [variant for variant in COMPRESSION if (own["method"] == variant).any()]
        for place in PLACES:
            orders = [("ESE-T2-1", *pair) for pair in pairwise(tried)]
            for claim, a, b in [
                *orders,
                *(("ESE-T2-2", *pair) for pair in pairwise(WEIGHTS[place])),
            ]:
                what = f"{backbone}, {place}: {a} less {b}"
                e = variant_lead(own, a, b, place)
                if same.get(a, a) == same.get(b, b):
                    found.append(
                        absent(claim, f"{what}: one training, for a single layer is below the last")
                    )
                elif e is not None:
                    paper = (
                        printed_lead(printed_variants(), a, b)
                        if (b, place) == (NONE, "≺ Avg.")
                        else None
                    )
                    found.append(effect(claim, e, what, paper=paper))
        excess = (
            variant_lead(own, tried[-2], NONE, metric="shallow_excess")
            if NONE in tried[1:]
            else None
        )
        if excess is not None:
            what = "what leaving compression out costs the shallow layers more than the last one"
            found.append(effect("ESE-T2-1", excess, f"{backbone}: {what}"))
        found += sizes_judged(backbone, own)
    return found


def sizes_judged(backbone: str, rows: pd.DataFrame) -> Iterator[Measurement]:
    """The default's lead over the smallest and the largest size tried; the smallest lead over the
    baselines of all.
    """
    sizes = tried_sizes(rows)
    default = {method: size for size, method in sizes.items()}.get(ESE_DEFAULT)
    for side, size in (("smallest", min(sizes)), ("largest", max(sizes))) if default else ():
        # None of the default with itself
        if (e := variant_lead(rows, ESE_DEFAULT, sizes[size])) is not None:
            yield effect(
                "ESE-F5-1",
                e,
                f"{backbone}, last layer: k = {default} less k = {size}, the {side} tried",
            )
    leads = [
        (r, size, variant_lead(rows, method, r)) for size, method in sizes.items() for r in RIVALS
    ]
    if at := {(rival, size): e for rival, size, e in leads if e is not None}:
        (rival, size), e = lowest(at)
        what = f"smallest lead over the baselines of all sizes k ({rival}, k = {size})"
        yield effect("ESE-F5-2", e, f"{backbone}, last layer: {what}")


def variant_lead(
    rows: pd.DataFrame,
    a: str,
    b: str,
    place: str = "last layer",
    metric: str = "spearman_lead",
) -> Estimate | None:
    """One variant less another at full size, read off the rows of the opposite where only those
    exist.
    """
    rows = only(rows, metric=metric, dataset=PLACES[place], dim=rows["dim"].max())
    for sign, method in ((1, f"{a} − {b}"), (-1, f"{b} − {a}")):
        own = only(rows, method=method)
        if len(own):
            return scaled(estimate(own), sign)
    return None
