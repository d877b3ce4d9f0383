"""Table 4: pairs whose order a system gets wrong and the mapping repairs, with those that it breaks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from repro.evaluation.resample import draw_counts, subset_members
from repro.evaluation.stats import Interval, percentiles
from repro.seeding import make_rng
from repro.sets import ScoredPairs
from repro.types import Array, check_same_length

PRINTED = (
    ("the words in this frame describe a period of time", "the period during which something is functional"),
    ("torres moving on after", "torres finishes 4th"),
)
"""how the sides of the two printed pairs begin, lower-cased"""
RESAMPLES = 500


@dataclass(frozen=True)
class Turned:
    """Comparisons of two pairs with different gold scores: how many a mapping puts right and how many wrong."""

    comparisons: int
    wrong_before: int
    repaired: int
    broken: int
    net: Interval
    """(repaired − broken) / comparisons, with an interval over resampled pairs"""

    @property
    def repaired_share(self) -> float:
        """Of the comparisons that were wrong."""
        return self.repaired / self.wrong_before if self.wrong_before else float("nan")

    @property
    def broken_share(self) -> float:
        """Of the comparisons that were right."""
        right = self.comparisons - self.wrong_before
        return self.broken / right if right else float("nan")


def turned(before: Array, after: Array, pairs: ScoredPairs, *, seed: int = 0) -> Turned:
    """Count the comparisons of two pairs that a mapping repairs and breaks.

    Args:
        before: cosine of each pair under the system (n,).
        after: under the mapping (n,).
        pairs: with the gold scores.
        seed: of the bootstrap.
    """
    check_same_length(before=before, after=after, pairs=pairs)
    higher = np.sign(pairs.scores[:, None] - pairs.scores[None])  # (n, n): gold says the first pair is closer
    right = [higher * np.sign(c[:, None] - c[None]) > 0 for c in (before, after)]
    valid = higher > 0  # each comparison once, ties of gold left out
    change = (right[1].astype(np.int8) - right[0]) * valid
    members = subset_members(pairs.subsets, len(pairs), RESAMPLES)
    counts = draw_counts(members, RESAMPLES, make_rng(seed, "bootstrap")).astype(np.float32)
    gained, possible = (
        np.einsum("rn,rn->r", counts @ matrix.astype(np.float32), counts, dtype=np.float64)
        for matrix in (change, valid)
    )
    total = int(valid.sum())
    net = percentiles(float(change.sum() / total), gained / possible)
    return Turned(total, int((valid & ~right[0]).sum()), int((change > 0).sum()), int((change < 0).sum()), net)


def examples(before: Array, after: Array, pairs: ScoredPairs, *, repaired: bool = True, count: int = 3) -> pd.DataFrame:
    """The clearest comparisons that the mapping repairs, or breaks: no pair is shown twice.

    Cosines of the two spaces have scales of their own, so clear means far apart in rank under both.

    Args:
        before: cosine of each pair under the system (n,).
        after: under the mapping (n,).
        pairs: the pairs.
        repaired: wrong before and right after; False the other way round.
        count: comparisons to show.
    """
    n = len(pairs)
    ranks = [np.argsort(np.argsort(c, kind="stable"), kind="stable") / n for c in (before, after)]
    first, second = (ranks[1], ranks[0]) if repaired else (ranks[0], ranks[1])
    gap = np.minimum(first[:, None] - first[None], second[None] - second[:, None])
    gap = np.where(pairs.scores[:, None] > pairs.scores[None], gap, -1.0)  # (closer pair, other pair)
    lines: list[dict[str, object]] = []
    used: set[int] = set()
    for flat in np.argsort(gap, axis=None, kind="stable")[::-1]:
        high, low = (int(i) for i in np.unravel_index(flat, gap.shape))
        if gap[high, low] <= 0 or len(lines) >= 2 * count:
            break
        if {high, low} & used:
            continue
        used |= {high, low}
        lines += [_line(before, after, pairs, i, len(lines) // 2) for i in (low, high)]
    return pd.DataFrame(lines)


def printed(before: Array, after: Array, pairs: ScoredPairs) -> pd.DataFrame:
    """The two pairs of the paper, if the set holds both; else an empty frame."""
    rows = []
    for begins in PRINTED:
        for i, sides in enumerate(zip(pairs.texts1, pairs.texts2, strict=True)):
            if all(any(side.lower().startswith(b) for side in sides) for b in begins):
                rows.append(i)
                break
    if len(rows) < len(PRINTED):
        return pd.DataFrame(columns=["pair", "sentence 1", "sentence 2", "gold", "before", "after"])
    lines = pd.DataFrame([_line(before, after, pairs, i, k) for k, i in enumerate(rows)])
    return lines.rename(columns={"comparison": "pair"})


def _line(before: Array, after: Array, pairs: ScoredPairs, i: int, comparison: int) -> dict[str, object]:
    return {
        "comparison": comparison,
        "sentence 1": pairs.texts1[i],
        "sentence 2": pairs.texts2[i],
        "gold": float(pairs.scores[i]),
        "before": float(before[i]),
        "after": float(after[i]),
    }
