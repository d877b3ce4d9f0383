"""Claims of Tables 1 to 4 and beside them: from made-up rows to the verdicts they deserve."""

import pandas as pd
import pytest

from made_rows import ABSENT, FAILS, HOLDS, LESS, UNSURE, around, seeded, verdicts_of_parts
from repro.methods import (
    AVERAGE,
    END_TO_END,
    FULL,
    REDUCED,
    STAGE_NAMES,
    STEP_1,
    STEP_2,
    TRAINED_NARROW,
    TWO_STEP,
)
from repro.papers.wang import claims, gains, suites
from repro.report.kinds import paper_values
from repro.rows import make_rows

DIMS = (128, 64, 32, 16, 8)
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
CLASSES = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")


# Tables 1 and 2


def test_the_papers_own_table_bears_out_its_own_claims():
    """Fed with the printed numbers, three seeds of them and narrow intervals, no claim of Table 1
    fails.
    """
    printed = paper_values("wang2023", "table1")
    score = printed[printed["metric"] == "spearman"].set_index(["method", "dim"])["value"]
    entries = printed[["metric", "value", "dim", "method"]].to_dict("records")
    for dim in printed["dim"].unique():
        end, one, two = (score[stage, dim] for stage in STAGE_NAMES)
        entries += [
            {
                "metric": "spearman_gain_steps",
                "value": one - end - (two - one),
                "dim": dim,
                "method": STEP_1,
            },
            {"metric": "spearman_gain_total", "value": two - end, "dim": dim, "method": STEP_2},
            {"metric": "optimal_dim", "value": 256, "dim": dim, "method": STEP_1},
        ]
    rows = seeded(
        entries,
        step=1e-5,
        half=1e-6,
        readout="pooler",
        setting="test, select_by=encoder",
    )
    found = verdicts_of_parts(claims.table1(rows))
    assert {claim for claim, _ in found} == {f"WANG-T1-{i}" for i in range(1, 6)}
    # The smallest printed gains, 0.04 and 0.09, are real but the rule for sizes wants none printed
    assert set(found.values()) == {HOLDS}


@pytest.mark.parametrize("difference", ["abs", "signed"])
def test_table_2(difference):
    entries = []
    for d in DIMS:
        entries += [
            {
                "metric": "spearman_gain",
                "method": STEP_1,
                "dim": d,
                "value": 0.0 if d == 128 else 0.13,
            },
            {"metric": "spearman_gain", "method": STEP_2, "dim": d, "value": -0.02},
            {"metric": "optimal_dim", "method": STEP_1, "dim": d, "value": 128},
            {"metric": "spearman_gain_steps", "method": STEP_1, "dim": d, "value": 0.15},
            {"metric": "spearman_gain_alone", "method": END_TO_END, "dim": d, "value": 0.05},
        ]
    rows = seeded(entries, setting=f"test, select_by=encoder, difference={difference}")
    beside = rows[rows["metric"] == "spearman_gain_alone"].assign(
        setting="test, difference=signed",
        value=-0.9,
    )
    found = claims.table2(pd.concat([rows, beside]))
    assert verdicts_of_parts(found) == {
        ("WANG-T2-1", "smallest gain of step 1 where the encoder changes"): HOLDS,
        ("WANG-T2-1", "smallest gain of step 2"): FAILS,
        ("WANG-T2-2", "mean gain of step 1"): LESS,
        ("WANG-T2-2", "mean gain of step 2"): FAILS,
        ("WANG-T1-5", "mean gain of step 1 less that of step 2"): HOLDS,
        ("WANG-T2-3", "smallest lead of encoder_d over encoder_d + pooler_d"): HOLDS,
    }
    assert claims.table2(rows.iloc[:0]) == claims.table2(rows[rows["method"] != STEP_2]) == []


