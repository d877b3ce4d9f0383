"""Claims on Table 2 and Figure 5, ESE-T2-1, T2-2 and ESE-F5-1, F5-2; and their tables, with the audit's switches.

A compressed size of the paper is read as the same share of the hidden size. Where two variants are one training on a
network, because it has a single layer below the last, nothing is said.
"""

from collections.abc import Mapping
from itertools import pairwise

import pandas as pd

from repro.methods import AVERAGE, ESE_DEFAULT, ESE_VARIANTS, MRL, RAW, SHALLOW_AVERAGE, size_variant
from repro.report.claims_ese.leads import by_backbone, estimate_of, full_dim, kept, lead
from repro.report.claims_ese.tables import SHALLOW_TITLE, estimate_plain, shown
from repro.report.compare import paper_values, side_by_side
from repro.report.judge import Estimate, effect
from repro.report.tables import MISSING
from repro.report.verdict import Measurement

COMPRESSION = (ESE_DEFAULT, "embeddings", "max-k", "no compression")
"""from best to worst as printed"""
LAST_WEIGHTS = ("learned weights", ESE_DEFAULT, "uniform weights")
SHALLOW_WEIGHTS = (ESE_DEFAULT, "learned weights", "uniform weights")
PLACES = {"last layer": AVERAGE, SHALLOW_TITLE: SHALLOW_AVERAGE}
NONE = "no compression"
SIZE = size_variant(0)[:-1]


def table2(rows: pd.DataFrame, coinciding: Mapping[str, str] | None = None) -> list[Measurement]:
    """What the rows of `ablation_rows` say, for every backbone.

    Args:
        rows: of the ablation.
        coinciding: variants that are one training with another on the network of these rows.
    """
    same = dict(coinciding or {})
    found = []
    for backbone, own in by_backbone(rows):
        tried = [variant for variant in COMPRESSION if (own["method"] == variant).any()]
        for place in PLACES:
            for a, b in pairwise(tried):
                paper = printed_cost(a) if (b, place) == (NONE, SHALLOW_TITLE) else None
                found += _order("ESE-T2-1", backbone, own, a, b, place, same, paper)
            for a, b in pairwise(LAST_WEIGHTS if place == "last layer" else SHALLOW_WEIGHTS):
                found += _order("ESE-T2-2", backbone, own, a, b, place, same)
        excess = (
            estimate_of(own, "shallow_excess", f"{tried[-2]} − {NONE}", dim=full_dim(own))
            if NONE in tried[1:]
            else None
        )
        if excess is not None:
            what = f"{backbone}: what leaving compression out costs the shallow layers more than the last one"
            found.append(effect("ESE-T2-1", excess, what))
        found += [*_rises_and_falls(backbone, own), *_above_baselines(backbone, own)]
    return found


def _order(
    claim: str,
    backbone: str,
    rows: pd.DataFrame,
    a: str,
    b: str,
    place: str,
    same: Mapping[str, str],
    paper: float | None = None,
) -> list[Measurement]:
    what = f"{backbone}, {place}: {a} less {b}"
    if same.get(a, a) == same.get(b, b):
        nan = float("nan")
        why = f"{what}: one training, for this network has a single layer below the last"
        return [Measurement(claim, "effect", nan, nan, nan, seeds=0, what=why)]
    e = _lead_either_way(rows, a, b, place)
    return [] if e is None else [effect(claim, e, what, paper=paper)]


def _lead_either_way(rows: pd.DataFrame, a: str, b: str, place: str) -> Estimate | None:
    """A lead at full size, read off the rows of the opposite one where only those exist."""
    where = {"dataset": PLACES[place], "dim": full_dim(rows)}
    e = lead(rows, a, b, **where)
    if e is not None:
        return e
    opposite = lead(rows, b, a, **where)
    return None if opposite is None else Estimate(-opposite.value, opposite.half, opposite.seeds)


def printed_cost(variant: str) -> float:
    """Points that the shallow layers lose, as printed, from a variant to no compression."""
    at = printed_variants().query("dataset == @SHALLOW_AVERAGE").drop_duplicates("method").set_index("method")["value"]
    return float(100 * (at[variant] - at[NONE]))


def sizes_of(rows: pd.DataFrame) -> dict[int, str]:
    """Compressed sizes that were tried, the default's among them, with their variants."""
    sized = (rows["method"] == ESE_DEFAULT) | rows["method"].str.startswith(SIZE)
    own = rows.loc[sized & (rows["metric"] == "compressed_size"), ["method", "value"]].drop_duplicates()
    return {int(size): str(method) for method, size in sorted(own.itertuples(index=False), key=lambda item: item[1])}


