"""Claims on Table 3 and Figures 6 and 7 of ESE: from made-up rows to the verdict they deserve, and the tables."""

import numpy as np
import pandas as pd
import pytest

from repro.methods import CONTROL, ESE, MRL, RAW
from repro.papers.ese import claims_use, tables, tables_use
from repro.report.compare import verdict_frame
from repro.rows import make_rows

DIMS = (8, 32, 128)
SEEDS = (0, 1, 2)
LINES = (RAW, CONTROL, MRL, ESE)


def verdicts(measurements):
    """Every verdict of each claim."""
    table = verdict_frame("live", measurements)
    return {claim: list(part) for claim, part in table.groupby("claim_id")["verdict"]}


def found(score, *, metrics=("answer_in_context", "hit@1", "recall@10"), half=0.002, layers=(1, 2)):
    """Rows of Table 3 in which `score(method, dim, layer)` is what a line finds, whatever the metric."""
    entries = []

    def add(value, **entry):
        entries.append({**entry, "value": value, "ci_low": value - half, "ci_high": value + half})

    for layer in layers:
        for dim in DIMS:
            common = {"layer": layer, "dim": dim}
            for metric in metrics:
                for i, method in enumerate(LINES):
                    add(score(method, dim, layer), **common, method=method, metric=metric)
                    for rival in LINES[:i]:
                        pair = {"method": f"{method} − {rival}", "layer": layer, "dim": dim}
                        lead = {d: score(method, d, layer) - score(rival, d, layer) for d in DIMS}
                        add(lead[dim], **pair, metric=f"{metric}_lead")
                        if dim > DIMS[0]:
                            add(lead[DIMS[0]] - lead[dim], **pair, metric=f"{metric}_lead_drop")
    return make_rows(
        [{**e, "seed": s} for e in entries for s in SEEDS],
        backbone="repro-tiny",
        dataset="hotpotqa",
        data_source="local",
    )


def as_claimed(method, dim, layer):
    """ESE before MRL before RAW, most at the smallest size."""
    return 0.3 + {RAW: 0.0, CONTROL: 0.02, MRL: 0.02, ESE: 0.08}[method] * (3 if dim == 8 else 1)


def test_table3_is_borne_out_by_both_proxies():
    said = verdicts(claims_use.table3(found(as_claimed)))
    assert {c: len(v) for c, v in said.items()} == {"ESE-T3-1": 4, "ESE-T3-2": 4, "ESE-T3-3": 4}
    assert {v for of in said.values() for v in of} == {"holds here"}


def test_table3_is_contradicted_where_the_order_turns_at_one_size():
    def turned(method, dim, layer):
        return as_claimed(method, dim, layer) - (0.2 if method == ESE and dim == 32 else 0.0)

    said = verdicts(claims_use.table3(found(turned)))
    assert set(said["ESE-T3-1"]) == {"does not hold here", "holds here"} and set(said["ESE-T3-3"]) == {"holds here"}
    level = verdicts(claims_use.table3(found(lambda m, d, layer: as_claimed(m, 32, layer))))
    assert set(level["ESE-T3-2"]) == {"cannot tell"}


def test_exact_match_replaces_the_proxies_and_brings_the_printed_size():
    rows = found(as_claimed, metrics=("answer_in_context", "exact_match"))
    assert claims_use.metrics_of(rows) == ["exact_match"]
    table = verdict_frame("live", claims_use.table3(rows))
    assert table["what"].str.contains("exact match").all()
    paper = {claim: part["paper"].round(2).tolist() for claim, part in table.groupby("claim_id")}
    assert paper == {"ESE-T3-1": [0.22, 0.03], "ESE-T3-2": [1.97, 1.42], "ESE-T3-3": [0.72, 0.44]}


def test_the_printed_leads_are_those_of_the_text():
    leads = {rival: claims_use.printed_leads(ESE, rival) for rival in (RAW, MRL)}
    assert leads[RAW][64] == pytest.approx(2.42) and leads[MRL][64] == pytest.approx(1.80)
    table = tables_use.printed_table3()
    assert list(table["method"]) == [RAW, MRL, ESE] and table.loc[0, "64"] == pytest.approx(29.86)


def test_nothing_is_claimed_of_an_encoder_without_rivals():
    rows = found(as_claimed)
    assert claims_use.table3(rows[rows["method"] == RAW]) == []
    one = claims_use.table3(found(as_claimed, layers=(2,)))
    assert {m.claim_id for m in one} == {"ESE-T3-1", "ESE-T3-2"}  # a network of one depth has no half


