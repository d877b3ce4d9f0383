"""ESE's tables, as printed and from our rows; and how rows are read: by backbone, at the last layer or below it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from repro.evaluation.seeds import FEWEST_SEEDS
from repro.evaluation.stats import paired_t
from repro.methods import (
    AVERAGE,
    ESE,
    ESE_CODE,
    ESE_DEFAULT,
    ESE_METHODS,
    ESE_VARIANTS,
    MRL,
    RAW,
    SHALLOW_AVERAGE,
    ese_line,
    size_variant,
)
from repro.report.compare import DATASETS, paper_values, side_by_side
from repro.report.judge import estimate
from repro.report.tables import spread, wide
from repro.rows import parsed

ORDER = (*ESE_METHODS, ESE_CODE)
"""every line keeps its place, and its colour, whichever are shown"""
PLACES = {"last layer": AVERAGE, "≺ Avg.": SHALLOW_AVERAGE}
"""where scores are averaged over the seven sets, as tables call it"""
SETS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr", AVERAGE, SHALLOW_AVERAGE)
"""columns of Table 1 in its order"""
COLUMNS = {**{name: title for title, name in DATASETS.items()}, SHALLOW_AVERAGE: "≺ Avg."}
PRINTED_BACKBONE = "bge-base-en-v1.5"
"""whose printed numbers stand beside ours: a BERT of twelve layers, trained contrastively before"""
MEASURES = {"cosine_agreement": "rank correlation of pair cosines", "linear_cka": "linear CKA"}
"""agreement of a prefix with the whole, without a map"""
SHORT = {
    "answer_in_context": "answer in the first paragraph",
    "hit@1": "first paragraph supports",
    "recall@10": "supporting ones among the first 10",
    "exact_match": "exact match",
}
"""metrics of Table 3 in a few words"""
AS_IT_IS = "prefix as it is"
"""setting of the rows in which prefixes are searched without being normalised anew"""
PER_CENT = 10.0
"""what counts as equal time: runs on one idle machine differ by several per cent"""


def by_backbone(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Backbones in the order of first appearance, with their rows."""
    for name in rows["backbone"].dropna().unique():
        yield str(name), rows[rows["backbone"] == name]


