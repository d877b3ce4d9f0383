"""Claims and tables of ESE's Tables 1 and 2 and Figures 3 to 5, from rows whose answer is known."""

import pandas as pd
import pytest

from repro.methods import AVERAGE, CONTROL, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.papers.ese import claims, tables
from repro.papers.ese.claims_use import table2
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
    """Rows of `depth_rows` that say what SCORE says."""
    rows = []

    def add(method, metric, value, dataset=AVERAGE, **where):
        rows.append({"method": method, "metric": metric, "dataset": dataset, **where, **interval(value, half)})

    for method in LINES:
        for dim in DIMS:
            for layer in range(1, L + 1):
                for dataset in SETS:
                    add(method, "spearman", score(method, layer, dim), dataset, layer=layer, dim=dim)
            add(method, "spearman", shallow(method, dim), SHALLOW_AVERAGE, dim=dim)
            add(method, "spearman_drop", score(method, L, dim) - score(method, 2, dim), layer=2, dim=dim)
        for layer in range(2, L + 1):
            step = score(method, layer, 64) - score(method, layer - 1, 64)
            add(method, "spearman_step", step, layer=layer, dim=64)
        change = score(method, L, 64) - score(method, L, 16)
        add(method, "spearman_change", change, layer=L, dim=64, setting="against 16 dims")
    for i, a in enumerate(LINES):
        for b in LINES[:i]:
            name, gap = f"{a} − {b}", {(k, d): score(a, k, d) - score(b, k, d) for k in range(1, L + 1) for d in DIMS}
            for (layer, dim), value in gap.items():
                add(name, "spearman_lead", value, layer=layer, dim=dim)
            for dim in DIMS:
                add(name, "spearman_lead", shallow(a, dim) - shallow(b, dim), SHALLOW_AVERAGE, dim=dim)
                add(name, "drop_lead", gap[L, dim] - gap[2, dim], layer=2, dim=dim)
            mean = {layer: sum(gap[layer, dim] for dim in DIMS) / 3 for layer in (1, 2, L)}
            add(name, "depth_lead", (mean[1] + mean[2]) / 2 - mean[L], layer=2)
    shared = {"experiment": "e", "backbone": backbone, "data_source": source, "readout": "encoder", "n_train": 9}
    return pd.concat([make_rows(rows, **shared, seed=seed) for seed in seeds], ignore_index=True)


@pytest.fixture(scope="module")
def rows():
    return depth(seeds=(0, 1, 2))


def by_claim(measured, claim):
    return [m for m in measured if m.claim_id == claim]


# Table 1


def test_the_last_layer_is_judged_against_the_better_rival(rows):
    found = claims.table1(rows)
    (first,) = by_claim(found, "ESE-T1-1")
    assert first.value == pytest.approx(2.0) and "less MRL" in first.what
    assert first.verdict == "holds here" and first.seeds == 3
    (one,) = by_claim(claims.table1(depth()), "ESE-T1-1")
    assert (one.verdict, one.why) == ("cannot tell", "1 of at least 3 seeds")


def test_shallow_layers_are_judged_against_both_rivals_and_the_printed_gain(rows):
    over_raw, over_mrl = by_claim(claims.table1(rows), "ESE-T1-3")
    assert over_raw.paper == pytest.approx(20.67) and over_mrl.paper is None
    assert over_raw.value == pytest.approx(100 * (shallow(ESE, 64) - shallow(RAW, 64)))
    assert (over_raw.verdict, over_mrl.verdict) == ("holds here", "holds here")


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
    of_raw, of_mrl = by_claim(claims.figure3(depth()), "ESE-F3-2")[1:]
    assert of_raw.high > of_raw.value
    assert pd.isna(of_mrl.high)


# Figures 3 and 4


def test_the_threshold_is_the_papers_where_a_line_comes_so_far_on_real_sets(rows):
    assert claims.threshold_of(depth(source="local")) == 60.0
    assert claims.threshold_of(rows) == pytest.approx(60 / 84.49 * 83)
    low = depth(source="local")
    low[["value", "ci_low", "ci_high"]] /= 2
    assert claims.threshold_of(low) == pytest.approx(60 / 84.49 * 41.5)


def test_first_layers_above_the_threshold():
    real = depth(source="local", seeds=(0, 1, 2))
    at = {m: claims.first_layer(real, m, 60.0) for m in LINES}
    assert {m: e.value for m, e in at.items()} == {RAW: 4, CONTROL: 4, MRL: 4, ESE: 1}
    assert (at[ESE].low, at[ESE].high) == (1, 1), "65 ± 1 stays above 60"
    assert claims.first_layer(real, RAW, 90.0).value == L + 1
    near = claims.first_layer(real, ESE, 64.5)
    assert (near.value, near.low, near.high) == (1, 1, 2), "65 ± 1 may miss 64.5, then layer 2 is the first"
    measured = by_claim(claims.figure3(real), "ESE-F3-1")
    assert [m.value for m in measured] == [3, 3, 0]
    assert [m.verdict for m in measured] == ["holds here"] * 3, "RAW may pass with MRL"


