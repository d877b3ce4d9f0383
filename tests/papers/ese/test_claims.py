"""What rows of ESE mean for its claims: made-up rows whose answer is known, and the verdict they
deserve.
"""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from made_rows import ABSENT, FAILS, HOLDS, LESS, SEEDS, UNSURE, around, seeded, verdicts_of
from repro.evaluation.stats import Resampled
from repro.methods import AVERAGE, CONTROL, ESE, MRL, RAW, SHALLOW_AVERAGE
from repro.models import SentenceEncoder
from repro.papers.ese import claims, reading
from repro.papers.ese.depth import LayerScores, depth_rows
from repro.papers.ese.layers import first_layer, threshold_of
from repro.papers.ese.lines import LayeredEncoder
from repro.report.verdict_frames import verdict_frame
from repro.rows import make_rows

LINES = (RAW, CONTROL, MRL, ESE)
L, DIMS, SETS = 4, (8, 16, 64), ("stsb", "sickr", AVERAGE)
SCORE = {
    RAW: (0.30, 0.28, 0.35, 0.80),
    CONTROL: (0.31, 0.30, 0.36, 0.82),
    MRL: (0.32, 0.29, 0.40, 0.81),
    ESE: (0.65, 0.70, 0.75, 0.83),
}
"""By layer, at full size."""


def score(method, layer, dim):
    loss = {8: 0.10, 16: 0.02, 64: 0.0}[dim]
    return SCORE[method][layer - 1] - loss * (0.2 if method == ESE else 1.0)


def depth(backbone="net", seeds=SEEDS, source="microworld", spread=0.0027):
    """Rows of lines that score what SCORE says, each score resampled by itself."""
    values = np.full((len(LINES), L + 1, len(DIMS)), np.nan)
    values[:, 1:] = [[[score(m, k, d) for d in DIMS] for k in range(1, L + 1)] for m in LINES]
    draws = values + np.random.default_rng(0).normal(scale=spread, size=(400, *values.shape))
    lines = tuple(
        LayeredEncoder(m, SentenceEncoder, m, backbone, None if m == RAW else 9) for m in LINES
    )
    scored = LayerScores(
        lines,
        tuple(range(L + 1)),
        DIMS,
        dict.fromkeys(SETS, Resampled(values, draws)),
    )
    rows = depth_rows(scored, reference=16, data_source=source)
    return pd.concat([rows.assign(seed=seed) for seed in seeds], ignore_index=True)


@pytest.fixture(scope="module")
def rows():
    return depth()


def by_claim(measured, claim):
    return [m for m in measured if m.claim_id == claim]


# Tables 1 and 2, Figures 3 to 5


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
"""At the last layer and over the shallow ones."""
ORDERS = (
    "embeddings − default, default − embeddings, embeddings − max-k, max-k − no compression, max-k "
    "− default, no compression − default, learned weights − default, default − uniform weights, "
    f"learned weights − uniform weights, default − k = 4, default − k = 64, default − {RAW}, k = 4 "
    f"− {MRL}"
)


@pytest.fixture(scope="module")
def ablation():
    cells = {(method, "spearman"): scores for method, scores in VARIANTS.items()}
    for pair in ORDERS.split(", "):
        a, b = (VARIANTS[name] for name in pair.split(" − "))
        cells[pair, "spearman_lead"] = last, low = a[0] - b[0], a[1] - b[1]
        cells[pair, "shallow_excess"] = low - last, low - last
    rows = []
    for (method, metric), (last, low) in cells.items():
        at = {"method": method, "metric": metric, "dim": 64}
        rows.append({**at, "layer": 2, "dataset": AVERAGE, **around(last, 0.009)})
        rows.append({**at, "dataset": SHALLOW_AVERAGE, **around(low, 0.009)})
    sizes = {
        name: int(name.split("= ")[1]) if "=" in name else 16
        for name in VARIANTS
        if name not in (RAW, MRL)
    }
    rows += [
        {"method": name, "metric": "compressed_size", "value": size} for name, size in sizes.items()
    ]
    return seeded(rows, step=0, backbone="net")


