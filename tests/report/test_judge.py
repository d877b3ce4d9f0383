"""From rows to verdicts: means, differences and families with their intervals, and which cell a
claim is judged by.
"""

import re
from dataclasses import replace
from math import hypot, inf, isnan

import numpy as np
import pytest

from repro.evaluation.of_rows import estimate, estimates
from repro.evaluation.seeds import Estimate, doublings, mean, of_parts, reach, scaled
from repro.report import measurements
from repro.report.cells import average, farthest, highest, lowest
from repro.report.judge import Judge, judge
from repro.report.measurements import effect, trend
from repro.report.verdict import Measurement
from repro.rows import make_rows
from repro.types import InputError

RISING = Estimate({0: 1.0, 1: 2.0, 2: 3.0}, 0.6)
FALLING = Estimate({0: 3.0, 1: 2.0, 2: 1.0}, 0.8)
FIXED = Estimate({None: 5.0}, 0.5, random=False)


def test_differences_and_means_are_taken_within_each_seed():
    """Two cells that move against each other between seeds: their mean does not move, their
    difference twice.
    """
    assert mean([RISING, FALLING]) == Estimate({0: 2.0, 1: 2.0, 2: 2.0}, 0.7)
    assert Estimate({0: -2.0, 1: 0.0, 2: 2.0}, pytest.approx(1.0)) == RISING - FALLING
    assert (RISING - FIXED).by_seed == {0: -4.0, 1: -3.0, 2: -2.0}
    assert not (FIXED - FIXED).random
    assert (RISING - Estimate({1: 5.0, 2: 5.0, 3: 5.0})).by_seed == {1: -3.0, 2: -2.0}


def test_one_or_two_seeds_judge_only_what_has_nothing_random_in_it():
    assert isnan(Estimate({0: 1.0, 1: 1.1}, 0.5).low)
    assert (FIXED.low, FIXED.high) == pytest.approx((5 - 0.98, 5 + 0.98), abs=1e-3)
    assert Estimate({0: 1.0, 1: 2.0, 2: 3.0}).half == pytest.approx(4.3027 / 3**0.5, abs=1e-3)


def test_rows_of_one_cell():
    one = {"metric": "spearman", "value": 0.5, "ci_low": 0.47, "ci_high": 0.53, "dim": 8}
    three = make_rows({**one, "seed": seed} for seed in range(3))
    assert isnan(estimate(three[:1]).low) and estimate(
        three[:1],
        deterministic=True,
    ).half == pytest.approx(3.0)
    repeated = estimate(three)  # Untrained, and the same under every seed: nothing was drawn
    assert (repeated.random, repeated.seeds, repeated.half) == (False, 1, pytest.approx(3.0))
    assert estimate(three.assign(n_train=9)).random
    assert scaled(repeated, -2).half == pytest.approx(6.0)


FAMILY = {8: Estimate({None: 1.0}, 1.0, random=False), 16: Estimate({None: 3.0}, 0.1, random=False)}


def test_every_dim_is_judged_by_joint_ends_of_all():
    """The smallest is neither below the lowest lower end nor above the lowest upper end, of which
    any may be it.
    """
    assert (wide := reach(inf, 2)) > reach(inf)
    dim, e = lowest(FAMILY)
    assert (dim, e.value, e.low, e.high) == (8, 1.0, 1 - wide, pytest.approx(3 + 0.1 * wide))
    dim, e = highest(FAMILY)
    assert (dim, e.value, e.low, e.high) == (
        16,
        3.0,
        pytest.approx(3 - 0.1 * wide),
        pytest.approx(1 + wide),
    )
    dim, e = farthest({**FAMILY, 32: Estimate({None: -4.0}, 0.5, random=False)})
    wide = reach(inf, 3)
    assert (dim, e.value, e.low) == (32, -4.0, pytest.approx(-4 - 0.5 * wide))
    assert e.high == pytest.approx(min(-4 + 0.5 * wide, -3 + 0.1 * wide))


@pytest.mark.parametrize("side", [1, -1])
def test_the_farthest_of_all_is_no_nearer_than_any_is_for_sure_and_no_farther_than_any_may_be(side):
    """The farthest value is unsure, a nearer one is sure: all are as far as that one at least."""
    told = [(-4.0, 1.0), (-3.0, 0.1), (1.0, 3.0)]  # A value and its error
    unsure, sure, wide = (Estimate({None: side * v}, error, random=False) for v, error in told)
    reached = reach(inf, 3)
    dim, e = farthest({8: unsure, 16: sure, 32: wide})
    ends = -(1 + 3 * reached), -(3 - 0.1 * reached)
    assert (dim, e.value) == (8, side * -4.0)
    assert sorted((side * e.low, side * e.high)) == pytest.approx(ends)
    _, two = farthest({8: unsure, 32: wide})
    nearer_end = min(two.low, two.high, key=abs)
    assert side * nearer_end == pytest.approx(-(4 - reach(inf, 2)))


