"""Ways that labels judge, or what is expected of them, and which of them is the answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dimadvise.bounds import smallest_sufficient
from dimadvise.coding import level_bytes
from dimadvise.evidence import Evidence
from dimadvise.files import Layer


@dataclass(frozen=True)
class Candidate:
    """One method at one size and level, of one layer."""

    layer: Layer
    method: str
    dim: int
    # Spearman correlation with full similarity that the spectrum promises
    predicted: float = math.nan
    neighbours: float = math.nan
    """Share of the ten nearest neighbours that stay among the ten nearest, of rows that the map has
    not seen.
    """
    expected: float = math.nan
    """Share of a score that is expected to be kept, by the rule that was nearest to labels for this
    method.
    """
    share: float = math.nan  # Share of the full-size score; NaN without labels
    low: float = math.nan  # Lower bound of the share
    level: str = "float32"

    @property
    def bytes(self) -> int:
        """Of one vector."""
        return level_bytes(self.level, self.dim)


def smallest(
    candidates: Sequence[Candidate],
    full: int,
    last: Layer,
    retain: float,
    *,
    labelled: bool,
) -> Candidate | None:
    """The fewest bytes that pass; of as many the shallowest layer, which costs least to reach, then
    what keeps most, then the simplest method.

    Of each layer, method and level sizes are walked from the largest to the first that fails, so
    that no answer is dominated: whatever passed has more bytes, or as many and keeps no more.
    """
    walks: dict[Any, list[Candidate]] = {}
    for c in candidates:
        walks.setdefault((c.layer, c.method, c.level), []).append(c)
    passed: list[Candidate] = []
    for walk in walks.values():
        bounds = [_bound(c, labelled) for c in walk]
        dim = smallest_sufficient([c.dim for c in walk], bounds, retain)
        passed += [c for c in walk if dim is not None and c.dim >= dim]
    if not passed:
        return None
    best = min(passed, key=lambda c: (c.bytes, c.layer or 0, -_bound(c, labelled)))
    return best if best.bytes < 4 * full or best.layer != last else None


def most_kept(candidates: Sequence[Candidate], budget: float) -> Candidate | None:
    """What surely keeps most in so many bytes; of as much the fewest bytes."""
    fitting = [c for c in candidates if c.bytes <= budget and not math.isnan(c.low)]
    return max(fitting, key=lambda c: (c.low, -c.bytes), default=None)


def _bound(candidate: Candidate, labelled: bool) -> float:
    return candidate.low if labelled else candidate.expected


def why_none(
    candidates: Sequence[Candidate],
    full: int,
    retain: float,
    evidence: Evidence | None,
) -> str:
    """Why nothing below the full size passes, and what would help."""
    below = [c for c in candidates if c.bytes < 4 * full]
    if evidence is None:
        if not below:
            return f"no size below {full} was tried"
        best = max(below, key=lambda c: c.expected)
        return (
            f"the most that is expected below {full} is {100 * best.expected:.2f} %, of "
            f"{best.method} at {best.dim}"
        )
    close = [c for c in below if c.share > retain and np.isfinite(c.low)]
    if not close:
        return (
            f"no size below {full} keeps {100 * retain:g} % of the score: these dimensions are used"
        )
    # The bound's distance from the share shrinks with the square root of the number of items
    best = max(close, key=lambda c: (c.share - retain) / max(c.share - c.low, 1e-12))
    needed = evidence.items * ((best.share - best.low) / (best.share - retain)) ** 2
    return (
        f"{evidence.items:,} labelled items are too few to tell: {best.method} at {best.dim} as "
        f"{best.level} keeps {100 * best.share:.2f} % of the score; about "
        f"{math.ceil(needed / 10) * 10:,} items would do"
    )