EXPECTED = {
    "T1-1": [(3.0, "less RAW", HOLDS)],
    "T1-2": [(1.0, "above 0", HOLDS), (None, "UAE", ABSENT)],
    "T1-3": [
        (39.0, "less RAW", LESS),
        (36.33, "less MRL", HOLDS),
        (None, "less RAW + NLI", HOLDS),
    ],
    "T1-4": [(None, "Qwen1.5-0.5B", ABSENT)],
    "F3-1": [
        (3, "RAW needs more than ESE to pass 58.9", LESS),
        (3, "MRL needs more than ESE to pass 58.9", LESS),
    ],
    "F3-2": [(5.0, "ESE", HOLDS), (-2.0, "layer 1 to 2", HOLDS), (-3.0, "MRL", HOLDS)],
    "F3-3": [
        (1.0, "over RAW + NLI, layer 4, 64 dims", UNSURE),
        (35.5, "over RAW", HOLDS),
        (35.0, "over MRL", HOLDS),
    ],
    "F3-4": [(0.4, "beyond 16 dims (at 64)", UNSURE)],
    "F4-1": [
        (1.0, "layers 2 and 4", UNSURE),
        (-39.0, "ESE's less RAW's", HOLDS),
        (-39.0, "ESE's less MRL's", HOLDS),
    ],
    "T2-1": [
        (2.0, "last layer: default less embeddings", HOLDS),
        (3.0, "last layer: default less max-k", HOLDS),
        (4.0, "last layer: default less no compression", HOLDS),
        (2.0, "≺ Avg.: default less embeddings", HOLDS),
        (3.0, "≺ Avg.: default less max-k", HOLDS),
        (20.0, "≺ Avg.: default less no compression", LESS),
        (16.0, "costs the shallow layers more", HOLDS),
    ],
    "T2-2": [
        (3.0, "last layer: learned weights less default", HOLDS),
        (3.0, "last layer: default less uniform weights", HOLDS),
        (2.0, "≺ Avg.: default less learned weights", HOLDS),
        (8.0, "≺ Avg.: learned weights less uniform weights", HOLDS),
    ],
    "F5-1": [
        (6.0, "k = 16 less k = 4, the smallest", LESS),
        (5.0, "k = 16 less k = 64, the largest", LESS),
    ],
    # What training costs this network without the method stands in no recorded row
    "F5-2": [(4.0, "(MRL, k = 4)", UNSURE)],
}
"""Value, words and verdict of every part of the claims, given the rows above."""


def test_every_part_of_every_claim(rows, ablation):
    found = [
        *claims.table1(rows),
        *claims.figure3(rows),
        *claims.table2(ablation),
    ]
    assert {m.claim_id.removeprefix("ESE-") for m in found} == set(EXPECTED)
    for claim, parts in EXPECTED.items():
        own = by_claim(found, f"ESE-{claim}")
        assert [m.verdict for m in own] == [verdict for *_, verdict in parts], claim
        for m, (value, words, _) in zip(own, parts, strict=True):
            assert words in m.what and (
                value is None or m.value == pytest.approx(value, abs=0.005)
            ), m
    printed = {m.claim_id: m.paper for m in found if m.paper is not None}
    assert printed == {
        "ESE-T1-3": pytest.approx(20.67),
        "ESE-T2-1": pytest.approx(66.27 - 50.18, abs=0.01),
    }
    assert reading.tried_sizes(ablation) == {4: "k = 4", 16: "default", 64: "k = 64"}


def test_sameness_needs_a_narrow_interval():
    (sure,) = by_claim(claims.figure3(depth(spread=0.0003)), "ESE-F3-4")
    assert sure.verdict == HOLDS
    of_raw, of_mrl = by_claim(claims.figure3(depth(seeds=[0])), "ESE-F3-2")[1:]
    assert of_raw.high > of_raw.value and pd.isna(of_mrl.high), (
        "the untouched network has no seed noise"
    )


def test_the_papers_own_networks_are_judged_as_the_paper_says(rows):
    (falls,) = by_claim(claims.table1(depth(backbone="UAE-Large-V1")), "ESE-T1-2")
    assert falls.direction == -1
    both = pd.concat([rows, depth(backbone="Qwen1.5-0.5B")], ignore_index=True)
    (gain,) = by_claim(claims.table1(both), "ESE-T1-4")
    assert gain.value == pytest.approx(0.0) and gain.direction == -1 and "Qwen" in gain.what


def test_without_all_lines_or_the_average_nothing_is_said_of_their_order(rows):
    alone, one_set = rows[rows["method"] == RAW], rows[rows["dataset"] == "stsb"]
    assert {m.verdict for m in claims.table1(alone)} == {ABSENT}
    for few in (alone, one_set):
        assert claims.figure3(few) == []
    assert pd.isna(threshold_of(one_set))


def test_layers_are_to_pass_the_papers_threshold_where_a_line_comes_so_far_on_real_sets(rows):
    real = depth(source="local")
    low = real.assign(value=real["value"] / 2)
    found = [threshold_of(frame) for frame in (real, rows, low)]
    assert found == [60.0, pytest.approx(60 / 84.49 * 83), pytest.approx(60 / 84.49 * 41.5)]
    at = {m: first_layer(real, m, 60.0) for m in LINES}
    assert {m: e.value for m, e in at.items()} == {RAW: 4, CONTROL: 4, MRL: 4, ESE: 1}
    assert (at[ESE].low, at[ESE].high) == (1, 1), "65 ± 1 stays above 60"
    assert first_layer(real, RAW, 90.0).value == L + 1
    near = first_layer(real, ESE, 64.5)
    assert (near.value, near.low, near.high) == (1, 1, 2), (
        "65 ± 1 may miss 64.5, then layer 2 is the first"
    )
    assert [m.verdict for m in by_claim(claims.figure3(real), "ESE-F3-1")] == [LESS] * 2, (
        "four layers have no printed number: that of twelve is not theirs"
    )


