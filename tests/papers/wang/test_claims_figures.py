"""Figures 2 to 4: from rows made by hand to the verdicts they deserve."""

import numpy as np
import pandas as pd
import pytest

from made_rows import FAILS, HOLDS, LESS, SEEDS, UNSURE, seeded, verdicts_of, verdicts_of_parts
from repro.methods import AVERAGE
from repro.papers.wang.claims import figure2, figure3, figure4, on_seven_sets
from repro.papers.wang.optimal_dims import log_optimal, third_of

# Figure 2


@pytest.mark.parametrize(
    ("dims", "scores", "expected"),
    [
        ((128, 256, 512, 768), (79, 80.10, 81, 81.16), 512),
        ((16, 256, 768), (78.99, 79, 80), 256),  # Exactly one point below still counts
        ((8,), (50,), 8),
        ((8, 16, 64), (90, 20, 30), 8),
    ],
)
def test_the_optimal_dim(dims, scores, expected):
    assert 768 * 2 ** log_optimal(dims, 768, np.array(scores, float)) == pytest.approx(expected)


def test_curves_of_the_papers_shape_bear_figure_2_out():
    dims = (1536, 768, 256, 64, 16, 8)
    curves = {
        "trec": (0.900, 0.900, 0.86, 0.82, 0.75, 0.70),
        "stsb": (0.800, 0.800, 0.80, 0.76, 0.65, 0.50),
        "cr": (0.880, 0.880, 0.88, 0.84, 0.78, 0.70),
        "mrpc": (0.740, 0.740, 0.74, 0.74, 0.74, 0.725),
    }
    entries = [
        {"metric": "accuracy", "readout": "pooler", "dataset": task, "dim": d, "value": v}
        for task, scores in curves.items()
        for d, v in zip(dims, scores, strict=True)
    ]
    found = figure2(seeded(entries, step=1e-5), 768)
    by = verdicts_of_parts(found)
    assert set(by.values()) == {HOLDS}
    assert {claim for claim, _ in by} == {f"WANG-F2-{i}" for i in range(1, 7)}
    flat = [{**e, "value": 0.8} for e in entries]
    failed = {m.claim_id for m in figure2(seeded(flat, step=1e-5), 768) if m.verdict != HOLDS}
    assert failed >= {"WANG-F2-2", "WANG-F2-3", "WANG-F2-5"}
    assert [third_of(own, 768) for own in (dims, (768, 128, 64))] == [256, None], (
        "a sixth is not a third"
    )
    third = [e for e in entries if e["dim"] != 256] + [
        {**e, "dim": 300} for e in entries if e["dim"] == 256
    ]
    named = [m for m in figure2(seeded(third, step=1e-5), 768) if m.claim_id == "WANG-F2-3"]
    assert {m.why for m in named} == {"needs 256 dims, as printed, of 768"}, (
        "another size stands for the printed one only where the network has it not"
    )
    assert [third_of(own, 384) for own in ((256, 128), (128, 8))] == [256, 128], (
        "the printed size where there is one"
    )


def test_folds_of_all_pairs_speak_of_mrpc_alone_for_the_networks_that_have_them():
    at = {"metric": "accuracy", "readout": "pooler"}
    fallen = [
        at | {"dataset": task, "dim": d, "value": d / 1000}
        for task in ("mrpc", "trec")
        for d in (768, 700)
    ]
    test = pd.concat([seeded(fallen, backbone=name, experiment="wang_figure2") for name in "ab"])
    folds = seeded(
        [row | {"value": 0.7} for row in fallen],
        backbone="a",
        experiment="wang_figure2_folds",
    )
    said = {(m.claim_id[-1], m.network): m.verdict for m in figure2(pd.concat([test, folds]), 768)}
    assert said == {("2", "a"): HOLDS, ("2", "b"): HOLDS, ("4", "a"): HOLDS, ("4", "b"): FAILS}


# Figure 3


