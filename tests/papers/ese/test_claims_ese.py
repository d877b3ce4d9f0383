"""Claims and tables of ESE's Tables 1 and 2 and Figures 3 to 5, from rows whose answer is known."""

import pandas as pd
import pytest

from repro.methods import AVERAGE, CONTROL, ESE, ESE_CODE, MRL, RAW, SHALLOW_AVERAGE
from repro.report import claims_ese as claims
from repro.report.claims_ese import leads as reading
from repro.report.compare import verdict_frame
from repro.rows import make_rows

L, DIMS, SETS = 4, (8, 16, 64), ("stsb", "sickr", AVERAGE)
LINES = (RAW, CONTROL, MRL, ESE)
SCORE = {
    RAW: (0.30, 0.28, 0.35, 0.80),
    CONTROL: (0.31, 0.30, 0.36, 0.82),
    MRL: (0.32, 0.29, 0.40, 0.81),
    ESE: (0.65, 0.70, 0.75, 0.83),
}
"""by layer, at full size"""


def score(method, layer, dim):
    loss = {8: 0.10, 16: 0.02, 64: 0.0}[dim]
    return SCORE[method][layer - 1] - loss * (0.2 if method == ESE else 1.0)


def interval(value, half=0.01):
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def shallow(method, dim):
    return sum(score(method, layer, dim) for layer in range(1, L)) / (L - 1)


def depth(backbone="net", seeds=(0,), source="microworld", half=0.01):
    rows = []
    for method in LINES:
        for dataset in SETS:
            for dim in DIMS:
                cells = [
                    {"layer": layer, "dim": dim, "metric": "spearman", **interval(score(method, layer, dim), half)}
                    for layer in range(1, L + 1)
                ]
                rows += [{**cell, "method": method, "dataset": dataset} for cell in cells]
        for dim in DIMS:
            rows.append(
                {
                    "method": method,
                    "dataset": SHALLOW_AVERAGE,
                    "dim": dim,
                    "metric": "spearman",
                    **interval(shallow(method, dim), half),
                }
            )
        for layer in range(2, L + 1):
            step = score(method, layer, 64) - score(method, layer - 1, 64)
            rows.append(
                {
                    "method": method,
                    "dataset": AVERAGE,
                    "layer": layer,
                    "dim": 64,
                    "metric": "spearman_step",
                    **interval(step, half),
                }
            )
        change = score(method, L, 64) - score(method, L, 16)
        rows.append(
            {
                "method": method,
                "dataset": AVERAGE,
                "layer": L,
                "dim": 64,
                "metric": "spearman_change",
                "setting": "against 16 dims",
                **interval(change, half),
            }
        )
        for dim in DIMS:
            drop = score(method, L, dim) - score(method, 2, dim)
            rows.append(
                {
                    "method": method,
                    "dataset": AVERAGE,
                    "layer": 2,
                    "dim": dim,
                    "metric": "spearman_drop",
                    **interval(drop, half),
                }
            )
    for i, a in enumerate(LINES):
        for b in LINES[:i]:
            rows += lead_rows(f"{a} − {b}", a, b, half)
    frames = [
        make_rows(rows, experiment="e", backbone=backbone, seed=seed, data_source=source, readout="encoder")
        for seed in seeds
    ]
    return pd.concat(frames, ignore_index=True)


def lead_rows(name, a, b, half):
    common = {"method": name, "dataset": AVERAGE}
    rows = [
        {
            **common,
            "layer": layer,
            "dim": dim,
            "metric": "spearman_lead",
            **interval(score(a, layer, dim) - score(b, layer, dim), half),
        }
        for layer in range(1, L + 1)
        for dim in DIMS
    ]
    for dim in DIMS:
        rows.append(
            {
                "method": name,
                "dataset": SHALLOW_AVERAGE,
                "dim": dim,
                "metric": "spearman_lead",
                **interval(shallow(a, dim) - shallow(b, dim), half),
            }
        )
        drops = [score(m, L, dim) - score(m, 2, dim) for m in (a, b)]
        rows.append({**common, "layer": 2, "dim": dim, "metric": "drop_lead", **interval(drops[0] - drops[1], half)})
    gap = {k: sum(score(a, k, d) - score(b, k, d) for d in DIMS) / 3 for k in (1, 2, L)}
    rows.append({**common, "layer": 2, "metric": "depth_lead", **interval((gap[1] + gap[2]) / 2 - gap[L], half)})
    return rows


@pytest.fixture(scope="module")
def rows():
    return depth()


def by_claim(measured, claim):
    return [m for m in measured if m.claim_id == claim]


# Table 1


