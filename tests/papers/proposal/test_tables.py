"""Tables of the proposal's pages and those beyond, from made-up rows; what has a verdict without being a claim."""

import pandas as pd
import pytest

from repro.methods import BASELINES, PRINTED_BASELINES, UNTRAINED
from repro.papers.proposal import choosing, choosing_rules, limits, microworld, tables
from repro.papers.proposal import quantisation_tables as byte_tables
from repro.rows import make_rows
from repro.theory import jl_dim


def bounds(value, half):
    return {"value": value, "ci_low": value - half, "ci_high": value + half}


def test_geometry_is_one_line_per_dim_from_the_largest():
    values = {"info_nce": 2.0, "uniformity_dim": 3.0}
    rows = [{"metric": metric, "dim": dim, "value": value} for metric, value in values.items() for dim in (4, 64, 8)]
    table = tables.geometry_table(make_rows(rows, experiment="x"))
    assert list(table["dim"]) == [64, 8, 4] and list(table["dims filled"]) == [3, 3, 3]


def test_every_draw_must_hold_and_what_was_not_tried_is_missing():
    worst = {8: 2.0, 32: 0.4, 128: 0.1}
    rows = [
        {"method": "GRP", "dim": dim, "metric": "distortion_worst", "value": value + 0.01 * draw, "seed": draw}
        for dim, value in worst.items()
        for draw in range(3)
    ]
    rows.append({"method": "full size", "dim": 64, "metric": "sentences", "value": 1000.0})
    table = tables.sufficient_table(make_rows(rows, backbone="b", experiment="x"), [0.1, 0.5]).set_index("ε")
    assert table.loc[0.5, "GRP"] == 32 and table.loc[0.5, "bound"] == jl_dim(1000, 0.5)
    assert pd.isna(table.loc[0.1, "GRP"]), "0.1, but 0.12 in the third draw"
    assert table["PCA"].isna().all() and (table["sentences"] == 1000).all()


LEADS = {"synonym": 0.10, "paraphrase": -0.10, "mixture": 0.01}


def augmented(seeds=(0,)):
    rows = []
    for seed, name in ((s, n) for s in seeds for n in (UNTRAINED, "dropout", *LEADS)):
        at = {"method": name, "seed": seed, "dataset": "stsb"}
        lead = LEADS.get(name, -0.3 if name == UNTRAINED else 0.0)
        rows.append({**at, "metric": "spearman", **bounds(0.5 + lead + 0.001 * seed, 0.02)})
        rows.append({**at, "metric": "alignment", "value": 0.4 - lead})
        if name != "dropout":
            rows.append({**at, "metric": "spearman_lead", **bounds(lead, 0.01)})
        if name != UNTRAINED:
            rows.append({**at, "dataset": "training sentences", "metric": "survivors", "value": 0.5})
    return make_rows(rows, experiment="x")


def test_leads_over_dropout_are_judged():
    assert set(tables.augmentation_leads(augmented().assign(n_train=9))["verdict"]) == {"cannot tell"}, "one seed"
    table = tables.augmentation_leads(augmented(seeds=(0, 1, 2)))
    verdicts = dict(zip(table["positives"], table["verdict"], strict=True))
    assert verdicts == {"synonym": "holds here", "paraphrase": "does not hold here", "mixture": "cannot tell"}


def test_augmentations_keep_their_order_and_what_waits_has_a_line():
    rows = augmented((0, 1)).sort_values("method", ignore_index=True)
    wordings = tables.augmentation_table(rows, {"dropout": "itself", "back-translation": "no pair"})
    assert list(wordings["positives"]) == ["dropout", "back-translation"]
    assert list(wordings["survivors, %"]) == ["50 ± 0", "–"] and list(wordings["made from"]) == ["itself", "no pair"]
    table = tables.augmentation_table(rows)
    assert list(table["positives"]) == [UNTRAINED, "dropout", "synonym", "paraphrase", "mixture"]
    line = table.set_index("positives").loc["dropout"]
    assert (line["STS-B"], line["alignment"]) == ("50.05 ± 0.07", "0.400 ± 0.000")