def test_first_layers_stand_in_the_order_of_the_lines():
    mixed = depth(source="local").sample(frac=1, random_state=0)
    table = claims.first_layer_table(mixed, {"net": 76.0})
    assert table["line"].tolist() == list(LINES)
    assert table["first layer above it"].tolist() == ["4", "4", "4", "4"] and table["of"].unique() == [4]
    assert set(claims.first_layer_table(mixed, {"net": 99.0})["first layer above it"]) == {"none"}


def test_rows_of_one_dataset_have_no_average_to_pass(rows):
    alone = rows[rows["dataset"] == "stsb"]
    assert claims.figure3(alone) == [] == claims.figure4(alone) and pd.isna(claims.threshold_of(alone))


def test_ese_must_rise_and_the_others_fall_somewhere(rows):
    ese, raw, mrl = by_claim(claims.figure3(rows), "ESE-F3-2")
    assert (ese.value, raw.value, mrl.value) == pytest.approx((5.0, -2.0, -3.0))
    assert (ese.direction, raw.direction, mrl.direction) == (1, -1, -1)
    assert "layer 1 to 2" in raw.what
    assert [m.verdict for m in (ese, raw, mrl)] == ["holds here"] * 3


def test_everywhere_is_judged_where_it_is_weakest(rows):
    weakest, over_raw, over_mrl = by_claim(claims.figure3(rows), "ESE-F3-3")
    assert weakest.value == pytest.approx(2.0) and "over MRL, layer 4, 64 dims" in weakest.what
    assert over_raw.value > 0 and over_mrl.value > 0 and over_raw.verdict == "holds here"


def test_level_means_within_a_point_beyond_the_compressed_size(rows):
    (level,) = by_claim(claims.figure3(rows), "ESE-F3-4")
    assert level.value == pytest.approx(0.4) and "beyond 16 dims (at 64)" in level.what
    assert level.verdict == "cannot tell"
    (sure,) = by_claim(claims.figure3(depth(seeds=(0, 1, 2), half=0.001)), "ESE-F3-4")
    assert sure.verdict == "holds here"


def test_half_depth_is_judged_at_both_layers_and_by_the_drop(rows):
    least, over_raw, over_mrl = by_claim(claims.figure4(rows), "ESE-F4-1")
    assert least.value == pytest.approx(2.0) and "layers 2 and 4" in least.what
    assert over_raw.direction == -1 and over_raw.value < -30 and over_mrl.verdict == "holds here"


# tables


def test_printed_rows_are_named_as_ours():
    table = tables.printed("table1")
    assert set(table["method"]) == {RAW, MRL, ESE}
    assert set(table["backbone"]) == {"bge-base-en-v1.5", "UAE-Large-V1", "Qwen1.5-0.5B"}
    wide = tables.table1_wide(table)
    assert wide.loc[2, ["backbone", "method", "Avg.", "≺ Avg."]].tolist() == ["bge-base-en-v1.5", ESE, 84.49, 66.27]


def test_the_wide_table_shows_the_last_layer_and_the_shallow_mean(rows):
    wide = tables.table1_wide(tables.table1_cells(rows)).set_index("method")
    assert list(wide.index) == list(LINES)
    assert wide.loc[ESE, ["STS-B", "Avg.", "≺ Avg."]].tolist() == pytest.approx([83.0, 83.0, 70.0])


def test_leads_are_shown_at_both_places(rows):
    table = tables.lead_table(depth(seeds=(0, 1)), rows).set_index(["lead", "place"])
    assert table.loc[("ESE − MRL", "last layer"), "live"] == "2.00 [1.00, 3.00]"
    assert table.loc[("ESE − MRL", "≺ Avg."), "recorded"] == "36.33 ± 0.00 (2 seeds)"
    alone = tables.lead_table(depth(backbone="deep"), rows)
    assert alone.loc[alone["backbone"] == "deep", "live"].isna().all(), "recorded on another network"


def test_the_t_test_says_what_its_unit_is():
    table = tables.t_table(depth(seeds=(0, 1, 2)), [RAW]).set_index("unit")
    assert table["number"].to_dict() == {"seeds": 3, "sets": 2, "layers": 3}
    assert table.loc["sets", "mean"] == "too few"
    assert table.loc["seeds", "mean"].startswith("39.00") and table.loc["layers", "p"] != "–"
    single = tables.t_table(depth(), [RAW]).set_index("unit")
    assert single.loc["seeds", "mean"] == "too few"
    assert tables.t_table(depth()[lambda f: f["method"] != ESE], [RAW]).empty