def _rises_and_falls(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    """The default's lead over the smallest and over the largest size tried."""
    sizes = sizes_of(rows)
    own = next((size for size, method in sizes.items() if method == ESE_DEFAULT), None)
    if own is None:
        return []
    found = []
    for side, size in (("smallest", min(sizes)), ("largest", max(sizes))):
        e = None if size == own else lead(rows, ESE_DEFAULT, sizes[size], dataset=AVERAGE, dim=full_dim(rows))
        if e is not None:
            what = f"{backbone}, last layer: k = {own} less k = {size}, the {side} tried"
            found.append(effect("ESE-F5-1", e, what))
    return found


def _above_baselines(backbone: str, rows: pd.DataFrame) -> list[Measurement]:
    """The smallest lead over RAW and MRL among all compressed sizes."""
    at = {
        (size, rival): e
        for size, method in sizes_of(rows).items()
        for rival in (RAW, MRL)
        if (e := lead(rows, method, rival, dataset=AVERAGE, dim=full_dim(rows))) is not None
    }
    if not at:
        return []
    (size, rival), e = min(at.items(), key=lambda item: item[1].value)
    what = f"{backbone}, last layer: smallest lead over the baselines of all sizes k ({rival}, k = {size})"
    return [effect("ESE-F5-2", e, what)]


def printed_variants() -> pd.DataFrame:
    """Table 2 as printed, a line per row with the variant it is here."""
    frame = paper_values("ese2025", "table2").copy()
    frame["printed"] = frame["method"].str.split(" / ").str[1]
    return frame.assign(method=frame["printed"].map(ESE_VARIANTS))


def table2_joined(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Paper, recorded and live of Table 2's rows at both places, at full size."""
    names = printed_variants()[["printed", "method"]].drop_duplicates()
    parts = []
    for place, dataset in PLACES.items():
        paper = printed_variants().query("dataset == @dataset")
        ours = [at_place(frame, dataset).merge(names, on="method") for frame in (past, live)]
        table = side_by_side(paper, ours[0], ours[1], keys=("printed",))
        table["order"] = table["printed"].map(list(ESE_VARIANTS).index)
        parts.append(table.sort_values("order").drop(columns="order").assign(place=place))
    joined = pd.concat(parts, ignore_index=True).rename(columns={"printed": "row of Table 2"})
    return joined[["row of Table 2", "place", *[c for c in joined if c not in ("row of Table 2", "place")]]]


def at_place(rows: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Scores of all variants at full size on one average."""
    if rows.empty:
        return rows
    own = rows[(rows["metric"] == "spearman") & (rows["dataset"] == dataset)]
    return own[own["dim"] == full_dim(rows)] if len(own) else own


def difference_rows(rows: pd.DataFrame, references: Mapping[str, str], dim: int | None = None) -> pd.DataFrame:
    """Each variant less what it differs from, at both places: columns variant, place, value, ci_low, ci_high.

    Args:
        rows: of the ablation, of one backbone.
        references: variant to what it is compared with.
        dim: size that is scored; None is the full one.
    """
    parts = []
    for place, dataset in PLACES.items():
        for variant, reference in references.items():
            own = kept(rows, "spearman_lead", f"{variant} − {reference}", dataset=dataset, dim=dim or full_dim(rows))
            parts.append(own.assign(variant=variant, place=place, reference=reference))
    columns = ["variant", "reference", "place", "value", "ci_low", "ci_high", "seed"]
    return pd.concat(parts, ignore_index=True)[columns]


def difference_table(rows: pd.DataFrame, references: Mapping[str, str], kind: str) -> pd.DataFrame:
    """The same for the reader: a line per variant and place, at full size and at the compressed one.

    Args:
        rows: of the ablation, of one backbone and kind.
        references: variant to what it is compared with; those that were not compared are left out.
        kind: of number, for the headings.
    """
    dims = sorted({int(d) for d in rows.loc[rows["metric"] == "spearman_lead", "dim"].dropna()}, reverse=True)
    lines = []
    for variant, reference in references.items():
        for place, dataset in PLACES.items():
            own = kept(rows, "spearman_lead", f"{variant} − {reference}", dataset=dataset)
            line: dict[str, object] = {"variant": variant, "against": reference, "place": place}
            for dim in dims:
                at = own[own["dim"] == dim]
                line[f"{kind}, {dim} dims"] = shown(estimate_plain(at)) if len(at) else MISSING
            if len(own):
                lines.append(line)
    return pd.DataFrame(lines, columns=["variant", "against", "place", *(f"{kind}, {dim} dims" for dim in dims)])


def weight_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Weights of the shallow layers: the default's, and what learned ones became; means over seeds."""
    own = rows[rows["metric"] == "layer_weight"]
    table = own.pivot_table(index=["backbone", "method"], columns="layer", values="value", aggfunc="mean", sort=False)
    table.columns = [f"layer {layer}" for layer in table.columns]
    return table.reset_index().rename(columns={"method": "variant"})


def size_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores by compressed size, at both places: columns place, dim (the size k), value and interval."""
    parts = []
    for place, dataset in PLACES.items():
        own = at_place(rows, dataset)
        for size, method in sizes_of(rows).items():
            parts.append(own[own["method"] == method].assign(place=place, dim=size))
    return pd.concat(parts, ignore_index=True) if parts else rows.iloc[:0].assign(place="")


def baseline_scores(rows: pd.DataFrame) -> dict[tuple[str, str], float]:
    """RAW's and MRL's score in points at both places."""
    found = {}
    for place, dataset in PLACES.items():
        own = at_place(rows, dataset)
        for method in (RAW, MRL):
            mine = own[own["method"] == method]
            if len(mine):
                found[place, method] = 100 * float(mine["value"].mean())
    return found


def variant_of(row: str) -> str:
    """What a printed row of Table 2 is called here."""
    return ESE_VARIANTS[row]
