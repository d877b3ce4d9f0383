"""How many candidates a larger collection needs where the full floats put them in order, by the law
of its growth.
"""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from repro.papers.proposal.growing import law_of
from repro.reducers import REDUCER_NAMES
from repro.rows import only
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
    of_svd = {"level": "float32", "method": REDUCER_NAMES["svd"]}
    share_rows = only(rows, metric="neighbours_kept", **of_svd)
    largest = int(share_rows["vectors"].max())
    sizes = sorted(set(share_rows["vectors"]))
    furthest = largest**2 // sizes[2]  # A law is fitted to three sizes at least
    if not largest < vectors <= furthest:
        raise InputError(
            f"{vectors:,} vectors planned: expected more than the {largest:,} that were searched, "
            f"and at most {furthest:,}, for which the recorded sizes can judge a projection"
        )
    projections = []
    for candidates, law_rows in share_rows.groupby("candidates"):
        # Of a collection of a few times the candidates, chance finds a good part
        law_rows = law_rows[law_rows["vectors"] >= 10 * candidates]
        smaller = law_rows[law_rows["vectors"] * vectors <= largest**2]
        law = law_of(law_rows)
        law_before = law_of(smaller)
        measured = only(law_rows, vectors=largest).sort_values("share")
        for cell in measured.itertuples():
            projections.append(
                Rescoring(
                    dim=int(cell.dim),
                    candidates=int(candidates),
                    measured=float(cell.value),
                    projected=float(law(cell.share, vectors)),
                    off=float(law_before(cell.share, largest) - cell.value),
                )
            )
    return projections


def rescoring_table(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> pd.DataFrame:
    """Dimensions in lines: the fewest of the recorded numbers of candidates that keep the target
    among the most vectors searched, and among more by projection.
    """
    largest, full = int(rows["vectors"].max()), int(rows["full"].iloc[0])
    projections = rescorings(rows, vectors)
    lines = []
    for dim in sorted({way.dim for way in projections}, reverse=True):
        of_dim = [way for way in projections if way.dim == dim]
        line: dict[str, Any] = {"dimensions": f"{dim} of {full}"}
        now = next((way for way in of_dim if way.measured >= target), of_dim[-1])
        then = next((way for way in of_dim if way.projected >= target), of_dim[-1])
        line[f"{largest:,} vectors, measured"] = _candidates(now.candidates, now.measured, target)
        line[f"{vectors:,}, projected"] = _candidates(then.candidates, then.projected, target)
        line["the law was off by"] = f"{100 * then.off:.1f} points".replace("-", "−")
        lines.append(line)
    return pd.DataFrame(lines)


def _candidates(count: int, share: float, target: float) -> str:
    """How many candidates suffice and what they keep; the most recorded may not suffice."""
    return f"{'' if share >= target else 'more than '}{count} ({100 * share:.1f} %)"


def rescoring_statement(rows: pd.DataFrame, vectors: int, target: float = 0.95) -> str:
    """How many candidates at half of the dimensions keep the target among so many vectors: a
    projection with its error, and what no law tells.
    """
    encoder, full = rows["backbone"].iloc[0], int(rows["full"].iloc[0])
    half = [way for way in rescorings(rows, vectors) if way.dim == full // 2]
    enough = next((way for way in half if way.projected >= target), None)
    measured = next((way for way in half if way.measured >= target), None)
    percent = f"{100 * target:g} %"
    largest = int(rows["vectors"].max())
    if enough is None or measured is None:
        return f"At half of the dimensions no recorded number of candidates keeps {percent}."
    off = f"{100 * enough.off:.1f}".replace("-", "−")
    safe = next((way for way in half if way.projected - abs(way.off) >= target), None)
    caution = ""
    if safe and safe != enough:
        caution = (
            f" An error as large could leave less than {percent}, but not with {safe.candidates} "
            f"candidates ({100 * safe.projected:.1f} %)."
        )
    return (
        f"**A projection.** To keep {percent} of the ten nearest among {vectors:,} vectors at half "
        f"of the dimensions, re-score {enough.candidates} candidates by the full floats: the law "
        f"says {100 * enough.projected:.1f} %. Stretched as far before, it was off by {off} points "
        f"(what it said less what was measured).{caution} Among {largest:,} vectors "
        f"{measured.candidates} keep {100 * measured.measured:.1f} %, measured. All this is of one "
        f"encoder, {encoder}, and of exact search. No row tells the same of bits: they are "
        "recorded at too few sizes for a law."
    )