MADE = {
    "n-gram TF-IDF": (10_000, 0.5, 100.0),
    "GloVe": (50, 0.4, 10.0),
    "SBERT": (128, 0.6, 1_000.0),
    "SimCSE": (128, 0.62, 1_100.0),
    "all-MiniLM-L6-v2": (384, 0.8, 10_000.0),
}


def rivals(lead=0.2):
    """Rows of five methods; SBERT leads GloVe by `lead`."""
    rows = []
    for method, (dim, score, seconds) in MADE.items():
        at = {"method": method, "dim": dim}
        rows += [{**at, "dataset": d, "metric": "spearman", **bounds(score, 0.05)} for d in ("sickr", "stsb")]
        rows.append({**at, "metric": "gb_per_million", "setting": "dense", "value": 4 * dim / 1e3})
        rows.append({**at, "dataset": "stsb", "metric": "encode_seconds", "setting": "1 thread", "value": seconds})
    rows.append({"method": "n-gram TF-IDF", "metric": "gb_per_million", "setting": "sparse", "value": 0.1})
    rows.append({"method": "SBERT − GloVe", "dataset": "stsb", "metric": "spearman_lead", **bounds(lead, 0.01)})
    return make_rows(rows, seed=0, experiment="x")


def test_the_table_has_every_method_and_says_what_is_missing():
    missing = pd.DataFrame([{"method": "fastText", "missing": "no file crawl.bin: give it as `fasttext`"}])
    table = tables.baseline_table(rivals(), missing).set_index("method")
    assert list(table.index) == ["n-gram TF-IDF", "GloVe", "fastText", "SBERT", "SimCSE", "all-MiniLM-L6-v2"]
    assert list(table.columns)[:3] == ["dims", "stsb", "sickr"]
    assert table.loc["n-gram TF-IDF", "GB per million"] == "40 dense, 0.1 sparse"
    assert table.loc["GloVe", "stsb"] == "40.00 [35.00, 45.00]" and table.loc["GloVe", "dims"] == 50
    assert table.loc["all-MiniLM-L6-v2", "seconds per million"] == "10,000"
    assert table.loc["fastText"].isna().all(), "no number is made up"


def test_a_stand_in_is_called_by_its_own_name():
    rows = rivals()
    rows.loc[rows["method"].isin(["SBERT", "SimCSE"]), "backbone"] = "repro-tiny"
    named = {"n-gram TF-IDF", "GloVe", "repro-tiny after NLI", "repro-tiny after SimCSE", "all-MiniLM-L6-v2"}
    assert set(tables.baseline_table(rows, pd.DataFrame(columns=["method"]))["method"]) == named
    assert tables.printed_differences(rows)["difference"].tolist() == ["repro-tiny after NLI − GloVe"]


def test_the_front_is_what_nothing_cheaper_beats():
    assert tables.pareto_front(rivals()) == ["n-gram TF-IDF", "SimCSE", "all-MiniLM-L6-v2"], "sparse counts"
    seconds = tables.pareto_front(rivals(), "encode_seconds")
    assert seconds == ["GloVe", "n-gram TF-IDF", "SBERT", "SimCSE", "all-MiniLM-L6-v2"]


def test_printed_scores_are_the_papers():
    printed = tables.printed_baselines(("stsb", "sickr"))
    assert len(printed) == 2 * len(PRINTED_BASELINES) and set(printed["method"]) < set(BASELINES.values())
    values = printed.set_index(["method", "dataset"])["value"]
    assert values["GloVe", "stsb"] == pytest.approx(0.5802) and values["SimCSE", "sickr"] == pytest.approx(0.6856)


@pytest.mark.parametrize(
    ("lead", "expected"), [(0.19, "holds here"), (0.05, "holds here"), (-0.1, "does not hold here")]
)
def test_printed_differences_are_judged_by_sign(lead, expected):
    three = pd.concat([rivals(lead).assign(seed=seed) for seed in range(3)])
    (line,) = tables.printed_differences(three).itertuples()
    assert (line.difference, line.dataset) == ("SBERT − GloVe", "stsb")
    assert line.paper == pytest.approx(77.03 - 58.02) and line.verdict == expected


