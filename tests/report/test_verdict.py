from dataclasses import replace
from math import isnan, nan

import pytest

from repro.report.claims import DOCUMENTS, record_of, table
from repro.report.outcomes import MEANING, ON_GENERATED, OUTCOMES, REASONS, survivors, worst
from repro.report.verdict import Measurement

# Value, low, high, paper, direction -> on a substitute, on the paper's own network; the null is 0
EFFECTS = [
    (2.0, 1.0, 3.0, None, 1, "holds here", "reproduced"),
    (0.9, 0.4, 1.4, 0.5, 1, "holds here", "reproduced"),  # Within half a point
    # Within half of the printed effect, to the hair
    (9.0, 8.0, 10.0, 6.0, 1, "direction only", "reproduced"),
    (9.1, 8.0, 10.2, 6.0, 1, "direction only", "direction only"),
    # In our place the interval has to hold the printed size: 0.41 is not 13.16
    (0.41, 0.21, 0.62, 13.16, 1, "direction only", "direction only"),
    (9.1, 5.9, 12.3, 6.0, 1, "holds here", "direction only"),
    (0.5, -1.0, 2.0, None, 1, "cannot tell", "cannot tell"),
    # The printed size is not in it: no matter
    (0.5, -1.0, 2.0, 5.0, 1, "cannot tell", "cannot tell"),
    (-2.0, -3.0, -1.0, None, 1, "not seen here", "not reproduced"),
    (-2.0, -3.0, -1.0, 1.8, 1, "not seen here", "not reproduced"),
    (-2.0, -3.0, -1.0, None, -1, "holds here", "reproduced"),
    (-2.0, -3.0, -1.0, -2.4, 1, "holds here", "reproduced"),  # A printed size fixes the side
    (1.0, 0.0, 2.0, None, 1, "cannot tell", "cannot tell"),  # Touching the null is containing it
    (0.0, 0.0, 0.0, None, 1, "not seen here", "not reproduced"),  # An exact tie is no effect
    # Nor is what ends at the null
    (-1.0, -2.0, 0.0, None, 1, "not seen here", "not reproduced"),
    (1.0, nan, nan, None, 1, "cannot tell", "cannot tell"),  # Too few seeds for an interval
]
# Low, high -> on a substitute
SAMENESS = [
    (-0.5, 0.5, "holds here"),
    (-1.0, 1.0, "holds here"),
    (-1 - 1e-12, 1 + 1e-12, "holds here"),  # A hair more than 1, as binary differences may be
    (-0.5, 1.5, "cannot tell"),
    (-3.0, 3.0, "cannot tell"),
    (1.5, 2.5, "not seen here"),
    (-2.5, -1.5, "not seen here"),
]
# Times, low, high, paper, null, direction -> on the paper's own network
RATIOS = [
    (4.0, 3.0, 5.0, 2.0, 1.0, 1, "reproduced"),  # A factor of two is right enough
    (4.1, 3.0, 5.0, 2.0, 1.0, 1, "direction only"),
    (0.9, 0.7, 1.2, 2.0, 1.0, 1, "cannot tell"),
    (0.05, 0.04, 0.06, None, 0.1, -1, "reproduced"),
    (0.2, 0.15, 0.25, None, 0.1, -1, "not reproduced"),
]


def cases():
    for value, low, high, paper, direction, *outcomes in EFFECTS:
        for scope, outcome in zip(("substitute", "same"), outcomes, strict=True):
            fields = {"paper": paper, "direction": direction, "scope": scope, "seeds": 3}
            yield Measurement("X", "effect", value, low, high, **fields), outcome
    for low, high, outcome in SAMENESS:
        yield Measurement("X", "sameness", (low + high) / 2, low, high), outcome
    for value, low, high, paper, null, direction, outcome in RATIOS:
        fields = {"paper": paper, "null": null, "direction": direction, "scope": "same"}
        yield Measurement("X", "ratio", value, low, high, **fields), outcome


@pytest.mark.parametrize(("measurement", "outcome"), list(cases()))
def test_verdicts(measurement, outcome):
    assert measurement.verdict == outcome