def test_rows_of_the_mean_over_dims_say_how_much_the_items_move_it():
    """Half as much as the dims, by three of four seeds: so of the fourth, too. Two are too few to
    tell.
    """
    gain, of = (
        {"metric": "spearman_gain", "method": STEP_2, "value": 0.004},
        {"setting": "test, select_by=encoder"},
    )
    dims, errors = seeded([gain | {"dim": d} for d in (64, 8)], half=0.02, seeds=range(4), **of), []
    for seeds in ((0, 1), (0, 1, 2)):
        rows = pd.concat(
            [dims, seeded([gain | {"metric": "spearman_gain_mean"}], half=0.01, seeds=seeds, **of)]
        )
        (m,) = gains.mean_over_dims(
            rows.assign(full=384),
            "WANG-T2-2",
            "mean",
            "metric == 'spearman_gain' and dim <= full",
            0.83,
        )
        errors.append(m.item_error)
        assert (m.value, m.seeds) == (pytest.approx(0.55), 4)
    assert errors == pytest.approx([2 / 1.96, 1 / 1.96], rel=1e-3)


# Tables 3 and 4


OTHER_FIT = "fitted on 20,000 sentences"


def suite(datasets, lead_over, *, pca=0.05, metric="spearman", dims=DIMS, hidden=768, average=True):
    """A suite in which two-step training leads its rivals by `lead_over[rival]` on every dataset at
    every dim.
    """
    entries, fit, lead_metric = [], "fitted on 2,000 sentences", f"{metric}_lead"
    for dataset in [*datasets, *([AVERAGE] if average else [])]:
        on = {"dataset": dataset, "setting": "", "readout": "encoder", "metric": metric}
        full = {**on, "method": FULL, "dim": hidden, "value": 0.8}
        entries += [full, {**full, "readout": "pooler"}]
        for d in dims:
            two, pooled = 0.8 - 0.1 * (128 / d - 1) / 16, {**on, "readout": "pooler", "dim": d}
            loss = {"metric": lead_metric, "method": f"{TWO_STEP} − {FULL}", "value": two - 0.8}
            entries += [{**pooled, "method": TWO_STEP, "value": two}, {**pooled, **loss}]
            leads = [
                (r, v * (128 / d) ** 0.5, fit if r in REDUCED else "") for r, v in lead_over.items()
            ]
            # PCA on more sentences is shown, but the paper's claims are about 2,000
            leads.append(("PCA", two - 0.9, OTHER_FIT))
            for rival, lead, setting in leads:
                own = {**on, "dim": d, "setting": setting}
                entries.append({**own, "method": rival, "value": two - lead})
                entries.append(
                    {**own, "metric": lead_metric, "method": f"{TWO_STEP} − {rival}", "value": lead}
                )
            own = {**on, "dim": d, "setting": fit, "metric": lead_metric, "value": pca}
            entries += [{**own, "method": f"PCA − {rival}"} for rival in ("Isomap", "LLE")]
    return seeded(entries)


@pytest.mark.parametrize(
    ("leads", "pca", "failed"),
    [
        ({"PCA": 0.029, "Isomap": 0.2, "LLE": 0.3}, 0.05, set()),
        (
            {"PCA": -0.05, "Isomap": 0.2},
            -0.03,
            {"WANG-T3-1", "WANG-T3-2", "WANG-T3-4", "WANG-T3-5", "WANG-S53-1"},
        ),
    ],
)
def test_table_3(leads, pca, failed):
    found = claims.table3(suite(STS, {**leads, TRAINED_NARROW: 0.02}, pca=pca), 768)
    absent = [m.claim_id for m in found if m.verdict == ABSENT]
    assert absent == ["WANG-T3-6"], "256 and 512 dims were not tried"
    told = [m for m in found if m.claim_id not in absent]
    assert {m.claim_id for m in told} == {*(f"WANG-T3-{i}" for i in range(1, 6)), "WANG-S53-1"}
    assert {m.claim_id for m in told if m.verdict == FAILS} == failed
    assert failed or {m.verdict for m in told} == {HOLDS}