def test_the_last_layer_is_judged_against_the_better_rival(rows):
    found = claims.table1(rows)
    (first,) = by_claim(found, "ESE-T1-1")
    assert first.value == pytest.approx(2.0) and "less MRL" in first.what
    assert first.low == pytest.approx(2.0 - (1.0**2 + 1.96**2) ** 0.5), "one training has an assumed noise"
    assert first.verdict == "within noise"
    (many,) = by_claim(claims.table1(depth(seeds=(0, 1, 2))), "ESE-T1-1")
    assert many.verdict == "reproduced" and many.seeds == 3


def test_shallow_layers_are_judged_against_both_rivals_and_the_printed_gain(rows):
    over_raw, over_mrl = by_claim(claims.table1(rows), "ESE-T1-3")
    assert over_raw.paper == pytest.approx(20.67) and over_mrl.paper is None
    assert over_raw.value == pytest.approx(100 * (shallow(ESE, 64) - shallow(RAW, 64)))
    assert (over_raw.verdict, over_mrl.verdict) == ("direction only", "reproduced"), "39 points, not 20.67"


def test_claims_on_networks_that_are_not_at_hand_are_not_attempted(rows):
    found = claims.table1(rows)
    ours, absent = by_claim(found, "ESE-T1-2")
    assert ours.value == pytest.approx(1.0) and ours.direction == 1
    assert absent.verdict == "not attempted" and "UAE" in absent.what
    (model,) = by_claim(found, "ESE-T1-4")
    assert model.verdict == "not attempted"


def test_the_papers_own_networks_are_judged_as_the_paper_says(rows):
    uae = depth(backbone="UAE-Large-V1")
    (falls,) = by_claim(claims.table1(uae), "ESE-T1-2")
    assert falls.direction == -1
    both = pd.concat([rows, depth(backbone="Qwen1.5-0.5B")], ignore_index=True)
    (gain,) = by_claim(claims.table1(both), "ESE-T1-4")
    assert gain.value == pytest.approx(0.0) and gain.direction == -1 and "Qwen" in gain.what


def test_a_network_without_all_lines_says_nothing_on_their_order(rows):
    alone = rows[rows["method"] == RAW]
    assert {m.verdict for m in claims.table1(alone)} == {"not attempted"}
    assert claims.figure3(alone) == [] and claims.figure4(alone) == []


def test_the_untouched_network_has_no_seed_noise():
    several = depth(seeds=(0, 1, 2))
    found = reading.estimate_of(several, "spearman_step", RAW, layer=4)
    assert (found.half, found.seeds) == (pytest.approx(1.0), 1)
    one = reading.estimate_of(depth(), "spearman_step", MRL, layer=4)
    assert one.half == pytest.approx((1.0**2 + 1.96**2) ** 0.5)


# Figures 3 and 4


def test_the_threshold_is_the_papers_where_a_line_comes_so_far_on_real_sets(rows):
    assert claims.threshold_of(depth(source="local")) == 60.0
    assert claims.threshold_of(rows) == pytest.approx(60 / 84.49 * 83)
    low = depth(source="local")
    low[["value", "ci_low", "ci_high"]] /= 2
    assert claims.threshold_of(low) == pytest.approx(60 / 84.49 * 41.5)


def test_first_layers_above_the_threshold():
    real = depth(source="local")
    at = {m: claims.first_layer(real, m, 60.0) for m in LINES}
    assert {m: e.value for m, e in at.items()} == {RAW: 4, CONTROL: 4, MRL: 4, ESE: 1}
    assert at[ESE].half == 0, "65 ± 2.2 stays above 60"
    assert claims.first_layer(real, RAW, 90.0).value == L + 1
    near = claims.first_layer(real, ESE, 64.0)
    assert (near.value, near.half) == (1, 1), "65 ± 2.2 may miss 64, then layer 2 is the first"
    measured = by_claim(claims.figure3(real), "ESE-F3-1")
    assert [m.value for m in measured] == [3, 3, 0]
    assert [m.verdict for m in measured] == ["reproduced"] * 3, "RAW may pass with MRL"


def test_first_layers_stand_in_the_order_of_the_lines():
    mixed = depth(source="local").sample(frac=1, random_state=0)
    table = claims.first_layer_table(mixed, {"net": 76.0})
    assert table["line"].tolist() == list(LINES)
    assert table["first layer above it"].tolist() == ["4", "4", "4", "4"] and table["of"].unique() == [4]
    assert set(claims.first_layer_table(mixed, {"net": 99.0})["first layer above it"]) == {"none"}


