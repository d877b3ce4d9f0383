"""The advice in words and tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dimadvise.advice import Advice, Candidate
from dimadvise.measured import read_measured
from dimadvise.savings import Saving

CHANGES = 10
"""items that must be able to change before resamples of right and wrong ones say how many did not"""
MEASURES = {
    "participation ratio": "Directions that share the variance evenly",
    "TwoNN": "dimensions of the surface that neighbours lie on, however it is curved",
}
"""what two numbers measure that need not be near one another"""
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")


def headline(advice: Advice) -> str:
    """The answer in one sentence."""
    chosen, kept = advice.answer, f"{100 * advice.retain:g} %"
    if chosen is None:
        could = "is expected" if advice.metric is None else "could be shown"
        return f"Keep all {advice.full_dim} dimensions: no smaller size {could} to keep {kept}."
    how = f"{chosen.dim} of {advice.full_dim} dimensions ({_means(chosen)})"
    if advice.metric is None:
        return f"{how} are expected to keep {kept} of a score; without labels this is a prediction."
    if why_no_bound(advice, chosen):
        return f"{how} keep {100 * chosen.share:.2f} % of the score measured here; no lower bound is given."
    return (
        f"{how} keep {100 * chosen.share:.2f} % of the score, and with 95 % confidence at least {kept} "
        f"(lower bound {100 * chosen.low:.2f} %)."
    )


def why_no_bound(advice: Advice, candidate: Candidate) -> str:
    """Why the lower bound of a candidate does not hold as often as it says; empty where it does, or there is none."""
    needed = round(CHANGES / max(1 - advice.retain, 1e-4))
    if advice.seen and candidate.reducer in ("pca", "svd"):
        return (
            "the reducer was fitted on the embeddings that are judged, and keeps more of them than of other texts: "
            "--fit-on, with texts that are not judged, gives a bound"
        )
    if advice.metric not in (None, "spearman") and advice.items < needed:
        return (
            f"of {advice.items:,} items that are right or wrong too few can change to tell a loss of "
            f"{100 * (1 - advice.retain):.3g} % from none: about {needed:,} items give a bound"
        )
    return ""


def explanation(advice: Advice) -> list[str]:
    """What stands behind the answer, sentence by sentence."""
    if advice.metric is None:
        lines = [
            "Predicted: Spearman correlation of similarities before and after, if embeddings were Gaussian, from their "
            "covariance. Measured here (live): neighbours kept. Expected share of a score: from these, by the "
            "rule that was nearest to what labels say of other embeddings."
        ]
        reducers = [advice.answer.reducer] if advice.answer else [c.reducer for c in advice.candidates]
        lines += read_measured().statement(list(dict.fromkeys(reducers)), advice.retain)
    else:
        score = f"{advice.metric} at full size is {100 * advice.reference:.2f} on {advice.items:,} items"
        lines = [f"Measured here (live): {score}."]
        without = {c.reducer: why_no_bound(advice, c) for c in advice.candidates}
        if not all(without.values()):
            each = f"{100 * advice.confidence:.4g} %"
            lines.append(f"Bounds hold with {each} each: all ways together err with 5 % at most.")
        lines += [f"No bound is given of {name}: {reason}." for name, reason in without.items() if reason]
    if advice.answer is not None:
        lines.append(f"Of ten nearest neighbours {10 * advice.answer.neighbours:.1f} stay among the ten nearest.")
    fitted = f"Reducers were fitted on {advice.rows:,} embeddings"
    if advice.seen:
        lines.append(f"{fitted}, those that are judged among them: other texts may keep less.")
    else:
        lines.append(f"{fitted}{'' if advice.metric is None else ', none of which is judged'}.")
    sizes = "; ".join(f"{MEASURES[name]} ({name}): {value:.1f}" for name, value in advice.intrinsic.items())
    lines.append(f"{sizes}.")
    return [*lines, *(note[0].upper() + note[1:] + "." for note in advice.notes)]


def candidate_table(advice: Advice) -> pd.DataFrame:
    """One row per candidate; shares are fractions, and a bound that does not hold is missing."""
    frame = pd.DataFrame([vars(candidate) for candidate in advice.candidates])
    frame.insert(0, "line", [_line(candidate) for candidate in advice.candidates])
    frame["low"] = frame["low"].where([not why_no_bound(advice, candidate) for candidate in advice.candidates])
    frame["layer"] = frame["layer"].astype("Int64")
    return frame[["line", "layer", "reducer", "dim", "score", "share", "low", "expected", "predicted", "neighbours"]]


def report_table(advice: Advice) -> pd.DataFrame:
    """The candidates as the report shows them: what the answer rests on, and which one it is."""
    hidden = ["score", "share", "low"] if advice.metric is None else ["expected", "predicted"]
    frame = candidate_table(advice).drop(columns=["line", *hidden]).dropna(axis="columns", how="all").round(4)
    frame.insert(0, "answer", ["▶" if candidate == advice.answer else "" for candidate in advice.candidates])
    said = {"share": "share kept", "low": "lower bound", "expected": "share expected"}
    return frame.rename(columns={**said, "predicted": "similarity predicted", "neighbours": "neighbours kept"})


def saving_table(found: Sequence[Saving]) -> pd.DataFrame:
    """Memory and time now and then."""
    return pd.DataFrame(
        {
            "vectors": [f"{s.vectors:,}" for s in found],
            "memory now": [size(s.full_bytes) for s in found],
            "then": [size(s.bytes) for s in found],
            "a query now": [duration(s.full_seconds) for s in found],
            "a query then": [duration(s.seconds) for s in found],
        }
    )


def size(count: float) -> str:
    """Bytes as a reader says them."""
    power = min(max(int(np.log10(max(count, 1)) // 3), 0), len(BYTES) - 1)
    return f"{count / 1000**power:.3g} {BYTES[power]}"


def duration(seconds: float) -> str:
    """Seconds as a reader says them."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _line(candidate: Candidate) -> str:
    return candidate.reducer if candidate.layer is None else f"{candidate.reducer}, layer {candidate.layer}"


def _means(candidate: Candidate) -> str:
    means = {"truncate": "the first ones, as they are", "pca": "principal components", "svd": "singular directions"}
    layer = "" if candidate.layer is None else f", layer {candidate.layer}"
    return means.get(candidate.reducer, "random projection") + layer
