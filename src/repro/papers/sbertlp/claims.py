"""What SBERT-LP (2021) claims, LP-T1-1 … LP-S462-2, judged on rows: is the mapping better than what it is put on?

The paper's words for rows stand here too: systems, settings, sets and the ranges of dims that it calls best.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import nan

import pandas as pd

from repro.evaluation.stats import wilson
from repro.methods import AVERAGE, MAJORITY
from repro.papers.sbertlp.lines import network_of
from repro.report.compare import paper_values
from repro.report.judge import Facts, Judge, Rule, Split, judge
from repro.report.verdict import Measurement

SUITES = {
    "table1": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table2": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""the seven datasets of each table; only all seven have an average"""
METRICS = {"table1": "spearman", "table2": "accuracy"}
INDICATORS = ("mi", "nmi", "ari", "purity")
"""of Table 3"""
SIZES = ("SBERTbase", "SBERTlarge")
"""the paper's two systems, as the keys of rows"""
USE = "Universal Sentence Encoder"
TRANSDUCTIVE, INDUCTIVE = "transductive", "inductive"
"""fitted on the evaluated sentences, as in the paper, or on training sentences"""
CHOSEN, ORACLE = "chosen on dev", "chosen on test"
"""which scores picked neighbours and dims"""
HONEST = f"{TRANSDUCTIVE}, {CHOSEN}"
"""setting that claims are judged in"""
STS, SENTIMENT = ("stsb", "sickr"), ("mr", "cr", "sst2")
"""of the figures; the paper names three SentEval sets without saying which, and speaks of sentiment"""
RANGES = {"sts": (128, 300), "sentiment": (16, 64)}
"""dims that Section 4.6.2 calls best"""
NEIGHBOURS, RANGE = "neighbours = ", "best in range"
"""setting of the rows of the sweep; method of the rows on the range of dims"""
STATISTICS = {"residual variance": "residual variance", "Procrustes": "Procrustes statistics"}
"""metrics that are said to pick the number of neighbours, and what they are called"""


def lp(method: str) -> str:
    """What the paper calls a system after the mapping."""
    return f"{method}-LP"


def printed_leads(table: str, method: str) -> pd.Series:
    """The printed lead of a mapped system by dataset (Table 3: by indicator), in points."""
    paper = paper_values("sbertlp2021", table)
    key = "metric" if table == "table3" else "dataset"
    at = {name: paper[paper["method"] == name].set_index(key)["value"] for name in (method, lp(method))}
    return 100 * (at[lp(method)] - at[method])


def system(method: str) -> Split:
    """One of the paper's two systems: its rows and its leads, and the network that was measured in its place."""

    def split(rows: pd.DataFrame) -> Iterator[tuple[Facts, pd.DataFrame]]:
        yield {"network": network_of(rows, method)}, rows

    return split


def gain(claim: str, what: str, table: str, method: str, metric: str, dataset: str, key: str = "") -> Judge:
    """The lead of a mapped system over the system, beside the printed one: that of `key`, or the mean of all."""
    led = f"metric == '{metric}_lead' and method == '{lp(method)} − {method}' and setting == '{HONEST}'"

    def printed() -> float:
        leads = printed_leads(table, method)
        return float(leads[key] if key else leads.mean())

    return Judge(
        claim,
        f"{what} ({{network}})",
        f"{led} and dataset == '{dataset}'",
        over=("metric",),
        each=system(method),
        paper=printed,
    )


def gains(claim: str, table: str, method: str) -> list[Rule]:
    """The mean gain over seven sets, and on how many of them there is one."""
    what = "mean gain of the mapping over seven sets"
    return [
        gain(claim, what, table, method, METRICS[table], AVERAGE),
        lambda rows: count_gains(claim, rows, table, method),
    ]


def hardest(claim: str, what: str, rows: str) -> Judge:
    """A comparison of the sweep, for each encoder on the set where it is hardest to hold."""
    said = f"{what}, smallest of {{n}} sets ({{group}}, {{dataset}})"
    query = f"metric.str.endswith('_lead') and {rows}"
    return Judge(claim, said, query, over=("dataset",), each=lambda rows: rows.groupby("backbone", sort=False))