# What was measured -> verdict and what stands beside it
SILENT = [
    (Measurement("X", "effect", nan, nan, nan), "not attempted", ""),
    (Measurement("X", "effect", 1, 1, 1, seeds=0), "not attempted", ""),
    (
        Measurement("X", "effect", 1, 0.5, 2, unmet="at least 4 blocks"),
        "does not apply",
        "at least 4 blocks",
    ),
    (Measurement("X", "effect", 1, 0.5, 2, generated=True, unmet="at least 4 blocks"), "up", ""),
    (Measurement("X", "effect", -1, -2, -0.5, generated=True), "down", ""),
    (Measurement("X", "sameness", 1, -1, 2, generated=True), "unclear", ""),
    # One seed, by its items
    (Measurement("X", "effect", 1, nan, nan, generated=True, item_error=0.5), "up", ""),
    (Measurement("X", "effect", 1, nan, nan, generated=True, item_error=0.6), "unclear", ""),
    (Measurement("X", "effect", 1, nan, nan), "cannot tell", "1 of the 3 seeds"),
    (
        Measurement("X", "effect", 1, nan, nan, seeds=2, seed_sd=1.0),
        "cannot tell",
        "10 seeds to see an effect of 1",
    ),
    (
        Measurement("X", "effect", 1, -1, 3, seeds=3, seed_sd=1.0, paper=2.0),
        "cannot tell",
        "5 seeds to see an effect",
    ),
    (
        Measurement("X", "effect", 1, -1, 3, seeds=3, seed_sd=1.0, paper=4.0),
        "cannot tell",
        "the sign is open: 1.00 (−1.00 to 3.00); the printed 4 is excluded",
    ),
    (
        Measurement("X", "effect", 1, -1, 3, seeds=3, seed_sd=1.0, item_error=1.0),
        "cannot tell",
        "takes 7.9 times the judged texts to see an effect of 1",  # (1.96 + 0.84)²
    ),
    (Measurement("X", "effect", 1, -1, 3, seeds=30, seed_sd=1.0), "cannot tell", "enough seeds"),
    (
        Measurement("X", "effect", 1, -1, 3, seed_sd=0.0, item_error=0.1),
        "cannot tell",
        "enough judged texts",
    ),
    (Measurement("X", "trend", 0.1, -1, 1, seeds=3, seed_sd=1.0), "cannot tell", "effect of 0.5"),
    (
        Measurement("X", "ratio", 2, 0.5, 8, null=1.0, paper=4.0, seeds=3, seed_sd=1.0),
        "cannot tell",
        "factor of 4",
    ),
    (
        Measurement("X", "ratio", 1.0, 0.66, 1.52, null=1.0),
        "cannot tell",
        "enough judged texts to see a factor of 2",
    ),
    (
        Measurement("X", "ratio", 1.02, 0.4, 2.6, null=1.0),
        "cannot tell",
        "takes 3.8 times the judged texts to see a factor of 2",
    ),
    (
        Measurement("X", "effect", -1, -1.9, -0.1, seed_sd=0.0, parts=4),
        "cannot tell",
        "by this part alone, but not surely enough for one of 4 parts",
    ),
    (Measurement("X", "effect", -1, -1.5, -0.5, parts=4), "not seen here", ""),
    (
        Measurement("X", "effect", -1, -1.5, -0.5, likely="training"),
        "not seen here",
        "Likely reason: the network is trained less than the paper's.",
    ),
    (
        Measurement("X", "effect", 1, 0.1, 1.9, seed_sd=0.0, networks=4),
        "cannot tell",
        "holds on this network alone, but not surely enough for one of 4",
    ),
    (Measurement("X", "effect", 1, 0.5, 1.5, networks=4), "holds here", ""),
    # Of a count that jumps, an end at the value itself is not an end among many
    (Measurement("X", "effect", 0, -1, 0, parts=4), "cannot tell", "for one of 4 parts"),
    # A size that this measure has not
    (Measurement("X", "effect", 1, 0.5, 1.5, sized=True), "direction only", ""),
    (Measurement("X", "effect", 1, 0.5, 1.5, unknown="needs dev"), "cannot tell", "needs dev"),
    (Measurement("X", "effect", 1, 0.5, 1.5, missing="needs Y"), "not attempted", "needs Y"),
    (Measurement("X", "effect", 1, 0.5, 1.5, testable="question"), "answered", ""),
    (
        Measurement("X", "effect", -1, -1.9, -0.1, testable="question", parts=9),
        "answered",
        "",
    ),
    (
        Measurement("X", "ratio", 0.5, 0.26, 0.96, null=1.0, seeds=3, parts=2),
        "cannot tell",
        "for one of 2 parts",
    ),
    (
        Measurement("X", "ratio", 0.5, 0.3, 0.7, null=1.0, seeds=3, parts=2),
        "not seen here",
        "",
    ),
]


