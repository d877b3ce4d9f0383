"""Nested cross-validation of a linear probe: 610 logistic regressions, all at once or one by
one.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.timing import BenchRow, alternate
from repro import data
from repro.evaluation.classify import ProbeResult, nested_cv
from repro.evaluation.labels import FOLDS, stratified_folds
from repro.evaluation.logistic import GRIDS
from repro.models import SentenceEncoder

BACKBONE = "repro-tiny"


def run(quick: bool) -> BenchRow:
    texts = data.load("cr", source="microworld", limit=400 if quick else None)
    X = SentenceEncoder.load(BACKBONE, device="cpu").encode(texts.texts, readout="encoder")
    y = np.asarray(texts.labels)
    works = {"ours": lambda: nested_cv(X, y), "peer": lambda: one_by_one(X, y)}
    results, seconds = alternate(works, 1 if quick else 2)
    ours: ProbeResult = results["ours"]
    accuracy, chosen = results["peer"]
    gap = abs(ours.accuracy - accuracy) * 100
    same = sum(a == b for a, b in zip(ours.chosen, chosen, strict=True))
    return BenchRow(
        work=f"linear probe, nested, {len(y)} × {X.shape[1]}",
        peer="scikit-learn, 610 fits",
        goal=None,
        ours_s=seconds["ours"],
        peer_s=seconds["peer"],
        equal=gap <= 0.3,
        checked=f"accuracy, {gap:.2f} ≤ 0.3 points; {same} of {FOLDS} penalties the same",
        columns={
            "backbone": BACKBONE,
            "dim": X.shape[1],
            "dataset": "cr",
            "data_source": "microworld",
        },
    )


def one_by_one(X: np.ndarray, y: np.ndarray) -> tuple[float, tuple[float, ...]]:
    """The same folds and penalties, a fit each: mean accuracy and the penalties chosen."""
    outer = stratified_folds(y, FOLDS, 0)
    accuracies, chosen = [], []
    for i in range(FOLDS):
        rows = np.flatnonzero(outer != i)
        inner = stratified_folds(y[rows], FOLDS, 0, "inner", i)
        scores = [
            np.mean([_accuracy(X, y, rows[inner != k], rows[inner == k], c) for k in range(FOLDS)])
            for c in GRIDS["nested"]
        ]
        chosen.append(float(GRIDS["nested"][int(np.argmax(scores))]))
        accuracies.append(_accuracy(X, y, rows, np.flatnonzero(outer == i), chosen[-1]))
    return float(np.mean(accuracies)), tuple(chosen)


def _accuracy(
    X: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    penalty: float,
) -> float:
    model = LogisticRegression(C=penalty, max_iter=1000).fit(X[train], y[train])
    return float((model.predict(X[test]) == y[test]).mean())