TABLE1: list[Rule] = [
    *(rule for claim, size in zip(("LP-T1-1", "LP-T1-2"), SIZES, strict=True) for rule in gains(claim, "table1", size)),
    lambda rows: mapping_beats_flow(rows),
]
TABLE2: list[Rule] = [
    *(rule for size in SIZES for rule in gains("LP-T2-1", "table2", size)),
    lambda rows: mapped_is_best(rows),
    *(gain("LP-T2-3", "gain of the mapping on TREC", "table2", size, "accuracy", "trec", key="trec") for size in SIZES),
    lambda rows: use_on_trec(rows),
]
TABLE3: list[Rule] = [lambda rows: smallest_of_four(rows), lambda rows: use_is_best(rows)]
FIGURES: list[Rule] = [
    hardest("LP-F2-1", "best number of neighbours less the worst", "method == 'grid − worst'"),
    *(
        hardest("LP-F2-1", f"best number of neighbours less that of {name}", f"method == 'grid − {metric}'")
        for metric, name in STATISTICS.items()
    ),
    hardest(
        "LP-S462-1", "best of 16 to 64 dims less the best of others", f"method == '{RANGE}' and dataset in {SENTIMENT}"
    ),
    hardest(
        "LP-S462-2", "best of 128 to 300 dims less the best of others", f"method == '{RANGE}' and dataset in {STS}"
    ),
]


