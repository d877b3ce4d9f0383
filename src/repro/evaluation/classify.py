"""Classes from frozen embeddings by linear probes (method-probes in the book).

A probe is judged by nested cross-validation, by k folds, or on a dev split. Its protocol is a
module: `logistic` (L-BFGS) or `senteval` (Adam with early stopping). Both read unstandardised
features and the same stratified folds, and fit all folds × penalties as one batch; their accuracies
are not comparable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.evaluation import logistic, senteval
from repro.evaluation.labels import (
    FOLDS,
    check_alike,
    check_labelled,
    class_counts,
    majority_share,
    stratified_folds,
    tell_unseen,
)
from repro.evaluation.stats import Score, bootstrap_mean
from repro.sets import DataSet, Embed, LabelledPairs, LabelledTexts
from repro.types import Array, InputError, one_of

PROTOCOLS: dict[str, ModuleType] = {"logreg": logistic, "senteval": senteval}


@dataclass(frozen=True)
class ProbeResult:
    """Outcome of a probe: accuracy, which items were right, the penalties chosen, the majority
    floor.
    """

    accuracy: float
    correct: NDArray[np.bool_]
    chosen: tuple[float, ...]
    floor: float


def pair_features(X1: Array, X2: Array) -> Array:
    """Features of labelled pairs (n, 2·dim): [|u − v|, u·v] (SentEval)."""
    return np.hstack([np.abs(X1 - X2), X1 * X2])


def linear_probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    protocol: str = "logreg",
    seed: int = 0,
    X_dev: Any = None,
    y_dev: Any = None,
) -> float:
    """Test accuracy of a linear classifier; the penalty is chosen on the dev split if given, else
    by 10 folds.

    Features X are (n, D), with a class in y for each row; `protocol` is `logreg` or `senteval`, and
    `seed` that of the folds and of senteval's training.

    Raises:
        InputError: for mismatched lengths, non-finite features, one class, or fewer rows than
            folds.
    """
    dev = None if X_dev is None else (X_dev, y_dev)
    return probe(X_train, y_train, X_test, y_test, protocol=protocol, seed=seed, dev=dev).accuracy


def probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    protocol: str = "logreg",
    seed: int = 0,
    dev: Any = None,
) -> ProbeResult:
    """`linear_probe` with the items that were right and the penalty chosen; `dev` holds features
    and classes.
    """
    classifier = PROTOCOLS[one_of(protocol, list(PROTOCOLS), "protocol")]
    X_train, y_train = check_labelled(X_train, y_train, "train")
    X_test, y_test = check_labelled(X_test, y_test, "test", width=X_train.shape[1])
    check_alike(y_train, y_test, "y_test")
    tell_unseen(y_train, y_test, "y_test")
    if dev is not None:
        X_dev, y_dev = check_labelled(dev[0], dev[1], "dev", width=X_train.shape[1])
        check_alike(y_train, y_dev, "y_dev")
        class_counts(y_train)  # Folds would refuse a single class
        grid = classifier.GRIDS["split"]
        models, accuracy = classifier.fit_with_dev(X_train, y_train, X_dev, y_dev, grid, seed)
        best = int(np.argmax(accuracy))
        predicted = models.predict(X_test)[best]
    else:
        grid = classifier.GRIDS["kfold"]
        fold = stratified_folds(y_train, FOLDS, seed)
        best = int(np.argmax(classifier.fold_accuracy(X_train, y_train, fold[None], grid, seed)[0]))
        models = classifier.fit_members(
            X_train,
            y_train,
            np.ones((1, len(y_train)), bool),
            grid[[best]],
            seed,
        )
        predicted = models.predict(X_test)[0]
    correct = predicted == y_test
    return ProbeResult(
        float(correct.mean()),
        correct,
        (float(grid[best]),),
        majority_share(y_train, y_test),
    )


def nested_cv_accuracy(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> float:
    """Mean accuracy over 10 outer folds; each picks its penalty by 10 inner folds of its own
    training part.
    """
    return nested_cv(X, y, protocol=protocol, seed=seed).accuracy


def nested_cv(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> ProbeResult:
    """`nested_cv_accuracy` with the items that were right and the ten penalties chosen."""
    classifier = PROTOCOLS[one_of(protocol, list(PROTOCOLS), "protocol")]
    X, y = check_labelled(X, y, "all")
    grid = classifier.GRIDS["nested"]
    outer = stratified_folds(y, FOLDS, seed)
    inner = np.full((FOLDS, len(y)), -1)
    for i in range(FOLDS):
        rows = np.flatnonzero(outer != i)
        inner[i, rows] = stratified_folds(y[rows], FOLDS, seed, "inner", i)
    accuracy = classifier.fold_accuracy(X, y, inner, grid, seed)  # (10, penalties)
    chosen = grid[accuracy.argmax(1)]
    models = classifier.fit_members(X, y, outer[None] != np.arange(FOLDS)[:, None], chosen, seed)
    # Each row by the model that has not seen it
    predicted = models.predict(X)[outer, np.arange(len(y))]
    correct = predicted == y
    mean = float(np.mean([correct[outer == i].mean() for i in range(FOLDS)]))
    return ProbeResult(mean, correct, tuple(float(c) for c in chosen), majority_share(y, y))


def score_classification(
    embed: Embed,
    splits: Mapping[str, DataSet],
    *,
    protocol: str = "logreg",
    seed: int = 0,
) -> Score:
    """Accuracy of a linear probe: on the test split, with or without a dev split, or over nested
    folds of it all.
    """
    sides = {name: features_and_labels(embed, split) for name, split in splits.items()}
    if not {"train", "dev"} & set(sides):
        X, y = (np.concatenate(side) for side in zip(*sides.values(), strict=True))
        result = nested_cv(X, y, protocol=protocol, seed=seed)
    else:
        if missing := {"train", "test"} - set(sides):
            raise InputError(f"no split {min(missing)!r}: the data has {', '.join(splits)}")
        result = probe(
            *sides["train"],
            *sides["test"],
            protocol=protocol,
            seed=seed,
            dev=sides.get("dev"),
        )
    interval = bootstrap_mean(result.correct, seed=seed)
    # Nested accuracy is the mean over folds; folds are equal but for a row, so the interval shifts
    # with it
    shift = result.accuracy - interval.value
    return Score(
        "accuracy",
        result.accuracy,
        interval.low + shift,
        interval.high + shift,
        len(result.correct),
        result.correct,
        result.floor,
    )


def features_and_labels(embed: Embed, part: DataSet) -> tuple[Array, NDArray[Any]]:
    """Features (n, D) and labels of a labelled set; pairs give `pair_features`.

    An InputError without labels.
    """
    if isinstance(part, LabelledTexts):
        return embed(part.texts), part.labels
    if isinstance(part, LabelledPairs):
        return pair_features(embed(part.texts1), embed(part.texts2)), part.labels
    raise InputError(f"{part.name} holds no labels: it cannot be classified")