def test_tables_of_what_was_found():
    rows = found(as_claimed)
    table = tables_use.found_table(rows, "hit@1")
    assert list(table.columns) == ["backbone", "layer", "method", "8", "32", "128"]
    assert list(table["method"]) == 2 * list(LINES) and list(table["layer"]) == [1] * 4 + [2] * 4
    assert table.loc[3, "8"] == pytest.approx(54)
    leads = tables_use.leads_table(rows, "hit@1")
    assert list(leads["lead"][:3]) == [f"{ESE} − {rival}" for rival in (RAW, CONTROL, MRL)]
    assert leads.loc[0, "8"] == "24.00 [23.80, 24.20]"
    other = tables_use.found_table(pd.concat([rows, rows.assign(backbone="mini", dim=64)[:1]]), "answer_in_context")
    assert list(other.columns[3:]) == ["8", "32", "64", "128"] and np.isnan(other.loc[0, "64"])
    assert tables_use.leads_table(rows[rows["method"] == RAW], "hit@1").empty


def test_prefixes_as_they_are_stand_beside_the_normalised():
    rows = found(as_claimed)
    entries = [
        {"metric": "same_first", "value": 1.0, "setting": None},
        {"metric": "same_first", "value": 0.6, "setting": "prefix as it is"},
        {"metric": "hit@1", "value": 0.25, "setting": "prefix as it is"},
    ]
    flat = make_rows(entries, backbone="repro-tiny", method=ESE, dim=8, layer=2)
    (line,) = tables_use.flat_table(pd.concat([rows.query("dim == 8 and method == 'ESE'"), flat])).to_dict("records")
    assert line["faiss finds what exact cosines find, %"] == 100 and line[
        "another first paragraph, %"
    ] == pytest.approx(40)
    assert line["first is supporting, %"] == pytest.approx(54) and line["the same, prefixes as they are, %"] == 25


def timed(ratio, *, total=1.0, size=1.3, half=0.01):
    """Rows of Figure 6: ESE's seconds by MRL's at each layer, its total by the others', full size by smallest."""
    entries = []

    def add(value, **entry):
        entries.append({**entry, "value": value, "ci_low": value * (1 - half), "ci_high": value * (1 + half)})

    for layer, value in ratio.items():
        add(value, method=f"{ESE} / {MRL}", metric="encode_ratio", layer=layer, setting="5 texts")
        for method in LINES:
            add(0.01 * layer, method=method, metric="encode_seconds", layer=layer, setting="5 texts")
            add(0.1 * layer, method=method, metric="spearman", layer=layer)
    for rival in (RAW, MRL):
        for metric in ("total_ratio", "search_ratio"):
            add(total, method=f"{ESE} / {rival}", metric=metric, setting="5 queries, mean over sizes")
            add(5.0, method=f"{ESE} / {rival}", metric=metric, setting="5 queries", dim=8)
    for method in LINES:
        add(size, method=method, metric="size_ratio", dim=8, setting="5 queries")
        for dim in DIMS:
            add(0.001 * dim, method=method, metric="search_seconds", dim=dim, setting="5 queries")
    return make_rows(entries, backbone="repro-tiny", seed=0)


def test_figure6():
    said = verdicts(claims_use.figure6(timed({1: 1.02, 2: 0.99}, total=0.9)))
    assert said == {"ESE-F6-1": ["holds here"], "ESE-F6-2": ["holds here"] * 3}
    said = verdicts(claims_use.figure6(timed({1: 1.0, 2: 1.3}, total=1.0, size=0.8)))
    assert said == {
        "ESE-F6-1": ["does not hold here"],
        "ESE-F6-2": ["does not hold here", "cannot tell", "cannot tell"],
    }
    wide = verdicts(claims_use.figure6(timed({1: 1.0, 2: 1.0}, half=0.2)))
    assert wide["ESE-F6-1"] == ["cannot tell"]
    assert claims_use.figure6(timed({1: 1.0}).query("method == 'RAW'")) == []


def test_one_round_says_nothing():
    rows = timed({1: 1.0}).assign(ci_low=float("nan"), ci_high=float("nan"))
    assert set(verdicts(claims_use.figure6(rows))["ESE-F6-1"]) == {"cannot tell"}
    assert set(tables_use.equality_table(rows)["equal"]) == {"one round says nothing"}


def test_equality_is_said_in_words():
    table = tables_use.equality_table(timed({1: 1.0, 2: 1.3}, total=1.09, half=0.03))
    assert dict(zip(table["seconds of"], table["equal"], strict=False)) == {
        "encoding, layer 1": "within 10 %",
        "encoding, layer 2": "no",
        "search, mean over sizes": "cannot tell",
    }
    assert table["difference, %"].iloc[1] == "30.0 [26.1, 33.9]"


def test_tables_of_cost():
    rows = timed({1: 1.0, 2: 1.0})
    depth = tables_use.depth_cost(rows)
    assert list(depth["share"].unique()) == [50.0, 100.0] and depth["ms"].iloc[0] == 10 and len(depth) == 8
    assert "% of full depth" in tables_use.depth_cost_table(rows)
    sizes = tables_use.size_cost_table(rows)
    assert list(sizes.columns) == ["backbone", "dims", *LINES, "MB per million vectors"]
    assert sizes["MB per million vectors"].tolist() == [32, 128, 512] and sizes[ESE].tolist() == pytest.approx(
        [8, 32, 128]
    )