def measured(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What rows say; a system that this book did not train has no seed of its own, and the mapping draws nothing."""
    return judge(rules, rows, fixed=lambda cell: bool(cell["n_train"].isna().all()))


table1, table2, table3, figures = (partial(measured, rules) for rules in (TABLE1, TABLE2, TABLE3, FIGURES))
"""rows to what they say of the claims of one table, or of all figures"""


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
            name = f"printed pairs, {network_of(net, str(method))}: {what} (×100)"
            found.append(Measurement("LP-T4-1", "effect", value, value, value, what=name))
    for row in net.itertuples():
        what = f"{network_of(net, row.method)}: comparisons repaired less broken, per cent of all"
        found.append(Measurement("LP-T4-1", "effect", 100 * row.value, 100 * row.ci_low, 100 * row.ci_high, what=what))
    return found


def share_won(
    claim: str, wins: int, n: int, what: str, *, paper: float, null: float = 50.0, seeds: int = 1
) -> Measurement:
    """A count of sets as a share in per cent, with Wilson's interval over sets."""
    share = wilson(wins, n).times(100)
    said = f"per cent of {n} sets {what} ({wins})"
    bounds = (share.value, share.low, share.high)
    return Measurement(claim, "effect", *bounds, paper=paper, null=null, seeds=seeds, what=said)


def count_gains(claim: str, rows: pd.DataFrame, table: str, method: str) -> Iterable[Measurement]:
    """On how many sets the mapping gains, beside the printed count; nothing where a set is lacking."""
    own = rows[(rows["method"] == f"{lp(method)} − {method}") & (rows["setting"] == HONEST)]
    own = own[(own["metric"] == f"{METRICS[table]}_lead") & own["dataset"].isin(SUITES[table])]
    leads = own.groupby("dataset")["value"].agg(["mean", "size"])
    if len(leads) == len(SUITES[table]):
        paper = 100 * float((printed_leads(table, method) > 0).mean())
        what = f"on which the mapping gains ({network_of(rows, method)})"
        seeds = int(leads.loc[SUITES[table][0], "size"])
        yield share_won(claim, int((leads["mean"] > 0).sum()), len(leads), what, paper=paper, seeds=seeds)


def not_at_hand(claim: str, what: str) -> Measurement:
    """A part of a claim that cannot be measured here."""
    return Measurement(claim, "effect", nan, nan, nan, what=f"{what}: not measured, weights are not at hand")


def honest_scores(rows: pd.DataFrame, metric: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Scores of a metric, averaged over seeds: a line per dataset, a column per system or mapped system."""
    kept = rows[(rows["metric"] == metric) & rows["dataset"].isin(datasets)]
    kept = kept[kept["setting"].fillna("").isin(["", HONEST]) & (kept["method"] != MAJORITY)]
    return kept.pivot_table(index="dataset", columns="method", values="value", aggfunc="mean")


def mapping_beats_flow(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On how many sets the mapping is above the flow on the same encoder: like with like."""
    at = honest_scores(rows, "spearman", SUITES["table1"])
    flows = {lp(method): method.replace("SBERT", "BERT") + "-flow" for method in SIZES}
    present = {a: b for a, b in flows.items() if {a, b} <= set(at)}
    best = pd.DataFrame({"mapped": at[list(present)].max(axis=1), "flow": at[list(present.values())].max(axis=1)})
    if not present or len(best.dropna()) < len(SUITES["table1"]):
        yield not_at_hand("LP-T1-3", "mapping against flow")
        return
    on = ", ".join(network_of(rows, name.removesuffix("-LP")) for name in present)
    what = f"on which the mapping beats the flow ({on})"
    yield share_won("LP-T1-3", int((best["mapped"] > best["flow"]).sum()), len(best), what, paper=500 / 7)


def mapped_is_best(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On how many sets a mapped system is above all others."""
    at = honest_scores(rows, "accuracy", SUITES["table2"])
    mapped = [name for name in at if name.endswith("-LP")]
    best = pd.DataFrame({"mapped": at[mapped].max(axis=1), "rest": at.drop(columns=mapped).max(axis=1)}).dropna()
    if len(best) == len(SUITES["table2"]):
        wins = int((best["mapped"] > best["rest"]).sum())
        what = "on which a mapped system is the best of all lines"
        yield share_won("LP-T2-2", wins, len(best), what, paper=300 / 7, null=0.0)


def use_on_trec(rows: pd.DataFrame) -> Iterable[Measurement]:
    """How far the Universal Sentence Encoder is above the best mapped system on TREC."""
    at = honest_scores(rows, "accuracy", ["trec"])
    mapped = [name for name in at if name.endswith("-LP")]
    if USE not in at or not mapped:
        yield not_at_hand("LP-T2-3", "USE less the mapping on TREC")
        return
    paper = paper_values("sbertlp2021", "table2")
    paper = paper[paper["dataset"] == "trec"].set_index("method")["value"]
    printed = 100 * float(paper[USE] - paper[paper.index.str.endswith("-LP")].max())
    own = rows[(rows["metric"] == "accuracy") & (rows["dataset"] == "trec") & (rows["method"] == USE)]
    half = 50 * float((own["ci_high"] - own["ci_low"]).mean())
    value = 100 * float((at[USE] - at[mapped].max(axis=1)).iloc[0])
    what = f"less the best mapped system on TREC ({network_of(rows, USE)})"
    yield Measurement("LP-T2-3", "effect", value, value - half, value + half, paper=printed, what=what)


def smallest_of_four(rows: pd.DataFrame) -> Iterable[Measurement]:
    """Of each size the smallest of four gains: all of them are claimed."""
    for size in SIZES:
        what = "smallest of four gains, {}, ×100"
        rules = [gain("LP-T3-1", what.format(m), "table3", size, m, "20news", key=m) for m in INDICATORS]
        yield from sorted(measured(rules, rows), key=lambda m: m.value)[:1]


def use_is_best(rows: pd.DataFrame) -> Iterable[Measurement]:
    """By how many indicators the Universal Sentence Encoder is above all others."""
    if USE not in set(rows["method"]):
        yield not_at_hand("LP-T3-2", "USE against all others")
        return
    honest = rows[rows["setting"].fillna("").isin(["", HONEST])]
    at = honest[honest["metric"].isin(INDICATORS)].pivot_table(index="metric", columns="method", values="value")
    wins = int((at[USE] > at.drop(columns=USE).max(axis=1)).sum())
    yield share_won(
        "LP-T3-2", wins, len(at), f"of indicators by which it is best ({network_of(rows, USE)})", paper=100.0
    )
