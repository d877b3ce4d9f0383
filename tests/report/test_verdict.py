import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.report.verdict import MEANING, OUTCOMES, Measurement, cell, effect, outcome_of, ratio, sameness, worst
from repro.types import InputError

# value, low, high, paper, direction -> outcome; the null is 0
EFFECTS = [
    (2.0, 1.0, 3.0, None, 1, "reproduced"),
    (2.0, 1.0, 3.0, 1.8, 1, "reproduced"),
    (0.9, 0.4, 1.4, 0.5, 1, "reproduced"),  # within half a point
    (9.0, 8.0, 10.0, 6.0, 1, "reproduced"),  # within half of the printed effect, to the hair
    (9.1, 8.0, 10.2, 6.0, 1, "direction only"),
    (2.0, 1.0, 3.0, 8.0, 1, "direction only"),
    (0.5, -1.0, 2.0, None, 1, "within noise"),
    (0.5, -1.0, 2.0, 1.8, 1, "within noise"),
    (0.5, -1.0, 2.0, 5.0, 1, "not reproduced"),
    (-2.0, -3.0, -1.0, None, 1, "not reproduced"),
    (-2.0, -3.0, -1.0, 1.8, 1, "not reproduced"),
    (-2.0, -3.0, -1.0, None, -1, "reproduced"),
    (-2.0, -3.0, -1.0, -2.4, 1, "reproduced"),  # a printed size fixes the side
    (1.0, 0.0, 2.0, None, 1, "within noise"),  # touching the null is containing it
]
# low, high -> outcome
SAMENESS = [
    (-0.5, 0.5, "reproduced"),
    (-1.0, 1.0, "reproduced"),
    (-0.5, 1.5, "within noise"),
    (-3.0, 3.0, "within noise"),
    (1.5, 2.5, "not reproduced"),
    (-2.5, -1.5, "not reproduced"),
]
# value, half, scope, contrast -> outcome; the printed value is 79.62
CELLS = [
    (80.62, 2.0, "same", None, "reproduced"),
    (80.0, 3.5, "same", None, "within noise"),  # near, but too wide to count as a hit
    (82.0, 2.5, "same", None, "within noise"),
    (85.0, 2.5, "same", (0.5, 2.0), "direction only"),
    (85.0, 2.5, "same", (-0.5, 2.0), "not reproduced"),
    (85.0, 2.5, "same", None, "not reproduced"),
    (79.62, 0.1, "substitute", (0.5, 2.0), "direction only"),
    (79.62, 0.1, "substitute", (-2.0, 0.5), "not reproduced"),
    (79.62, 0.1, "substitute", None, "not reproduced"),
]
# times, low, high, paper, null, direction -> outcome
RATIOS = [
    (4.0, 3.0, 5.0, 2.0, 1.0, 1, "reproduced"),  # a factor of two is right enough
    (4.1, 3.0, 5.0, 2.0, 1.0, 1, "direction only"),
    (0.9, 0.7, 1.2, 2.0, 1.0, 1, "not reproduced"),
    (1.5, 0.7, 2.5, 2.0, 1.0, 1, "within noise"),
    (0.05, 0.04, 0.06, None, 0.1, -1, "reproduced"),
    (0.2, 0.15, 0.25, None, 0.1, -1, "not reproduced"),
]


@pytest.mark.parametrize(("value", "low", "high", "paper", "direction", "outcome"), EFFECTS)
def test_effects(value, low, high, paper, direction, outcome):
    assert effect(value, low, high, paper=paper, direction=direction) == outcome


@pytest.mark.parametrize(("low", "high", "outcome"), SAMENESS)
def test_sameness(low, high, outcome):
    assert sameness(low, high) == outcome


@pytest.mark.parametrize(("value", "half", "scope", "contrast", "outcome"), CELLS)
def test_cells(value, half, scope, contrast, outcome):
    assert cell(value, value - half, value + half, 79.62, scope=scope, contrast=contrast) == outcome


