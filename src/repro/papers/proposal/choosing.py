"""The advisor on trial: what it says without labels, beside what labels say, on every task at hand
(method-choosing-dim in the book).

A case is one encoder on one task under one reducer. What a rule has to learn it learns from other
cases.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from dimadvise.advice import advise
from dimadvise.bounds import NoShareError, smallest_sufficient
from dimadvise.inputs import judged_texts
from dimadvise.measured import (
    CALIBRATED,
    FEATURES,
    HALF,
    SPECTRUM,
    UNSEEN,
    Calibration,
    features,
)
from dimadvise.request import Request
from repro.methods import FULL_SIZE
from repro.rows import make_rows
from repro.runs.encoders import Named
from repro.sets import DataSet
from repro.store import Store
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
BLIND = (SIZE_ALONE, SHARE, HALF, ALL)  # controls
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


def retention_rows(
    encoder: Named,
    name: str,
    task: DataSet,
    store: Store,
    *,
    reducers: Sequence[str],
    seed: int = 0,
    **shared: Any,
) -> pd.DataFrame:
    """What the advisor sees of one encoder on one task, by reducer and size.

    Metrics: `share_kept` with its lower bound in ci_low, `predicted`, `neighbours_kept`; and, at
    the full size, the score, the number of labelled items and the participation ratio; n_train are
    the rows that reducers were fitted on. No row where the full-size score may be zero, of which
    the terminal tells. Bounds of two reducers are of 97.5 %.
    """
    texts, evidence = judged_texts(task)
    if evidence is None:
        raise InputError(
            f"{name} has neither scores nor labels nor relevant documents: nothing to "
            "judge sizes by"
        )
    X = encoder.embed({name: {name: task}}, store)[texts]
    try:
        advice = advise({None: X}, evidence, Request(methods=tuple(reducers), seed=seed))
    except NoShareError as error:
        complain(f"left out: {encoder.name} on {name}: {error}")
        return make_rows([], **shared)
    facts = {
        "participation_ratio": advice.ratio,
        evidence.metric: advice.reference,
        "items": float(advice.items),
    }
    full = {"method": FULL_SIZE, "dim": advice.full_dim}
    rows: list[dict[str, Any]] = [
        {**full, "metric": metric, "value": value} for metric, value in facts.items()
    ]
    for c in advice.candidates:
        candidate = {"method": c.method, "dim": c.dim}
        rows.append({**candidate, "metric": "share_kept", "value": c.share, "ci_low": c.low})
        rows.append({**candidate, "metric": "predicted", "value": c.predicted})
        rows.append({**candidate, "metric": "neighbours_kept", "value": c.neighbours})
    return make_rows(
        rows,
        backbone=encoder.name,
        dataset=name,
        seed=seed,
        n_train=advice.rows,
        **shared,
    )


@dataclass(frozen=True)
class Case:
    """One encoder on one task under one reducer; arrays over sizes, the largest first."""

    encoder: str
    task: str
    reducer: str
    full: int
    ratio: float  # Participation ratio
    dims: Array
    share: Array  # Share r(d) of the score kept
    low: Array
    predicted: Array
    neighbours: Array

    def reach(self, curve: Array, target: float) -> int:
        """The last size on the way down whose value passes; the full size where none does."""
        return smallest_sufficient(self.dims.tolist(), curve.tolist(), target) or self.full

    def at_least(self, size: float) -> int:
        """The smallest size tried that is no smaller; the full size where there is none."""
        return int(min((d for d in self.dims if d >= size), default=self.full))

    def kept(self, dim: int) -> float:
        """Share of the score at a size; 1 at the full one, where the advice is to leave everything
        as it is.
        """
        return 1.0 if dim == self.full else float(self.share[list(self.dims).index(dim)])


def cases_of(curves: pd.DataFrame) -> list[Case]:
    """Cases from the rows of `retention_rows`."""
    cases = []
    facts = curves[curves["metric"] == "participation_ratio"].set_index(["backbone", "dataset"])
    names = ["share_kept", "predicted", "neighbours_kept"]
    by_size = curves[curves["metric"].isin(names)]
    for (encoder, task, reducer), group in by_size.groupby(
        ["backbone", "dataset", "method"],
        sort=False,
    ):
        of = {
            name: rows.set_index("dim").sort_index(ascending=False)
            for name, rows in group.groupby("metric")
        }
        share, predicted, neighbours = (of[name]["value"].to_numpy(float) for name in names)
        dims, low = of["share_kept"].index, of["share_kept"]["ci_low"].to_numpy(float)
        fact = facts.loc[(encoder, task)]
        about = (encoder, task, reducer, int(fact["dim"]), float(fact["value"]))
        cases.append(Case(*about, dims.to_numpy(np.int64), share, low, predicted, neighbours))
    return cases


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
    answers = [c.reach(c.low, target) for c in seen]
    share = float(np.median([answer / c.full for answer, c in zip(answers, seen, strict=True)]))
    ratio = float(np.median([answer / c.ratio for answer, c in zip(answers, seen, strict=True)]))
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
            f"{len(cases)} cases of one task or none: rules learn from other tasks, "
            "so none is judged"
        )
        return make_rows([], **shared)
    left_out = LEFT_OUT if len({c.encoder for c in cases}) > 1 else (TASK,)
    judged: list[dict[str, Any]] = []
    for left in left_out:
        for c in cases:
            judged += _judged(c, cases, left, targets)
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
            f"{len(inputs)} measured shares: expected {inputs.shape[1]} or more, one "
            "per coefficient"
        )
    found, _ = nnls(inputs, 1 - np.asarray(share, np.float64))
    return Calibration(tuple(float(c) for c in found))


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
    left: str,
    targets: Sequence[float],
) -> Iterator[dict[str, Any]]:
    seen = others(case, cases, left)
    if not seen:
        return
    about = {"backbone": case.encoder, "dataset": case.task}
    curves = {name: curve_of(case) for name, curve_of in curve_rules(seen).items()}
    below = case.dims < case.full
    for name, curve in curves.items():
        rule = {**about, "method": name, "setting": setting_of(case.reducer, left)}
        if name in (CALIBRATED, SIZE_ALONE):
            for dim, value in zip(case.dims, curve, strict=True):
                yield {**rule, "metric": "expected_share", "dim": int(dim), "value": float(value)}
        error = float(np.abs(curve - case.share)[below].mean())
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
            rule = {**about, "method": name, "setting": setting_of(case.reducer, left, target)}
            yield {**rule, "metric": "answer", "dim": case.full, "value": float(dim)}
            if name not in (LABELS, KNEE):
                share = case.kept(dim)
                yield {**rule, "metric": "log2_error", "value": float(np.log2(dim / truth))}
                yield {**rule, "metric": "share_at_answer", "value": share}
                yield {**rule, "metric": "target_met", "value": float(share >= target)}
                yield {**rule, "metric": "share_of_size", "value": dim / case.full}


def _summaries(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
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