def test_two_layers_have_no_room_for_a_first_one(rows):
    two = rows[(rows["layer"].isna() | (rows["layer"] <= 2))]
    (m,) = by_claim(claims.figure3(two), "ESE-F3-1")
    assert m.verdict == "not attempted" and "2 layers" in m.what


def test_rows_of_one_dataset_have_no_average_to_pass(rows):
    alone = rows[rows["dataset"] == "stsb"]
    assert claims.figure3(alone) == [] == claims.figure4(alone) and pd.isna(claims.threshold_of(alone))


def test_ese_must_rise_and_the_others_fall_somewhere(rows):
    ese, raw, mrl = by_claim(claims.figure3(rows), "ESE-F3-2")
    assert (ese.value, raw.value, mrl.value) == pytest.approx((5.0, -2.0, -3.0))
    assert (ese.direction, raw.direction, mrl.direction) == (1, -1, -1)
    assert "layer 1 to 2" in raw.what
    assert [m.verdict for m in (ese, raw, mrl)] == ["reproduced"] * 3


def test_everywhere_is_judged_where_it_is_weakest(rows):
    weakest, over_raw, over_mrl = by_claim(claims.figure3(rows), "ESE-F3-3")
    assert weakest.value == pytest.approx(2.0) and "over MRL, layer 4, 64 dims" in weakest.what
    assert over_raw.value > 0 and over_mrl.value > 0 and over_raw.verdict == "reproduced"


def test_level_means_within_a_point_beyond_the_compressed_size(rows):
    (level,) = by_claim(claims.figure3(rows), "ESE-F3-4")
    assert level.value == pytest.approx(0.4) and "beyond 16 dims (at 64)" in level.what
    assert level.verdict == "within noise"
    (sure,) = by_claim(claims.figure3(depth(seeds=(0, 1, 2), half=0.001)), "ESE-F3-4")
    assert sure.verdict == "reproduced"


def test_half_depth_is_judged_at_both_layers_and_by_the_drop(rows):
    least, over_raw, over_mrl = by_claim(claims.figure4(rows), "ESE-F4-1")
    assert least.value == pytest.approx(2.0) and "layers 2 and 4" in least.what
    assert over_raw.direction == -1 and over_raw.value < -30 and over_mrl.verdict == "reproduced"


# tables


def test_printed_rows_are_named_as_ours():
    table = claims.printed("table1")
    assert set(table["method"]) == {RAW, MRL, ESE}
    assert set(table["backbone"]) == {"bge-base-en-v1.5", "UAE-Large-V1", "Qwen1.5-0.5B"}
    wide = claims.table1_wide(table)
    assert wide.loc[2, ["backbone", "method", "Avg.", "≺ Avg."]].tolist() == ["bge-base-en-v1.5", ESE, 84.49, 66.27]


def test_the_wide_table_shows_the_last_layer_and_the_shallow_mean(rows):
    wide = claims.table1_wide(claims.table1_cells(rows)).set_index("method")
    assert list(wide.index) == list(LINES)
    assert wide.loc[ESE, ["STS-B", "Avg.", "≺ Avg."]].tolist() == pytest.approx([83.0, 83.0, 70.0])


def test_leads_are_shown_at_both_places(rows):
    table = claims.lead_table(depth(seeds=(0, 1)), rows).set_index(["lead", "place"])
    assert table.loc[("ESE − MRL", "last layer"), "live"] == "2.00 [1.00, 3.00]"
    assert table.loc[("ESE − MRL", "≺ Avg."), "recorded"] == "36.33 ± 0.00 (2 seeds)"
    alone = claims.lead_table(depth(backbone="deep"), rows)
    assert set(alone.loc[alone["backbone"] == "deep", "live"]) == {"–"}, "recorded on another network"
    drawn = claims.lead_rows(rows, [(ESE, RAW), (ESE_CODE, ESE)])
    assert set(drawn["variant"]) == {"ESE − RAW"} and set(drawn["place"]) == {"last layer", "≺ Avg."}


def test_the_t_test_says_what_its_unit_is():
    table = claims.t_table(depth(seeds=(0, 1, 2)), [RAW]).set_index("unit")
    assert table["number"].to_dict() == {"seeds": 3, "sets": 2, "layers": 3}
    assert table.loc["sets", "mean"] == "too few"
    assert table.loc["seeds", "mean"].startswith("39.00") and table.loc["layers", "p"] != "–"
    single = claims.t_table(depth(), [RAW]).set_index("unit")
    assert single.loc["seeds", "mean"] == "too few"
    assert claims.t_table(depth()[lambda f: f["method"] != ESE], [RAW]).empty


