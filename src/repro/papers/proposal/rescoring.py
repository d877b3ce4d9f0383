"""How many candidates a larger collection needs where the full floats put them in order, by the law
of its growth.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.papers.proposal.growing import law_of
from repro.reducers import REDUCER_NAMES
from repro.types import InputError


@dataclass(frozen=True)
class Rescoring:
    """What a number of candidates keeps of the ten nearest, as shares of them."""

    dim: int
    candidates: int
    measured: float  # In the largest collection recorded
    projected: float  # By the law, in a larger one
    off: float  # The law less what was measured, after as long a stretch, or a longer one


def rescorings(rows: pd.DataFrame, vectors: int) -> list[Rescoring]:
    """What uncentred SVD in float32 is projected to keep among so many vectors, at every size and
    number of candidates.

    The error is that of the same law, fitted to collections that the largest one exceeds at least
    as far as `vectors` exceeds that.

    Args:
        rows: of one encoder, as `with_setting` gives them.
        vectors: more than were searched.

    Raises:
        InputError: for a number that was searched, or one so large that no recorded collection is
            as small beside the largest: no law could be judged.
    """
    is_read = (rows["metric"] == "neighbours_kept") & (rows["level"] == "float32")
    kept = rows[is_read & (rows["method"] == REDUCER_NAMES["svd"])]
    largest, sizes = int(kept["vectors"].max()), sorted(set(kept["vectors"]))
    furthest = largest**2 // sizes[2]  # A law is fitted to three sizes at least
    if not largest < vectors <= furthest:
        raise InputError(
            f"{vectors:,} vectors: expected more than the {largest:,} that were searched, and at "
            f"most {furthest:,}, for which the recorded sizes can judge a projection"
        )
    found = []
    for candidates, own in kept.groupby("candidates"):
        # Of a collection of a few times the candidates, chance finds a good part
        own = own[own["vectors"] >= 10 * candidates]
        known = own[own["vectors"] * vectors <= largest**2]
        law, law_before = law_of(own), law_of(known)
        for cell in own[own["vectors"] == largest].sort_values("share").itertuples():
            found.append(
                Rescoring(
                    dim=int(cell.dim),
                    candidates=int(candidates),
                    measured=float(cell.value),
                    projected=float(law(cell.share, vectors)),
                    off=float(law_before(cell.share, largest) - cell.value),
                )
            )
    return found


def rescoring_table(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> pd.DataFrame:
    """Dimensions in lines: the fewest of the recorded numbers of candidates that keep the target
    among the most vectors searched, and among more by projection.
    """
    largest, full = int(rows["vectors"].max()), int(rows["full"].iloc[0])
    found = rescorings(rows, vectors)
    lines = []
    for dim in sorted({each.dim for each in found}, reverse=True):
        own = [each for each in found if each.dim == dim]
        line: dict[str, Any] = {"dimensions": f"{dim} of {full}"}
        now = next((each for each in own if each.measured >= target), own[-1])
        then = next((each for each in own if each.projected >= target), own[-1])
        line[f"{largest:,} vectors, measured"] = _candidates(now.candidates, now.measured, target)
        line[f"{vectors:,}, projected"] = _candidates(then.candidates, then.projected, target)
        line["the law was off by"] = f"{100 * then.off:.1f} points".replace("-", "−")
        lines.append(line)
    return pd.DataFrame(lines)


def _candidates(count: int, kept: float, target: float) -> str:
    """How many candidates suffice and what they keep; the most recorded may not suffice."""
    return f"{'' if kept >= target else 'more than '}{count} ({100 * kept:.1f} %)"


def rescoring_statement(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> str:
    """How many candidates at half of the dimensions keep the target among so many vectors: a
    projection with its error, and what no law tells.
    """
    encoder, full = rows["backbone"].iloc[0], int(rows["full"].iloc[0])
    half = [each for each in rescorings(rows, vectors) if each.dim == full // 2]
    enough = next((each for each in half if each.projected >= target), None)
    measured = next((each for each in half if each.measured >= target), None)
    asked, largest = f"{100 * target:g} %", int(rows["vectors"].max())
    if enough is None or measured is None:
        return f"At half of the dimensions no recorded number of candidates keeps {asked}."
    off = f"{100 * enough.off:.1f}".replace("-", "−")
    safe = next((each for each in half if each.projected - abs(each.off) >= target), None)
    caution = ""
    if safe and safe != enough:
        caution = (
            f" An error as large could leave less than {asked}, but not with {safe.candidates} "
            f"candidates ({100 * safe.projected:.1f} %)."
        )
    return (
        f"**A projection.** To keep {asked} of the ten nearest among {vectors:,} vectors at half "
        f"of the dimensions, re-score {enough.candidates} candidates by the full floats: the law "
        f"says {100 * enough.projected:.1f} %. Stretched as far before, it was off by {off} points "
        f"(what it said less what was measured).{caution} Among {largest:,} vectors "
        f"{measured.candidates} keep {100 * measured.measured:.1f} %, measured. All this is of one "
        f"encoder, {encoder}, and of exact search. No row tells the same of bits: they are "
        f"recorded at too few sizes for a law."
    )