def test_rules_are_set_beside_labels(made_curves):
    rows = made_curves()
    table = choosing.rule_table(rows, "pca", 0.9).set_index("rule")
    assert tuple(table.index) == choosing_rules.LOOKING + choosing_rules.BLIND
    right = table.loc["spectrum"]
    assert (right["median factor"], right["worst"], right["target met, %"]) == ("1.00", "1.0", "100")
    assert table.loc["half of D", "curve off by, points"] == "–"
    assert table.loc["all of D", "median size, % of D"] == "100" and "median, encoder unseen too" in table
    answers = choosing.answer_table(rows, "pca", 0.9)
    assert len(answers) == 6 and (answers["labels"] == answers["spectrum"]).all() and set(answers["D"]) == {64, 128}
    alone = choosing.rule_table(rows[~rows["setting"].str.contains("encoder")], "pca", 0.9)
    assert "median, encoder unseen too" not in alone


def test_a_better_rule_is_called_nearer_than_half_and_a_wrong_one_is_not(made_curves):
    asked = "nearer than half of D?"
    table = choosing.against_half(made_curves(), "pca", 0.95).set_index("rule")
    assert table.loc["spectrum", asked] == "holds here"
    wrong = choosing.against_half(made_curves(off=1.0), "pca", 0.95).set_index("rule")
    assert wrong.loc["spectrum", asked] != "holds here"
    assert choosing.against_half(made_curves(), "grp", 0.95).empty


def free_limits():
    rows = []
    for n, dim in ((n, dim) for n in (4, 8) for dim in (2, 3, 4, 8)):
        enough, at = dim >= (3 if n == 4 else 4), {"setting": f"{n} documents", "dim": dim}
        rows += [
            {**at, "method": "most possible", "metric": "sets_realised", "value": 1.0 if enough else 0.5},
            {**at, "method": "gradient descent", "metric": "sets_realised", "value": 1.0 if enough else 0.4},
            {**at, "method": "gradient descent", "metric": "margin", "value": dim / 40 if enough else -0.1},
        ]
    for n in (4, 8):
        curve = {"setting": f"{n} documents", "dim": 4, "method": "curve"}
        rows += [{**curve, "metric": m, "value": v} for m, v in (("sets_realised", 1.0), ("margin", 1 / n**4))]
    return make_rows(rows, experiment="x")


def test_smallest_dims_by_every_standard():
    table = limits.limit_table(free_limits(), 0.15).set_index("documents")
    assert list(table["most possible"]) == list(table["gradient descent"]) == [3, 4]
    assert list(table["with a margin of 0.15"]) == [8, 8] and table.loc[8, "margin of the curve, 4 dims"] == "0.00024"
    assert limits.limit_table(free_limits(), 0.9)["with a margin of 0.9"].isna().all()


WORLDS = (3, 4, 5, 6, 8)


def worlds(estimate=lambda f: 2.0 * f, knee=lambda f: 8.0, factors=WORLDS):
    rows = []
    for f in factors:
        known = {"participation_ratio": 4.0 * f, "dimension_99": 5.0 * f, "effective_rank": 10.0 * f}
        found = {"effective_rank": 20.0 * f, "participation_ratio": estimate(f), "knee": knee(f), "spearman": 0.5}
        for method, values in (("known", known), ("m", found)):
            at = {"setting": f"{f} factors", "method": method}
            rows += [{**at, "metric": metric, "value": value} for metric, value in values.items()]
        kept = {"setting": f"{f} factors", "method": "m", "metric": "share_kept", "value": 0.9, "ci_low": 0.8}
        rows += [{**kept, "dim": dim} for dim in (4, 16)]
    return pd.concat([make_rows(rows, experiment="x", seed=seed) for seed in range(3)])


