"""A covering array: few rows of choices in which every two choices of two factors stand
together.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

Choice = tuple[int, int]
"""A factor and one of its levels, both counted from 0."""


def covering(levels: Sequence[int]) -> list[tuple[int, ...]]:
    """Rows of one level for each factor; any two levels of two factors stand together in one of
    them.

    A row begins with two choices that no row has together yet. Then comes, again and again, the
    choice that stands for the first time beside the most of what the row has. Nothing is drawn: the
    same numbers give the same rows.

    Args:
        levels: how many levels each factor has, of which there is at least one.
    """
    if len(levels) < 2:
        return [(level,) for count in levels for level in range(count)]
    missing = dict.fromkeys(_pairs(levels))
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        while len(row) < len(levels):
            factor, level = max(_open(levels, row), key=lambda choice: _gain(row, choice, missing))
            row[factor] = level
        for pair in combinations(sorted(row.items()), 2):
            missing.pop(pair, None)
        rows.append(tuple(row[factor] for factor in range(len(levels))))
    return rows


def _pairs(levels: Sequence[int]) -> Iterator[tuple[Choice, Choice]]:
    """Every two choices of two factors."""
    for first, second in combinations(range(len(levels)), 2):
        for level in range(levels[first]):
            for other in range(levels[second]):
                yield (first, level), (second, other)


def _open(levels: Sequence[int], row: dict[int, int]) -> Iterator[Choice]:
    """The choices of factors that a row does not have yet."""
    for factor, count in enumerate(levels):
        if factor not in row:
            for level in range(count):
                yield factor, level


def _gain(row: dict[int, int], choice: Choice, missing: dict[tuple[Choice, Choice], None]) -> int:
    """How many pairs that no row has yet a choice would bring to this one."""
    return sum((min(choice, made), max(choice, made)) in missing for made in row.items())