def compressed(distance, agreement, *, half=0.5, forms=("as they are", "centred")):
    """Rows of Figure 7: by line, its distance in the map and its agreement with its prefix, per form."""
    entries = []
    for i, method in enumerate(LINES):
        for form in forms:
            entries += [
                {
                    "metric": metric,
                    "method": method,
                    "setting": f"{form}, t-SNE seed {s}",
                    "value": distance[method] + s,
                }
                for s in (0, 1)
                for metric in ("map_distance", "map_share")
            ]
        values = {"cosine_agreement": agreement[method], "linear_cka": agreement[method], "kept_length": 0.4}
        entries += [
            {"metric": metric, "method": method, "value": v, "ci_low": v - 0.01, "ci_high": v + 0.01, "dataset": "stsb"}
            for metric, v in values.items()
        ]
        for rival in LINES[:i]:
            pair = {"method": f"{method} − {rival}"}
            lead = distance[method] - distance[rival]
            entries += [
                {
                    **pair,
                    "metric": "map_distance_lead",
                    "setting": f"{form}, 2 t-SNE seeds",
                    "value": lead,
                    "ci_low": lead - half,
                    "ci_high": lead + half,
                }
                for form in forms
            ]
            lead = agreement[method] - agreement[rival]
            entries += [
                {
                    **pair,
                    "metric": f"{metric}_lead",
                    "value": lead,
                    "ci_low": lead - 0.005,
                    "ci_high": lead + 0.005,
                    "dataset": "stsb",
                }
                for metric in ("cosine_agreement", "linear_cka")
            ]
    rows = [make_rows(entries, backbone="repro-tiny", dim=16, seed=seed, n_train=9) for seed in range(3)]
    return pd.concat(rows, ignore_index=True)


def test_figure7_needs_the_map_and_the_measures():
    near = {RAW: 9.0, CONTROL: 8.0, MRL: 7.0, ESE: 4.0}
    high = {RAW: 0.7, CONTROL: 0.75, MRL: 0.75, ESE: 0.9}
    (said,) = verdicts(claims_use.figure7(compressed(near, high))).values()
    assert said == ["holds here"] * 8  # two rivals, two forms of the map, two measures
    (said,) = verdicts(claims_use.figure7(compressed(near, high | {ESE: 0.6}))).values()
    assert said == 2 * ["holds here", "holds here", "does not hold here", "does not hold here"]
    (said,) = verdicts(claims_use.figure7(compressed(near | {ESE: 6.8}, high))).values()
    assert said[4] == "cannot tell"
    assert claims_use.figure7(compressed(near, high).query("metric == 'linear_cka'")) == []


def test_tables_of_compression():
    near = dict(zip(LINES, (9.0, 8.0, 7.0, 4.0), strict=True))
    rows = compressed(near, dict.fromkeys(LINES, 0.8))
    maps = tables_use.map_table(rows)
    assert list(maps["line"]) == 2 * list(LINES) and list(maps["rows"]) == ["as they are"] * 4 + ["centred"] * 4
    assert maps.loc[0, "mean ± sd"] == "9.50 ± 0.71" and maps.loc[0, "t-SNE seed 1"] == 10
    table = tables_use.agreement_table(rows)
    assert list(table["line"]) == list(LINES) and table.loc[0, "linear CKA"] == "80.0 [79.0, 81.0]"
    assert table.loc[0, "length kept, %"] == "40.0 [39.0, 41.0]"


def test_facts_of_a_batch_as_tables():
    common = {"method": "E4", "layer": 1, "dim": 8, "setting": "RAW, per sentence"}
    rank = {**common, "metric": "numerical_rank", "value": 4, "ci_low": 3, "ci_high": 5}
    facts = [rank, {**common, "metric": "second_share", "value": 0.01}]
    metrics = ("sign_flips", "column_cosine", "last_cosine", "subspace_overlap")
    facts += [{"setting": "eigh", "dim": 16, "metric": m, "value": 0.5} for m in metrics]
    names = ("distinct_vectors", "base_loss", "base_gradient", "shared_gradient")
    facts += [{"layer": k, "metric": m, "value": 2.0} for k in (0, 2) for m in names]
    facts += [{"layer": 0, "metric": "loss_share", "value": 0.25}]
    of_two = [make_rows(facts, experiment="e", backbone=backbone, seed=0) for backbone in ("net", "deep")]
    everything = pd.concat(of_two, ignore_index=True)
    ranks = tables_use.rank_table(everything)
    assert ranks["backbone"].tolist() == ["net", "deep"]
    assert ranks.loc[0, ["rank, median", "smallest", "largest", "second by first"]].tolist() == [4, 3, 5, "1.0e-02"]
    repeats = tables_use.repeat_table(everything)
    assert len(repeats) == 2 and (repeats.iloc[:, 3:] == 50).all(axis=None)
    constant = tables_use.constant_table(everything)
    assert constant["distinct vectors"].tolist() == ["2"] * 4
    assert constant.loc[0, "share of the whole loss, %"] == "25.00" and constant.loc[1].isna().sum() == 1
    assert tables.difference_table(of_two[0], {"a": "b"}, "live").empty, "nothing was compared"
