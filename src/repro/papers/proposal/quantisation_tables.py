"""The better way to spend a byte: tables by budget, and how often one level surely beats another at equal bytes."""

import pandas as pd

from repro.evaluation.quantise import BITS
from repro.report.tables import MISSING, in_order

SCORES = {"spearman": "STS-B, Spearman", "ndcg@10": "retrieval, nDCG@10", "neighbours_kept": "ten neighbours kept"}
"""what tables and figures call them; all ×100"""
LEVELS = tuple(BITS)


def by_bytes(rows: pd.DataFrame) -> pd.DataFrame:
    """The scored rows with columns `reducer` and `bytes`, read from their setting; full size has neither."""
    own = rows[rows["metric"].isin(list(SCORES))].reset_index(drop=True)
    found = own["setting"].astype("object").str.extract(r"^(?P<reducer>.+), (?P<bytes>\d+) bytes$")
    return own.assign(reducer=found["reducer"], bytes=found["bytes"].astype("Int64"))


def best_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """Of every encoder, score, level and number of bytes the row of the best reducer."""
    own = by_bytes(rows).dropna(subset=["bytes", "value"])
    return own.loc[own.groupby(["backbone", "metric", "method", "bytes"], sort=False)["value"].idxmax()]


def best_ways(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per encoder and number of bytes with the best way for each score, and its share of that at full size.

    Levels searched with float queries only. A level that reaches its full size with fewer bytes is listed there.
    """
    best = best_levels(rows[rows["method"].isin(LEVELS)])
    full = by_bytes(rows)[lambda frame: frame["bytes"].isna()].set_index(["backbone", "metric"])["value"]
    lines = []
    for (backbone, size), group in best.groupby(["backbone", "bytes"], sort=False):
        line: dict[str, object] = {"encoder": backbone, "bytes": int(size)}
        for metric, words in SCORES.items():
            of = group[group["metric"] == metric]
            if len(of):
                top = of.loc[of["value"].idxmax()]
                share = 100 * top["value"] / full[backbone, metric]
                line[words] = f"{top['method']} × {top['dim']}, {top['reducer']}: {share:.0f} %"
        lines.append(line)
    return in_order(lines, ["encoder", "bytes"])


def times_best(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each level is the best way to spend a budget, of all encoders, scores and budgets with a choice."""
    best = best_levels(rows[rows["method"].isin(LEVELS)])
    cells = [group for _, group in best.groupby(["backbone", "metric", "bytes"]) if len(group) > 1]
    first = [str(group.loc[group["value"].idxmax(), "method"]) for group in cells]
    return pd.DataFrame({"level": LEVELS, "best": [first.count(level) for level in LEVELS], "of": len(cells)})


def reducer_table(rows: pd.DataFrame, budget: int) -> pd.DataFrame:
    """A line per encoder and level that spends so many bytes: scores ×100, of one reducer after the other."""
    own = by_bytes(rows)
    own = own[(own["bytes"] == budget).fillna(False) & own["method"].isin(LEVELS)]
    reducers = list(dict.fromkeys(own["reducer"]))
    lines = []
    for (backbone, level, dim), group in own.groupby(["backbone", "method", "dim"], sort=False):
        line: dict[str, object] = {"encoder": backbone, "level": f"{level} × {dim}"}
        for metric, words in SCORES.items():
            of = group[group["metric"] == metric].set_index("reducer")["value"].reindex(reducers)
            line[words] = " / ".join(MISSING if pd.isna(value) else f"{100 * value:.1f}" for value in of)
        lines.append(line)
    return pd.DataFrame(lines)


def equal_bytes(rows: pd.DataFrame) -> pd.DataFrame:
    """A line per two levels: at how many of the compared budgets the one of fewer bits is surely better, or worse.

    Sure is what a 95 % interval of the paired difference says by itself; all encoders, scores and reducers count.
    """
    leads = rows[rows["metric"].isin([f"{metric}_lead" for metric in SCORES])]
    lines = []
    for pair, group in leads.groupby("method", sort=False):
        few, many = str(pair).split(" − ")
        better, worse = int((group["ci_low"] > 0).sum()), int((group["ci_high"] < 0).sum())
        lines.append(
            {
                "fewer bits": few,
                "more bits": many,
                "compared": len(group),
                "fewer bits better": better,
                "cannot be told": len(group) - better - worse,
                "more bits better": worse,
                "median difference, points": float(100 * group["value"].median()),
            }
        )
    return in_order(lines, ["fewer bits", "more bits"], key=lambda levels: levels.map(LEVELS.index))
