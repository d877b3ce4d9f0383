"""Claims of SBERT-LP on made-up rows whose verdicts are known, and the tables' labels."""

import pandas as pd
import pytest

from repro.methods import AVERAGE
from repro.papers.sbertlp import claims, figures, lines
from repro.papers.sbertlp.claims import HONEST, SUITES, USE, printed_leads
from repro.rows import make_rows


def rows_of(systems, metric, *, n_train=pd.NA, **shared):
    """Scores and leads: method → (dataset → value); a mapped method leads its own system."""
    rows = []
    for method, at in systems.items():
        setting = HONEST if method.endswith("-LP") else ""
        for dataset, value in at.items():
            own = {"dataset": dataset, "setting": setting, "n_train": n_train, "seed": 0}
            rows.append({**own, "method": method, "metric": metric, "value": value, "ci_low": value, "ci_high": value})
            base = method.removesuffix("-LP")
            if base != method and base in systems:
                lead = value - systems[base][dataset]
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
    systems = {
        name: {d: value for d in (*SUITES["table1"], AVERAGE)}
        for name, value in (
            ("SBERTbase", 0.70),
            ("SBERTbase-LP", 0.70 + gain),
            ("SBERTlarge", 0.72),
            ("SBERTlarge-LP", 0.72 + gain),
            ("BERTbase-flow", flow),
        )
    }
    return rows_of(systems, "spearman", **options)


def test_printed_means_are_those_of_the_text():
    assert printed_leads("table1", "SBERTbase").mean() == pytest.approx(1.157, abs=1e-3)
    assert printed_leads("table1", "SBERTlarge").mean() == pytest.approx(2.239, abs=1e-3)
    assert (printed_leads("table1", "SBERTbase") > 0).sum() == 5
    assert (printed_leads("table2", "SBERTbase") > 0).sum() == 7
    assert printed_leads("table3", "SBERTbase")["nmi"] == pytest.approx(12.12)


def test_table1_gain_and_loss():
    assert verdicts(claims.table1(sts_rows(0.015))) == [
        ("LP-T1-1", "holds here"),
        ("LP-T1-1", "holds here"),
        ("LP-T1-2", "holds here"),
        ("LP-T1-2", "holds here"),
        ("LP-T1-3", "holds here"),
    ]
    lost = dict(verdicts(claims.table1(sts_rows(-0.05, flow=0.9))))
    assert set(lost.values()) == {"does not hold here"}


def test_a_stand_in_is_never_called_by_the_papers_name():
    rows = sts_rows(0.015, backbone="repro-tiny")
    for what in (m.what for m in claims.table1(rows) if "SBERTbase" in m.what):
        assert "(repro-tiny after NLI; in the paper SBERTbase)" in what
    labelled = lines.labelled(rows, "spearman")
    assert set(lines.by_dataset(rows, "spearman")["line"]) == {
        "repro-tiny after NLI",
        f"repro-tiny after NLI, mapped, {HONEST}",
        "repro-tiny",
        f"repro-tiny, mapped, {HONEST}",
        "repro-tiny after NLI, flow",
    }
    printed = lines.labelled(lines.printed("table1", [HONEST]), "spearman")
    table = pd.DataFrame({"line": ["SBERTbase", "Universal Sentence Encoder", "whitening"]})
    beside = lines.named(table, printed, labelled)
    assert beside["in the paper"].tolist() == ["SBERTbase", "Universal Sentence Encoder", "–"]
    assert beside["here"].tolist() == ["repro-tiny after NLI", "not at hand", "not at hand"]
    own = rows_of({"SBERTbase": {"stsb": 0.7}}, "spearman", backbone="bert-base-nli-mean-tokens")
    assert lines.network_of(own, "SBERTbase") == "SBERTbase", "the paper's own network"


def test_a_system_that_was_trained_here_with_one_seed_judges_nothing():
    sure, unsure = (claims.table1(sts_rows(0.015, n_train=n))[0] for n in (pd.NA, 6400))
    assert (sure.high - sure.low) < 0.5 and sure.verdict == "holds here"
    assert (unsure.verdict, unsure.why) == ("cannot tell", "1 of at least 3 seeds")