def losses(h, z, *, backbone="b", layer=None, reference=None, best=False):
    """Rows of one network: scores of both readouts by dim, the same for every seed but for a
    hair.
    """
    full, entries = reference or max(h), []
    for d in h:
        parts = {
            ("spearman", "encoder"): h[d],
            ("spearman", "pooler"): z[d],
            ("pooler_loss", "pooler"): h[d] - z[d],
            ("encoder_loss", "encoder"): h[full] - h[d],
        }
        entries += [
            {"metric": m, "readout": readout, "dim": d, "value": v}
            for (m, readout), v in parts.items()
        ]
    setting = f"test, reference={full}{' (best)' if best else ''}"
    return seeded(entries, step=1e-4, setting=setting, backbone=backbone, layer=layer)


H = {768: 0.80, 64: 0.78, 32: 0.75, 16: 0.70, 8: 0.60}
Z = {768: 0.79, 64: 0.76, 32: 0.71, 16: 0.65, 8: 0.50}

RISING = {768: 0.70, 64: 0.74, 32: 0.75, 16: 0.78, 8: 0.80}
"""An encoder that gains where it should lose."""


def test_that_losses_grow_is_told_by_their_own_intervals_not_by_those_of_scores():
    """Scores of the same items are unsure together; what is lost between them is not."""
    rows = losses(H, Z)
    scores = rows["metric"] == "spearman"
    for end, sign in (("ci_low", -1), ("ci_high", 1)):
        rows[end] = rows["value"] + sign * np.where(scores, 0.2, 0.001)
    (grows,) = [m for m in figure3(rows) if m.what.startswith("Kendall")]
    assert (grows.value, grows.low, grows.high) == (-1, -1, -1)


@pytest.mark.parametrize("options", [{}, {"reference": 8, "best": True}])
def test_both_parts_positive_is_the_claim_and_an_encoder_that_gains_contradicts_it(options):
    found = figure3(pd.concat([losses(H, Z), losses(H, Z, layer=1)]))
    assert verdicts_of(found) == {"F3-1": [HOLDS] * 4, "F3-2": [HOLDS] * 4}
    # Losses from the best encoder are taken from the widest pooler's instead
    found = figure3(losses(RISING, {d: value - 0.1 for d, value in RISING.items()}, **options))
    assert verdicts_of(found) == {"F3-1": [FAILS] * 2, "F3-2": [FAILS, HOLDS]}
    assert [m.value for m in found if m.what.startswith("encoder loss at 8")] == [
        pytest.approx(-10, abs=0.02)
    ]


def test_the_weakest_dim_of_a_network_speaks_for_every_small_dim():
    narrow_gap = Z | {32: H[32] + 0.03}
    both = pd.concat(
        [losses(H, Z, backbone="good"), losses(H, narrow_gap, backbone="odd", layer=3)]
    )
    pooler = [m for m in figure3(both) if m.claim_id == "WANG-F3-2"][3]
    assert (pooler.verdict, pooler.value) == (FAILS, pytest.approx(-2.99))
    assert pooler.what == "smallest pooler loss at 64 dims or fewer (odd:3, dim 32)"


# Figure 4


def grid(score, alone, *, seeds=SEEDS, half=0.002, dev=None):
    """Rows of a grid: score of (encoder, pooler), and of every encoder alone, on test and perhaps
    on dev.
    """
    entries, wide = [], max(alone)
    for split, own in (("test", alone), *([("dev", dev)] if dev else [])):
        for i, value in own.items():
            line = {"method": f"encoder_{i}", "dim": i, "readout": "encoder", "setting": split}
            entries.append({**line, "metric": "spearman", "value": value})
            if i != wide:
                entries.append({**line, "metric": "spearman_gain", "value": value - own[wide]})
    for (i, j), value in score.items():
        line = {"method": f"encoder_{i}", "dim": j, "readout": "pooler", "setting": "test"}
        entries.append({**line, "metric": "spearman", "value": value})
        if i != j:
            entries.append({**line, "metric": "spearman_gain", "value": value - score[j, j]})
    return seeded(entries, step=1e-4, half=half, seeds=seeds)


