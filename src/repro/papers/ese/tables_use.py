"""Tables on the use of ESE's embeddings: what a search finds, what depth and size cost, what a prefix carries."""

from collections.abc import Mapping

import pandas as pd

from repro.methods import ESE
from repro.papers.ese.tables import AS_IT_IS, MEASURES, ORDER, PER_CENT, SHORT, by_backbone, difference, only, printed
from repro.report.tables import over_seeds, wide
from repro.report.verdict import sameness

MEAN = "mean over sizes"
"""end of the setting of the ratios that are averaged over sizes"""


# Table 3


def printed_table3() -> pd.DataFrame:
    """The printed exact match ×100: a line per method, a column per size."""
    return wide(printed("table3"), ["method"], "dim", orders={"method": ORDER})


def found_table(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One metric ×100 by backbone, layer and method, averaged over seeds, a column per size."""
    cells = only(rows[rows["setting"].isna()], metric=metric)
    return wide(cells, ["backbone", "layer", "method"], "dim", orders={"method": ORDER})


def leads_table(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Leads of ESE in points by backbone, layer and rival, a column per size."""
    cells = only(rows[rows["method"].str.startswith(f"{ESE} − ")], metric=f"{metric}_lead")
    orders = {"method": [f"{ESE} − {rival}" for rival in ORDER]}
    return wide(cells, ["backbone", "layer", "method"], "dim", difference, orders=orders, names={"method": "lead"})


def flat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By backbone, method and size: the supporting paragraph first, with prefixes normalised anew and as they are."""
    last = rows["layer"] == rows.groupby("backbone")["layer"].transform("max")
    rows = rows[last & rows["metric"].isin(["same_first", "hit@1"])]
    plain = rows["setting"].eq(AS_IT_IS).fillna(False)
    other = plain & (rows["metric"] == "same_first")
    rows = rows.assign(value=rows["value"].where(~other, 1 - rows["value"]))
    found = rows["metric"].where(~plain, rows["metric"] + ", as it is")
    names = {
        "same_first": "faiss finds what exact cosines find, %",
        "hit@1": "first is supporting, %",
        "hit@1, as it is": "the same, prefixes as they are, %",
        "same_first, as it is": "another first paragraph, %",
    }
    return wide(
        rows.assign(found=found),
        ["backbone", "method", "dim"],
        "found",
        orders={"found": list(names), "dim": list(dict.fromkeys(rows["dim"]))},
        names={**names, "dim": "dims"},
    )


def better_than_chance(rows: pd.DataFrame, at_random: Mapping[str, float]) -> pd.DataFrame:
    """By network and line, its share at the last layer and full size with its interval, and whether chance is below it.

    Args:
        rows: scores of Table 3, of one seed.
        at_random: what a paragraph drawn at random scores, by metric.
    """
    lines = []
    for backbone, own in by_backbone(rows[rows["metric"].isin(list(at_random))]):
        for row in only(own, layer=own["layer"].max(), dim=own["dim"].max()).itertuples():
            value, low, high, random = (100 * x for x in (row.value, row.ci_low, row.ci_high, at_random[row.metric]))
            better = "yes" if low > random else "no"
            lines.append(
                (backbone, row.method, SHORT[row.metric], f"{value:.1f} [{low:.1f}, {high:.1f}]", random, better)
            )
    return pd.DataFrame(lines, columns=["backbone", "line", "measure", "found", "at random", "better"])


# Figure 6


def depth_cost(rows: pd.DataFrame) -> pd.DataFrame:
    """By backbone, method and layer: milliseconds to encode, their share of full depth, Spearman ×100 (Figure 6a)."""
    keys = ["backbone", "method", "layer"]
    seconds, quality = (
        only(rows, metric=m).groupby(keys, sort=False)["value"].mean() for m in ("encode_seconds", "spearman")
    )
    table = pd.concat([1000 * seconds.rename("ms"), 100 * quality.rename("spearman")], axis=1).reset_index()
    return table.assign(share=100 * table["ms"] / table.groupby(["backbone", "method"])["ms"].transform("last"))


def depth_cost_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The same for the reader."""
    names = {"ms": "milliseconds", "share": "% of full depth", "spearman": "Spearman ×100"}
    return depth_cost(rows).rename(columns=names)


def size_cost_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By backbone and size: milliseconds of search of every line, and megabytes of a million vectors of four bytes."""
    cells = only(rows, metric="search_seconds")
    table = wide(cells, ["backbone", "dim"], "method", lambda own: 1000 * own["value"].mean(), orders={"method": ORDER})
    return table.assign(**{"MB per million vectors": 4.0 * table["dim"]}).rename(columns={"dim": "dims"})


def ratios(rows: pd.DataFrame, metric: str, method: str | None = None) -> pd.DataFrame:
    """Ratios of one kind, means over runs: method, layer, dim, setting, value, ci_low and ci_high."""
    own = only(rows, metric=metric) if method is None else only(rows, metric=metric, method=method)
    return over_seeds(own, ["method", "layer", "dim", "setting"])


def equality_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every two lines: how far their seconds of encoding at each layer and of search differ, and if they are equal.

    Equal means that the interval over rounds lies within ± 10 %, different that it lies outside.
    """
    said = {"yes": f"within {PER_CENT:.0f} %", "open": "cannot tell", "no": "no"}
    lines = []
    for backbone, own in by_backbone(rows):
        encode, search = (ratios(own, f"{work}_ratio") for work in ("encode", "search"))
        search = search[search["setting"].str.endswith(MEAN)]
        for row in pd.concat([encode, search]).itertuples():
            what = "search, mean over sizes" if pd.isna(row.layer) else f"encoding, layer {row.layer}"
            value, low, high = (100 * (x - 1) for x in (row.value, row.ci_low, row.ci_high))
            equal = said[sameness(low, high, margin=PER_CENT)] if low == low else "one round says nothing"
            lines.append((backbone, row.method, what, f"{value:.1f} [{low:.1f}, {high:.1f}]", equal))
    return pd.DataFrame(lines, columns=["backbone", "lines", "seconds of", "difference, %", "equal"])


# Figure 7


def map_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By form and line: mean distance in the map under each seed, mean and spread, and its share of the map's scale."""
    own = rows[rows["metric"].isin(["map_distance", "map_share"])]
    split = own["setting"].str.split(", ", n=1)
    own = own.assign(form=split.str[0], drawn=split.str[1])
    keys = ["form", "backbone", "method"]
    table = wide(only(own, metric="map_distance"), keys, "drawn", lambda cell: cell["value"].mean())
    if table.empty:
        return table
    each = table.drop(columns=keys)
    table["mean ± sd"] = each.mean(axis=1).map("{:.2f}".format)
    if each.shape[1] > 1:
        table["mean ± sd"] += " ± " + each.std(axis=1).map("{:.2f}".format)
    share = only(own, metric="map_share").groupby(keys)["value"].mean().rename("by the mean distance of two sentences")
    return table.join(share, on=keys).rename(columns={"form": "rows", "method": "line"})


def agreement_table(rows: pd.DataFrame) -> pd.DataFrame:
    """By size and line: share of the length in the prefix, and both measures ×100 with intervals; means over seeds."""
    names = {"kept_length": "length kept, %", **MEASURES, "dim": "dims", "method": "line"}

    def cell(own: pd.DataFrame) -> str:
        value, low, high = (100 * float(own[c].mean()) for c in ("value", "ci_low", "ci_high"))
        return f"{value:.1f}" if pd.isna(low) else f"{value:.1f} [{low:.1f}, {high:.1f}]"

    cells = rows[rows["metric"].isin(list(names))]
    orders = {"method": ORDER, "metric": list(names)}
    return wide(cells, ["backbone", "dim", "method"], "metric", cell, orders=orders, names=names)


# Audit E1, E4 and E6: what one batch shows before any training


def rank_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Numerical rank of dependency matrices by layer: median, smallest and largest, and S₂/S₁ (audit E4)."""
    keys = ["backbone", "layer", "dim", "setting"]
    found = only(rows, metric="numerical_rank").groupby(keys, sort=False)
    table = found.agg(median=("value", "median"), smallest=("ci_low", "min"), largest=("ci_high", "max")).astype(int)
    ratio = only(rows, metric="second_share").groupby(keys)["value"].mean().map("{:.1e}".format)
    names = {"dim": "size", "setting": "matrix", "median": "rank, median", "ratio": "second by first"}
    return table.join(ratio.rename("ratio")).reset_index().rename(columns=names)


def repeat_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far two calls on one batch agree, a line per decomposition (audit E6)."""
    names = {
        "sign_flips": "components that change sign, %",
        "column_cosine": "cosine of equal components, median, %",
        "last_cosine": "the last one's, %",
        "subspace_overlap": "overlap of the two spaces, %",
    }
    cells = rows[rows["metric"].isin(list(names))]
    names |= {"dim": "k", "setting": "decomposition"}
    return wide(cells, ["backbone", "dim", "setting"], "metric", orders={"metric": list(names)}, names=names)


def constant_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The embedding output under `cls` pooling beside the last layer, in the released form (audit E1)."""
    names = {
        "distinct_vectors": "distinct vectors",
        "base_loss": "AnglE's loss",
        "base_gradient": "its gradient by one text",
        "shared_gradient": "by what all texts share",
        "loss_share": "share of the whole loss, %",
    }
    written = {"distinct_vectors": "{:.0f}", "base_loss": "{:.2f}", "loss_share": "{:.2f}"}

    def cell(own: pd.DataFrame) -> str:
        metric, value = own["metric"].iat[0], float(own["value"].mean())
        return written.get(metric, "{:.0e}").format(100 * value if metric == "loss_share" else value)

    cells = rows[rows["metric"].isin(list(names))]
    return wide(cells, ["backbone", "layer"], "metric", cell, orders={"metric": list(names)}, names=names)
