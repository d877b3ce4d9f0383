"""Claims on Tables 1 to 4 of SBERT-LP (2021): is the mapping better than the system it is put on, and than others?"""

import pandas as pd

from repro.methods import AVERAGE, MAJORITY
from repro.report.claims_sbertlp.leads import HONEST, SIZES, USE, count_gains, lead, not_at_hand, printed_leads, won
from repro.report.compare import paper_values
from repro.report.judge import effect
from repro.report.lines_sbertlp import here
from repro.report.verdict import Measurement

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
CLASSIFICATION = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
INDICATORS = ("mi", "nmi", "ari", "purity")


def table1(rows: pd.DataFrame) -> list[Measurement]:
    """Claims LP-T1-1 … 3."""
    found: list[Measurement] = []
    for claim, method in zip(("LP-T1-1", "LP-T1-2"), SIZES, strict=True):
        gain = lead(rows, method, "spearman", AVERAGE)
        if gain is not None:
            paper = float(printed_leads("table1", method).mean())
            what = f"mean gain of the mapping over seven sets ({here(rows, method)})"
            found.append(effect(claim, gain, what, paper=paper))
        found += count_gains(claim, rows, "table1", method, "spearman", STS)
    flows = {f"{method}-LP": method.replace("SBERT", "BERT") + "-flow" for method in SIZES}
    present = {a: b for a, b in flows.items() if {a, b} <= set(rows["method"])}  # like with like: the same encoders
    mapped, flow = (_best_by_set(rows, "spearman", STS, list(names)) for names in (present, present.values()))
    if present and len(mapped) == len(flow) == len(STS):
        wins = int((mapped > flow).sum())
        on = ", ".join(here(rows, name.removesuffix("-LP")) for name in present)
        what = f"on which the mapping beats the flow ({on})"
        found.append(won("LP-T1-3", wins, len(STS), what, paper=500 / 7))
    else:
        found.append(not_at_hand("LP-T1-3", "mapping against flow"))
    return found


def table2(rows: pd.DataFrame) -> list[Measurement]:
    """Claims LP-T2-1 … 3."""
    found: list[Measurement] = []
    for method in SIZES:
        gain = lead(rows, method, "accuracy", AVERAGE)
        if gain is not None:
            paper = float(printed_leads("table2", method).mean())
            what = f"mean gain of the mapping over seven sets ({here(rows, method)})"
            found.append(effect("LP-T2-1", gain, what, paper=paper))
        found += count_gains("LP-T2-1", rows, "table2", method, "accuracy", CLASSIFICATION)
    names = set(rows["method"]) - {MAJORITY}
    mapped = [name for name in names if name.endswith("-LP")]
    best, rest = (_best_by_set(rows, "accuracy", CLASSIFICATION, part) for part in (mapped, [*names - set(mapped)]))
    if len(best) == len(rest) == len(CLASSIFICATION):
        wins = int((best > rest).sum())
        what = "on which a mapped system is the best of all lines"
        found.append(won("LP-T2-2", wins, len(best), what, paper=300 / 7, null=0.0))
    for method in SIZES:
        gain = lead(rows, method, "accuracy", "trec")
        if gain is not None:
            paper = float(printed_leads("table2", method)["trec"])
            found.append(effect("LP-T2-3", gain, f"gain of the mapping on TREC ({here(rows, method)})", paper=paper))
    found.append(_below_use(rows))
    return found


def table3(rows: pd.DataFrame) -> list[Measurement]:
    """Claims LP-T3-1 and LP-T3-2."""
    found: list[Measurement] = []
    for method in SIZES:
        gains = {q: e for q in INDICATORS if (e := lead(rows, method, q, "20news")) is not None}
        if gains:
            q, e = min(gains.items(), key=lambda item: item[1].value)
            paper = float(printed_leads("table3", method)[q])
            what = f"smallest of four gains, {q}, ×100 ({here(rows, method)})"
            found.append(effect("LP-T3-1", e, what, paper=paper))
    if USE not in set(rows["method"]):
        found.append(not_at_hand("LP-T3-2", "USE against all others"))
    else:
        honest = rows[rows["setting"].fillna("").isin(["", HONEST])]
        at = honest[honest["metric"].isin(INDICATORS)].pivot_table(index="metric", columns="method", values="value")
        wins = int((at[USE] > at.drop(columns=USE).max(axis=1)).sum())
        what = f"of indicators by which it is best ({here(rows, USE)})"
        found.append(won("LP-T3-2", wins, len(at), what, paper=100.0))
    return found


def table4(cases: pd.DataFrame, net: pd.DataFrame) -> list[Measurement]:
    """Claim LP-T4-1: the two printed pairs, and every comparison of two pairs.

    Args:
        cases: the printed pairs under each system: method, pair, before, after; empty where the set lacks them.
        net: rows of metric `turned`: comparisons repaired less comparisons broken, as a share of all.
    """
    found: list[Measurement] = []
    for method, pairs in cases.groupby("method", sort=False):
        at = pairs.set_index("pair")
        wrong = 100 * float(at.loc[0, "before"] - at.loc[1, "before"])
        right = 100 * float(at.loc[1, "after"] - at.loc[0, "after"])
        for value, what in ((wrong, "cosine of pair 0 less pair 1 before"), (right, "of pair 1 less pair 0 after")):
            name = f"printed pairs, {here(net, str(method))}: {what} (×100)"
            found.append(Measurement("LP-T4-1", "effect", value, value, value, what=name))
    for row in net.itertuples():
        what = f"{here(net, row.method)}: comparisons repaired less broken, per cent of all"
        found.append(Measurement("LP-T4-1", "effect", 100 * row.value, 100 * row.ci_low, 100 * row.ci_high, what=what))
    return found


def _best_by_set(rows: pd.DataFrame, metric: str, datasets: tuple[str, ...], methods: list[str]) -> pd.Series:
    """By dataset, the best score of some methods, averaged over seeds."""
    kept = rows[(rows["metric"] == metric) & rows["dataset"].isin(datasets) & rows["method"].isin(methods)]
    kept = kept[kept["setting"].fillna("").isin(["", HONEST])]
    return kept.groupby(["dataset", "method"])["value"].mean().groupby("dataset").max()


def _below_use(rows: pd.DataFrame) -> Measurement:
    at = rows[(rows["metric"] == "accuracy") & (rows["dataset"] == "trec")]
    at = at[at["setting"].fillna("").isin(["", HONEST])].groupby("method")["value"].mean()
    mapped = at[at.index.str.endswith("-LP")]
    if USE not in at or mapped.empty:
        return not_at_hand("LP-T2-3", "USE less the mapping on TREC")
    paper = paper_values("sbertlp2021", "table2")
    paper = paper[paper["dataset"] == "trec"].set_index("method")["value"]
    printed = 100 * float(paper[USE] - paper[paper.index.str.endswith("-LP")].max())
    rest = rows[(rows["metric"] == "accuracy") & (rows["dataset"] == "trec") & (rows["method"] == USE)]
    half = 50 * float((rest["ci_high"] - rest["ci_low"]).mean())
    value = 100 * float(at[USE] - mapped.max())
    return Measurement(
        "LP-T2-3",
        "effect",
        value,
        value - half,
        value + half,
        paper=printed,
        what=f"less the best mapped system on TREC ({here(rows, USE)})",
    )
