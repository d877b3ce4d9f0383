"""Labels beside features: checked, counted, and spread evenly over folds."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from repro.seeding import make_rng
from repro.types import (
    Array,
    InputError,
    check_embeddings,
    check_same_length,
    plain_array,
)

FOLDS = 10


def stratified_folds(y: NDArray[Any], k: int, seed: int, *keys: object) -> NDArray[np.int64]:
    """Fold of every row (n,), the classes spread evenly; one with fewer rows than folds is missing
    from some.

    A warning tells of such classes, once for the outer folds.
    """
    classes, counts = class_counts(y)
    # Inner folds have lost a row of each class
    if len(y) < k or (not keys and np.sort(counts)[-2] < 2):
        raise InputError(
            f"{len(y)} rows, {counts.max()} of them of one class: {k} folds need at least {k}, and "
            "2 of a second class"
        )
    rare = [
        f"{str(name)!r} ({count})" for name, count in zip(classes, counts, strict=True) if count < k
    ]
    if rare and not keys:
        shown = ", ".join(rare[:5]) + (", …" if len(rare) > 5 else "")
        warnings.warn(
            f"{len(rare)} of {len(classes)} classes have fewer rows than the {k} folds and miss "
            f"from some: {shown}",
            stacklevel=3,
        )
    rng = make_rng(seed, "folds", *keys)
    fold = np.empty(len(y), np.int64)
    offset = 0
    for name, count in zip(classes, counts, strict=True):
        fold[rng.permutation(np.flatnonzero(y == name))] = (np.arange(count) + offset) % k
        offset += count
    return fold


def class_counts(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes, of which there must be two, and how many rows each has."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"only one class ({str(classes[0])!r}): nothing to tell apart")
    return classes, counts


def majority_share(y_train: NDArray[Any], y_test: NDArray[Any]) -> float:
    """Accuracy of always answering the commonest training class."""
    classes, counts = np.unique(y_train, return_counts=True)
    return float((y_test == classes[counts.argmax()]).mean())


def check_labelled(
    X: Any, y: Any, split: str, *, width: int | None = None
) -> tuple[Array, NDArray[Any]]:
    """Features X (n, D) and labels y (n,) of a split as arrays; an InputError where they do not fit
    each other, or the features of the training split.
    """
    X, y = check_embeddings(X, f"X_{split}"), plain_array(y, f"y_{split}")
    if y.ndim != 1:
        raise InputError(f"y_{split} has shape {y.shape}: expected one label per row of X_{split}")
    check_same_length(**{f"X_{split}": X, f"y_{split}": y})
    check_labels(y, f"y_{split}")
    if width is not None and X.shape[1] != width:
        raise InputError(
            f"X_{split} has {X.shape[1]} columns, X_train {width}: expected the same features"
        )
    return X, y


def check_labels(y: NDArray[Any], name: str) -> None:
    """Refuse labels that are missing, and numbers among texts, which equal none of these."""
    if y.ndim != 1:
        raise InputError(f"{name} has shape {y.shape}: expected one label for each row")
    for row, label in enumerate(y.tolist()):
        if pd.api.types.is_scalar(label) and pd.isna(label):
            raise InputError(f"{name}[{row}] is {label}: expected a label for every row")
    kinds = {isinstance(label, str) for label in y.tolist()}
    if len(kinds) > 1:
        raise InputError(f"{name} has texts and numbers: expected labels of one kind")


def check_alike(y_train: NDArray[Any], y: NDArray[Any], name: str) -> None:
    """Refuse texts beside numbers, and classes of which training has seen none: none of them would
    ever be found.
    """
    if len(y) and isinstance(y.tolist()[0], str) != isinstance(y_train.tolist()[0], str):
        kind = "texts" if isinstance(y.tolist()[0], str) else "numbers"
        raise InputError(f"{name} has {kind} and y_train has not: expected labels of one kind")
    if len(y) and not np.isin(y, y_train).any():
        first, seen = (str(labels.tolist()[0]) for labels in (y, y_train))
        raise InputError(
            f"none of the classes of {name}, such as {first!r}, is among those of y_train, such as "
            f"{seen!r}: expected splits of one dataset"
        )


def tell_unseen(y_train: NDArray[Any], y: NDArray[Any], name: str) -> None:
    """Warn of classes that training has not seen, whose rows no classifier can tell right."""
    if len(unseen := y[~np.isin(y, y_train)]):
        classes = np.unique(unseen).tolist()
        told = f"{len(classes)} of {len(np.unique(y))} classes of {name}, such as {classes[0]!r},"
        rows = f"the {len(unseen)} of {len(y)} rows that have them count as wrong"
        warnings.warn(f"{told} are not among those of y_train: {rows}", stacklevel=3)
