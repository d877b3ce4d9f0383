from math import nan

import pytest

from repro.report.judge import MEANING, ON_GENERATED, OUTCOMES, Measurement, worst

# value, low, high, paper, direction -> on a substitute, on the paper's own network; the null is 0
EFFECTS = [
    (2.0, 1.0, 3.0, None, 1, "holds here", "reproduced"),
    (0.9, 0.4, 1.4, 0.5, 1, "holds here", "reproduced"),  # within half a point
    # Within half of the printed effect, to the hair
    (9.0, 8.0, 10.0, 6.0, 1, "holds here", "reproduced"),
    (9.1, 8.0, 10.2, 6.0, 1, "holds here", "direction only"),
    (0.5, -1.0, 2.0, None, 1, "cannot tell", "cannot tell"),
    # The printed size is not in it: no matter
    (0.5, -1.0, 2.0, 5.0, 1, "cannot tell", "cannot tell"),
    (-2.0, -3.0, -1.0, None, 1, "does not hold here", "not reproduced"),
    (-2.0, -3.0, -1.0, 1.8, 1, "does not hold here", "not reproduced"),
    (-2.0, -3.0, -1.0, None, -1, "holds here", "reproduced"),
    (-2.0, -3.0, -1.0, -2.4, 1, "holds here", "reproduced"),  # a printed size fixes the side
    (1.0, 0.0, 2.0, None, 1, "cannot tell", "cannot tell"),  # touching the null is containing it
    (0.0, 0.0, 0.0, None, 1, "does not hold here", "not reproduced"),  # an exact tie is no effect
    # Nor is what ends at the null
    (-1.0, -2.0, 0.0, None, 1, "does not hold here", "not reproduced"),
    (1.0, nan, nan, None, 1, "cannot tell", "cannot tell"),  # too few seeds for an interval
]
# low, high -> on a substitute
SAMENESS = [
    (-0.5, 0.5, "holds here"),
    (-1.0, 1.0, "holds here"),
    (-1 - 1e-12, 1 + 1e-12, "holds here"),  # a hair more than 1, as binary differences may be
    (-0.5, 1.5, "cannot tell"),
    (-3.0, 3.0, "cannot tell"),
    (1.5, 2.5, "does not hold here"),
    (-2.5, -1.5, "does not hold here"),
]
# times, low, high, paper, null, direction -> on the paper's own network
RATIOS = [
    (4.0, 3.0, 5.0, 2.0, 1.0, 1, "reproduced"),  # a factor of two is right enough
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


# what was measured -> verdict and what stands beside it
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
    (Measurement("X", "effect", 1, nan, nan), "cannot tell", "1 of at least 3 seeds"),
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
        "surely not the printed 4",
    ),
    (
        Measurement("X", "effect", 1, -1, 3, seeds=3, seed_sd=1.0, item_error=1.0),
        "cannot tell",
        "items too few",
    ),
    (Measurement("X", "effect", 1, -1, 3, seeds=30, seed_sd=1.0), "cannot tell", "enough seeds"),
    (
        Measurement("X", "effect", 1, -1, 3, seed_sd=0.0, item_error=0.1),
        "cannot tell",
        "enough items",
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
        "enough items to see a factor of 2",
    ),
    (
        Measurement("X", "ratio", 1.02, 0.4, 2.6, null=1.0),
        "cannot tell",
        "items too few to see a factor of 2",
    ),
    (
        Measurement("X", "effect", -1, -1.9, -0.1, seed_sd=0.0, parts=4),
        "cannot tell",
        "alone, not among 4 parts",
    ),
    (Measurement("X", "effect", -1, -1.5, -0.5, parts=4), "does not hold here", ""),
    (
        Measurement("X", "ratio", 0.5, 0.26, 0.96, null=1.0, seeds=3, parts=2),
        "cannot tell",
        "not among 2 parts",
    ),
    (
        Measurement("X", "ratio", 0.5, 0.3, 0.7, null=1.0, seeds=3, parts=2),
        "does not hold here",
        "",
    ),
]


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
    assert int(effect.split()[0]) < int(same.split()[0])
    assert worst(["holds here", "cannot tell", "direction only"]) == "cannot tell"
    assert worst(["not attempted", "does not hold here", "holds here"]) == "does not hold here"
    assert worst(["does not apply", "cannot tell"]) == "does not apply"
    assert worst(["reproduced", "direction only"]) == "direction only"
    assert worst([]) == "not attempted"
    seen = (
        {line[-2] for line in EFFECTS}
        | {line[-1] for line in EFFECTS}
        | {line[1] for line in SILENT}
    )
    assert seen == set(MEANING) == set(OUTCOMES) > set(ON_GENERATED)
