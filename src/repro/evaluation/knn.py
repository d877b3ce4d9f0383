"""Nearest-neighbour classification: Euclidean distance, majority vote, ties to the smallest label (PROTOCOLS §5.5).

One matrix product per block of queries serves every k and every prefix of the columns. What the product leaves
undecided, because two distances are closer than its rounding, is settled from differences.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.classify import FOLDS, stratified_folds
from repro.types import Array, InputError, check_dim, check_embeddings, check_same_length

BLOCK = 2**22
"""distances held at once"""
SPARE = 8
"""neighbours more than asked for that are measured exactly"""
Indices = NDArray[np.int64]
Correct = NDArray[np.bool_]


def knn_accuracy(
    X_train: Any, y_train: Any, X_test: Any, y_test: Any, *, k: int = 3, self_neighbour: bool = False
) -> float:
    """Share of test rows whose k nearest training rows vote for their class.

    Args:
        X_train: embeddings (n, dim). The very rows of X_test, in their order, are scored leaving each one out.
        y_train: a class for each row.
        X_test: embeddings of the rows to classify.
        y_test: their classes.
        k: number of votes.
        self_neighbour: every query is its own nearest neighbour and votes for its own class, as it happens where a
            classifier is scored on rows it was fitted on; the other k − 1 votes are the nearest training rows'.

    Raises:
        InputError: for k below 1 or above the training rows, mismatched lengths, or unusable embeddings.
    """
    correct = knn_correct(X_train, y_train, X_test, y_test, ks=[k], self_neighbour=self_neighbour)
    return float(correct[0, 0].mean())


def knn_cv_accuracy(X: Any, y: Any, *, k: int = 3, self_neighbour: bool = False, seed: int = 0) -> float:
    """Accuracy over ten stratified folds, for sets without a test split; `self_neighbour` needs no folds.

    Raises:
        InputError: as `knn_accuracy`, and for fewer rows than folds.
    """
    return float(knn_cv_correct(X, y, ks=[k], self_neighbour=self_neighbour, seed=seed)[0, 0].mean())


def knn_correct(
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    ks: Sequence[int] = (3,),
    dims: Sequence[int] | None = None,
    self_neighbour: bool = False,
) -> Correct:
    """Which test rows are right, for every prefix and every k: (len(dims), len(ks), m). See `knn_accuracy`."""
    X_train, y_train = _checked(X_train, y_train, "train")
    X_test, y_test = _checked(X_test, y_test, "test")
    same = X_train.shape == X_test.shape and np.array_equal(X_train, X_test)
    apart = (np.arange(len(X_train)), np.arange(len(X_test))) if same else None
    return _vote(X_train, y_train, X_test, y_test, ks, dims, apart, self_neighbour)


def knn_cv_correct(
    X: Any,
    y: Any,
    *,
    ks: Sequence[int] = (3,),
    dims: Sequence[int] | None = None,
    self_neighbour: bool = False,
    seed: int = 0,
) -> Correct:
    """Which rows are right when the rows of the other nine folds vote: (len(dims), len(ks), n).

    All folds share one search, in which a row finds no neighbour in its own fold.
    """
    X, y = _checked(X, y, "all")
    fold = np.arange(len(X)) if self_neighbour else stratified_folds(y, FOLDS, seed)
    return _vote(X, y, X, y, ks, dims, (fold, fold), self_neighbour)


def nearest_rows(
    X_train: Array,
    X_test: Array,
    k: int,
    *,
    dims: Sequence[int] | None = None,
    apart: tuple[Indices, Indices] | None = None,
) -> Indices:
    """The k training rows nearest to each query, nearest first, ties by index, for every prefix: (len(dims), m, k).

    Args:
        X_train: rows to search (n, D).
        X_test: queries (m, D).
        k: how many.
        dims: prefix sizes; None is all columns.
        apart: a group of each training row (n,) and of each query (m,); rows of a query's own group are passed over.

    Raises:
        InputError: for sides of different width, a dim out of range, or a query with fewer than k rows to choose from.
    """
    n, width = X_train.shape
    if X_test.shape[1] != width:
        raise InputError(f"X_test has {X_test.shape[1]} columns, X_train {width}: expected the same features")
    sizes = [check_dim(d, limit=width) for d in ([width] if dims is None else dims)]
    _check_k(k, n, apart)
    centre = X_train.mean(0, dtype=np.float64).astype(X_train.dtype)
    X_near, Q_near = X_train - centre, X_test - centre  # the product rounds by the size of its rows
    order = np.argsort(sizes, kind="stable")
    found = np.empty((len(sizes), len(X_test), k), np.int64)
    step = max(1, BLOCK // n)
    for start in range(0, len(X_test), step):
        rows = slice(start, min(start + step, len(X_test)))
        squared, low = np.zeros((rows.stop - start, n), np.result_type(X_near, Q_near)), 0
        for i in order:  # every prefix adds its own columns to the distances of the one before
            new = slice(low, sizes[i])
            a, b = Q_near[rows, new], X_near[:, new]
            squared += np.einsum("ij,ij->i", a, a)[:, None] + np.einsum("ij,ij->i", b, b)[None] - 2 * (a @ b.T)
            own = None if apart is None else apart[1][rows, None] == apart[0][None]
            scale = max(float(np.einsum("ij,ij->i", Z, Z).max()) for Z in (X_near, Q_near[rows]))
            rounding = np.finfo(squared.dtype).eps * (sizes[i] + 8) * 4 * scale
            sides = X_test[rows, : sizes[i]], X_train[:, : sizes[i]]
            found[i, rows] = _smallest(squared, own, *sides, k, rounding)
            low = sizes[i]
    return found


def _smallest(squared: Array, own: NDArray[np.bool_] | None, Q: Array, X: Array, k: int, rounding: float) -> Indices:
    """Indices (m, k) of the rows of X (n, d) nearest to Q (m, d), from squared distances (m, n) ± rounding."""
    n = squared.shape[1]
    masked = squared if own is None else np.where(own, np.inf, squared)
    pool = min(k + SPARE, n)
    chosen = np.argpartition(masked, pool - 1, axis=1)[:, :pool] if pool < n else np.tile(np.arange(n), (len(Q), 1))
    chosen.sort(axis=1)
    exact = np.stack([_squared(q, X[c]) for q, c in zip(Q, chosen, strict=True)])  # (m, pool)
    outside = np.take_along_axis(masked, chosen, axis=1)
    exact[np.isinf(outside)] = np.inf
    rank = np.argsort(exact, axis=1, kind="stable")[:, :k]
    result = np.take_along_axis(chosen, rank, axis=1)
    if pool < n:
        # a row outside the pool may belong inside if the pool ends within rounding of the k-th distance
        last = np.take_along_axis(exact, rank[:, -1:], axis=1)[:, 0]
        for i in np.flatnonzero(~(outside.max(1) - last > rounding)):
            distances = _squared(Q[i], X)
            if own is not None:
                distances[own[i]] = np.inf
            result[i] = np.argsort(distances, kind="stable")[:k]
    return np.asarray(result, np.int64)


def _squared(q: Array, X: Array) -> Array:
    difference = X.astype(np.float64) - q
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _vote(
    X_train: Array,
    y_train: NDArray[Any],
    X_test: Array,
    y_test: NDArray[Any],
    ks: Sequence[int],
    dims: Sequence[int] | None,
    apart: tuple[Indices, Indices] | None,
    self_neighbour: bool,
) -> Correct:
    ks = [check_dim(k, what="k") for k in ks]
    if not ks:
        raise InputError("ks is empty: expected at least one number of neighbours, such as 3")
    classes, codes = np.unique(np.concatenate([y_train, y_test]), return_inverse=True)
    train, test = codes[: len(y_train)], codes[len(y_train) :]
    others = max(ks) - self_neighbour
    shape = (1 if dims is None else len(dims), len(test), 0)
    votes = train[nearest_rows(X_train, X_test, others, dims=dims, apart=apart)] if others else np.empty(shape, int)
    if self_neighbour:
        own = np.broadcast_to(test[None, :, None], (*votes.shape[:2], 1))
        votes = np.concatenate([own, votes], axis=2)  # (dims, m, k)
    ballot = np.zeros((*votes.shape[:2], len(classes)), np.int64)
    at, correct = 0, np.empty((len(votes), len(ks), len(test)), np.bool_)
    dim, row = np.ogrid[: len(votes), : len(test)]
    for i in np.argsort(ks, kind="stable"):
        for vote in range(at, ks[i]):
            ballot[dim, row, votes[:, :, vote]] += 1
        at = ks[i]
        correct[:, i] = ballot.argmax(2) == test  # the first of equal counts is the smallest label
    return correct


def _check_k(k: int, n: int, apart: tuple[Indices, Indices] | None) -> None:
    if apart is None:
        fewest = n
    else:
        groups, sizes = np.unique(apart[0], return_counts=True)
        largest = sizes[np.isin(groups, apart[1])].max(initial=0)
        fewest = n - int(largest)
    if k < 1 or k > fewest:
        raise InputError(f"k asks for {k} neighbours: a query has {fewest} training rows to choose from ({n} in all)")


def _checked(X: Any, y: Any, part: str) -> tuple[Array, NDArray[Any]]:
    X, y = check_embeddings(X, f"X_{part}"), np.asarray(y)
    if y.ndim != 1:
        raise InputError(f"y_{part} has shape {y.shape}: expected one label per row of X_{part}")
    check_same_length(**{f"X_{part}": X, f"y_{part}": y})
    return X, y