def only(rows: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows whose columns have these values."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def at_places(rows: pd.DataFrame, metric: str = "spearman", *, every_size: bool = False) -> pd.DataFrame:
    """Averages over the sets at the last layer and over the shallow ones, with their `place`; at full size alone."""
    parts = [rows.iloc[:0].assign(place="")]
    for _, own in by_backbone(rows):
        at = only(own, metric=metric)
        at = at[(at["layer"].isna() | (at["layer"] == own["layer"].max()))]
        at = at if every_size else only(at, dim=own["dim"].max())
        parts += [only(at, dataset=dataset).assign(place=place) for place, dataset in PLACES.items()]
    return pd.concat(parts, ignore_index=True)


def difference(cell: pd.DataFrame) -> str:
    """Mean over seeds, in points, with its 95 % interval over items; from three seeds on over the seeds, too."""
    e = estimate(cell, deterministic=cell["seed"].nunique() < FEWEST_SEEDS)
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"


# Table 1 and Figures 3 and 4


def printed(table: str) -> pd.DataFrame:
    """Printed numbers of a table of ESE with columns backbone and method, methods named as here."""
    frame = paper_values("ese2025", table)
    lines = [ese_line(row) for row in frame["method"]]
    return frame.assign(backbone=[b for b, _ in lines], method=[m for _, m in lines])


def table1_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that Table 1 shows: the last layer at full size on every set, and the mean over the shallow layers."""
    parts = [rows.iloc[:0]]
    for _, own in by_backbone(rows):
        scores = only(own, metric="spearman", dim=own["dim"].max())
        parts.append(scores[(scores["layer"] == own["layer"].max()) | (scores["dataset"] == SHALLOW_AVERAGE)])
    return pd.concat(parts)


def table1_wide(cells: pd.DataFrame) -> pd.DataFrame:
    """A line per backbone and method, a column per set, ×100 and averaged over seeds; printed or measured cells."""
    cells = cells[cells["dataset"].isin(SETS)]
    return wide(cells, ["backbone", "method"], "dataset", orders={"method": ORDER, "dataset": SETS}, names=COLUMNS)


def lead_table(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Leads at both places: recorded, mean ± standard deviation over seeds; live, with paired intervals."""
    kinds = ("recorded", "live")
    frames = dict(zip(kinds, (past, live), strict=True))
    found = [at_places(frame, "spearman_lead").assign(kind=kind) for kind, frame in frames.items()]

    def cell(own: pd.DataFrame) -> str:
        n = len(own)
        return difference(own) if own["kind"].iat[0] == "live" else f"{spread(own)} ({n} seed{'s' if n > 1 else ''})"

    orders = {"place": list(PLACES), "kind": kinds}
    table = wide(pd.concat(found[::-1]), ["backbone", "method", "place"], "kind", cell, orders=orders)
    return table.rename(columns={"method": "lead"}).reindex(columns=["backbone", "lead", "place", *kinds])


def grid_table(rows: pd.DataFrame, *, dataset: str = AVERAGE) -> pd.DataFrame:
    """Scores ×100 by backbone, method and layer, a column per size, averaged over seeds."""
    cells = only(rows[rows["layer"].notna() & rows["value"].notna()], metric="spearman", dataset=dataset)
    return wide(cells, ["backbone", "method", "layer"], "dim", orders={"method": ORDER})


def drop_table(rows: pd.DataFrame, *, dataset: str = AVERAGE) -> pd.DataFrame:
    """What the middle layer costs each line at full size, in points, and ESE's cost less each rival's."""
    parts = []
    for _, own in by_backbone(rows):
        at = only(own[own["metric"].isin(["spearman_drop", "drop_lead"])], dataset=dataset, dim=own["dim"].max())
        parts.append(at.assign(layers=f"{own['layer'].max()} to " + at["layer"].astype(str), lost="points lost"))
    order = [*ORDER, *(f"{ESE} − {rival}" for rival in ORDER)]
    cells = pd.concat(parts)[lambda own: own["method"].isin(order)]
    table = wide(cells, ["backbone", "method", "layers"], "lost", difference, orders={"method": order})
    return table.rename(columns={"method": "line"})


def t_table(rows: pd.DataFrame, rivals: Sequence[str]) -> pd.DataFrame:
    """ESE's lead on the mean over the shallow layers under a paired t-test, by what is taken as the unit (audit E12).

    Seeds are what the paper's sentence needs; sets and layers share a training, so they are not independent.
    """
    lines = []
    for backbone, own in by_backbone(rows):
        below = (own["layer"] > 0) & (own["layer"] < own["layer"].max()) & (own["dataset"] != AVERAGE)
        scores = only(own[below], metric="spearman", dim=own["dim"].max())
        for rival in rivals if (scores["method"] == ESE).any() else ():
            for unit, key in (("seeds", "seed"), ("sets", "dataset"), ("layers", "layer")):
                mine, theirs = (only(scores, method=m).groupby(key)["value"].mean().astype(float) for m in (ESE, rival))
                if unit == "seeds" and rival == RAW and len(theirs) == 1:
                    theirs = mine * 0 + theirs.iloc[0]  # one answer for all seeds
                shared = sorted(set(mine.index) & set(theirs.index))
                text, probability = "too few", "–"
                if len(shared) >= 3:
                    gap, p = paired_t(mine.loc[shared], theirs.loc[shared])
                    value, low, high = (100 * x for x in (gap.value, gap.low, gap.high))
                    text, probability = f"{value:.2f} [{low:.2f}, {high:.2f}]", f"{p:.1e}"
                lines.append((backbone, f"{ESE} − {rival}", unit, len(shared), text, probability))
    return pd.DataFrame(lines, columns=["backbone", "lead", "unit", "number", "mean", "p"])


# Table 2 and Figure 5


def printed_variants() -> pd.DataFrame:
    """Table 2 as printed, a line per row with the variant it is here."""
    frame = paper_values("ese2025", "table2")
    rows = frame["method"].str.split(" / ").str[1]
    return frame.assign(printed=rows, method=rows.map(ESE_VARIANTS))


def table2_joined(past: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Paper, recorded and live of Table 2's rows at both places, at full size."""
    paper = printed_variants()
    names, parts = paper[["printed", "method"]].drop_duplicates(), []
    for place, dataset in PLACES.items():
        ours = [only(at_places(frame), place=place).merge(names, on="method") for frame in (past, live)]
        table = side_by_side(only(paper, dataset=dataset), *ours, keys=("printed",)).assign(place=place)
        parts.append(table.sort_values("printed", key=lambda rows: rows.map(list(ESE_VARIANTS).index)))
    joined = pd.concat(parts, ignore_index=True).rename(columns={"printed": "row of Table 2"})
    joined["here"] = joined["row of Table 2"].map(ESE_VARIANTS)
    first = ["row of Table 2", "here", "place"]
    return joined[[*first, *(column for column in joined if column not in first)]]


def difference_rows(rows: pd.DataFrame, references: Mapping[str, str], *, every_size: bool = False) -> pd.DataFrame:
    """Each variant less what it differs from, at both places, with columns variant and place.

    Args:
        rows: of the ablation, of one backbone.
        references: variant to what it is compared with; pairs that were not compared are left out.
        every_size: not at full size alone.
    """
    found = parsed(at_places(rows, "spearman_lead", every_size=every_size))
    found = found.assign(variant=found["winner"])
    found = found[found["method"].isin([f"{variant} − {other}" for variant, other in references.items()])]
    return found.sort_values("variant", key=lambda names: names.map(list(references).index), kind="stable")


def difference_table(rows: pd.DataFrame, references: Mapping[str, str], kind: str) -> pd.DataFrame:
    """The same for the reader: a line per variant and place, a column per size.

    Args:
        rows: of the ablation, of one backbone and kind.
        references: variant to what it is compared with.
        kind: of number, for the headings.
    """
    cells = difference_rows(rows, references, every_size=True)
    cells = cells.assign(against=cells["rival"])
    dims = sorted(cells["dim"].unique(), reverse=True)
    orders = {"variant": list(references), "place": list(PLACES), "dim": dims}
    names = {str(dim): f"{kind}, {dim} dims" for dim in dims}
    return wide(cells, ["variant", "against", "place"], "dim", difference, orders=orders, names=names)


def weight_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Weights of the shallow layers: the default's, and what learned ones became; means over seeds."""
    cells = only(rows, metric="layer_weight").assign(layer=lambda own: "layer " + own["layer"].astype(str))
    return wide(cells, ["backbone", "method"], "layer", lambda own: own["value"].mean(), names={"method": "variant"})


def tried_sizes(rows: pd.DataFrame) -> dict[int, str]:
    """Compressed sizes that were tried, ascending, with their variants; the default's is among them."""
    sized = (rows["method"] == ESE_DEFAULT) | rows["method"].str.startswith(size_variant(0)[:-1])
    own = only(rows[sized], metric="compressed_size")
    return dict(sorted((int(size), str(method)) for size, method in zip(own["value"], own["method"], strict=True)))


def size_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores by compressed size at both places: `dim` is the size k; RAW and MRL, which have none, at every one."""
    scores, sizes = at_places(rows), tried_sizes(rows)
    parts = [only(scores, method=name).assign(method=ESE, dim=size) for size, name in sizes.items()]
    parts += [only(scores, method=name).assign(dim=size) for name in (RAW, MRL) for size in sizes]
    return pd.concat(parts, ignore_index=True) if parts else scores.iloc[:0]
