"""The advisor on trial: its rules without labels, beside what labels say, in every case at hand
(method-choosing-dim in the book).

What a rule has to learn it learns from other cases.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from dimadvise.measured import CALIBRATED, FEATURES, HALF, SPECTRUM, UNSEEN, Calibration, features
from repro.papers.proposal.cases import Case, cases_of
from repro.rows import Row, make_rows
from repro.terminal import complain
from repro.types import Array, InputError, check_same_length

NEIGHBOURS, SIZE_ALONE, SHARE, RATIO, ALL = (
    "neighbours",
    "size alone",
    "share of D",
    "PR × constant",
    "all of D",
)
LOOKING = (SPECTRUM, NEIGHBOURS, CALIBRATED, RATIO)  # Rules that look at embeddings
BLIND = (SIZE_ALONE, SHARE, HALF, ALL)  # Controls
TASK = "task left out"
LEFT_OUT = (TASK, UNSEEN)
"""What a tuned rule has not seen: its task; or, as with a user's embeddings, neither its task nor
its encoder.
"""
LABELS, KNEE = "labels", "knee"
"""Answers with labels: the last size whose bound passes, the last whose share does."""
BY_CASE = ("answer", "log2_error", "share_at_answer", "curve_error", "expected_share")
"""Metrics that are kept for every case."""
SUMMARIES = {
    "log2_error": {
        "log2_error_median": "median",
        "log2_error_mean": "mean",
        "log2_error_worst": "max",
        "cases": "size",
    },
    "curve_error": {"curve_error_mean": "mean"},
    "target_met": {"target_met_share": "mean"},
    "share_of_size": {"share_of_size_median": "median"},
}
"""By metric, what sums it up over all cases: names, and statistics as pandas calls them."""
EVERY = "all"
"""Dataset and backbone of rows that sum up all cases."""


def others(case: Case, cases: Sequence[Case], left_out: str) -> list[Case]:
    """Cases of the same reducer that a rule may learn from."""
    seen = []
    for c in cases:
        unlike = c.task != case.task and (left_out == TASK or c.encoder != case.encoder)
        if c.reducer == case.reducer and unlike:
            seen.append(c)
    return seen


def curve_rules(seen: Sequence[Case]) -> dict[str, Callable[[Case], Array]]:
    """Rules that predict r(d): two read it off as it is, two were fitted on other cases."""
    share = np.concatenate([c.share for c in seen])
    calibration = _fitted(seen)
    sizes, _ = nnls(np.concatenate([_halvings(c) for c in seen]), 1 - share)
    return {
        SPECTRUM: lambda c: c.predicted,
        NEIGHBOURS: lambda c: c.neighbours,
        CALIBRATED: lambda c: calibration(c.predicted, c.neighbours),
        SIZE_ALONE: lambda c: np.clip(1 - _halvings(c) @ sizes, 0, 1),
    }


def size_rules(seen: Sequence[Case], target: float) -> dict[str, Callable[[Case], int]]:
    """Rules that name a size at once; the tuned constants are medians over other cases."""
    answers = np.array([c.reach(c.low, target) for c in seen])
    share = np.median(answers / [c.full for c in seen])
    ratio = np.median(answers / [c.ratio for c in seen])
    return {
        SHARE: lambda c: c.at_least(share * c.full),
        RATIO: lambda c: c.at_least(ratio * c.ratio),
        HALF: lambda c: c.at_least(c.full / 2),
        ALL: lambda c: c.full,
    }


def rule_rows(curves: pd.DataFrame, targets: Sequence[float], **shared: Any) -> pd.DataFrame:
    """Answers and errors of every rule in every case, their summaries, and the calibration fitted
    on all cases.

    A single task among the rows of `retention_rows` leaves nothing to learn from, hence no row.
    """
    cases = cases_of(curves)
    if len({c.task for c in cases}) < 2:
        complain(
            f"{len(cases)} cases of one task or none: rules learn from other tasks, so none is "
            "judged"
        )
        return make_rows([], **shared)
    kinds_left_out = LEFT_OUT if len({c.encoder for c in cases}) > 1 else (TASK,)
    judged: list[Row] = []
    for left_out in kinds_left_out:
        for c in cases:
            judged += _judged(c, cases, left_out, targets)
    rows = []
    for row in judged:
        # What is left out only changes constants: case by case one way of leaving out is enough to
        # look at
        if TASK in row["setting"] and row["metric"] in BY_CASE:
            rows.append(row)
    rows += _summaries(pd.DataFrame(judged))
    for reducer in dict.fromkeys(c.reducer for c in cases):
        calibration = _fitted([c for c in cases if c.reducer == reducer])
        for name, value in zip(FEATURES, calibration.coefficients, strict=True):
            setting = f"{reducer}, {name}"
            coefficient = {"method": CALIBRATED, "metric": "coefficient", "setting": setting}
            rows.append({**coefficient, "value": value})
    return make_rows([{"dataset": EVERY, "backbone": EVERY, **row} for row in rows], **shared)


def setting_of(reducer: str, left_out: str, target: float | None = None) -> str:
    """The column that tells reducers, what was left out and targets apart."""
    return f"{reducer}, {left_out}" + ("" if target is None else f", keep {target:g}")


def fit_calibration(predicted: Array, neighbours: Array, share: Array) -> Calibration:
    """Least squares with coefficients of at least 0, of measured shares on what was seen without
    labels.
    """
    inputs = features(predicted, neighbours)
    check_same_length(predicted=predicted, share=share)
    if len(inputs) < inputs.shape[1]:
        raise InputError(
            f"{len(inputs)} measured shares: expected {inputs.shape[1]} or more, one per "
            "coefficient"
        )
    coefficients, _ = nnls(inputs, 1 - np.asarray(share, np.float64))
    return Calibration(tuple(float(c) for c in coefficients))


def _fitted(cases: Sequence[Case]) -> Calibration:
    return fit_calibration(
        np.concatenate([c.predicted for c in cases]),
        np.concatenate([c.neighbours for c in cases]),
        np.concatenate([c.share for c in cases]),
    )


def _halvings(case: Case) -> Array:
    x = np.log2(case.full / case.dims)
    return np.stack([x, x**2, x**4], axis=1)


def _judged(
    case: Case,
    cases: Sequence[Case],
    left_out: str,
    targets: Sequence[float],
) -> Iterator[Row]:
    seen = others(case, cases, left_out)
    if not seen:
        return
    about = {"backbone": case.encoder, "dataset": case.task}
    curves = {name: curve_of(case) for name, curve_of in curve_rules(seen).items()}
    below = case.dims < case.full
    for name, curve in curves.items():
        rule = {**about, "method": name, "setting": setting_of(case.reducer, left_out)}
        if name in (CALIBRATED, SIZE_ALONE):
            for dim, value in zip(case.dims, curve, strict=True):
                yield {**rule, "metric": "expected_share", "dim": dim, "value": value}
        error = np.abs(curve - case.share)[below].mean()
        yield {**rule, "metric": "curve_error", "value": error}
    for target in targets:
        truth = case.reach(case.low, target)
        answers: Mapping[str, int] = {
            LABELS: truth,
            KNEE: case.reach(case.share, target),
            **{name: case.reach(curve, target) for name, curve in curves.items()},
            **{name: size_of(case) for name, size_of in size_rules(seen, target).items()},
        }
        for name, dim in answers.items():
            rule = {**about, "method": name, "setting": setting_of(case.reducer, left_out, target)}
            yield {**rule, "metric": "answer", "dim": case.full, "value": dim}
            if name not in (LABELS, KNEE):
                share = case.kept(dim)
                yield {**rule, "metric": "log2_error", "value": np.log2(dim / truth)}
                yield {**rule, "metric": "share_at_answer", "value": share}
                yield {**rule, "metric": "target_met", "value": float(share >= target)}
                yield {**rule, "metric": "share_of_size", "value": dim / case.full}


def _summaries(rows: pd.DataFrame) -> Iterator[Row]:
    """Over all cases: four errors (method-choosing-dim in the book), the median size, and the
    number of cases.
    """
    for (method, setting, metric), group in rows.groupby(
        ["method", "setting", "metric"],
        sort=False,
    ):
        # None of these numbers but a log2 error is below 0
        for name, statistic in SUMMARIES.get(metric, {}).items():
            value = float(group["value"].abs().agg(statistic))
            yield {"method": method, "setting": setting, "metric": name, "value": value}
