"""What SBERT-LP (2021) claims, LP-T1-1 … LP-S462-2, judged on rows: is the mapping better than what
it is put on?

The paper's words for rows stand here too: systems, settings, sets and the ranges of dims that it
calls best.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from math import isnan
from operator import methodcaller
from typing import Any

import pandas as pd

from repro.evaluation.seeds import Estimate, estimate, of_parts
from repro.evaluation.stats import Floats
from repro.methods import AVERAGE, MAJORITY
from repro.report.judge import Judge, Measurement, Rule, absent, average, effect, judge, lowest
from repro.report.tables import names, paper_values

SUITES = {
    "table1": ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"),
    "table2": ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"),
}
"""The seven datasets of each table; only all seven have an average."""
METRICS = {"table1": "spearman", "table2": "accuracy"}
INDICATORS = ("mi", "nmi", "ari", "purity")  # of Table 3
SIZES = ("SBERTbase", "SBERTlarge")  # the paper's two systems, as the keys of rows
USE = "Universal Sentence Encoder"
TRANSDUCTIVE, INDUCTIVE = "transductive", "inductive"
"""Fitted on the evaluated sentences, as in the paper, or on training sentences."""
CHOSEN, ORACLE = "chosen on dev", "chosen on test"  # which scores picked neighbours and dims
HONEST = f"{TRANSDUCTIVE}, {CHOSEN}"  # setting that claims are judged in
SETTINGS = (HONEST, f"{TRANSDUCTIVE}, {ORACLE}")  # of the mapped lines of Tables 2 and 3
# Of those of Table 1
STS_SETTINGS = (HONEST, f"{INDUCTIVE}, {CHOSEN}", f"{TRANSDUCTIVE}, {ORACLE}")
STS, SENTIMENT = ("stsb", "sickr"), ("mr", "cr", "sst2")
"""Of the figures; the paper names three SentEval sets without saying which, and speaks of
sentiment.
"""
RANGES = {"sts": (128, 300), "sentiment": (16, 64)}  # dims that Section 4.6.2 calls best
NEIGHBOURS, RANGE = "neighbours = ", "best in range"
"""Setting of the rows of the sweep; method of the rows on the range of dims."""
STATISTICS = {"residual variance": "residual variance", "Procrustes": "Procrustes statistics"}
"""Metrics that are said to pick the number of neighbours, and what they are called."""


def lp(method: str) -> str:
    """What the paper calls a system after the mapping."""
    return f"{method}-LP"


def flow(method: str) -> str:
    """What the paper calls a flow on a system's network: of SBERTbase, BERTbase-flow."""
    return f"{method[1:] if method in SIZES else method}-flow"


def network_of(rows: pd.DataFrame, method: str) -> str:
    """The network that was measured under a key, and the paper's in whose place it is."""
    name = names(rows[rows["method"] == method]).get(method, method)
    printed_here = method != name and method in set(paper_values("sbertlp2021", "table1")["method"])
    return f"{name}; in the paper {method}" if printed_here else name


def printed_leads(table: str, method: str) -> pd.Series:
    """The printed lead of a mapped system by dataset (Table 3: by indicator), in points."""
    paper = paper_values("sbertlp2021", table)
    key = "metric" if table == "table3" else "dataset"
    at = {
        name: paper[paper["method"] == name].set_index(key)["value"]
        for name in (method, lp(method))
    }
    return 100 * (at[lp(method)] - at[method])


def gain(
    claim: str,
    what: str,
    table: str,
    method: str,
    metric: str,
    dataset: str,
    key: str = "",
    size: str = "",
) -> Judge:
    """The lead of a mapped system over the system, beside the printed one: that of `key`, or the
    mean of all.

    The printed one is that of the paper's `size`, by default of the system itself.
    """
    led = (
        f"metric == '{metric}_lead' and method == '{lp(method)} − {method}' and "
        f"setting == '{HONEST}'"
    )
    here, said = f"{led} and dataset == '{dataset}'", f"{what} ({{network}})"
    printed = printed_leads(table, size or method)
    paper = float(printed[key] if key else printed.mean())

    def named(rows: pd.DataFrame) -> list[tuple[dict[str, str], pd.DataFrame]]:
        return [({"network": network_of(rows, method)}, rows)]

    return Judge(claim, said, here, over=("metric",), each=named, paper=paper)