@pytest.mark.parametrize(("value", "low", "high", "paper", "null", "direction", "outcome"), RATIOS)
def test_ratios(value, low, high, paper, null, direction, outcome):
    assert ratio(value, low, high, paper=paper, null=null, direction=direction) == outcome


def test_the_tables_reach_every_branch():
    for table, expected in ((EFFECTS, OUTCOMES[:4]), (CELLS, OUTCOMES[:4]), (RATIOS, OUTCOMES[:4])):
        assert {line[-1] for line in table} == set(expected)
    assert {line[-1] for line in SAMENESS} == {"reproduced", "within noise", "not reproduced"}


points = st.floats(-100, 100, allow_nan=False)
halves = st.floats(0, 50, allow_nan=False)


@given(points, halves, st.none() | points.filter(bool), st.sampled_from([-1, 1]))
def test_effect_is_exhaustive_and_its_conditions_exclude_each_other(value, half, paper, direction):
    low, high = value - half, value + half
    side = direction if paper is None else int(math.copysign(1, paper))
    on_side, on_other = side * (low if side > 0 else high) > 0, side * (high if side > 0 else low) < 0
    contains = low <= 0 <= high
    assert on_side + on_other + contains == 1
    outcome = effect(value, low, high, paper=paper, direction=direction)
    assert (outcome in ("reproduced", "direction only")) == on_side
    assert outcome != "within noise" or contains
    assert not on_other or outcome == "not reproduced"


@given(points, halves, st.none() | points.filter(bool))
def test_a_mirrored_effect_has_the_same_verdict(value, half, paper):
    low, high = value - half, value + half
    mirrored = None if paper is None else -paper
    assert effect(value, low, high, paper=paper) == effect(-value, -high, -low, paper=mirrored, direction=-1)


@given(points, halves, points, st.sampled_from(["same", "substitute"]), st.none() | st.tuples(points, points))
def test_a_substitute_never_reproduces_a_cell(value, half, paper, scope, contrast):
    outcome = cell(value, value - half, value + half, paper, scope=scope, contrast=contrast)
    assert outcome in OUTCOMES
    if scope == "substitute":
        assert outcome in ("direction only", "not reproduced")


@given(points, halves, st.sampled_from(["effect", "sameness", "trend"]))
def test_a_narrower_interval_never_turns_a_clear_verdict_into_noise(value, half, test):
    wide = outcome_of(Measurement("X", test, value, value - half, value + half))
    narrow = outcome_of(Measurement("X", test, value, value - half / 2, value + half / 2))
    assert wide == "within noise" or narrow == wide


@pytest.mark.parametrize("test", ["effect", "sameness", "cell", "ratio", "trend"])
def test_what_was_not_measured_is_not_judged(test):
    assert outcome_of(Measurement("X", test, math.nan, math.nan, math.nan, paper=1.0)) == "not attempted"
    assert outcome_of(Measurement("X", test, 1.0, 1.0, 1.0, paper=1.0, seeds=0)) == "not attempted"


def test_a_claim_of_several_parts_is_as_strong_as_its_weakest():
    assert worst(["reproduced", "within noise", "direction only"]) == "within noise"
    assert worst(["not attempted", "not reproduced", "reproduced"]) == "not reproduced"
    assert worst([]) == "not attempted"


def test_every_outcome_has_a_meaning():
    assert set(MEANING) == set(OUTCOMES)


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        (Measurement("X", "guess", 1, 0, 2), "unknown test 'guess'"),
        (Measurement("X", "effect", 1, 2, 0), "low ≤ high"),
        (Measurement("X", "cell", 1, 0, 2), "printed number"),
        (Measurement("X", "ratio", 1, 0, 2), "above 0"),
    ],
)
def test_mistakes_are_named(measurement, message):
    with pytest.raises(InputError, match=message):
        outcome_of(measurement)
