"""Worlds of known dimension: what is known agrees with many ideal vectors; knees come from the retention curve."""

import numpy as np
import pandas as pd
import pytest

from microworld import World
from repro import theory
from repro.papers.proposal import microworld
from repro.rows import make_rows
from repro.types import InputError
from shown_code import on_page


@pytest.fixture(scope="module")
def probes():
    return [microworld.Probe.draw(f, 60, values=4, seed=1) for f in (3, 5)]


@pytest.mark.parametrize("factors", [3, 6])
def test_known_values_are_those_of_many_frames(factors):
    world = World(factors, values=4)
    drawn = world.draw(20_000, np.random.default_rng(0))
    X = world.ideal_embeddings(drawn)
    page = on_page("beyond_microworld")
    for name in ("effective_rank", "participation_ratio"):
        assert getattr(theory, name)(X) == pytest.approx(page[name](world), rel=0.02)


def test_ideal_vectors_have_the_graded_similarity(probes):
    for probe in probes:
        cosines = (probe.ideal[0] * probe.ideal[1]).sum(axis=1)
        assert 5 * cosines == pytest.approx(probe.pairs.scores, abs=1e-9)


def test_ideal_embeddings_score_fully_and_knees_follow_the_curve(probes):
    page, pairs = on_page("beyond_microworld", "kept", dims=[2, 4, 8, 32], target=0.9, seed=0), probes[0].pairs
    rows = pd.DataFrame(page["kept"](*probes[0].ideal, pairs)).set_index("metric")
    assert rows.loc["spearman", "value"] > 0.99
    shares = rows.loc["share_kept"].set_index("dim")
    assert (shares["ci_low"] <= shares["value"] + 1e-9).all() and 32 not in shares.index, "D is below 32"
    assert shares.loc[rows.loc["knee", "value"], "value"] >= 0.9
    noise = np.random.default_rng(0).normal(size=(2, len(pairs), 16))
    assert [row["metric"] for row in page["kept"](*noise, pairs)] == ["spearman"], "what may be zero has no share"


def test_unusable_knobs_are_named():
    with pytest.raises(InputError, match="factors is 2"):
        microworld.Probe.draw(2, 10)
    with pytest.raises(InputError, match="graded pairs asked for"):
        microworld.Probe.draw(3, 5_000, values=2)


def worlds(estimate=lambda f: 2.0 * f, knee=lambda f: 8.0, factors=(3, 4, 5, 6, 8)):
    rows = []
    for f in factors:
        at = {
            "participation_ratio": (4.0 * f, estimate(f)),
            "effective_rank": (10.0 * f, 20.0 * f),
            "knee": (None, knee(f)),
        }
        for metric, (known, found) in at.items():
            here = {"setting": f"{f} factors", "metric": metric}
            rows += [{**here, "method": m, "value": v} for m, v in (("known", known), ("m", found)) if v]
    return pd.concat([make_rows(rows, experiment="x", seed=seed) for seed in range(3)])


def test_growth_is_judged_and_a_constant_knee_is_not():
    growth = on_page("beyond_microworld", "draw_intrinsic", "growth")["growth"]
    table = growth(worlds()).set_index("estimate")
    assert set(table.index) == {"effective rank", "participation ratio"} and set(table["verdict"]) == {"up"}
    times = table["estimate / known"]
    assert (times["effective rank"], times["participation ratio"]) == pytest.approx((2.0, 0.5)), "each against its own"
    assert growth(worlds(lambda f: -f)).set_index("estimate")["verdict"]["participation ratio"] == "down"
    assert growth(worlds(knee=lambda f: 8.0 + (f == 5))).set_index("estimate")["verdict"]["knee"] == "unclear"
    assert growth(worlds(factors=(3, 4))).empty, "two worlds make no trend"