# What stands beside a verdict in a headline
BRIEF = [
    (Measurement("X", "effect", 1, 0.5, 1.5), ""),
    (Measurement("X", "effect", -1, -1.5, -0.5, likely="training"), "training"),
    (Measurement("X", "effect", 1, 0.5, 1.5, unknown="needs dev"), "a run is missing"),
    (Measurement("X", "effect", 1, nan, nan), "too few seeds"),
    (Measurement("X", "effect", 1, -1, 3), "interval holds 0"),
    (Measurement("X", "effect", -1, -3, 1, null=-1.5), "interval holds −1.5"),
    (Measurement("X", "ratio", 1.0, 0.66, 1.52, null=1.0), "interval holds 1"),
    (Measurement("X", "sameness", 0.5, -0.5, 1.5), "interval leaves ±1"),
    (Measurement("X", "effect", -1, -1.9, -0.1, seed_sd=0.0, parts=4), "not sure among 4 parts"),
    (
        Measurement("X", "effect", 1, 0.1, 1.9, seed_sd=0.0, networks=4),
        "not sure among 4 networks",
    ),
]


@pytest.mark.parametrize(("measurement", "briefly"), BRIEF)
def test_a_headline_says_in_a_few_words_why_nobody_can_tell(measurement, briefly):
    assert measurement.briefly == briefly


def test_a_size_that_is_excluded_is_said_beside_what_is_open():
    """What it would take to see it is of no use; where the side is told alone, that stays said."""
    beside = {"null": 64.3, "paper": 71.4, "item_error": 9.0, "seeds": 3}
    open_side = Measurement("X", "effect", 50.0, 30.0, 68.0, **beside)
    assert open_side.why == (
        "the side of 64.3 is open: 50.00 (30.00 to 68.00); the printed 71.4 is excluded"
    )
    alone = Measurement("X", "effect", 1, 0.1, 1.9, seed_sd=0.0, networks=4, paper=2.5)
    assert alone.why.endswith("enough for one of 4; the printed 2.5 is excluded")
    below = Measurement("X", "effect", 1, -1, 3, seeds=3, seed_sd=1.0, paper=-2.0)
    assert below.why.endswith("the printed −2 is excluded")


@pytest.mark.parametrize(("measurement", "verdict", "why"), SILENT)
def test_what_does_not_decide_says_why(measurement, verdict, why):
    assert (measurement.verdict, measurement.why.startswith(why) or why in measurement.why) == (
        verdict,
        True,
    )
    assert bool(why) == bool(measurement.why)


def test_sameness_needs_more_seeds_and_a_claim_is_as_strong_as_its_weakest_part():
    effect, same = (
        Measurement("X", test, 0, -2, 2, seeds=3, seed_sd=1.0).why
        for test in ("effect", "sameness")
    )
    assert int(effect.split()[1]) < int(same.split()[1])
    assert worst(["holds here", "cannot tell", "direction only"]) == "cannot tell"
    assert worst(["not attempted", "not seen here", "holds here"]) == "not seen here"
    assert worst(["not seen here", "split"]) == "not seen here"
    assert worst(["does not apply", "cannot tell"]) == "does not apply"
    assert worst(["reproduced", "direction only"]) == "direction only"
    assert worst([]) == "not attempted"
    seen = (
        {line[-2] for line in EFFECTS}
        | {line[-1] for line in EFFECTS}
        | {line[1] for line in SILENT}
    )
    assert seen | {"split"} == set(MEANING) == set(OUTCOMES) > set(ON_GENERATED)


def test_the_old_word_is_gone_and_every_reason_is_one_of_the_law():
    assert "does not hold here" not in MEANING
    for document in DOCUMENTS:
        for claim in table(document)["claims"]:
            assert record_of(claim)["likely"] in REASONS, claim


def test_a_chance_grows_with_all_that_could_have_decided_and_holm_asks_them_together():
    alone = Measurement("X", "effect", -1, -2, 0.0, seed_sd=0.0, item_error=0.51)
    assert alone.chance == pytest.approx(0.05, abs=1e-3), "the interval just decides"
    assert replace(alone, parts=4).chance == pytest.approx(1 - 0.95**4, abs=1e-3)
    exact = Measurement("X", "sameness", 0.0, 0.0, 0.0)
    assert exact.chance == 0 and isnan(Measurement("X", "effect", 0, -1, 1).chance)
    assert survivors([0.01, 0.03, 0.04, nan]) == 1, "0.03 is above 0.05 shared by two"
    assert survivors([0.01, 0.02, 0.04]) == 3 and survivors([]) == 0