def test_of_several_leads_the_one_over_the_best_rival_grows_or_does_not():
    lead = {"metric": "spearman_lead"}
    at = [lead | {"dim": dim, "method": name} for dim in (8, 16, 32) for name in ("PCA", "LLE")]
    leads = (0.01, 0.30, 0.02, 0.20, 0.03, 0.10)  # Over PCA the less, the narrower
    rows = seeded([{**cell, "value": v} for cell, v in zip(at, leads, strict=True)])
    best, *_ = claims.trending(rows, "WANG-T3-5", "lead", "value == value", -1, least=True)
    assert (best.value, best.verdict) == (1.0, FAILS)


def test_dims_are_read_at_the_same_share_of_another_hidden_size():
    found = claims.table3(suite(STS, {"PCA": 0.03}, dims=(64, 32, 16, 8), hidden=128), 128)
    what = {m.claim_id: m.what for m in found}
    assert what["WANG-T3-3"].startswith("two-step at 16 dims less full size, 128")
    assert "256 or 512 dims" in what["WANG-T3-6"], "of which the network has none"


def test_a_few_sets_give_the_count_of_cells_alone():
    rivals = {"PCA": 0.03, "Isomap": 0.1, "LLE": 0.1, TRAINED_NARROW: 0.01}
    found = claims.table3(suite(("stsb", "sickr"), rivals, average=False), 768)
    (only,) = (m for m in found if m.verdict != ABSENT)
    said = "lead over the best rival, worst of 10 cells but 0 (sickr, dim 128; 10 cells won)"
    assert (only.claim_id, only.what) == ("WANG-T3-2", said)
    assert only.value == pytest.approx(1.1) and only.low > 0


def test_table_4():
    rivals = {"PCA": 0.03, "Isomap": 0.04, "LLE": 0.05, TRAINED_NARROW: 0.015}
    found = claims.table4(suite(CLASSES, rivals, pca=0.02, metric="accuracy"), 768)
    by = {claim: verdict for (claim, _), verdict in verdicts_of_parts(found).items()}
    assert [by[f"WANG-T4-{i}"] for i in range(1, 5)] == [*[HOLDS] * 3, FAILS]
    assert [m.value for m in found if m.claim_id == "WANG-T4-1"] == [pytest.approx(1.6)], (
        "of end-to-end training"
    )
    test = suite(CLASSES, rivals, pca=0.02, metric="accuracy").assign(experiment="wang_table4")
    folds = suite(("mrpc",), rivals, pca=-0.05, metric="accuracy", average=False).assign(
        experiment="wang_table4_folds"
    )
    changed = set(claims.table4(pd.concat([test, folds]), 768)) - set(claims.table4(test, 768))
    assert [(m.claim_id, m.verdict) for m in changed] == [("WANG-T4-4", HOLDS)], (
        "MRPC's folds speak for MRPC alone"
    )


def test_a_dim_that_one_rival_cannot_reach_judges_no_lower_of_two():
    rows = suite(CLASSES, {"PCA": 0.03, TRAINED_NARROW: 0.015}, metric="accuracy")
    unreached = (rows["method"] == "PCA − LLE") & (rows["dim"] == 128)
    rows.loc[(rows["method"] == "PCA − Isomap") & (rows["dim"] == 128), "value"] += 0.5
    (lower,) = [m for m in claims.table4(rows[~unreached], 768) if m.claim_id == "WANG-T4-4"]
    assert lower.value == pytest.approx(5.1)