def test_an_order_with_gaps_is_judged_between_those_that_were_tried(ablation):
    fewer = ablation[~ablation["method"].str.contains("max-k|embeddings")]
    found = by_claim(claims.table2(fewer), "ESE-T2-1")
    assert [m.what.split(": ")[1] for m in found[:2]] == ["default less no compression"] * 2
    assert found[1].paper == pytest.approx(66.27 - 50.18) and len(found) == 3
    found = by_claim(claims.table2(ablation, {"uniform weights": "default"}), "ESE-T2-2")
    said = {m.what.split(": ")[1].split(":")[0]: m.verdict for m in found}
    assert (said["default less uniform weights"], said["learned weights less default"]) == (
        ABSENT,
        HOLDS,
    )


def costing(rows, points):
    """The same rows, in which training without ESE costs the last layer so many points."""
    own = rows["method"] == f"{CONTROL} − {RAW}"
    low = rows.assign(**{c: rows[c].mask(own, -points / 100) for c in ("value", "ci_low")})
    return low.assign(ci_high=rows["ci_high"].mask(own, -points / 100 + 0.001))


def test_a_network_that_training_harms_without_the_method_does_not_speak_of_it(rows):
    """Six claims were contradicted by what the recipe costs, with ESE or without."""
    found = by_claim(claims.table1(costing(rows, 2.6)), "ESE-T1-1")
    assert [m.verdict for m in found] == ["does not apply"]
    assert found[0].why == "the same training without the method costs this network 2.6 points"
    unknown = rows[rows["method"] != f"{CONTROL} − {RAW}"]
    assert [m.verdict for m in by_claim(claims.table1(unknown), "ESE-T1-1")] == [UNSURE]
    only_scored = [m.verdict for m in by_claim(claims.figure3(costing(rows, 2.6)), "ESE-F3-2")]
    assert "does not apply" not in only_scored, "nothing is held against the untouched network"


# Table 3, Figures 6 and 7


WIDTHS = (8, 32, 128)


def found(score, metrics=("answer_in_context", "hit@1", "recall@10")):
    """Rows of Table 3 in which `score(method, dim)` is what a line finds at both depths, whatever
    the metric.
    """
    rows = []
    for metric, layer, dim in product(metrics, (1, 2), WIDTHS):
        cell = {"layer": layer, "dim": dim}
        rows += [{**cell, "method": m, "metric": metric, **around(score(m, dim))} for m in LINES]
        for rival, method in combinations(LINES, 2):
            lead = {d: score(method, d) - score(rival, d) for d in WIDTHS}
            differences = {"lead": lead[dim]} | (
                {} if dim == WIDTHS[0] else {"lead_drop": lead[WIDTHS[0]] - lead[dim]}
            )
            for name, value in differences.items():
                pair = {"method": f"{method} − {rival}", "metric": f"{metric}_{name}"}
                rows.append({**cell, **pair, **around(value)})
    return seeded(rows, step=0, backbone="net", dataset="hotpotqa", data_source="local")


def as_claimed(method, dim):
    """ESE before MRL before RAW, most at the smallest size."""
    return 0.3 + {RAW: 0.0, CONTROL: 0.02, MRL: 0.02, ESE: 0.08}[method] * (3 if dim == 8 else 1)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (as_claimed, {"T3-1": {HOLDS}, "T3-2": {LESS}, "T3-3": {LESS}}),
        (
            lambda m, dim: as_claimed(m, dim) - 0.2 * (m == ESE and dim == 32),
            {"T3-1": {FAILS}, "T3-3": {LESS}},
        ),
        (lambda method, dim: as_claimed(method, 32), {"T3-2": {UNSURE}}),
    ],
)
def test_table3_is_judged_by_both_proxies(score, expected):
    said = verdicts_of(claims.table3(found(score)))
    assert {claim: len(v) for claim, v in said.items()} == {"T3-1": 6, "T3-2": 4, "T3-3": 4}
    assert {claim: set(said[claim]) for claim in expected} == expected