def test_growth_is_judged_and_a_constant_knee_is_not():
    table = microworld.known_dimension(worlds())
    assert list(table["estimate"]) == ["effective rank", "participation ratio"]
    assert list(table["verdict"]) == ["up"] * 2
    assert list(table["estimate / known"]) == pytest.approx([2.0, 0.5]), "each against its own truth"
    falling = microworld.known_dimension(worlds(lambda f: -f)).set_index("estimate")["verdict"]
    assert falling["participation ratio"] == "down"
    both = microworld.known_dimension(worlds(knee=lambda f: 8.0 + (f == 5))).set_index("estimate")["verdict"]
    assert both["knee"] == "unclear"
    assert microworld.known_dimension(worlds(factors=(3, 4))).empty, "two worlds make no trend"
    two = microworld.known_dimension(worlds().query("seed < 2"))
    assert set(two["verdict"]) == {"unclear"}, "two seeds have no interval"
    line = microworld.world_table(worlds()).set_index(["world", "embedding"]).loc[("8 factors", "m")]
    assert line["knee"] == 8 and line["Spearman × 100"] == pytest.approx(50)


LEVELS = {"float32": (4, 0.4), "int8": (16, 0.6), "binary": (128, 0.5)}


def coded(lead=0.05):
    """One encoder, 16 bytes: int8 is best by first columns, binary beats all by PCA in retrieval alone."""
    scores = ("spearman", "ndcg@10", "neighbours_kept")
    rows = [{"method": "full size", "setting": "", "dim": 128, "metric": metric, "value": 0.8} for metric in scores]
    for reducer, more in (("first columns", 0.1), ("PCA", 0.0)):
        setting = f"{reducer}, 16 bytes"
        for level, (dim, base) in LEVELS.items():
            for metric in scores:
                special = 0.3 if (metric, level, reducer) == ("ndcg@10", "binary", "PCA") else 0
                at = {"method": level, "setting": setting, "dim": dim}
                rows.append({**at, "metric": metric, "value": base + more + special})
        at = {"method": "int8 − float32", "setting": setting, "metric": "spearman_lead"}
        rows.append({**at, **bounds(lead, 0.02)})
    rows.append({"method": "binary − int8", "setting": setting, "metric": "spearman_lead", **bounds(-0.1, 0.05)})
    return make_rows(rows, experiment="x", backbone="b")


def test_best_ways_name_level_size_reducer_and_share():
    table = byte_tables.best_ways(coded())
    assert table["bytes"].tolist() == [16]
    assert table["STS-B, Spearman"].tolist() == ["int8 × 16, first columns: 88 %"]
    assert table["retrieval, nDCG@10"].tolist() == ["binary × 128, PCA: 100 %"]
    doubled = pd.concat([coded(), coded().assign(backbone="c")])  # frames keep their old row numbers
    assert byte_tables.best_ways(doubled)["encoder"].tolist() == ["b", "c"]
    counts = byte_tables.times_best(coded()).set_index("level")["best"]
    assert counts["int8"] == 2 and counts["binary"] == 1 and counts["float32"] == 0


@pytest.mark.parametrize(("lead", "counts"), [(0.05, (2, 0, 0)), (0.01, (0, 2, 0)), (-0.05, (0, 0, 2))])
def test_better_is_said_where_the_interval_leaves_out_zero(lead, counts):
    table = byte_tables.equal_bytes(coded(lead)).set_index(["fewer bits", "more bits"])
    line = table.loc[("int8", "float32")]
    assert (line["fewer bits better"], line["cannot be told"], line["more bits better"]) == counts
    assert line["median difference, points"] == pytest.approx(100 * lead)
    assert table.loc[("binary", "int8"), "more bits better"] == 1


def test_reducers_stand_side_by_side():
    table = byte_tables.reducer_table(coded(), 16).set_index("level")
    assert list(table.index) == ["float32 × 4", "int8 × 16", "binary × 128"]
    assert table.loc["binary × 128", "retrieval, nDCG@10"] == "60.0 / 80.0"
    one = coded()[lambda rows: (rows["setting"] != "PCA, 16 bytes") | (rows["method"] != "binary")]
    assert byte_tables.reducer_table(one, 16).set_index("level").loc["binary × 128"].iloc[1] == "60.0 / –"
    assert byte_tables.reducer_table(coded(), 17).empty