def test_grid_and_drop_tables(rows):
    grid = claims.grid_table(rows).set_index(["method", "layer"])
    assert grid.loc[(ESE, 1), "64"] == pytest.approx(65.0) and list(grid.columns) == ["backbone", "8", "16", "64"]
    drops = claims.drop_table(rows).set_index("line")["points lost"]
    assert drops[RAW].startswith("52.00") and drops["ESE − RAW"].startswith("-39.00")
    assert "MRL − RAW" not in drops


# Table 2 and Figure 5

VARIANTS = {
    "default": (0.50, 0.40),
    "embeddings": (0.48, 0.38),
    "max-k": (0.47, 0.37),
    "no compression": (0.46, 0.20),
    "learned weights": (0.53, 0.38),
    "uniform weights": (0.47, 0.30),
    "k = 4": (0.44, 0.3),
    "k = 64": (0.45, 0.3),
    RAW: (0.3, 0.2),
    MRL: (0.4, 0.2),
}
PAIRS = [
    ("embeddings", "default"),
    ("default", "embeddings"),
    ("embeddings", "max-k"),
    ("max-k", "no compression"),
    ("learned weights", "default"),
    ("default", "uniform weights"),
    ("learned weights", "uniform weights"),
    ("default", "k = 4"),
    ("default", "k = 64"),
    ("default", RAW),
    ("k = 4", MRL),
]


@pytest.fixture(scope="module")
def ablation():
    rows = []
    for method, (last, low) in VARIANTS.items():
        rows.append(
            {"method": method, "layer": 2, "dim": 64, "dataset": AVERAGE, "metric": "spearman", **interval(last)}
        )
        rows.append({"method": method, "dim": 64, "dataset": SHALLOW_AVERAGE, "metric": "spearman", **interval(low)})
        if method not in (RAW, MRL):
            size = int(method.split("= ")[1]) if "=" in method else 16
            rows.append({"method": method, "metric": "compressed_size", "value": size})
    for a, b in PAIRS:
        (last, low), (other, below) = VARIANTS[a], VARIANTS[b]
        name = {"method": f"{a} − {b}", "dim": 64}
        rows.append({**name, "layer": 2, "dataset": AVERAGE, "metric": "spearman_lead", **interval(last - other)})
        rows.append({**name, "dataset": SHALLOW_AVERAGE, "metric": "spearman_lead", **interval(low - below)})
        excess = (low - below) - (last - other)
        rows.append({**name, "dataset": AVERAGE, "metric": "shallow_excess", **interval(excess)})
    rows += [
        {"method": m, "layer": 1, "metric": "layer_weight", "value": v}
        for m, v in (("default", 1.0), ("learned weights", 0.8))
    ]
    return pd.concat([make_rows(rows, experiment="e", backbone="net", seed=s) for s in (0, 1, 2)], ignore_index=True)


def test_the_order_of_targets_is_judged_step_by_step(ablation):
    found = by_claim(claims.table2(ablation), "ESE-T2-1")
    assert [m.value for m in found[:3]] == pytest.approx([2.0, 1.0, 1.0])
    dearest = next(m for m in found if m.paper is not None)
    assert (
        dearest.paper == pytest.approx(15.29)
        and dearest.value == pytest.approx(17.0)
        and dearest.verdict == "reproduced"
    )
    assert found[-1].value == pytest.approx(16.0) and "costs the shallow layers more" in found[-1].what


def test_an_order_with_gaps_is_judged_between_those_that_were_tried(ablation):
    fewer = ablation[~ablation["method"].str.contains("max-k|embeddings")]
    extra = ablation[ablation["method"] == "embeddings − max-k"].assign(method="default − no compression")
    found = by_claim(claims.table2(pd.concat([fewer, extra], ignore_index=True)), "ESE-T2-1")
    assert [m.what.split(": ")[1] for m in found[:2]] == ["default less no compression"] * 2
    assert found[1].paper == pytest.approx(66.27 - 50.18) and len(found) == 3


def test_the_order_of_weights_differs_between_the_places(ablation):
    found = by_claim(claims.table2(ablation), "ESE-T2-2")
    assert [m.what.split(": ")[1] for m in found] == [
        "learned weights less default",
        "default less uniform weights",
        "default less learned weights",
        "learned weights less uniform weights",
    ]
    assert [m.value for m in found] == pytest.approx([3.0, 3.0, 2.0, 8.0])


def test_variants_that_are_one_training_are_not_judged(ablation):
    found = by_claim(claims.table2(ablation, {"uniform weights": "default"}), "ESE-T2-2")
    said = {m.what.split(": ")[1].split(":")[0]: m.verdict for m in found}
    assert said["default less uniform weights"] == "not attempted"
    assert said["learned weights less default"] == "reproduced"