def test_grid_and_drop_tables(rows):
    grid = tables.grid_table(rows).set_index(["method", "layer"])
    assert grid.loc[(ESE, 1), "64"] == pytest.approx(65.0) and list(grid.columns) == ["backbone", "8", "16", "64"]
    drops = tables.drop_table(rows).set_index("line")["points lost"]
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
    found = by_claim(table2(ablation), "ESE-T2-1")
    assert [m.value for m in found[:3]] == pytest.approx([2.0, 1.0, 1.0])
    dearest = next(m for m in found if m.paper is not None)
    assert (
        dearest.paper == pytest.approx(15.29)
        and dearest.value == pytest.approx(17.0)
        and dearest.verdict == "holds here"
    )
    assert found[-1].value == pytest.approx(16.0) and "costs the shallow layers more" in found[-1].what


def test_an_order_with_gaps_is_judged_between_those_that_were_tried(ablation):
    fewer = ablation[~ablation["method"].str.contains("max-k|embeddings")]
    extra = ablation[ablation["method"] == "embeddings − max-k"].assign(method="default − no compression")
    found = by_claim(table2(pd.concat([fewer, extra], ignore_index=True)), "ESE-T2-1")
    assert [m.what.split(": ")[1] for m in found[:2]] == ["default less no compression"] * 2
    assert found[1].paper == pytest.approx(66.27 - 50.18) and len(found) == 3


def test_the_order_of_weights_differs_between_the_places(ablation):
    found = by_claim(table2(ablation), "ESE-T2-2")
    assert [m.what.split(": ")[1] for m in found] == [
        "learned weights less default",
        "default less uniform weights",
        "default less learned weights",
        "learned weights less uniform weights",
    ]
    assert [m.value for m in found] == pytest.approx([3.0, 3.0, 2.0, 8.0])


def test_variants_that_are_one_training_are_not_judged(ablation):
    found = by_claim(table2(ablation, {"uniform weights": "default"}), "ESE-T2-2")
    said = {m.what.split(": ")[1].split(":")[0]: m.verdict for m in found}
    assert said["default less uniform weights"] == "not attempted"
    assert said["learned weights less default"] == "holds here"


def test_the_best_size_leads_both_ends_and_every_size_the_baselines(ablation):
    found = table2(ablation)
    small, large = by_claim(found, "ESE-F5-1")
    assert (small.value, large.value) == pytest.approx((6.0, 5.0))
    assert "k = 16 less k = 4" in small.what and "the largest tried" in large.what
    (least,) = by_claim(found, "ESE-F5-2")
    assert least.value == pytest.approx(4.0) and "MRL, k = 4" in least.what
    assert tables.tried_sizes(ablation) == {4: "k = 4", 16: "default", 64: "k = 64"}


def test_table_two_joins_what_is_printed(ablation):
    table = tables.table2_joined(ablation.iloc[:0], ablation[ablation["seed"] == 0])
    last = table[table["place"] == "last layer"].set_index("row of Table 2")
    assert last.loc["PCA on sentence embeddings", ["paper", "live"]].tolist() == pytest.approx([84.30, 48.0])
    assert last.loc["default weight", "live"] == last.loc["PCA on dependencies (default)", "live"]
    assert list(tables.printed_variants()["method"].unique()[:2]) == ["default", "embeddings"]


def test_differences_sizes_weights_and_baselines(ablation):
    drawn = tables.difference_rows(ablation, {"embeddings": "default", "max-k": "default"})
    assert set(drawn["variant"]) == {"embeddings"}, "max-k was not compared with the default"
    table = tables.difference_table(ablation, {"embeddings": "default", "max-k": "default"}, "live")
    assert table["live, 64 dims"].tolist() == ["-2.00 [-3.00, -1.00]", "-2.00 [-3.00, -1.00]"]
    assert table["place"].tolist() == ["last layer", "≺ Avg."]
    by_size = tables.size_rows(ablation)
    assert set(by_size["dim"]) == {4, 16, 64} and set(by_size["place"]) == {"last layer", "≺ Avg."}
    flat = by_size[(by_size["method"] == MRL) & (by_size["place"] == "last layer")]
    assert set(flat["dim"]) == {4, 16, 64} and flat["value"].tolist() == pytest.approx([0.4] * 9)
    weights = tables.weight_table(ablation).set_index("variant")["layer 1"]
    assert weights["learned weights"] == pytest.approx(0.8)


def test_every_claim_of_these_pages_is_judged_or_said_to_be_absent(rows, ablation):
    judged = [*claims.table1(rows), *claims.figure3(rows), *claims.figure4(rows), *table2(ablation)]
    given = set(verdict_frame("live", judged)["claim_id"])
    parts = "T1-1 T1-2 T1-3 T1-4 F3-1 F3-2 F3-3 F3-4 F4-1 T2-1 T2-2 F5-1 F5-2"
    assert given == {f"ESE-{part}" for part in parts.split()}
