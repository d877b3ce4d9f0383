"""Estimates: what becomes of half-widths when numbers are averaged or subtracted."""

import pytest

from repro.report.estimates import Estimate, estimate, mean, trend, weakest
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
    assert weakest({8: PARTS[0], 16: PARTS[1]}) == (8, PARTS[0])


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
