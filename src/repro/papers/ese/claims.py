"""How rows of ESE are read, and what the table of its claims, `papers/ese.toml`, names.

A layer of the paper's backbone, and ESE's compressed size, is read as the same share of ours. A
trained line is held against the untouched one only where the control, the same training without the
method, costs nothing. A backbone is judged where it has all of the paper's lines. Table 3 is judged
by exact match where answers were generated, else by two proxies that have no printed size.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise, product
from math import isnan, nan
from operator import and_
from typing import Any

import numpy as np
import pandas as pd

from repro.evaluation.seeds import (
    FEWEST_SEEDS,
    Estimate,
    doublings,
    estimate,
    of_parts,
    scaled,
)
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
from repro.report.cells import farthest, lowest
from repro.report.claims import judges_of, record_of
from repro.report.judge import Rule, judge
from repro.report.measurements import absent, change, effect, ratio
from repro.report.tables import paper_values
from repro.report.verdict import Measurement
from repro.rows import parsed

RIVALS = (RAW, MRL)  # what the paper compares ESE with; the control is ours
PRINTED_BACKBONE = "bge-base-en-v1.5"
"""Whose printed numbers stand beside ours: a BERT of twelve layers, trained contrastively before.
"""
# The score that layers are to pass, and the best of the same figure
PRINTED_THRESHOLD, PRINTED_BEST = 60.00, 84.49
PLACES = {"last layer": AVERAGE, "≺ Avg.": SHALLOW_AVERAGE}
"""Where scores are averaged over the seven sets, as tables call it."""
COMPRESSION = tuple(record_of("ESE-T2-1")["parts"][0]["names"])
"""Targets of Table 2, from best to worst as printed."""
NONE = COMPRESSION[-1]
WEIGHTS = {part["place"]: tuple(part["names"]) for part in record_of("ESE-T2-2")["parts"]}
"""The same for its weights, by place."""
FOUND = {
    "exact_match": "exact match",
    "answer_in_context": "the first paragraph holds the answer",
    "hit@1": "the first paragraph is a supporting one",
}
"""Metrics of Table 3 that claims are judged by, each 0 or 1 for a question, in words."""
EXACT, *PROXIES = FOUND
MEAN = "mean over sizes"  # end of the setting of the ratios that are averaged over sizes
PER_CENT = record_of("ESE-F6-1")["parts"][0]["margin"]
"""What counts as equal time: runs on one idle machine differ by several per cent."""
MEASURES = {"cosine_agreement": "rank correlation of pair cosines", "linear_cka": "linear CKA"}
"""Agreement of a prefix with the whole, without a map."""
AS_THEY_ARE = "as they are"  # beginning of the setting of embeddings that are not centred


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


def measured(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows say of some rules; the untouched backbone draws nothing at random, so it has no
    seed noise.
    """
    return judge(
        rules,
        parsed(rows).assign(below=rows["layer"] - 1),
        fixed=lambda cell: cell["method"].iat[0] == RAW,
    )


def depth(
    rules: Sequence[Rule],
    rows: pd.DataFrame,
    threshold: float | None = None,
) -> list[Measurement]:
    """The same of every layer; a threshold of None is `threshold_of` each backbone's rows."""
    return measured(rules, rows.assign(threshold=nan if threshold is None else threshold))