def gains(claim: str, table: str, method: str, size: str = "") -> list[Rule]:
    """The mean gain over seven sets, and on how many of them there is one."""
    what = "mean gain of the mapping over seven sets"
    mean = gain(claim, what, table, method, METRICS[table], AVERAGE, size=size)
    return [mean, lambda rows: count_gains(claim, rows, table, method, size or method)]


by_encoder = methodcaller("groupby", "backbone", sort=False)


def on_sets(
    claim: str,
    what: str,
    method: str,
    datasets: Sequence[str] = (),
    null: float = 0.0,
) -> Judge:
    """A comparison of the sweep by encoder: the mean of some sets, or where it is hardest to hold
    of all.
    """
    query, said = (
        f"metric.str.endswith('_lead') and method == '{method}'",
        "smallest of {n} sets ({group}, {dataset})",
    )
    if datasets:
        query, said = (
            f"{query} and dataset in {datasets}",
            f"mean of {len(datasets)} sets ({{group}})",
        )
    pick = partial(average, same_items=False) if datasets else lowest
    return Judge(claim, f"{what}, {said}", query, pick, ("dataset",), by_encoder, null=null)


TABLE1: list[Rule] = [
    *(
        rule
        for claim, size in zip(("LP-T1-1", "LP-T1-2"), SIZES, strict=True)
        for method in SIZES  # any system at hand may stand for either of the paper's
        for rule in gains(claim, "table1", method, size)
    ),
    lambda rows: mapping_beats_flow(rows),
]
TABLE2: list[Rule] = [
    *(rule for size in SIZES for rule in gains("LP-T2-1", "table2", size)),
    lambda rows: mapped_is_best(rows),
    *(
        gain(
            "LP-T2-3",
            "gain of the mapping on TREC",
            "table2",
            size,
            "accuracy",
            "trec",
            key="trec",
        )
        for size in SIZES
    ),
    lambda rows: use_on_trec(rows),
]
TABLE3: list[Rule] = [lambda rows: smallest_of_four(rows), lambda rows: use_is_best(rows)]
FIGURES: list[Rule] = [
    on_sets("LP-F2-1", "best number of neighbours less the worst", "grid − worst", null=1.0),
    *(
        on_sets("LP-F2-1", f"best number of neighbours less that of {name}", f"grid − {metric}")
        for metric, name in STATISTICS.items()
    ),
    on_sets("LP-S462-1", "best of 16 to 64 dims less the best of others", RANGE, SENTIMENT),
    on_sets("LP-S462-2", "best of 128 to 300 dims less the best of others", RANGE, STS),
]


def fixed(cell: pd.DataFrame) -> bool:
    """Whether nothing behind a cell was drawn at random: its system was not trained here, and
    mappings draw nothing.
    """
    return bool(cell["n_train"].isna().all())


measured = partial(judge, fixed=fixed)
table1, table2, table3, figures = (
    partial(measured, rules) for rules in (TABLE1, TABLE2, TABLE3, FIGURES)
)
"""Rows to what they say of the claims of one table, or of all figures."""