ALONE = {768: 0.80, 256: 0.82, 64: 0.78, 16: 0.72, 8: 0.60}
"""Encoders; a better one gives every pooler a better score below, as the paper says."""
OWN = {768: 0.60, 256: 0.58, 64: 0.55, 16: 0.50, 8: 0.40}
SCORE = {(i, j): OWN[j] + (ALONE[i] - 0.6) for i in ALONE for j in ALONE}
SCORE |= {(16, 16): 0.658, (64, 16): 0.726, (768, 16): 0.73, (256, 16): 0.74}


def test_better_encoders_that_help_are_the_claim_and_those_that_harm_contradict_it():
    found = figure4(grid(SCORE, ALONE))
    # F4-3 names two sizes, and any narrower one will do here
    assert verdicts_of(found) == {"F4-1": [HOLDS], "F4-2": [HOLDS], "F4-3": [LESS]}
    assert (found[0].value, found[0].null) == (100.0, 50.0) and found[1].paper == pytest.approx(6.8)
    turned = verdicts_of(
        figure4(grid({(i, j): 2 * SCORE[j, j] - value for (i, j), value in SCORE.items()}, ALONE))
    )
    assert turned["F4-1"] == turned["F4-2"] == [FAILS]


@pytest.mark.parametrize(("half", "verdict"), [(0.001, FAILS), (0.05, UNSURE)])
def test_a_part_of_the_exchanges_is_judged_as_surely_as_their_gains_are_known(half, verdict):
    mixed = SCORE | {
        (i, j): SCORE[j, j] - 0.01 for i, j in SCORE if ALONE[i] > ALONE[j] and (i + j) % 3
    }
    (share,) = [m for m in figure4(grid(mixed, ALONE, half=half)) if m.claim_id == "WANG-F4-1"]
    assert 20 < share.value < 50
    assert share.verdict == verdict


def test_sts_b_decides_what_the_paper_shows_of_it_where_the_average_is_known_too():
    turned = grid({(i, j): 2 * SCORE[j, j] - value for (i, j), value in SCORE.items()}, ALONE)
    average, alone = (rows.assign(backbone="b") for rows in (grid(SCORE, ALONE), turned))
    both = pd.concat([average.assign(dataset=AVERAGE), alone.assign(dataset="stsb")])
    assert verdicts_of(figure4(both)) == verdicts_of(figure4(alone))
    assert verdicts_of(figure4(both)) != verdicts_of(figure4(average))
    beside = on_seven_sets("wang_figure4", pd.concat([both, alone.assign(backbone="without")]))
    assert beside["measured"].str.startswith("b: ").all(), (
        "the average is told beside it, where there is one"
    )
    assert beside["average of seven sets"].iloc[0].startswith(f"{figure4(average)[0].value:.2f} [")


def test_shares_that_differ_between_seeds_widen_it():
    worse = grid(
        SCORE | {key: SCORE[key[1], key[1]] - 0.1 for key in SCORE if key[0] != key[1]},
        ALONE,
        seeds=(1,),
    )
    three = pd.concat([grid(SCORE, ALONE, seeds=(0, 2)), worse])
    share = figure4(three)[0]
    assert share.value == pytest.approx(200 / 3)
    assert (share.low, share.high) == (0.0, 100.0)
    assert share.verdict == UNSURE


def test_encoders_are_ranked_on_dev_where_there_is_one():
    dev = {768: 0.9, 256: 0.5, 64: 0.4, 16: 0.3, 8: 0.2}
    share, _, best = figure4(grid(SCORE, ALONE, dev=dev))
    assert share.value == 90.0, "768 for 256 harms"
    assert (best.value, best.verdict) == (pytest.approx(-39.99), FAILS), (
        "dev says the widest is the best"
    )
