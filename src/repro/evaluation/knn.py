"""Classes from frozen embeddings by a vote of nearest neighbours (method-knn in the book)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.labels import (
    FOLDS,
    check_alike,
    check_labelled,
    stratified_folds,
    tell_unseen,
)
from repro.types import InputError, check_dim


def knn_accuracy(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
) -> float:
    """Share of test rows whose k nearest training rows, by Euclidean distance, vote for their
    class.

    Ties go to the smallest label. Where X_train and X_test (n, dim) are the same rows, each is
    scored leaving it out; with `self_neighbour` every query votes for its own class, as happens
    where a classifier is scored on what it was fitted on, and the other k − 1 votes are the nearest
    training rows'.

    Raises:
        InputError: for k below 1 or above the training rows, mismatched lengths, or unusable
            embeddings.
    """
    right = knn_correct(X_train, y_train, X_test, y_test, k=k, self_neighbour=self_neighbour)
    tell_unseen(np.asarray(y_train), np.asarray(y_test), "y_test")
    return float(right.mean())


def knn_correct(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
) -> NDArray[np.bool_]:
    """Which test rows are right (m,); see `knn_accuracy`."""
    # Brings scikit-learn, which pages that compare scores do without
    from repro.reducers.neighbors import nearest

    X_train, y_train = check_labelled(X_train, y_train, "train")
    X_test, y_test = check_labelled(X_test, y_test, "test", width=X_train.shape[1])
    check_alike(y_train, y_test, "y_test")
    same = np.array_equal(X_train, X_test)
    others, available = check_dim(k, what="k") - self_neighbour, len(X_train) - same
    if others > available:
        raise InputError(
            f"k asks for {others} neighbours: a query has {available} training rows to choose from"
        )
    votes = y_test[:, None][:, :self_neighbour]  # (m, 0 or 1)
    if others:
        # (m, k)
        votes = np.hstack([votes, y_train[nearest(X_train, others, None if same else X_test)]])
    classes = np.unique(votes)
    ballot = np.stack([(votes == name).sum(axis=1) for name in classes])  # (classes, m)
    return np.asarray(classes[ballot.argmax(axis=0)] == y_test)


def knn_cv_correct(
    X: Any,
    y: Any,
    *,
    k: int = 3,
    self_neighbour: bool = False,
    seed: int = 0,
) -> NDArray[np.bool_]:
    """Which rows are right (n,) when the rows of the other nine folds vote; a vote for oneself
    needs no folds.
    """
    X, y = check_labelled(X, y, "all")
    if self_neighbour:
        return knn_correct(X, y, X, y, k=k, self_neighbour=True)
    fold, right = stratified_folds(y, FOLDS, seed), np.empty(len(y), bool)
    for i in range(FOLDS):
        held = fold == i
        right[held] = knn_correct(X[~held], y[~held], X[held], y[held], k=k)
    return right