def searched(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """The same of Table 3, of a backbone with exact matches without its proxies."""
    exact = rows["backbone"].isin(rows.loc[rows["metric"] == EXACT, "backbone"])
    return measured(rules, rows[~(exact & rows["metric"].isin(PROXIES))])


def by_backbone(
    rules: Sequence[Callable[..., Iterable[Measurement]]],
    rows: pd.DataFrame,
    **options: Any,
) -> list[Measurement]:
    """What the rows of each backbone say."""
    found: list[Measurement] = []
    for _, own in rows.groupby("backbone", sort=False):
        for rule in rules:
            found += rule(own, **options)
    return found


def variants(
    rules: Sequence[Callable[..., Iterable[Measurement]]],
    rows: pd.DataFrame,
    coinciding: Mapping[str, str] | None = None,
) -> list[Measurement]:
    """The same of Table 2: nothing is said of the order of `coinciding` variants, which are one
    training with another on this network.
    """
    return by_backbone(rules, rows, same=coinciding or {})


def without_one_that_falls(rows: pd.DataFrame, claim: str, why: str) -> Iterator[Measurement]:
    """That no backbone is at hand where the paper's MRL falls below RAW."""
    if not any(complete(rows, falls=True)):
        yield absent(claim, why)


def printed_over(rival: str) -> float:
    """The printed lead of ESE over a rival on `≺ Avg.`, such as 20.67 over RAW."""
    return printed_lead(only(printed("table1"), backbone=PRINTED_BACKBONE), ESE, rival)


def printed_lead(rows: pd.DataFrame, winner: str, rival: str) -> float:
    """A printed lead on `≺ Avg.`, in points, such as ESE's 20.67 over RAW."""
    at = only(rows, dataset=SHALLOW_AVERAGE).drop_duplicates("method").set_index("method")["value"]
    return float(100 * (at[winner] - at[rival]))


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


# Table 2 and Figure 5


Same = Mapping[str, str]  # variants that are one training with another, to that other


def in_order(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    place: str,
    names: Sequence[str],
    same: Same,
    gaps: bool = False,
    from_first: bool = False,
    printed_over: str = "",
) -> Iterator[Measurement]:
    """Each variant of an order less the next, or the first less each other; with `gaps` only those
    that were tried.

    The lead over `printed_over` stands beside the printed one.
    """
    tried = [name for name in names if not gaps or (rows["method"] == name).any()]
    pairs = product(tried[:1], tried[1:]) if from_first else pairwise(tried)
    for a, b in pairs:
        said = what.format(backbone=rows["backbone"].iloc[0], a=a, b=b)
        e = variant_lead(rows, a, b, place)
        if same.get(a, a) == same.get(b, b):
            one = "one training, for a single layer is below the last"
            yield absent(claim, f"{said}: {one}")
        elif e is not None:
            paper = printed_lead(printed_variants(), a, b) if b == printed_over else None
            yield effect(claim, e, said, paper=paper)


def excess(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
) -> Iterator[Measurement]:
    """What leaving compression out costs the shallow layers more, against the nearest target that
    was tried.
    """
    tried = [name for name in COMPRESSION if (rows["method"] == name).any()]
    if NONE in tried[1:]:
        e = variant_lead(rows, tried[-2], NONE, metric="shallow_excess")
        if e is not None:
            yield effect(claim, e, what.format(backbone=rows["backbone"].iloc[0]))


def above_ends(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
    sized: bool,
) -> Iterator[Measurement]:
    """The default's lead over the smallest and the largest size tried."""
    sizes = tried_sizes(rows)
    default = {method: size for size, method in sizes.items()}.get(ESE_DEFAULT)
    for side, size in (("smallest", min(sizes)), ("largest", max(sizes))) if default else ():
        # None of the default with itself
        if (e := variant_lead(rows, ESE_DEFAULT, sizes[size])) is not None:
            names = {"default": default, "size": size, "side": side}
            said = what.format(backbone=rows["backbone"].iloc[0], **names)
            yield effect(claim, e, said, sized=sized)


def above_baselines(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    same: Same,
) -> Iterator[Measurement]:
    """The smallest lead over the baselines of all sizes tried."""
    at = {}
    for size, method in tried_sizes(rows).items():
        for rival in RIVALS:
            if (e := variant_lead(rows, method, rival)) is not None:
                at[rival, size] = e
    if at:
        (rival, size), e = lowest(at)
        said = what.format(backbone=rows["backbone"].iloc[0], rival=rival, size=size)
        yield effect(claim, e, said)


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


# Table 3, Figures 6 and 7


def metrics_of(rows: pd.DataFrame) -> list[str]:
    """What the claims on Table 3 are judged by."""
    return [EXACT] if (rows["metric"] == EXACT).any() else PROXIES


def printed_leads(winner: str, rival: str) -> list[float]:
    """Printed leads in points of exact match, sizes ascending."""
    at = printed("table3").set_index(["method", "dim"])["value"]
    return [float(100 * (value - at[rival, dim])) for dim, value in at[winner].items()]


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
    own = text[text["method"].str.endswith(f"ESE vs {'RAW' if rival == RAW else '+ MRL'}")]
    return float(100 * own.loc[own["dataset"].str.contains("half layer"), "value"].iloc[0])


def ratios(rows: pd.DataFrame, metric: str, by: Sequence[str], **where: Any) -> dict[Any, Estimate]:
    """Ratios of one kind in doublings, run by run, of every cell."""
    cells = only(rows, metric=metric, **where).groupby(list(by), sort=False, dropna=False)
    return {key: doublings(cell.groupby("seed")["value"].mean().to_dict()) for key, cell in cells}


def equal_time(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    margin: float,
    unit: str,
) -> Iterator[Measurement]:
    """How ESE's seconds differ from MRL's at equal depth, where they differ most."""
    at = ratios(rows, "encode_ratio", ["layer"], method=f"{ESE} / {MRL}")
    if at:
        (layer,), e = farthest(at)
        said = what.format(backbone=rows["backbone"].iloc[0], layer=layer)
        yield change(claim, e, said, margin=margin, unit=unit)


def sooner_at_fewer_dims(rows: pd.DataFrame, claim: str, what: str) -> Iterator[Measurement]:
    """How much longer encoding and search take at full size, of the lines where it is least."""
    at = ratios(rows, "size_ratio", ["method", "layer", "dim", "setting"])
    if at and f"{ESE} / {MRL}" in set(rows["method"]):
        (method, _, dim, _), e = lowest(at)
        said = what.format(backbone=rows["backbone"].iloc[0], dim=int(dim), method=method)
        yield ratio(claim, e, said, null=1.0)


def sooner_by_ese(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    rival: str,
) -> Iterator[Measurement]:
    """How long encoding and search take by ESE against a rival, on average over sizes."""
    at = ratios(rows, "total_ratio", ["layer", "setting"], method=f"{ESE} / {rival}")
    for (_, setting), e in at.items():
        if setting.endswith(MEAN):
            said = what.format(backbone=rows["backbone"].iloc[0])
            yield ratio(claim, e, said, null=1.0, direction=-1)


def closer(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    rival: str,
) -> Iterator[Measurement]:
    """Distances of the full and the cut embedding in the map, against a rival: the paper's measure,
    of embeddings as they are.

    Centred ones, and agreement without a map, are this book's and stand on the page.
    """
    pair = only(rows, method=f"{ESE} − {rival}", metric="map_distance_lead")
    pair = pair[pair["setting"].str.startswith(AS_THEY_ARE)]
    for (dim, setting), at in pair.groupby(["dim", "setting"], sort=False):
        said = what.format(backbone=rows["backbone"].iloc[0], dim=dim, setting=setting)
        distance = scaled(estimate(at), 0.01)
        yield effect(claim, distance, said, direction=-1, unit="of the map")


JUDGES = judges_of("ese", globals())
table1, table2, table3, figure3, figure6, figure7 = JUDGES.values()
"""Rows to what they say of the claims of one page; that of Figure 3 judges Figure 4 too."""
