"""Linear probes on frozen embeddings: nested cross-validation, k folds, or a dev split (PROTOCOLS §5.4).

Protocol `logreg`: L-BFGS logistic regression, C from 2⁻²…2³ (nested, split) or 2⁻¹…2⁵ (k-fold). Protocol
`senteval`: Adam with early stopping, L2 from 1e-5…1e-2. Both on unstandardised features and the same stratified
folds, all folds × penalties fitted as one batch; their accuracies are not comparable.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from repro.evaluation import senteval
from repro.evaluation.logistic import fit_logistic
from repro.seeding import make_rng
from repro.types import Array, InputError, check_embeddings, check_same_length, one_of

PROTOCOLS = ("logreg", "senteval")
FOLDS = 10
GRIDS = {"nested": 2.0 ** np.arange(-2, 4), "split": 2.0 ** np.arange(-2, 4), "kfold": 2.0 ** np.arange(-1, 6)}


@dataclass(frozen=True)
class ProbeResult:
    """Outcome of a probe: accuracy, which items were right, the penalties chosen, the majority floor."""

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
    """Test accuracy of a linear classifier; the penalty is chosen on the dev split if given, else by 10 folds.

    Args:
        X_train: features (n, D).
        y_train: a class for each row.
        X_test: features of the rows to score.
        y_test: their classes.
        protocol: `logreg` or `senteval`.
        seed: of the folds and, under `senteval`, of the training.
        X_dev: features of a dev split, if there is one.
        y_dev: its classes.

    Raises:
        InputError: for mismatched lengths, non-finite features, one class, or fewer rows than folds.
    """
    return probe(X_train, y_train, X_test, y_test, protocol=protocol, seed=seed, X_dev=X_dev, y_dev=y_dev).accuracy


def probe(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    protocol: str = "logreg",
    seed: int = 0,
    X_dev: Any = None,
    y_dev: Any = None,
) -> ProbeResult:
    """`linear_probe` with the items that were right and the penalty chosen."""
    classifier = _CLASSIFIERS[one_of(protocol, PROTOCOLS, "protocol")]
    X_train, y_train = _checked(X_train, y_train, "train")
    X_test, y_test = _checked(X_test, y_test, "test", width=X_train.shape[1])
    if X_dev is not None:
        X_dev, y_dev = _checked(X_dev, y_dev, "dev", width=X_train.shape[1])
        grid = classifier.grids["split"]
        models, accuracy = classifier.fit_with_dev(X_train, y_train, X_dev, y_dev, grid, seed)
        best = int(np.argmax(accuracy))
        predicted = models.predict(X_test)[best]
    else:
        grid = classifier.grids["kfold"]
        fold = stratified_folds(y_train, FOLDS, seed)
        best = int(np.argmax(classifier.fold_accuracy(X_train, y_train, fold[None], grid, seed)[0]))
        models = classifier.fit_members(X_train, y_train, np.ones((1, len(y_train)), bool), grid[[best]], seed)
        predicted = models.predict(X_test)[0]
    correct = predicted == y_test
    return ProbeResult(float(correct.mean()), correct, (float(grid[best]),), majority_share(y_train, y_test))


def nested_cv_accuracy(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> float:
    """Mean accuracy over 10 outer folds; each picks its penalty by 10 inner folds of its own training part.

    Raises:
        InputError: as `linear_probe`.
    """
    return nested_cv(X, y, protocol=protocol, seed=seed).accuracy


def nested_cv(X: Any, y: Any, *, protocol: str = "logreg", seed: int = 0) -> ProbeResult:
    """`nested_cv_accuracy` with the items that were right and the ten penalties chosen."""
    classifier = _CLASSIFIERS[one_of(protocol, PROTOCOLS, "protocol")]
    X, y = _checked(X, y, "all")
    grid = classifier.grids["nested"]
    outer = stratified_folds(y, FOLDS, seed)
    inner = np.full((FOLDS, len(y)), -1)
    for i in range(FOLDS):
        rows = np.flatnonzero(outer != i)
        inner[i, rows] = stratified_folds(y[rows], FOLDS, seed, "inner", i)
    accuracy = classifier.fold_accuracy(X, y, inner, grid, seed)  # (10, penalties)
    chosen = grid[accuracy.argmax(1)]
    models = classifier.fit_members(X, y, outer[None] != np.arange(FOLDS)[:, None], chosen, seed)
    predicted = models.predict(X)[outer, np.arange(len(y))]  # each row by the model that has not seen it
    correct = predicted == y
    mean = float(np.mean([correct[outer == i].mean() for i in range(FOLDS)]))
    return ProbeResult(mean, correct, tuple(float(c) for c in chosen), majority_share(y, y))


def stratified_folds(y: NDArray[Any], k: int, seed: int, *keys: object) -> NDArray[np.int64]:
    """Fold of every row (n,), the classes spread evenly; one with fewer rows than folds is missing from some.

    A warning tells of such classes, once for the outer folds.

    Raises:
        InputError: for one class only, fewer rows than folds, or a single row beside one class.
    """
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"only one class ({str(classes[0])!r}): nothing to tell apart")
    if len(y) < k or (not keys and np.sort(counts)[-2] < 2):  # inner folds have lost a row of each class
        raise InputError(
            f"{len(y)} rows, {counts.max()} of them of one class: {k} folds need at least {k}, and 2 of a second class"
        )
    rare = [f"{str(name)!r} ({count})" for name, count in zip(classes, counts, strict=True) if count < k]
    if rare and not keys:
        shown = ", ".join(rare[:5]) + (", …" if len(rare) > 5 else "")
        warnings.warn(
            f"{len(rare)} of {len(classes)} classes have fewer rows than the {k} folds and miss from some: {shown}",
            stacklevel=3,
        )
    rng = make_rng(seed, "folds", *keys)
    fold = np.empty(len(y), np.int64)
    offset = 0
    for name, count in zip(classes, counts, strict=True):
        fold[rng.permutation(np.flatnonzero(y == name))] = (np.arange(count) + offset) % k
        offset += count
    return fold


def majority_share(y_train: NDArray[Any], y_test: NDArray[Any]) -> float:
    """Accuracy of always answering the commonest training class."""
    classes, counts = np.unique(y_train, return_counts=True)
    return float((y_test == classes[counts.argmax()]).mean())


def _checked(X: Any, y: Any, part: str, *, width: int | None = None) -> tuple[Array, NDArray[Any]]:
    X, y = check_embeddings(X, f"X_{part}"), np.asarray(y)
    if y.ndim != 1:
        raise InputError(f"y_{part} has shape {y.shape}: expected one label per row of X_{part}")
    check_same_length(**{f"X_{part}": X, f"y_{part}": y})
    if width is not None and X.shape[1] != width:
        raise InputError(f"X_{part} has {X.shape[1]} columns, X_train {width}: expected the same features")
    return X, y


class _Models(Protocol):
    def predict(self, X: Array) -> NDArray[Any]: ...


def _fold_accuracy(X: Array, y: NDArray[Any], folds: NDArray[np.int64], grid: Array, seed: int) -> Array:
    """Mean validation accuracy (sets of folds, penalties); a row with fold −1 takes no part."""
    sets, k = len(folds), int(folds.max()) + 1
    part = folds[:, None, :]  # (sets, 1, n)
    held = part == np.arange(k)[None, :, None]  # (sets, k, n)
    members = np.repeat(((part >= 0) & ~held).reshape(sets * k, -1), len(grid), axis=0)
    models = fit_logistic(X, y, members, np.tile(grid, sets * k))
    right = (models.predict(X) == y).reshape(sets, k, len(grid), -1)
    # dtype: a product of booleans would be summed by "or"
    per_fold = np.einsum("skgn,skn->skg", right, held, dtype=np.float64) / held.sum(-1)[..., None]
    return np.asarray(per_fold.mean(1))


def _fit_members(X: Array, y: NDArray[Any], members: NDArray[np.bool_], penalties: Array, seed: int) -> _Models:
    return fit_logistic(X, y, members, penalties)


def _fit_with_dev(
    X: Array, y: NDArray[Any], X_dev: Array, y_dev: NDArray[Any], grid: Array, seed: int
) -> tuple[_Models, Array]:
    models = fit_logistic(X, y, np.ones((len(grid), len(y)), bool), grid)
    return models, (models.predict(X_dev) == y_dev).mean(1)


@dataclass(frozen=True)
class _Classifier:
    """One protocol: its penalties by form, of which the first of equal ones is chosen, and its three kinds of fit."""

    grids: Mapping[str, Array]
    fold_accuracy: Callable[..., Array]
    """X, y, folds (sets, n), penalties, seed: mean accuracy on the held-out folds (sets, penalties)"""
    fit_members: Callable[..., _Models]
    """X, y, members (K, n), penalties (K,), seed: K models"""
    fit_with_dev: Callable[..., tuple[_Models, Array]]
    """X, y, X_dev, y_dev, penalties, seed: a model and its dev accuracy for each penalty"""


_CLASSIFIERS = {
    "logreg": _Classifier(GRIDS, _fold_accuracy, _fit_members, _fit_with_dev),
    "senteval": _Classifier(
        dict.fromkeys(GRIDS, senteval.PENALTIES), senteval.fold_accuracy, senteval.fit_members, senteval.fit_with_dev
    ),
}
