"""Claims of SBERT-LP on made-up rows whose verdicts are known, and the tables' labels."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import AVERAGE
from repro.report import claims_sbertlp, compare, figures_sbertlp, lines_sbertlp
from repro.report.claims_sbertlp.leads import HONEST, USE, printed_leads
from repro.report.claims_sbertlp.tables import CLASSIFICATION, STS
from repro.rows import make_rows


def rows_of(lines, metric, *, n_train=pd.NA, **shared):
    """Scores and leads: method → (dataset → value); a mapped method leads its own system."""
    rows = []
    for method, at in lines.items():
        setting = HONEST if method.endswith("-LP") else ""
        for dataset, value in at.items():
            own = {"dataset": dataset, "setting": setting, "n_train": n_train, "seed": 0}
            rows.append({**own, "method": method, "metric": metric, "value": value, "ci_low": value, "ci_high": value})
            base = method.removesuffix("-LP")
            if base != method and base in lines:
                lead = value - lines[base][dataset]
                rows.append(
                    {
                        **own,
                        "method": f"{method} − {base}",
                        "metric": f"{metric}_lead",
                        "value": lead,
                        "ci_low": lead - 0.002,
                        "ci_high": lead + 0.002,
                    }
                )
    return make_rows(rows, **shared)


def verdicts(measurements):
    return [(m.claim_id, m.verdict) for m in measurements]


def sts_rows(gain, flow=0.7, **options):
    lines = {
        name: {d: value for d in (*STS, AVERAGE)}
        for name, value in (
            ("SBERTbase", 0.70),
            ("SBERTbase-LP", 0.70 + gain),
            ("SBERTlarge", 0.72),
            ("SBERTlarge-LP", 0.72 + gain),
            ("BERTbase-flow", flow),
        )
    }
    return rows_of(lines, "spearman", **options)


def test_printed_means_are_those_of_the_text():
    assert printed_leads("table1", "SBERTbase").mean() == pytest.approx(1.157, abs=1e-3)
    assert printed_leads("table1", "SBERTlarge").mean() == pytest.approx(2.239, abs=1e-3)
    assert (printed_leads("table1", "SBERTbase") > 0).sum() == 5
    assert (printed_leads("table2", "SBERTbase") > 0).sum() == 7
    assert printed_leads("table3", "SBERTbase")["nmi"] == pytest.approx(12.12)


def test_table1_gain_and_loss():
    assert verdicts(claims_sbertlp.table1(sts_rows(0.015))) == [
        ("LP-T1-1", "reproduced"),
        ("LP-T1-1", "reproduced"),
        ("LP-T1-2", "reproduced"),
        ("LP-T1-2", "reproduced"),
        ("LP-T1-3", "reproduced"),
    ]
    lost = dict(verdicts(claims_sbertlp.table1(sts_rows(-0.05, flow=0.9))))
    assert set(lost.values()) == {"not reproduced"}


def test_a_stand_in_is_never_called_by_the_papers_name():
    rows = sts_rows(0.015, backbone="repro-tiny")
    for what in (m.what for m in claims_sbertlp.table1(rows) if "SBERTbase" in m.what):
        assert "(repro-tiny after NLI; in the paper SBERTbase)" in what
    labelled = lines_sbertlp.labelled(rows, "spearman")
    wide = lines_sbertlp.wide(labelled)
    assert set(wide["line"]) == {
        "repro-tiny after NLI",
        f"repro-tiny after NLI, mapped, {HONEST}",
        "repro-tiny",
        f"repro-tiny, mapped, {HONEST}",
        "repro-tiny after NLI, flow",
    }
    printed = lines_sbertlp.labelled(
        lines_sbertlp.printed(compare.paper_values("sbertlp2021", "table1"), [HONEST]), "spearman"
    )
    table = pd.DataFrame({"line": ["SBERTbase", "Universal Sentence Encoder", "whitening"]})
    beside = lines_sbertlp.beside_the_paper(table, printed, labelled)
    assert beside["in the paper"].tolist() == ["SBERTbase", "Universal Sentence Encoder", "–"]
    assert beside["here"].tolist() == ["repro-tiny after NLI", "not at hand", "not at hand"]
    own = rows_of({"SBERTbase": {"stsb": 0.7}}, "spearman", backbone="bert-base-nli-mean-tokens")
    assert lines_sbertlp.here(own, "SBERTbase") == "SBERTbase", "the paper's own network"


def test_a_system_of_one_seed_is_judged_more_carefully():
    sure, unsure = (claims_sbertlp.table1(sts_rows(0.015, n_train=n))[0] for n in (pd.NA, 6400))
    assert (sure.high - sure.low) < 0.5 < 3.5 < (unsure.high - unsure.low)
    assert unsure.verdict == "within noise"


def test_flow_is_compared_on_the_same_encoder_only():
    rows = sts_rows(0.015, flow=0.71)
    rows.loc[rows["method"] == "SBERTlarge-LP", "value"] = 0.99
    assert claims_sbertlp.table1(rows)[-1].what.endswith("(SBERTbase) (7)")
    gone = claims_sbertlp.table1(rows[rows["method"] != "BERTbase-flow"])[-1]
    assert gone.verdict == "not attempted"


def test_table2_claims():
    base = {d: 0.80 for d in (*CLASSIFICATION, AVERAGE)}
    lines = {"SBERTbase": base, "SBERTbase-LP": {d: v + 0.006 for d, v in base.items()}, USE: {**base, "trec": 0.9}}
    found = claims_sbertlp.table2(rows_of(lines, "accuracy"))
    assert [m.claim_id for m in found] == ["LP-T2-1", "LP-T2-1", "LP-T2-2", "LP-T2-3", "LP-T2-3"]
    assert found[0].verdict == "reproduced" and found[1].value == 100
    assert found[2].value == pytest.approx(600 / 7)  # USE is ahead on TREC
    assert found[4].value == pytest.approx(9.4)
    without = claims_sbertlp.table2(rows_of({k: v for k, v in lines.items() if k != USE}, "accuracy"))
    assert without[-1].verdict == "not attempted"


def test_table3_is_judged_by_its_smallest_gain():
    frames = [
        rows_of({"SBERTbase": {"20news": 0.3}, "SBERTbase-LP": {"20news": 0.3 + gain}}, metric)
        for metric, gain in (("mi", 0.2), ("nmi", 0.1), ("ari", -0.02), ("purity", 0.1))
    ]
    found = claims_sbertlp.table3(pd.concat(frames))
    assert "ari" in found[0].what and found[0].verdict == "not reproduced"
    assert found[1].claim_id == "LP-T3-2" and found[1].verdict == "not attempted"


def test_table4_needs_both_halves():
    cases = pd.DataFrame({"method": ["m", "m"], "pair": [0, 1], "before": [0.64, 0.62], "after": [0.2, 0.4]})
    net = make_rows([{"method": "m", "metric": "turned", "value": -0.1, "ci_low": -0.2, "ci_high": -0.05}])
    assert [m.verdict for m in claims_sbertlp.table4(cases, net)] == ["reproduced", "reproduced", "not reproduced"]
    assert claims_sbertlp.table4(cases.iloc[:0], net.iloc[:0]) == []


def test_figures_claims_take_the_hardest_set_of_each_system():
    rows = [
        {
            "method": method,
            "metric": "accuracy_lead",
            "dataset": dataset,
            "backbone": "b",
            "seed": 0,
            "value": value,
            "ci_low": value - 0.01,
            "ci_high": value + 0.01,
        }
        for method, values in (("grid − worst", (0.1, 0.05)), ("best in range", (0.03, -0.04)))
        for dataset, value in zip(("mr", "cr"), values, strict=True)
    ]
    found = claims_sbertlp.neighbours_and_dims(make_rows(rows))
    assert [(m.claim_id, round(m.value, 6)) for m in found] == [("LP-F2-1", 5.0), ("LP-S462-1", -4.0)]
    assert [m.verdict for m in found] == ["reproduced", "not reproduced"]


def test_every_claim_of_the_document_has_a_judge():
    own = compare.claims()["claim_id"]
    own = set(own[own.str.startswith("LP-")])
    named = {m.claim_id for m in claims_sbertlp.table1(sts_rows(0.01))}
    named |= {m.claim_id for m in claims_sbertlp.table2(rows_of({"SBERTbase": {}}, "accuracy"))}
    assert {"LP-T1-1", "LP-T1-2", "LP-T1-3"} <= named
    assert own == {
        "LP-T1-1",
        "LP-T1-2",
        "LP-T1-3",
        "LP-T2-1",
        "LP-T2-2",
        "LP-T2-3",
        "LP-T3-1",
        "LP-T3-2",
        "LP-T4-1",
        "LP-F2-1",
        "LP-S462-1",
        "LP-S462-2",
    }


def test_printed_lines_have_our_settings_an_average_and_one_spelling():
    paper = compare.paper_values("sbertlp2021", "table1")
    assert set(paper["dataset"]) == set(STS)
    shown = lines_sbertlp.printed(paper, ["a", "b"], STS)
    labelled = lines_sbertlp.labelled(shown, "spearman")
    assert {"SBERTbase", "SBERTbase-LP, a", "SBERTbase-LP, b"} <= set(labelled["line"])
    average = labelled[labelled["dataset"] == AVERAGE].set_index("line")["value"]
    assert average["SBERTbase"] == pytest.approx(0.74860, abs=1e-4)
    assert "SBERT-WK" not in average  # two sets are not printed
    two = lines_sbertlp.labelled(lines_sbertlp.printed(compare.paper_values("sbertlp2021", "table2"), []), "accuracy")
    assert "BERT-CLS-TOKEN" in set(two["line"])
    wide = lines_sbertlp.wide(labelled)
    assert list(wide.columns[:3]) == ["line", "STS-B", "SICK-R"] and wide["line"].is_unique


def test_lines_keep_the_order_of_the_first_frame():
    table = pd.DataFrame({"line": ["c", "a", "majority class", "b"]})
    first, second = pd.DataFrame({"line": ["b", "a"]}), pd.DataFrame({"line": ["a", "c"]})
    assert lines_sbertlp.ordered(table, first, second)["line"].tolist() == ["b", "a", "c", "majority class"]


def test_figures_are_drawn_twice_the_same():
    gains = pd.DataFrame(
        {
            "kind": ["paper", "live"],
            "method": "m",
            "dataset": "stsb",
            "setting": [None, "s"],
            "value": [0.01, 0.02],
            "ci_low": [np.nan, 0.0],
            "ci_high": [np.nan, 0.05],
        }
    )
    votes = pd.DataFrame(
        {"classes": [2, 6], "3-NN": [0.6, 0.5], "predicted": [0.84, 0.7], "3-NN with oneself": [0.8, 0.7]}
    )
    sweep = pd.DataFrame({"dataset": "stsb", "neighbours": [5, 10, pd.NA], "dim": [8, 8, 12], "value": [0.5, 0.6, 0.7]})
    draws = (
        lambda: figures_sbertlp.draw_gains(gains),
        lambda: figures_sbertlp.draw_votes(votes),
        lambda: figures_sbertlp.draw_sweep(sweep, x="neighbours", ylabel="score"),
        lambda: figures_sbertlp.draw_turned(np.arange(6) / 6, np.arange(6) / 6, np.arange(6.0), marked=[1]),
    )
    for draw in draws:
        figure = draw()
        assert figure.alt and figure.svg() == draw().svg()
