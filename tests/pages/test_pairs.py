"""The rows in which pages are tried hold every two changes together, and are few."""

from itertools import combinations

import pytest
from tests.pages import variants
from tests.pages.pairs import covering

from repro.book.parameters import Parameter


def pairs(levels):
    """Every two choices of two factors, in pairs of factors and levels."""
    for first, second in combinations(range(len(levels)), 2):
        for level in range(levels[first]):
            for other in range(levels[second]):
                yield (first, level), (second, other)


@pytest.mark.parametrize(
    "levels",
    [(2, 2), (3, 2, 4), (3, 3, 3, 3), (1, 3, 2), (2,) * 10, (3, 3, 2, 2, 3, 2, 2, 4)],
)
def test_any_two_choices_stand_together_in_a_row(levels):
    rows = covering(levels)
    held = {pair for row in rows for pair in combinations(enumerate(row), 2)}
    assert held == set(pairs(levels))
    largest = sorted(levels)[-2:]
    assert largest[0] * largest[1] <= len(rows) <= 1.5 * largest[0] * largest[1] + len(levels)


def test_one_factor_or_none_has_a_row_for_each_level():
    assert covering([3]) == [(0,), (1,), (2,)] and covering([]) == []


DECLARED = {
    "profile": Parameter("profile", "str", "embedded"),
    "encoders": Parameter("encoders", "list[str]", ["all-MiniLM-L6-v2", "trained"]),
    "dims": Parameter("dims", "list[int] | None", None),
    "also": Parameter("also", "list[str]", ["sbert"], "further ones; [] for none"),
    "seed": Parameter("seed", "int", 0),
    "source": Parameter("source", "str | None", None),
    "record": Parameter("record", "bool", False),
}


def test_a_page_is_tried_under_every_two_of_its_changes_at_toy_size():
    runs = variants.paired(DECLARED, ["a", "b", "c"])
    assert {run["profile"] for run in runs} == {"embedded", "gpu", "paper"}
    together = {(tuple(run["dims"]), tuple(run["also"]), run["seed"]) for run in runs}
    for dims in ((8,), (5, 24)):
        for also in ((), ("bert_avg",), ("sbert",)):
            assert any(one[:2] == (dims, also) for one in together)
    for run in runs:
        assert "record" not in run, "nothing is recorded"
        large = run["profile"] != "embedded"
        assert (run.get("source") == "hub") == large and not (
            large and "trained" in run["encoders"]
        )
