"""How the claims of SBERT-LP (2021) are judged, as the table of them, `papers/sbertlp.toml`, names
it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import isnan
from typing import Any

import pandas as pd

from repro.evaluation.of_rows import estimate_cells
from repro.evaluation.seeds import Estimate, mean, of_parts
from repro.evaluation.stats import Floats
from repro.methods import MAJORITY
from repro.papers.sbertlp.terms import (
    HONEST,
    INDICATORS,
    METRICS,
    ON_DEV,
    SHARING,
    SUITES,
    USE,
    flow,
    lp,
    network_of,
    printed_leads,
)
from repro.report.cells import lowest
from repro.report.claims import judges_of
from repro.report.judge import Group, Rule, each_network, judge
from repro.report.kinds import paper_values
from repro.report.measurements import absent, effect
from repro.report.verdict import Measurement
from repro.rows import only


def printed_gain(table: str, method: str, key: str = "") -> float:
    """The printed lead of a mapped system on one dataset, by one indicator, or the mean of all."""
    printed = printed_leads(table, method)
    return float(printed[key] if key else printed.mean())


def printed_count(table: str, method: str) -> float:
    """In per cent, on how many datasets the printed lead of a mapped system is above 0."""
    return 100 * float((printed_leads(table, method) > 0).mean())


def in_place(rows: pd.DataFrame, method: str) -> list[Group]:
    """All rows, and the network that was measured under a key; any system at hand may stand for
    either of the paper's.
    """
    return [({"network": network_of(rows, method)}, rows)]


def nothing_drawn(rows: pd.DataFrame) -> pd.Series:
    """Which rows have nothing drawn at random behind them: the system was not trained here, and
    mappings draw nothing.
    """
    return rows["n_train"].isna()


def by_set(rows: pd.DataFrame) -> list[Estimate]:
    """A number of every set, in the order of their names."""
    cells = estimate_cells(rows, ["dataset"], nothing_drawn(rows))
    return [e for _, e in sorted(cells.items())]


def measured(rules: Sequence[Rule], rows: pd.DataFrame) -> list[Measurement]:
    """What the rows say of some rules."""
    return judge(rules, rows, fixed=nothing_drawn)


def turned(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    premise: str,
) -> Iterator[Measurement]:
    """Which of the two printed pairs has the higher cosine after the mapping, if the wrong one had
    it before.

    Rows of metric `cosine` hold a pair of a system, or of the mapped one, each: settings `pair 0`
    and `pair 1`.
    """
    cosine_rows = only(rows, metric="cosine")
    cosine = cosine_rows.pivot_table(index="method", columns="setting", values="value", sort=False)
    lead = 100 * (cosine["pair 1"] - cosine["pair 0"]) if len(cosine) else pd.Series(dtype=float)
    for method in [name for name in lead.index if lp(name) in lead.index]:
        quantity = what.format(network=network_of(rows, method))
        is_fixed = nothing_drawn(only(cosine_rows, method=method)).all()
        e = Estimate({0: float(lead[lp(method)])}, random=not is_fixed)
        unmet = premise if lead[method] > 0 else ""
        yield effect(claim, e, quantity, network=networks(rows, [method]), unmet=unmet)


def networks(rows: pd.DataFrame, methods: Iterable[str]) -> str:
    """The networks that some systems were measured on."""
    rows_of_systems = rows[rows["method"].isin([name.removesuffix("-LP") for name in methods])]
    return ", ".join(map(str, rows_of_systems["backbone"].dropna().unique()))


Scores = Mapping[str, Sequence[Estimate]]  # Of every line, on all sets


def scores_of(rows: pd.DataFrame, metrics: Sequence[str], datasets: Sequence[str]) -> Scores:
    """Scores of every system or mapped system that has all sets (Table 3: all indicators), in their
    order.
    """
    score_rows = rows[
        rows["metric"].isin(metrics) & rows["dataset"].isin(datasets) & (rows["method"] != MAJORITY)
    ]
    score_rows = score_rows[score_rows["setting"].fillna("").isin(["", HONEST])]
    cells = estimate_cells(score_rows, ["method", "metric", "dataset"], nothing_drawn(score_rows))
    scores_by_line = {}
    for method in score_rows["method"].unique():
        keys = [(method, metric, dataset) for metric, dataset in product(metrics, datasets)]
        if all(key in cells for key in keys):
            scores_by_line[str(method)] = [cells[key] for key in keys]
    return scores_by_line


def share_won(scores_by_line: Scores, ours: Sequence[str]) -> Estimate:
    """In per cent of the sets, how often the best of our lines is above the best of the others."""
    others = [name for name in scores_by_line if name not in ours]
    estimates = [e for name in (*ours, *others) for e in scores_by_line[name]]
    sets = len(scores_by_line[ours[0]])

    def won(scores: Floats) -> Floats:
        best = scores.reshape(*scores.shape[:-1], -1, sets)
        our_best = best[..., : len(ours), :].max(-2)
        their_best = best[..., len(ours) :, :].max(-2)
        return 100 * (our_best > their_best).mean(-1)

    return of_parts(estimates, won)


def counted(
    claim: str,
    share: Estimate,
    sets: int,
    what: str,
    paper: float,
    null: float | None = None,
    network: str = "",
    **names: Any,
) -> Measurement:
    """A share of sets in per cent, held against half a set below the printed count: fewer are too
    few.
    """
    won = round(share.value * sets / 100) if share.seeds else 0
    least = paper - 50 / sets if null is None else null
    quantity = what.format(sets=sets, won=won, **names)
    return effect(claim, share, quantity, paper=paper, null=least, network=network, unit="%")


def sets_led(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    table: str,
    method: str,
    rival: str,
    paper: float,
) -> Iterator[Measurement]:
    """On how many sets a mapped system leads a rival, by paired leads where rows hold them; none
    where a set lacks.
    """
    lead_rows = only(rows, method=f"{lp(method)} − {rival}", setting=HONEST)
    leads = by_set(lead_rows[lead_rows["dataset"].isin(SUITES[table])])
    if not leads:
        scores_by_line = scores_of(rows, [METRICS[table]], SUITES[table])
        pairs = zip(scores_by_line.get(lp(method), ()), scores_by_line.get(rival, ()), strict=False)
        leads = [mapped - other for mapped, other in pairs]
    if len(leads) == len(SUITES[table]):
        share = of_parts(
            leads,
            lambda scores: 100 * (scores > 0).mean(-1),
            same_items=table == SHARING,
        )
        quantity = what.replace("{network}", network_of(rows, method))
        network = networks(rows, [method])
        yield counted(claim, share, len(leads), quantity, paper, network=network)


def regret(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    statistic: str,
    without: str,
) -> Iterator[Measurement]:
    """What the number of neighbours that a statistic picks loses against the one that dev picks, on
    test, mean of the sets.

    Of the best on test itself none can be ahead: that one judges nothing.
    """
    for facts, rows_of_encoder in each_network(rows):
        picked = only(rows_of_encoder, method=f"{ON_DEV} − {statistic}")
        sets = by_set(picked)
        quantity = what.format(**facts)
        e = mean(sets, same_items=False) if sets else Estimate({0: 0.0})
        m = effect(claim, e, quantity, network=facts["backbone"])
        yield m if sets else replace(m, unknown=without)


def mapping_beats_flow(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    table: str,
    paper: int,
    without: str,
) -> Iterable[Measurement]:
    """On how many sets the mapping is above the flow on the same encoder: like with like."""
    methods = set(rows["method"])
    share = 100 * paper / len(SUITES[table])
    measurements: list[Measurement] = []
    for name in rows["method"].unique():
        if flow(name) in methods and " − " not in name:
            measurements += sets_led(rows, claim, what, table, name, flow(name), share)
    return measurements or [absent(claim, without)]


def mapped_is_best(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    paper: int,
) -> Iterator[Measurement]:
    """On how many sets a mapped system is above all others, against what equal lines would come to
    by chance.
    """
    sets = SUITES["table2"]
    scores_by_line = scores_of(rows, ["accuracy"], sets)
    mapped = [name for name in scores_by_line if name.endswith("-LP")]
    if mapped and len(mapped) < len(scores_by_line):
        chance = 100 * len(mapped) / len(scores_by_line)
        share, printed = share_won(scores_by_line, mapped), 100 * paper / len(sets)
        network = networks(rows, mapped)
        fields: dict[str, Any] = {"network": network, "lines": len(scores_by_line)}
        yield counted(claim, share, len(sets), what, printed, chance, **fields)


def use_on_trec(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    without: str,
) -> Iterator[Measurement]:
    """How far the Universal Sentence Encoder is above the best mapped system on TREC."""
    score_by_line = {name: e for name, (e,) in scores_of(rows, ["accuracy"], ["trec"]).items()}
    mapped = [name for name in score_by_line if name.endswith("-LP")]
    if USE not in score_by_line or not mapped:
        yield absent(claim, without)
        return
    paper = paper_values("sbertlp2021", "table2")
    paper = only(paper, dataset="trec").set_index("method")["value"]
    printed = 100 * float(paper[USE] - paper[paper.index.str.endswith("-LP")].max())
    _, e = lowest({name: score_by_line[USE] - score_by_line[name] for name in mapped})
    quantity = what.format(network=network_of(rows, USE))
    yield effect(claim, e, quantity, paper=printed, network=networks(rows, [USE]))


def use_is_best(
    rows: pd.DataFrame,
    claim: str,
    what: str,
    paper: int,
    without: str,
) -> Iterator[Measurement]:
    """By how many indicators the Universal Sentence Encoder is above all others, as far as they
    have intervals.
    """
    if USE not in set(rows["method"]):
        yield absent(claim, without)
        return
    all_scores = scores_of(rows, INDICATORS, ["20news"])
    scores_by_line = {
        name: scores for name, scores in all_scores.items() if not isnan(scores[0].low)
    }
    sets, printed = len(INDICATORS), 100 * paper / len(INDICATORS)
    quantity = what.replace("{network}", network_of(rows, USE))
    network = networks(rows, [USE])
    yield counted(claim, share_won(scores_by_line, [USE]), sets, quantity, printed, network=network)


JUDGES = judges_of("sbertlp", globals())
table1, table2, table3, table4, figures = JUDGES.values()
"""Rows to what they say of the claims of one table, or of all figures."""