def test_the_best_size_leads_both_ends_and_every_size_the_baselines(ablation):
    found = claims.table2(ablation)
    small, large = by_claim(found, "ESE-F5-1")
    assert (small.value, large.value) == pytest.approx((6.0, 5.0))
    assert "k = 16 less k = 4" in small.what and "the largest tried" in large.what
    (least,) = by_claim(found, "ESE-F5-2")
    assert least.value == pytest.approx(4.0) and "MRL, k = 4" in least.what
    assert claims.sizes_of(ablation) == {4: "k = 4", 16: "default", 64: "k = 64"}


def test_table_two_joins_what_is_printed(ablation):
    table = claims.table2_joined(ablation.iloc[:0], ablation[ablation["seed"] == 0])
    last = table[table["place"] == "last layer"].set_index("row of Table 2")
    assert last.loc["PCA on sentence embeddings", ["paper", "live"]].tolist() == pytest.approx([84.30, 48.0])
    assert last.loc["default weight", "live"] == last.loc["PCA on dependencies (default)", "live"]
    assert list(claims.printed_variants()["method"].unique()[:2]) == ["default", "embeddings"]


def test_differences_sizes_weights_and_baselines(ablation):
    drawn = claims.difference_rows(ablation, {"embeddings": "default", "max-k": "default"})
    assert set(drawn["variant"]) == {"embeddings"}, "max-k was not compared with the default"
    table = claims.difference_table(ablation, {"embeddings": "default", "max-k": "default"}, "live")
    assert table["live, 64 dims"].tolist() == ["-2.00 [-3.00, -1.00]", "-2.00 [-3.00, -1.00]"]
    assert table["place"].tolist() == ["last layer", "≺ Avg."]
    by_size = claims.size_rows(ablation)
    assert set(by_size["dim"]) == {4, 16, 64} and set(by_size["place"]) == {"last layer", "≺ Avg."}
    assert claims.baseline_scores(ablation)["last layer", MRL] == pytest.approx(40.0)
    weights = claims.weight_table(ablation).set_index("variant")["layer 1"]
    assert weights["learned weights"] == pytest.approx(0.8)


def test_facts_of_a_batch_as_tables(ablation):
    common = {"method": "E4", "layer": 1, "dim": 8, "setting": "RAW, per sentence"}
    rank = {**common, "metric": "numerical_rank", "value": 4, "ci_low": 3, "ci_high": 5}
    facts = [rank, {**common, "metric": "second_share", "value": 0.01}]
    metrics = ("sign_flips", "column_cosine", "last_cosine", "subspace_overlap")
    facts += [{"setting": "eigh", "dim": 16, "metric": m, "value": 0.5} for m in metrics]
    names = ("distinct_vectors", "base_loss", "base_gradient", "shared_gradient")
    facts += [{"layer": k, "metric": m, "value": 2.0} for k in (0, 2) for m in names]
    facts += [{"layer": 0, "metric": "loss_share", "value": 0.25}]
    of_two = [make_rows(facts, experiment="e", backbone=backbone, seed=0) for backbone in ("net", "deep")]
    everything = pd.concat([ablation, *of_two], ignore_index=True)
    ranks = claims.rank_table(everything)
    assert ranks["backbone"].tolist() == ["net", "deep"]
    assert ranks.loc[0, ["rank, median", "smallest", "largest", "second by first"]].tolist() == [4, 3, 5, "1.0e-02"]
    repeats = claims.repeat_table(everything)
    assert len(repeats) == 2 and (repeats.iloc[:, 3:] == 50).all(axis=None)
    constant = claims.constant_table(everything)
    assert constant["distinct vectors"].tolist() == [2, 2, 2, 2]
    assert constant.loc[0, "share of the whole loss, %"] == 25 and constant.loc[1].isna().sum() == 1
    assert claims.difference_table(of_two[0], {"a": "b"}, "live").empty, "nothing was compared"


def test_every_claim_of_these_pages_is_judged_or_said_to_be_absent(rows, ablation):
    judged = [*claims.table1(rows), *claims.figure3(rows), *claims.figure4(rows), *claims.table2(ablation)]
    given = set(verdict_frame("live", judged)["claim_id"])
    wanted = {
        f"ESE-{part}"
        for part in (
            "T1-1",
            "T1-2",
            "T1-3",
            "T1-4",
            "F3-1",
            "F3-2",
            "F3-3",
            "F3-4",
            "F4-1",
            "T2-1",
            "T2-2",
            "F5-1",
            "F5-2",
        )
    }
    assert given == wanted