@pytest.mark.parametrize(("lost", "verdict"), [(1, HOLDS), (2, FAILS), ("unsurely", UNSURE)])
def test_nearly_every_cell_is_all_but_one_of_35(lost, verdict):
    rows = suite(STS, {"PCA": 0.03, "Isomap": 0.1, TRAINED_NARROW: 0.02})
    led = (
        rows["metric"].eq("spearman_lead")
        & rows["dim"].eq(8)
        & rows["method"].eq(f"{TWO_STEP} − PCA")
    )
    cells = (
        led
        & rows["dataset"].isin(STS[: 2 if lost == "unsurely" else lost])
        & (rows["setting"] != OTHER_FIT)
    )
    rows.loc[cells, ["value", "ci_low", "ci_high"]] -= 0.3
    if lost == "unsurely":
        # Below 0 alone, but not among all comparisons
        rows.loc[cells, ["ci_low", "ci_high"]] += [-0.14, 0.14]
    (won,) = [m for m in claims.table3(rows, 768) if m.claim_id == "WANG-T3-2"]
    assert won.verdict == verdict, won


def test_the_printed_tables_are_counted_as_the_paper_s_own_cells():
    for table, wins in (("table3", 34), ("table4", 31)):
        won = suites.won_table({"paper": paper_values("wang2023", table)})["paper"].str.split(
            " of ",
            expand=True,
        )
        assert list(won.astype(int).sum()) == [wins, 35]
    printed = paper_values("wang2023", "table4")
    table = suites.won_table({"paper": printed, "recorded": printed.iloc[:0]})
    assert list(table["paper"]) == ["6 of 7", "7 of 7", "6 of 7", "6 of 7", "6 of 7"], (
        "31 of 35, audit W10"
    )
    assert set(table["recorded"]) == {"–"}


# Beside the tables


def test_ablations():
    gains = {"start_gain": 0.03, "frozen_gain": -0.03, "activation_gain": 0.002}
    rows = seeded(
        [
            {"metric": name, "dim": d, "value": v, "method": "m"}
            for name, v in gains.items()
            for d in (8, 4)
        ]
    )
    ratios = [
        {"dim": d, **around(ratio * (1 + run / 100), 0.01), "seed": run}
        for d, ratio in ((8, 1.02), (2048, 1.3))
        for run in range(3)
    ]
    assert verdicts_of_parts(
        claims.ablations(pd.concat([rows, make_rows(ratios, metric="encode_ratio")]), 768)
    ) == {
        ("WANG-S43-1", "smallest gain of current weights less random ones, step 2"): HOLDS,
        ("WANG-S43-2", "smallest gain of encoder frozen less trained along, step 2"): FAILS,
        ("WANG-LIM-1", "largest change by the tanh, tanh less identity"): HOLDS,
        ("WANG-S2-1", "largest change of encoding time against 768 dims, per cent"): FAILS,
    }
    assert claims.ablations(rows.iloc[:0], 768) == []


def test_seconds_of_step_two_are_judged_against_a_tenth():
    cost = [
        {
            "metric": "train_seconds",
            "method": m,
            "value": v * (1 + 0.1 * seed),
            "dim": 8,
            "seed": seed,
        }
        for seed in range(3)
        for m, v in ((END_TO_END, 99.0), (STEP_2, 3.0))
    ]
    gains = [
        {"metric": "spearman_gain", "method": m, "value": 0.1, "dim": 8, "seed": 0}
        for m in (STEP_1, STEP_2)
    ]
    rows = make_rows([*cost, *gains], setting="test, select_by=encoder")
    of_seven = rows[rows["metric"] == "spearman_gain"].assign(dataset=AVERAGE)
    known = pd.concat([rows.assign(dataset="stsb"), of_seven])
    for kept, verdict in ((rows, HOLDS), (known, HOLDS), (rows[rows["seed"] == 0], UNSURE)):
        (seconds,) = [m for m in claims.table1(kept) if m.claim_id == "WANG-S44-1"]
        assert seconds.value == pytest.approx(3 / 99) and seconds.verdict == verdict
    assert claims.table1(rows.assign(setting="test, select_by=oracle")) == [], (
        "opt was chosen on the reported pairs"
    )


def test_no_scores_have_lines_that_are_text_too():
    none = suites.named_scores(make_rows([], experiment="wang_table3", data_source="local"))
    assert (
        none.empty
        and pd.api.types.is_string_dtype(none["line"])
        and not none["line"].str.startswith("full").any()
    )