def test_flow_is_compared_on_the_same_encoder_only():
    rows = sts_rows(0.015, flow=0.71)
    rows.loc[rows["method"] == "SBERTlarge-LP", "value"] = 0.99
    assert claims.table1(rows)[-1].what.endswith("(SBERTbase) (7)")
    gone = claims.table1(rows[rows["method"] != "BERTbase-flow"])[-1]
    assert gone.verdict == "not attempted"


def test_table2_claims():
    base = {d: 0.80 for d in (*SUITES["table2"], AVERAGE)}
    systems = {"SBERTbase": base, "SBERTbase-LP": {d: v + 0.006 for d, v in base.items()}, USE: {**base, "trec": 0.9}}
    found = claims.table2(rows_of(systems, "accuracy"))
    assert [m.claim_id for m in found] == ["LP-T2-1", "LP-T2-1", "LP-T2-2", "LP-T2-3", "LP-T2-3"]
    assert found[0].verdict == "holds here" and found[1].value == 100
    assert found[2].value == pytest.approx(600 / 7)  # USE is ahead on TREC
    assert found[4].value == pytest.approx(9.4)
    without = claims.table2(rows_of({k: v for k, v in systems.items() if k != USE}, "accuracy"))
    assert without[-1].verdict == "not attempted"


def test_table3_is_judged_by_its_smallest_gain():
    frames = [
        rows_of({"SBERTbase": {"20news": 0.3}, "SBERTbase-LP": {"20news": 0.3 + gain}}, metric)
        for metric, gain in (("mi", 0.2), ("nmi", 0.1), ("ari", -0.02), ("purity", 0.1))
    ]
    found = claims.table3(pd.concat(frames))
    assert "ari" in found[0].what and found[0].verdict == "does not hold here"
    assert found[1].claim_id == "LP-T3-2" and found[1].verdict == "not attempted"


def test_table4_needs_both_halves():
    cases = pd.DataFrame({"method": ["m", "m"], "pair": [0, 1], "before": [0.64, 0.62], "after": [0.2, 0.4]})
    net = make_rows([{"method": "m", "metric": "turned", "value": -0.1, "ci_low": -0.2, "ci_high": -0.05}])
    assert [m.verdict for m in claims.table4(cases, net)] == ["holds here", "holds here", "does not hold here"]
    assert claims.table4(cases.iloc[:0], net.iloc[:0]) == []


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
    found = claims.figures(make_rows(rows))
    assert [(m.claim_id, round(m.value, 6)) for m in found] == [("LP-F2-1", 5.0), ("LP-S462-1", -4.0)]
    assert [m.verdict for m in found] == ["holds here", "does not hold here"]


def test_printed_lines_have_our_settings_an_average_and_one_spelling():
    labelled = lines.labelled(lines.printed("table1", ["a", "b"], SUITES["table1"]), "spearman")
    assert {"SBERTbase", "SBERTbase-LP, a", "SBERTbase-LP, b"} <= set(labelled["line"])
    average = labelled[labelled["dataset"] == AVERAGE].set_index("line")["value"]
    assert average["SBERTbase"] == pytest.approx(0.74860, abs=1e-4)
    assert "SBERT-WK" not in average  # two sets are not printed
    assert "BERT-CLS-TOKEN" in set(lines.labelled(lines.printed("table2", []), "accuracy")["line"])
    shown = lines.by_dataset(lines.printed("table1", [""]), "spearman")
    assert list(shown.columns[:3]) == ["line", "STS-B", "SICK-R"] and shown["line"].is_unique


def test_gains_stand_beside_the_printed_ones():
    rows = sts_rows(0.015, backbone="repro-tiny")
    printed = figures.printed_gains("table1", figures.gains_of(rows)).set_index(["method", "dataset"])["value"]
    assert 100 * printed["SBERTbase"].mean() == pytest.approx(1.157, abs=1e-3)
    assert (100 * figures.gains_of(rows)["value"]).round(9).eq(1.5).all()
    figure = figures.draw_gains(rows, "table1", ylabel="gain")
    assert "repro-tiny after NLI; in the paper SBERTbase" in figure.alt and len(figure.axes) == 2
    assert "Nothing to show" in figures.draw_gains(rows.iloc[:0], "table1", ylabel="gain").alt