def table4(rows: pd.DataFrame) -> list[Measurement]:
    """LP-T4-1: which of the two printed pairs has the higher cosine after the mapping, if the wrong
    one had it before.

    Rows of metric `cosine` hold a pair of a system, or of the mapped one, each: settings `pair 0`
    and `pair 1`.
    """
    found, kept = [], rows[rows["metric"] == "cosine"]
    cosine = kept.pivot_table(index="method", columns="setting", values="value", sort=False)
    lead = 100 * (cosine["pair 1"] - cosine["pair 0"]) if len(cosine) else pd.Series(dtype=float)
    for method in [name for name in lead.index if lp(name) in lead.index]:
        what = (
            f"printed pairs, {network_of(rows, method)}: cosine of pair 1 less pair 0 "
            "after the mapping (×100)"
        )
        e = Estimate({0: float(lead[lp(method)])}, random=not fixed(kept[kept["method"] == method]))
        unmet = (
            "the premise: before the mapping, too, pair 1 has the higher cosine"
            if lead[method] > 0
            else ""
        )
        found.append(effect("LP-T4-1", e, what, network=networks(rows, [method]), unmet=unmet))
    return found


def networks(rows: pd.DataFrame, methods: Iterable[str]) -> str:
    """The networks that some systems were measured on."""
    own = rows[rows["method"].isin([name.removesuffix("-LP") for name in methods])]
    return ", ".join(map(str, own["backbone"].dropna().unique()))


Scores = Mapping[str, Sequence[Estimate]]  # of every line, on all sets


def scores_of(rows: pd.DataFrame, metrics: Sequence[str], datasets: Sequence[str]) -> Scores:
    """Scores of every system or mapped system that has all sets (Table 3: all indicators), in their
    order.
    """
    kept = rows[
        rows["metric"].isin(metrics) & rows["dataset"].isin(datasets) & (rows["method"] != MAJORITY)
    ]
    kept = kept[kept["setting"].fillna("").isin(["", HONEST])]
    found = {}
    for method, own in kept.groupby("method", sort=False):
        cells = [
            own[(own["metric"] == m) & (own["dataset"] == d)] for m in metrics for d in datasets
        ]
        if all(len(cell) for cell in cells):
            found[str(method)] = [estimate(cell, deterministic=fixed(cell)) for cell in cells]
    return found


def share_won(
    claim: str,
    rows: pd.DataFrame,
    at: Scores,
    ours: Sequence[str],
    what: str,
    paper: float,
    null: float | None = None,
) -> Measurement:
    """In per cent of the sets, how often the best of our lines is above the best of the others: as
    often as printed?
    """
    others = [name for name in at if name not in ours]
    parts = [e for name in (*ours, *others) for e in at[name]]
    sets = len(at[ours[0]])

    def won(scores: Floats) -> Floats:
        best = scores.reshape(*scores.shape[:-1], -1, sets)
        return 100 * (best[..., : len(ours), :].max(-2) > best[..., len(ours) :, :].max(-2)).mean(
            -1
        )

    return counted(
        claim,
        of_parts(parts, won),
        sets,
        what,
        paper,
        null,
        network=networks(rows, ours),
    )


def counted(
    claim: str,
    share: Estimate,
    sets: int,
    what: str,
    paper: float,
    null: float | None = None,
    **fields: Any,
) -> Measurement:
    """A share of sets in per cent, held against half a set below the printed count: fewer are too
    few.
    """
    said = (
        f"per cent of {sets} sets {what} ({round(share.value * sets / 100) if share.seeds else 0})"
    )
    return effect(
        claim,
        share,
        said,
        paper=paper,
        null=paper - 50 / sets if null is None else null,
        **fields,
    )


def sets_led(
    claim: str,
    rows: pd.DataFrame,
    table: str,
    method: str,
    rival: str,
    does: str,
    paper: float,
) -> Iterable[Measurement]:
    """On how many sets a mapped system leads a rival, by paired leads where rows hold them; none
    where a set lacks.
    """
    own = rows[(rows["method"] == f"{lp(method)} − {rival}") & (rows["setting"] == HONEST)]
    cells = own[own["dataset"].isin(SUITES[table])].groupby("dataset")
    leads = [estimate(cell, deterministic=fixed(cell)) for _, cell in cells]
    if not leads:
        at = scores_of(rows, [METRICS[table]], SUITES[table])
        leads = [a - b for a, b in zip(at.get(lp(method), ()), at.get(rival, ()), strict=False)]
    if len(leads) == len(SUITES[table]):
        share = of_parts(leads, lambda scores: 100 * (scores > 0).mean(-1), same_items=False)
        what = f"on which the mapping {does} ({network_of(rows, method)})"
        yield counted(claim, share, len(leads), what, paper, network=networks(rows, [method]))