def test_exact_match_replaces_the_proxies_and_brings_the_printed_size():
    rows = found(as_claimed, metrics=("answer_in_context", "exact_match"))
    table = verdict_frame("live", claims.table3(rows))
    assert table["what"].str.contains("exact match").all()
    paper = {claim: part["paper"].round(2).tolist() for claim, part in table.groupby("claim_id")}
    assert paper == {"ESE-T3-1": [0.25] * 3, "ESE-T3-2": [1.97, 1.42], "ESE-T3-3": [0.72, 0.44]}
    assert claims.table3(rows[rows["method"] == RAW]) == []
    one = claims.table3(rows[rows["layer"] == 2])
    assert {m.claim_id for m in one} == {"ESE-T3-1", "ESE-T3-2"}, (
        "a network of one depth has no half"
    )


def timed(ratio, *, total=1.0, size=1.3, half=0.001):
    """Rows of Figure 6: ESE's seconds by MRL's at each layer, its total by the others', full size
    by smallest.
    """
    pair, means = f"{ESE} / {MRL}", "5 queries, mean over sizes"
    rows = [
        {"method": pair, "metric": "encode_ratio", "layer": k, "value": value}
        for k, value in ratio.items()
    ]
    for rival in (RAW, MRL):
        of_rival = {"method": f"{ESE} / {rival}", "metric": "total_ratio"}
        rows += [
            {**of_rival, "setting": means, "value": total},
            {**of_rival, "setting": "5 queries", "value": 5.0},
        ]
    rows += [
        {"method": method, "metric": "size_ratio", "dim": 8, "value": size} for method in LINES
    ]
    runs = {0: 1 - half, 1: 1.0, 2: 1 + half}  # Of which the interval is, not of each one's own
    rows = [
        {"setting": "", "layer": 1, **row, **around(row["value"] * off, 1e-6), "seed": run}
        for row in rows
        for run, off in runs.items()
    ]
    return make_rows(rows, backbone="net")


@pytest.mark.parametrize(
    ("made", "equal", "faster"),
    [
        ({"ratio": {1: 1.02, 2: 0.99}, "total": 0.9}, HOLDS, [HOLDS] * 3),
        ({"ratio": {1: 1.0, 2: 1.3}, "size": 0.8}, FAILS, [FAILS, *[UNSURE] * 2]),
        ({"ratio": {1: 1.0, 2: 1.0}, "half": 0.2}, UNSURE, None),
        ({"ratio": {1: 1.0}, "half": 0.05}, UNSURE, None),
    ],
)
def test_figure6(made, equal, faster):
    said = verdicts_of(claims.figure6(timed(**made)))
    assert said["F6-1"] == [equal] and faster in (None, said["F6-2"])
    assert claims.figure6(timed(**made).query("method == 'RAW'")) == []


MAPS = [f"{form}, 2 t-SNE seeds" for form in ("as they are", "centred")]


def compressed(distance, agreement):
    """Rows of Figure 7: how far ESE's distance in the map and its agreement with its prefix are
    from a rival's.
    """
    rows = []
    for rival in (RAW, CONTROL, MRL):
        method, lead = {"method": f"{ESE} − {rival}"}, around(distance[ESE] - distance[rival], 0.5)
        rows += [
            {**method, **lead, "metric": "map_distance_lead", "setting": setting}
            for setting in MAPS
        ]
        lead = around(agreement[ESE] - agreement[rival], 0.005)
        rows += [
            {**method, **lead, "metric": f"{metric}_lead", "dataset": "stsb"}
            for metric in claims.MEASURES
        ]
    spread = around(distance[CONTROL] - distance[RAW], 0.5)
    rows += [
        {
            "method": f"{CONTROL} − {RAW}",
            **spread,
            "metric": "map_distance_lead",
            "setting": setting,
        }
        for setting in MAPS
    ]
    return seeded(rows, step=0, backbone="net", dim=16, n_train=9)


NEAR, HIGH = (
    {RAW: 9.0, CONTROL: 8.0, MRL: 7.0, ESE: 4.0},
    {RAW: 0.7, CONTROL: 0.75, MRL: 0.75, ESE: 0.9},
)


@pytest.mark.parametrize(
    ("distance", "agreement", "expected"),  # Over RAW and over MRL
    [
        (NEAR, HIGH, [HOLDS] * 2),
        (NEAR, HIGH | {ESE: 0.6}, [HOLDS] * 2),
        (NEAR | {ESE: 6.8}, HIGH, [HOLDS, UNSURE]),
        (NEAR | {CONTROL: 30.0}, HIGH, ["does not apply"] * 2),  # Training spreads the map
    ],
)
def test_figure7_is_judged_by_the_papers_own_measure(distance, agreement, expected):
    """Distances in the map as they are; centred ones, and measures without a map, are ours."""
    rows = compressed(distance, agreement)
    assert verdicts_of(claims.figure7(rows)) == {"F7-1": expected}
    assert claims.figure7(rows.query("metric == 'linear_cka'")) == []
