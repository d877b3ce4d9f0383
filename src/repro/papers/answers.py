"""How many dimensions one needs, from recorded rows alone: the book's first answer.

Every share is of the full-size score of `ENCODER`. Reducers learnt from other texts than those judged: from a training
split; for searches, from sentences and the paragraphs that are searched. "Needs d dims" is said where the lower end of
the 95 % interval passes at d and at every larger size recorded.
"""

from collections.abc import Sequence

import pandas as pd

from repro.methods import FULL_SIZE
from repro.report.tables import MISSING

ENCODER = "all-MiniLM-L6-v2"
PCA, FIRST = "PCA", "first columns"
REDUCERS = {"PCA": PCA, "Truncate": FIRST}  # names in the rows of scores by dimension, and here
USES = {
    ("stsb", "spearman"): "similarity (STS-B)",
    ("trec", "accuracy"): "classification (TREC)",
    ("hotpotqa", "ndcg@10"): "retrieval (HotpotQA)",
    ("stsb", "neighbours_kept"): "ten neighbours kept",
}
LADDER = (
    *(("float32", 384), ("int8", 384), ("float32", 96), ("int4", 192), ("float32", 24)),
    *(("binary", 384), ("binary, then float", 384), ("float32", 12)),
)
"""some ways to store a vector: below the full size by PCA, at the full size as it is, whichever score is the better"""
POINT = ["value", "ci_low", "ci_high"]


def published(reduced: pd.DataFrame) -> list[str]:
    """The encoders with recorded scores by dimension that this book did not train, `ENCODER` first."""
    names = reduced.loc[reduced["metric"] == "spearman", "backbone"].dropna().unique()
    return sorted((name for name in names if "repro" not in name), key=lambda name: (name != ENCODER, name))


def shares(reduced: pd.DataFrame, coded: pd.DataFrame, encoder: str = ENCODER) -> pd.DataFrame:
    """Share of an encoder's full-size score by use, reducer and dim, with its 95 % interval.

    `reduced` are scores by dimension and their differences from the full size, paired by item, on unseen texts; `coded`
    are scores by level and bytes: nothing is paired with the full size, so the interval is the score's own.
    """
    paired = reduced.query("rival == @FULL_SIZE and setting == 'inductive' and winner in @REDUCERS")
    paired = paired.assign(reducer=paired["winner"].map(REDUCERS), metric=paired["metric"].str.removesuffix("_lead"))
    alone = coded[coded["method"].isin(["float32", "float16"])].sort_values("method", ascending=False)
    alone = alone.assign(reducer=alone["setting"].str.extract(r"^(.+), [\d,]+ bytes$", expand=False))
    alone = alone[alone["reducer"].isin([PCA, FIRST])].drop_duplicates(["reducer", "dataset", "metric", "dim"])
    found = []
    for (dataset, metric), use in USES.items():
        for rows, given, shift in ((reduced, paired, 1.0), (coded, alone, 0.0)):
            here = f"dataset == '{dataset}' and metric == '{metric}' and backbone == @encoder"
            full, own = rows.query(here).query("method == @FULL_SIZE"), given.query(here)
            if len(full) and len(own):
                share = shift + own[POINT].astype(float) / full["value"].iloc[0]
                whole = {"reducer": FIRST, "dim": full["dim"].iloc[0], **dict.fromkeys(POINT, 1.0)}
                share = pd.concat([own[["reducer", "dim"]].join(share), pd.DataFrame([whole])])
                found.append(share.assign(use=use, encoder=encoder).astype({"dim": int}))
                break  # paired differences say more
    nothing = pd.DataFrame(columns=["use", "encoder", "reducer", "dim", *POINT])
    return pd.concat(found, ignore_index=True) if found else nothing


def enough(found: pd.DataFrame, target: float, bound: str = "ci_low") -> tuple[int, str]:
    """The smallest dim, and its reducer, from which every size recorded keeps the target; the full size always does."""
    sizes = []
    for reducer, line in found.groupby("reducer", sort=False):
        passed = line.set_index("dim")[bound].sort_index(ascending=False) >= target
        sizes += [(int(dim), str(reducer)) for dim in passed.index[passed.cummin()]]
    return min(sizes)


def needed(found: pd.DataFrame, keep: Sequence[float]) -> pd.DataFrame:
    """A line per use and encoder, a column per share to keep: dims of the better reducer, bytes, dims as measured."""
    lines = []
    for (use, encoder), own in found.groupby(["use", "encoder"], sort=False):
        line = {"use": str(use), "encoder": str(encoder)}
        for target in keep:
            (dim, reducer), (measured, other) = (enough(own, target, bound) for bound in ("ci_low", "value"))
            how = "all" if dim == own["dim"].max() else f"{reducer},"
            less = f" (measured: {other}, {measured})" if measured < dim else ""
            line[f"keep {100 * target:g} %"] = f"{how} {dim}{less}: {4 * dim:,} bytes"
        lines.append(line)
    return pd.DataFrame(lines)


def bits(coded: pd.DataFrame) -> pd.DataFrame:
    """A line per way of `LADDER` to store a vector: bytes, code, and the shares of the full-size score by use, in %."""
    own = coded[(coded["backbone"] == ENCODER) & coded["metric"].isin([metric for _, metric in USES])]
    full = own[own["method"] == FULL_SIZE].set_index(["dataset", "metric"])
    most = full["dim"].max() if len(full) else 0
    whole = full.reset_index().assign(method="float32", setting=f"{FIRST}, bytes", bytes=4 * most)
    lines = []
    for level, dim in LADDER if len(full) else ():
        reducer = FIRST if dim == most else PCA
        way = pd.concat([own, whole]).query("method == @level and dim == @dim").set_index(["dataset", "metric"])
        way = way[way["setting"].str.match(rf"{reducer}, [\d, ]*bytes")]
        share = {USES[at]: f"{100 * value / full['value'][at]:.1f}" for at, value in way["value"].items()}
        if share:
            code = f"{level} × {dim}" + (f", {PCA}" if dim < most else "")
            lines.append({"bytes": f"{int(way['bytes'].iloc[0]):,}", "code": code, **share})
    return pd.DataFrame(lines, columns=["bytes", "code", *USES.values()]).dropna(axis=1, how="all").fillna(MISSING)


def statement(found: pd.DataFrame, ways: pd.DataFrame) -> str:
    """The answer in two sentences, from `shares` of `ENCODER` and `bits`."""
    if found.empty or ways.empty:
        return "No rows are recorded."
    full = int(found["dim"].max())
    half = found.query("reducer == @PCA and dim == @full // 2").set_index("use")["value"]
    *kept, neighbours = (f"{100 * half[use]:.0f} %" for use in USES.values())
    byte, floats = (ways.set_index("code").loc[code] for code in (f"int8 × {full}", f"float32 × {full // 4}, {PCA}"))
    first, second = (
        "{}, {} and {} %".format(*(way[use] for use in USES.values() if use in ways)) for way in (byte, floats)
    )
    return (
        f"Half of the {full} dimensions of {ENCODER}, by PCA, keep {kept[0]} of its score on similarity, {kept[1]} on "
        f"classification and {kept[2]} on retrieval, but only {neighbours} of the ten nearest neighbours. Bits are "
        f"cheaper to drop than dimensions: in {byte['bytes']} bytes a vector, {full} numbers of one byte keep {first} "
        f"of similarity, retrieval and neighbours, and {full // 4} numbers of four bytes {second}."
    )
