"""Claims of SBERT-LP on made-up rows whose verdicts are known, and the tables' labels."""

import numpy as np
import pandas as pd
import pytest

from made_rows import ABSENT, FAILS, HOLDS, LESS, UNSURE, around, verdicts_of
from repro.methods import AVERAGE
from repro.papers.sbertlp import claims, tables
from repro.papers.sbertlp.terms import HONEST, SUITES, USE, flow, printed_leads
from repro.rows import make_rows


def rows_of(systems, metric, *, n_train=pd.NA, **shared):
    """Scores and leads: method → (dataset → value); mapped methods lead their own system and the
    flow on it.
    """
    rows = []
    for method, at in systems.items():
        base = method.removesuffix("-LP")
        own = {"setting": "" if base == method else HONEST, "n_train": n_train, "seed": 0}
        for dataset, value in at.items():
            rows.append(
                {**own, "dataset": dataset, "method": method, "metric": metric, **around(value, 0)}
            )
            for other in (s for s in (base, flow(base)) if base != method and s in systems):
                lead = {"method": f"{method} − {other}", "metric": f"{metric}_lead"}
                rows.append(
                    {**own, "dataset": dataset, **lead, **around(value - systems[other][dataset])}
                )
    return make_rows(rows, **shared)


def sts_rows(gain, flowed=0.7, **options):
    at = {
        "SBERTbase": 0.70,
        "SBERTbase-LP": 0.70 + gain,
        "SBERTlarge": 0.72,
        "SBERTlarge-LP": 0.72 + gain,
    }
    at["BERTbase-flow"], datasets = flowed, (*SUITES["table1"], AVERAGE)
    return rows_of(
        {name: dict.fromkeys(datasets, v) for name, v in at.items()},
        "spearman",
        **options,
    )


def table2_rows(methods=("SBERTbase", "SBERTbase-LP", USE)):
    base, lp = (dict.fromkeys((*SUITES["table2"], AVERAGE), value) for value in (0.80, 0.806))
    at = {"SBERTbase": base, "SBERTbase-LP": lp, USE: {**base, "trec": 0.9}}
    return rows_of({method: at[method] for method in methods}, "accuracy")


def table3_rows():
    gains = {"mi": 0.2, "nmi": 0.1, "ari": -0.02, "purity": 0.1}
    at = {
        m: {"SBERTbase": {"20news": 0.3}, "SBERTbase-LP": {"20news": 0.3 + gain}}
        for m, gain in gains.items()
    }
    return pd.concat([rows_of(systems, metric) for metric, systems in at.items()])


def figure_rows():
    values = {("grid − worst", "mr"): 0.1, ("grid − worst", "cr"): 0.05}
    values |= {("best in range", "mr"): 0.01, ("best in range", "cr"): -0.04}
    common = {"metric": "accuracy_lead", "backbone": "b", "seed": 0}
    return make_rows(
        [{**common, "method": m, "dataset": d, **around(v, 0.01)} for (m, d), v in values.items()]
    )


def regretted():
    """The same, with the numbers of neighbours that dev picks beside those of the statistics."""
    at = {"metric": "accuracy_lead", "backbone": "b", "seed": 0}
    own = [
        {**at, "method": f"chosen on dev − {statistic}", "dataset": dataset, **around(0.03, 0.01)}
        for statistic in ("residual variance", "Procrustes")
        for dataset in ("mr", "cr")
    ]
    return pd.concat([figure_rows(), make_rows(own)])


def test_statistics_are_judged_against_the_number_that_dev_picks_or_not_at_all():
    found = [m for m in claims.figures(figure_rows()) if m.claim_id == "LP-F2-1"]
    assert [m.verdict for m in found] == [HOLDS, UNSURE, UNSURE]
    assert "needs the number of neighbours that dev picks" in found[-1].why


def test_a_statistic_that_chooses_by_lot_is_contradicted_in_5_of_100_cases_at_most():
    """Eight numbers of neighbours, of which none is better: dev picks the luckiest, the statistic
    any; on test the two differ by noise, or by nothing where they are one.
    """
    rng, runs, wrong = np.random.default_rng(0), 200, 0
    sets, rows = ("mr", "cr", "sst2", "stsb", "sickr"), []
    for _ in range(runs):
        for dataset in sets:
            dev, test = rng.normal(size=(2, 8)) / 100
            lead = test[dev.argmax()] - test[rng.integers(8)]
            half = 1.96 * 2**0.5 / 100 if lead else 0.0
            rows.append({"dataset": dataset, **around(lead, half)})
    shared = {"method": "chosen on dev − Procrustes", "metric": "accuracy_lead"}
    made = make_rows(rows, **shared, backbone="b", seed=0)
    for start in range(0, len(made), len(sets)):
        of_run = made[start : start + len(sets)]
        (m,) = claims.regret(of_run, "LP-F2-1", "{backbone}", "Procrustes", "")
        wrong += m.verdict == FAILS
    assert wrong / runs <= 0.05