def test_a_dim_of_too_few_seeds_leaves_the_word_to_others():
    few = {**FAMILY, 4: Estimate({0: -9.0})}
    assert lowest(few) == lowest(FAMILY)
    assert isnan(lowest({4: Estimate({0: -9.0})})[1].low)


def test_every_seed_ranks_the_dims_by_itself():
    """Two rising and one falling seed: τ is +1, +1 and −1, though the means rise."""
    dims, signs = (8, 16, 32), (5, 5, -1)
    rows = [
        {"value": s * dim / 100, "dim": dim, "seed": seed}
        for seed, s in enumerate(signs)
        for dim in dims
    ]
    at = estimates(make_rows(rows, metric="spearman"))
    found = trend("WANG-F2-2", at, 1, "score against dim")
    assert (found.value, found.seeds) == (pytest.approx(1 / 3), 3)
    assert (found.low, found.high) == (-1.0, 1.0)


def scores(**cells):
    """Rows of two encoders at two dims, whose values in points are given in that order, of two
    seeds.
    """
    places = [{"backbone": encoder, "dim": dim} for encoder in ("a", "b") for dim in (8, 16)]
    return make_rows(
        {
            **place,
            "metric": metric,
            "seed": seed,
            "value": (v + off) / 100,
            "ci_low": v / 100,
            "ci_high": v / 100,
        }
        for metric, values in cells.items()
        for place, v in zip(places, values, strict=True)
        for seed, off in enumerate((-0.1, 0.1))
    )


def test_times_are_powers_of_doublings_and_sets_share_no_items():
    found = measurements.ratio("X", Estimate({None: 2.0}, 0.5, random=False), "seconds")
    expected = [2.0 ** (2 + end * reach(inf) * 0.5) for end in (0, -1, 1)]
    assert [found.value, found.low, found.high] == pytest.approx(expected)
    both = {("a",): FAMILY[8], ("b",): FAMILY[16]}
    assert average(both)[1].item_error == pytest.approx(1.1 / 2)
    assert average(both, same_items=False)[1].item_error == pytest.approx(hypot(1, 0.1) / 2)


def test_seeds_that_nobody_would_run_are_not_counted_out():
    for spread, told in ((4.5, r"1[5-9]\d seeds"), (6.0, "more than 200 seeds")):
        unsure = Estimate({0: -spread, 1: 0.0, 2: spread})
        found = effect("X", unsure, "a lead")
        assert re.fullmatch(f"takes {told} to see an effect of 1 in 80 of 100 cases", found.why), (
            found.why
        )


PICKED = {
    lowest: (-3.0, "b at 16 of 4"),
    highest: (2.0, "b at 8 of 4"),
    farthest: (-3.0, "b at 16 of 4"),
}


@pytest.mark.parametrize("pick", [*PICKED, average])
def test_a_claim_is_judged_by_the_cell_that_it_picks(pick):
    value, what = PICKED.get(pick, (0.25, "all 4"))
    said = "{backbone} at {dim} of {n}" if pick in PICKED else "all {n}"
    rule = Judge("X", said, "metric == 'lead'", pick, ("backbone", "dim"))
    (found,) = judge([rule], scores(lead=(1, 1, 2, -3), other=(9, 9, 9, 9)))
    assert (found.value, found.seeds, found.what) == (pytest.approx(value), 2, what)


def test_groups_are_judged_one_by_one_in_their_own_unit_at_their_own_size():
    def each(rows):
        for name, own in rows.groupby("backbone"):
            yield {"encoder": name, "full": {"a": 16, "b": 32}[name]}, own

    rule = Judge(
        "X",
        "{encoder}",
        "backbone == @encoder",
        each=each,
        near=0.5,
        scale=lambda facts: facts["full"],
    )
    found = judge([rule, lambda rows: []], scores(lead=(1, 5, 5, 2)))
    assert [(m.what, m.value) for m in found] == [
        ("a", pytest.approx(16)),
        ("b", pytest.approx(64)),
    ]
    assert not judge([replace(rule, near=1 / 32)], scores(lead=(1, 5, 5, 2))), (
        "no size is near that"
    )
    nearly = judge([replace(rule, near=0.3)], scores(lead=(1, 5, 5, 2)))
    assert [m.what for m in nearly] == ["b"], "8 of 16 are more than 0.3 by a factor above √2"


