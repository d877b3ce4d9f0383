"""The proposal's four claims: from made-up rows to the verdicts they deserve."""

from itertools import product

import pandas as pd
import pytest

from made_rows import FAILS, HOLDS, UNSURE, around
from repro.methods import AVERAGE, BEST_REDUCED, FULL_SIZE, TRAINED_PROJECTION, TWO_STEP_PROJECTION
from repro.papers.proposal import claims
from repro.rows import make_rows

DIMS = (4, 8, 16, 32, 64, 128)
falling, rising, flat = (0, -1, -2, -3, -4, -5), (0, 1, 2, 3, 4, 5), (0.0, 1.0, 0.5, 0.4, 1.1, 0.1)


def measured(**values):
    """Rows of three seeds that wander a little; every metric has a value for each dim."""
    grid = product(values, enumerate(DIMS), range(3))
    rows = [
        {"metric": m, "dim": d, "value": values[m][i] + 0.45 * (-1) ** (i * s), "seed": s}
        for m, (i, d), s in grid
    ]
    return make_rows(rows, backbone="b")


@pytest.mark.parametrize(
    ("info_nce", "uniformity", "alignment", "expected"),
    [
        (falling, falling, falling, (HOLDS, HOLDS, HOLDS)),
        (falling, falling, rising, (HOLDS, HOLDS, HOLDS)),
        (rising, flat, flat, (FAILS, UNSURE, UNSURE)),
    ],
)
def test_loss_and_uniformity_must_fall_and_alignment_may_go_either_way(
    info_nce,
    uniformity,
    alignment,
    expected,
):
    found = claims.alignment_uniformity(
        measured(info_nce=info_nce, uniformity=uniformity, alignment=alignment)
    )
    by = {m.what.split()[3]: m.verdict for m in found}
    assert (by["info_nce"], by["uniformity"], by["alignment"]) == expected


def errors(slope=-0.5, draws=3, dims=(8, 32, 128)):
    """Rows of one encoder whose cosine errors fall with a slope that wanders a little from draw to
    draw.
    """
    rows = [
        {"dim": dim, "value": dim ** (slope + 0.005 * draw), "seed": draw}
        for draw in range(draws)
        for dim in dims
    ]
    return make_rows(rows, method="GRP", metric="cosine_rms", backbone="b", experiment="x")


def test_the_slope_is_judged_by_its_interval_over_draws_and_two_dims_make_none():
    for rows, expected in (
        (errors(-0.45), HOLDS),
        (errors(-0.9), FAILS),
        (errors(draws=1), UNSURE),
    ):
        (found,) = claims.johnson_lindenstrauss(rows)
        assert (found.claim_id, found.verdict) == ("PROP-T-2", expected)
    assert claims.johnson_lindenstrauss(errors(dims=(8, 32))) == []
    assert claims.alignment_uniformity(measured(info_nce=falling).query("dim < 10")) == []
    assert claims.slopes(errors(draws=1)).item() == pytest.approx(-0.5)


FULL = 48
SCORES = {
    TRAINED_PROJECTION: 0.75,
    "PCA": 0.7,
    "GRP": 0.6,
    BEST_REDUCED: 0.7,
    TWO_STEP_PROJECTION: 0.79,
}


def made(lead=0.05, half=0.005, loss=0.0, dims=(8, 16, 24)):
    """Rows of three seeds in which training leads by `lead`, and every size loses `loss`."""
    rows = []
    ends = {BEST_REDUCED: lead, "PCA": lead, "GRP": lead + 0.02}
    for seed, (dataset, metric) in product(
        range(3),
        (("stsb", "spearman"), ("hotpotqa", "ndcg@10")),
    ):
        at, wobble = (
            {"seed": seed, "dataset": dataset, "metric": metric, "setting": ""},
            0.001 * seed,
        )
        rows.append({**at, "method": FULL_SIZE, "dim": FULL, "value": 0.8 + wobble})
        for dim in dims:
            for method, value in SCORES.items():
                setting = "PCA, chosen on stsb dev" if method == BEST_REDUCED else ""
                rows.append(
                    {
                        **at,
                        "method": method,
                        "dim": dim,
                        "value": value + wobble,
                        "setting": setting,
                    }
                )
            leads = {
                f"{TRAINED_PROJECTION} − {over}": v + wobble * (over != "GRP")
                for over, v in ends.items()
            }
            leads |= {
                f"{m} − {FULL_SIZE}": -loss for m in (TRAINED_PROJECTION, TWO_STEP_PROJECTION)
            }
            for method, value in leads.items():
                rows.append(
                    {
                        **at,
                        "method": method,
                        "dim": dim,
                        **around(value, half),
                        "metric": f"{metric}_lead",
                    }
                )
    return make_rows(rows, backbone="b", experiment="x")


def judged(rows, claim):
    return [m for m in claims.train_or_reduce(rows) if m.claim_id == claim]


@pytest.mark.parametrize(
    ("lead", "half", "said"),
    [(0.05, 0.005, HOLDS), (-0.05, 0.005, FAILS), (0.01, 0.05, UNSURE)],
)
def test_the_open_question_is_answered_by_the_interval(lead, half, said):
    found = judged(made(lead, half), "PROP-E-1")
    named = [m.what.split(":")[0] for m in found]
    assert named == ["b, stsb, dim 8", "b, stsb, dim 16", "b, stsb, dim 24"], "similarity alone"
    found += judged(
        pd.concat([made(-lead, half), made(lead, half).replace("stsb", AVERAGE)]),
        "PROP-E-1",
    )
    assert {m.verdict for m in found} == {said}, (
        "the average of seven sets is surer than one of them"
    )


def test_ahead_is_ahead_of_each_and_behind_is_behind_one():
    rows = made(0.05)
    for method, value in (("PCA", 0.05), ("GRP", 0.02)):
        own = rows["method"] == f"{TRAINED_PROJECTION} − {method}"
        rows.loc[own, ["value", "ci_low", "ci_high"]] = [value, value - 0.04, value + 0.04]
    closest = claims.closest_reductions(rows).iloc[0]
    assert (closest["over"], closest["ahead"]) == ("GRP", "open") and closest[
        "value"
    ] == pytest.approx(2)
    joint = 4 * 2.2365 / 1.96  # For two reductions (Šidák)
    assert closest["low"] == pytest.approx(2 - joint, abs=0.01), (
        "one reduction that may be ahead leaves it open"
    )
    assert closest["high"] == pytest.approx(2 + joint, abs=0.01)
    rows.loc[own, ["value", "ci_low", "ci_high"]] = [-0.06, -0.10, -0.02]
    assert claims.closest_reductions(rows)["ahead"][0] == "reduction", (
        "one that is surely ahead settles it"
    )


def test_sizes_are_judged_as_printed_and_as_shares_only_where_the_network_has_not_got_them():
    found = judged(made(loss=0.001), "PROP-Q-1")
    expected = [(f"b, stsb, dim {dim} of 48", HOLDS) for dim in (16, 8)]
    assert [(m.what.split(":")[0], m.verdict) for m in found] == expected
    assert "two-step" in found[-1].what and "trained projection" in found[0].what
    assert {m.verdict for m in judged(made(loss=0.05), "PROP-Q-1")} == {FAILS}
    assert not judged(made(dims=(4,)), "PROP-Q-1"), "less than a sixth of the full size"
    printed = judged(made(loss=0.001, dims=(8, 16, 128, 256)), "PROP-Q-1")
    sizes = [m.what.split(":")[0] for m in printed]
    assert sizes == ["b, stsb, dim 256 of 48", "b, stsb, dim 128 of 48"]