@pytest.mark.parametrize(
    ("judge", "rows", "expected"),
    [
        (claims.table1, lambda: sts_rows(0.015), {"T1-1": LESS, "T1-2": LESS, "T1-3": LESS}),
        (
            claims.table1,
            lambda: sts_rows(-0.05, flowed=0.9),
            {"T1-1": FAILS, "T1-2": FAILS, "T1-3": FAILS},
        ),
        (claims.table2, table2_rows, {"T2-1": HOLDS, "T2-2": LESS, "T2-3": LESS}),
        (claims.table3, table3_rows, {"T3-1": {FAILS, LESS}, "T3-2": ABSENT}),
        (claims.figures, regretted, {"F2-1": HOLDS, "S462-1": FAILS}),
    ],
)
def test_made_up_rows_get_the_verdicts_they_deserve(judge, rows, expected):
    found = verdicts_of(judge(rows()))
    assert {claim: set(said) for claim, said in found.items()} == {
        claim: said if isinstance(said, set) else {said} for claim, said in expected.items()
    }


def test_what_is_measured_is_the_hardest_and_beside_the_printed():
    means = [printed_leads("table1", size).mean() for size in ("SBERTbase", "SBERTlarge")]
    assert means == pytest.approx([1.157, 2.239], abs=1e-3)
    assert [(printed_leads(t, "SBERTbase") > 0).sum() for t in ("table1", "table2")] == [5, 7]
    assert printed_leads("table3", "SBERTbase")["nmi"] == pytest.approx(12.12)
    found = claims.table2(table2_rows())
    assert [m.value for m in found][1:] == pytest.approx([100, 600 / 7, 0.6, 9.4]), (
        "USE is ahead on TREC"
    )
    assert claims.table2(table2_rows(["SBERTbase", "SBERTbase-LP"]))[-1].verdict == ABSENT
    units = {m.what.split(",")[0]: m.unit for m in claims.table3(table3_rows())[:4]}
    assert units["gain in mi"] == "hundredths of a nat" and units["gain in ari"] == "points"
    rows = sts_rows(0.015, flowed=0.71)
    assert claims.table1(rows)[-1].what.endswith("(SBERTbase) (7)"), (
        "the flow on the same encoder only"
    )
    own = {
        name: dict.fromkeys(SUITES["table1"], v)
        for name, v in (("e5", 0.8), ("e5-LP", 0.6), ("e5-flow", 0.7))
    }
    both = claims.table1(pd.concat([rows, rows_of(own, "spearman")]))
    assert [round(m.value) for m in both if m.claim_id == "LP-T1-3"] == [100, 0], (
        "network by network"
    )
    assert [round(m.value, 6) for m in claims.figures(regretted())] == [7.5, 3.0, 3.0, -1.5], (
        "of all the mean of the sets"
    )


def test_a_stand_in_is_never_called_by_the_papers_name():
    rows = sts_rows(0.015, backbone="repro-tiny")
    for what in (m.what for m in claims.table1(rows) if "SBERTbase" in m.what):
        assert "(repro-tiny after NLI; in the paper SBERTbase)" in what
    assert "repro-tiny after NLI" in set(tables.by_dataset(rows, "spearman")["line"])
    printed = tables.labelled(tables.printed("table1", [HONEST]), "spearman")
    table = pd.DataFrame({"line": ["SBERTbase", USE, "whitening"]})
    beside = tables.named(table, printed, tables.labelled(rows, "spearman"))
    assert beside["in the paper"].tolist() == ["SBERTbase", USE, "–"]
    assert beside["here"].tolist() == ["repro-tiny after NLI", "not at hand", "not at hand"]


def test_a_system_that_was_trained_here_with_one_seed_judges_nothing():
    sure, unsure = (claims.table1(sts_rows(0.015, n_train=n))[0] for n in (pd.NA, 6400))
    assert (sure.high - sure.low) < 0.5 and sure.verdict == LESS
    assert (unsure.verdict, unsure.why) == (UNSURE, "has 1 of the 3 seeds that an interval needs")


def test_table4_needs_both_halves():
    def judged(before, after):
        cosines = [
            ("m", 0, before[0]),
            ("m", 1, before[1]),
            ("m-LP", 0, after[0]),
            ("m-LP", 1, after[1]),
        ]
        rows = [{"method": m, "setting": f"pair {k}", "value": cosine} for m, k, cosine in cosines]
        return [m.verdict for m in claims.table4(make_rows(rows, metric="cosine", backbone="m"))]

    assert judged((0.64, 0.62), (0.2, 0.4)) + judged((0.64, 0.62), (0.4, 0.2)) == [HOLDS, FAILS]
    assert judged((0.62, 0.64), (0.2, 0.4)) == ["does not apply"], "nothing to turn"
    assert (
        claims.table4(make_rows([{"method": "m", "metric": "turned", **around(-0.1, 0.05)}])) == []
    )