def test_where_no_row_speaks_a_claim_that_needs_weights_says_which():
    rules = [Judge("X", "", "metric == 'none'", needs="bge"), Judge("Y", "", "metric == 'none'")]
    (found,) = judge(rules, scores(lead=(1, 1, 1, 1)))
    assert found.verdict == "not attempted" and "needs bge" in found.what


def of_seeds(rng, seeds, truth=0.0, spread=1.0, item=0.5):
    """A number of several seeds that share their items."""
    drawn = truth + item * rng.normal() + spread * rng.normal(size=seeds)
    return Estimate(dict(enumerate(drawn)), item)


def a_mean(rng):
    """Of six seeds, with the error over items."""
    return of_seeds(rng, 6), 0.0


def a_fixed_number(rng):
    """Nothing behind it was drawn but its items."""
    return Estimate({None: 0.5 * rng.normal()}, 0.5, random=False), 0.0


def a_mean_of_sets(rng):
    """Of five sets that share no items."""
    return mean([of_seeds(rng, 6) for _ in range(5)], same_items=False), 0.0


def a_difference(rng):
    """Of two numbers with items of their own."""
    return of_seeds(rng, 6) - of_seeds(rng, 6), 0.0


def a_ratio_of_times(rng):
    """Of five runs that differ by a third: an average of each run's own interval knows nothing of
    it.
    """
    return doublings({run: 2 ** (0.4 * rng.normal()) for run in range(5)}), 0.0


def a_smallest_of_three(rng):
    """Of three cells, which are all 0."""
    return lowest({(dim,): of_seeds(rng, 6) for dim in range(3)})[1], 0.0


def a_farthest_of_three(rng):
    """How far it is: of three cells, the one that is at 2."""
    at = {(dim,): of_seeds(rng, 6, truth=2.0 * (dim == 1), spread=0.3) for dim in range(3)}
    return farthest(at)[1], 2.0


def a_share(rng):
    """In per cent, how often ten numbers are above 0, of which seven are at 1 and three at −1."""
    truths = [1.0] * 7 + [-1.0] * 3
    parts = [of_seeds(rng, 5, truth, spread=0.5, item=0.4) for truth in truths]
    return of_parts(parts, lambda scores: 100 * (scores > 0).mean(-1), same_items=False), 70.0


KINDS = (
    a_mean,
    a_fixed_number,
    a_mean_of_sets,
    a_difference,
    a_ratio_of_times,
    a_smallest_of_three,
    a_farthest_of_three,
    a_share,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_interval_holds_the_truth_in_93_of_100_cases(kind):
    rng, runs = np.random.default_rng(0), 60 if kind is a_share else 400
    held = 0
    for _ in range(runs):
        e, truth = kind(rng)
        held += e.low <= truth <= e.high
    assert held / runs >= 0.93


def test_what_it_would_take_is_told_of_the_cell_whose_end_decides():
    """The smallest value may be a sure one, while another cell leaves the claim open."""
    sure = Estimate({0: 0.9, 1: 1.0, 2: 1.1})
    unsure = Estimate({0: -3.0, 1: 2.0, 2: 7.0})
    key, e = lowest({"sure": sure, "unsure": unsure})
    m = effect("WANG-T3-1", e, "lead")
    assert (key, m.verdict) == ("sure", "cannot tell")
    alone = effect("WANG-T3-1", replace(unsure, cells=2), "lead")
    assert m.why == alone.why and "seeds to see" in m.why


def test_of_several_rules_as_one_the_smallest_value_speaks():
    measured = [Measurement("A-1", "effect", each, each, each) for each in (0.3, -0.2, 0.1)]
    rules = tuple(lambda rows, found=found: [found] for found in measured)
    nothing = make_rows([])
    assert judge([rules, rules[0]], nothing) == [measured[1], measured[0]]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"rows": "metrc == 'x'"}, "the rows of TOY-1: name 'metrc' is not defined"),
        ({"over": ("dimm",)}, r"unknown column of TOY-1 'dimm': did you mean dim\?"),
        ({"what": "at {dimm}"}, r"TOY-1 measures 'dimm': choose one of dim, n \(did you mean dim"),
    ],
)
def test_a_name_that_rows_or_words_lack_is_told_with_the_claim(changed, told):
    rows = make_rows([{"metric": "x", "value": 0.5, "dim": 8}])
    rule = Judge("TOY-1", "at {dim}", "metric == 'x'")
    assert [m.what for m in rule.measure(rows)] == ["at 8"]
    with pytest.raises(InputError, match=told):
        list(replace(rule, **changed).measure(rows))