def count_gains(
    claim: str,
    rows: pd.DataFrame,
    table: str,
    method: str,
    size: str,
) -> Iterable[Measurement]:
    """On how many sets the mapping gains, beside the printed count."""
    return sets_led(
        claim,
        rows,
        table,
        method,
        method,
        "gains",
        100 * float((printed_leads(table, size) > 0).mean()),
    )


def mapping_beats_flow(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On how many sets the mapping is above the flow on the same encoder: like with like."""
    known = [
        name
        for name in rows["method"].unique()
        if flow(name) in set(rows["method"]) and " − " not in name
    ]
    led = (
        sets_led("LP-T1-3", rows, "table1", name, flow(name), "beats the flow", 500 / 7)
        for name in known
    )
    return [*chain.from_iterable(led)] or [
        absent("LP-T1-3", "mapping against flow: no weights at hand")
    ]


def mapped_is_best(rows: pd.DataFrame) -> Iterable[Measurement]:
    """On how many sets a mapped system is above all others, against what equal lines would come to
    by chance.
    """
    at = scores_of(rows, ["accuracy"], SUITES["table2"])
    mapped = [name for name in at if name.endswith("-LP")]
    if mapped and len(mapped) < len(at):
        what, chance = (
            f"on which a mapped system is the best of {len(at)} lines",
            100 * len(mapped) / len(at),
        )
        yield share_won("LP-T2-2", rows, at, mapped, what, 300 / 7, chance)


def use_on_trec(rows: pd.DataFrame) -> Iterable[Measurement]:
    """How far the Universal Sentence Encoder is above the best mapped system on TREC."""
    at = {name: e for name, (e,) in scores_of(rows, ["accuracy"], ["trec"]).items()}
    mapped = [name for name in at if name.endswith("-LP")]
    if USE not in at or not mapped:
        yield absent("LP-T2-3", "USE less the mapping on TREC: no weights at hand")
        return
    paper = paper_values("sbertlp2021", "table2")
    paper = paper[paper["dataset"] == "trec"].set_index("method")["value"]
    printed = 100 * float(paper[USE] - paper[paper.index.str.endswith("-LP")].max())
    _, e = lowest({name: at[USE] - at[name] for name in mapped})
    what = f"less the best mapped system on TREC ({network_of(rows, USE)})"
    yield effect("LP-T2-3", e, what, paper=printed, network=networks(rows, [USE]))


def smallest_of_four(rows: pd.DataFrame) -> Iterable[Measurement]:
    """Of each size the smallest of four gains: all of them are claimed."""
    for size in SIZES:
        what = "smallest of four gains, {}, ×100"
        rules = [
            gain("LP-T3-1", what.format(m), "table3", size, m, "20news", key=m) for m in INDICATORS
        ]
        yield from sorted(measured(rules, rows), key=lambda m: m.value)[:1]


def use_is_best(rows: pd.DataFrame) -> Iterable[Measurement]:
    """By how many indicators the Universal Sentence Encoder is above all others, as far as they
    have intervals.
    """
    if USE not in set(rows["method"]):
        yield absent("LP-T3-2", "USE against all others: no weights at hand")
        return
    what = f"of indicators by which it is best ({network_of(rows, USE)})"
    at = {
        name: own
        for name, own in scores_of(rows, INDICATORS, ["20news"]).items()
        if not isnan(own[0].low)
    }
    yield share_won("LP-T3-2", rows, at, [USE], what, 100.0)
