"""From rows to verdicts: half-widths of means and differences, and which cell a claim is judged by."""

import pytest

from repro.report.judge import Estimate, Judge, average_size, estimate, farthest, highest, judge, lowest, mean, trend
from repro.rows import make_rows

PARTS = [Estimate(1.0, 2.0, 3), Estimate(5.0, 4.0, 1)]


def test_a_mean_over_tasks_is_no_surer_than_its_parts():
    """The same seed and items stand behind all of them: half-widths average, they do not shrink with the number."""
    assert mean(PARTS) == Estimate(3.0, 3.0, 1)
    assert mean([PARTS[0]] * 9) == PARTS[0]


def test_half_widths_of_a_difference_add_in_quadrature():
    difference = Estimate(7.0, 3.0, 5) - Estimate(2.0, 4.0, 3)
    assert (difference.value, difference.half, difference.seeds) == (5.0, pytest.approx(5.0), 3)
    assert (difference.low, difference.high) == pytest.approx((0.0, 10.0))


def test_at_every_dim_is_hardest_where_the_value_is_smallest():
    assert lowest({8: PARTS[0], 16: PARTS[1]}) == (8, PARTS[0])


def test_what_draws_nothing_at_random_has_no_seed_noise():
    rows = make_rows([{"metric": "spearman", "value": 0.5, "ci_low": 0.47, "ci_high": 0.53, "dim": 8, "seed": 0}])
    assert estimate(rows, deterministic=True).half == pytest.approx(3.0)
    assert estimate(rows).half == pytest.approx((3.0**2 + 1.96**2) ** 0.5)


def test_every_seed_ranks_the_dims_by_itself():
    """Two rising and one falling seed: τ is +1, +1 and −1, though the means rise."""
    rows = make_rows(
        {"metric": "spearman", "value": sign * dim / 100, "dim": dim, "seed": seed}
        for seed, sign in enumerate((5, 5, -1))
        for dim in (8, 16, 32)
    )
    found = trend("WANG-F2-2", rows, dict.fromkeys((8, 16, 32), PARTS[0]), 1, "score against dim")
    assert (found.value, found.seeds) == (pytest.approx(1 / 3), 3)


def scores(**cells):
    """Rows of two encoders at two dims, whose values in points are given in that order."""
    places = [(encoder, dim) for encoder in ("a", "b") for dim in (8, 16)]
    return make_rows(
        {
            "backbone": b,
            "dim": d,
            "metric": metric,
            "value": (v + 0.2 * seed - 0.1) / 100,
            "ci_low": v / 100,
            "ci_high": v / 100,
            "seed": seed,
        }
        for metric, values in cells.items()
        for (b, d), v in zip(places, values, strict=True)
        for seed in (0, 1)
    )


@pytest.mark.parametrize(
    ("pick", "value", "what"),
    [
        (lowest, -3.0, "b at 16 of 4"),
        (highest, 2.0, "b at 8 of 4"),
        (farthest, -3.0, "b at 16 of 4"),
        (lambda at: ((), mean(list(at.values()))), 0.25, None),
        (average_size, 1.75, None),
    ],
)
def test_a_claim_is_judged_by_the_cell_that_it_picks(pick, value, what):
    rule = Judge(
        "X", "{backbone} at {dim} of {n}" if what else "all {n}", "metric == 'lead'", pick, ("backbone", "dim")
    )
    (found,) = judge([rule], scores(lead=(1, 1, 2, -3), other=(9, 9, 9, 9)))
    assert (found.value, found.seeds, found.what) == (pytest.approx(value), 2, what or "all 4")


def test_groups_are_judged_one_by_one_in_their_own_unit_at_their_own_size():
    def each(rows):
        for name, own in rows.groupby("backbone"):
            yield {"encoder": name, "full": {"a": 16, "b": 32}[name]}, own

    rule = Judge("X", "{encoder}", "backbone == @encoder", each=each, near=0.5, scale=lambda facts: facts["full"])
    found = judge([rule, lambda rows: []], scores(lead=(1, 5, 5, 2)))
    assert [(m.what, m.value) for m in found] == [("a", pytest.approx(16)), ("b", pytest.approx(64))]


def test_where_no_row_speaks_a_claim_that_needs_weights_says_which():
    rules = [Judge("X", "", "metric == 'none'", needs="bge"), Judge("Y", "", "metric == 'none'")]
    (found,) = judge(rules, scores(lead=(1, 1, 1, 1)))
    assert found.verdict == "not attempted" and "needs bge" in found.what
