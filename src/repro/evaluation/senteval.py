"""SentEval's classifier, all folds × penalties trained as one (Conneau & Kiela, 2018; PROTOCOLS §5.4).

A head is one linear layer under softmax, trained by Adam with the L2 penalty added to the gradient (of the
intercept too) on batches of 64, features as they are. After every fourth pass it is checked on dev rows: the best
head so far is kept, and the sixth check *ever* that is no better ends its training, as the 51st check does.

SentEval fits its heads one after another; here a step takes one chunk of rows for all of them, as many as give each
head 64 of its own rows on average, and a head learns from those of them that are its own. Every product is then
one for all heads; a head that has stopped leaves the arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.seeding import make_rng
from repro.types import Array, InputError

Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]
PENALTIES = np.array([1e-5, 1e-4, 1e-3, 1e-2])
BATCH, PASSES, CHECKS, TENACITY = 64, 4, 51, 5
DEV_SHARE = 0.05
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
BLOCK = 16_384
"""numbers that Adam updates at a time: its five arrays then stay in the cache"""


@dataclass(frozen=True)
class LinearHeads:
    """K trained heads: weights (outputs, D + 1, K), intercept last; dev accuracy and number of checks (K,) of each."""

    weights: Array
    classes: NDArray[Any]
    accuracy: Array
    checks: NDArray[np.int64]

    def predict(self, X: Array) -> NDArray[Any]:
        """Predicted class of every row under every head (K, n)."""
        return np.asarray(self.classes[_answers(_with_ones(X), self.weights).T])


def fold_accuracy(X: Array, y: NDArray[Any], folds: Rows, penalties: Array, seed: int) -> Array:
    """Mean accuracy on the held-out folds (sets of folds, penalties), to 0.0001 as SentEval compares them.

    The fold that ends the training also scores it. A row with fold −1 takes no part.

    Raises:
        InputError: for fewer than two classes.
    """
    sets, k = len(folds), int(folds.max()) + 1
    held = (folds[:, None, :] == np.arange(k)[:, None]).reshape(sets * k, -1)  # (sets · k, n)
    learn = np.repeat(folds >= 0, k, axis=0) & ~held
    heads = fit_heads(X, *_targets(y, y), learn, held, np.tile(penalties, (sets * k, 1)), seed)
    return np.asarray(heads.accuracy.reshape(sets, k, -1).mean(1).round(4))


def fit_with_dev(
    X: Array, y: NDArray[Any], X_dev: Array, y_dev: NDArray[Any], penalties: Array, seed: int
) -> tuple[LinearHeads, Array]:
    """A head for each penalty and its accuracy on the dev set that ended its training.

    Raises:
        InputError: for fewer than two classes in `y`.
    """
    classes, target = _targets(y, y)
    learn = np.arange(len(y) + len(y_dev))[None] < len(y)
    features, targets = np.vstack([X, X_dev]), np.concatenate([target, _targets(y, y_dev)[1]])
    heads = fit_heads(features, classes, targets, learn, ~learn, penalties[None], seed)
    return heads, heads.accuracy


def fit_members(X: Array, y: NDArray[Any], members: Bools, penalties: Array, seed: int) -> LinearHeads:
    """K heads, each trained on its members (K, n) with its own penalty (K,) and checked on a random 5 % of them.

    Raises:
        InputError: for fewer than two classes.
    """
    dev = np.zeros_like(members)
    for k in range(len(members)):
        dev[k, dev_rows(np.flatnonzero(members[k]), seed)] = True
    return fit_heads(X, *_targets(y, y), members & ~dev, dev, penalties[:, None], seed)


def fit_heads(
    X: Array, classes: NDArray[Any], target: Rows, learn: Bools, dev: Bools, penalties: Array, seed: int
) -> LinearHeads:
    """Train folds × penalties heads.

    Args:
        X: features (n, D).
        classes: names of the outputs.
        target: output of every row (n,); −1, on dev rows only, for a class that is none of them.
        learn: (folds, n), the rows learnt from.
        dev: (folds, n), the rows checked on.
        penalties: (folds, penalties).
        seed: of the start and of the order of rows.
    """
    features = _with_ones(X)
    fold = np.repeat(np.arange(len(learn)), penalties.shape[1])  # of every head (K,)
    rows, active = np.flatnonzero(learn.any(0)), np.arange(len(fold))
    start = initial_head(seed, len(classes), X.shape[1])[..., None].repeat(len(fold), axis=2)  # (outputs, D + 1, K)
    shared = bool(learn[:, rows].all())
    training = _Training(features, target, None if shared else np.take(learn.T, fold, axis=1), start, penalties.ravel())
    checked_on = [np.flatnonzero(part) for part in dev]
    kept, best = np.empty_like(start), np.full(len(fold), -1.0)
    misses, checks = np.zeros(len(fold), np.int64), np.zeros(len(fold), np.int64)
    starts = chunk_starts(len(rows), learn.sum(1))
    orders = row_orders(rows, seed)
    for _ in range(CHECKS):
        for _ in range(PASSES):
            for chunk in np.split(next(orders), starts[1:]):
                training.step(chunk)
        accuracy = dev_accuracy(features, target, training.weights, [checked_on[i] for i in fold[active]])
        better = accuracy > best[active]
        stopped = ~better & (misses[active] >= TENACITY)
        best[active[better]] = accuracy[better]
        kept[..., active[better]] = training.weights[..., better]
        misses[active[~better]] += 1
        checks[active] += 1
        if stopped.any():
            active = active[~stopped]
            training.keep(~stopped)
        if not len(active):
            break
    return LinearHeads(kept, classes, best, checks)


def initial_head(seed: int, outputs: int, dim: int) -> Array:
    """The start of every head (outputs, dim + 1), intercept last: uniform within ±1/√dim."""
    bound = 1 / np.sqrt(dim)
    return make_rng(seed, "senteval", "start").uniform(-bound, bound, (outputs, dim + 1)).astype(np.float32)


def row_orders(rows: Rows, seed: int) -> Iterator[Rows]:
    """A new order of the rows for each pass."""
    rng = make_rng(seed, "senteval", "order")
    while True:
        yield rng.permutation(rows)


def dev_rows(rows: Rows, seed: int) -> Rows:
    """A random 5 % of the rows, at least one."""
    return make_rng(seed, "senteval", "dev").permutation(rows)[: max(1, int(DEV_SHARE * len(rows)))]


def chunk_starts(rows: int, learnt: Rows) -> Rows:
    """Where the chunks of a pass begin: batches of 64 where every head learns from all rows.

    Else as many chunks as a head of mean size has batches, of equal size: a small last chunk might hold none of
    some head's rows.
    """
    if (learnt == rows).all():
        return np.arange(0, rows, BATCH)
    chunks = int(np.ceil(learnt.mean() / BATCH))
    return np.arange(chunks) * rows // chunks


def dev_accuracy(features: Array, target: Rows, weights: Array, checked_on: list[Rows]) -> Array:
    """Accuracy (K,) of each head on its own rows; neighbours that share them share the product."""
    accuracy = np.empty(len(checked_on))
    first = 0
    while first < len(checked_on):
        rows, last = checked_on[first], first
        while last < len(checked_on) and checked_on[last] is rows:
            last += 1
        answers = _answers(features[rows], weights[..., first:last])
        accuracy[first:last] = (answers == target[rows, None]).mean(0)
        first = last
    return accuracy


def _answers(features: Array, weights: Array) -> NDArray[np.int64]:
    """Output of every row under every head (n, K); the first of equal ones."""
    return np.asarray(np.matmul(features, weights).argmax(0))


def _with_ones(X: Array) -> Array:
    return np.hstack([X, np.ones((len(X), 1))]).astype(np.float32)


def _targets(y_train: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """Classes of the training labels, and which of them each label of `y` is, −1 for none."""
    classes = np.unique(y_train)
    if len(classes) < 2:
        raise InputError(f"only one class ({classes[0]!r}) in {len(y_train)} rows: nothing to tell apart")
    same = y[:, None] == classes
    return classes, np.where(same.any(1), same.argmax(1), -1)


class _Training:
    """Adam on the heads still in training.

    Args:
        features: (n, D + 1).
        target: (n,).
        members: (n, K), or None where every head learns from every row it is given.
        weights: (outputs, D + 1, K).
        penalties: (K,).
    """

    def __init__(self, features: Array, target: Rows, members: Bools | None, weights: Array, penalties: Array) -> None:
        self.features, self.target, self.members = features, target, members
        self.penalties = penalties.astype(np.float32)
        self.steps = 0
        self._set(weights, np.zeros_like(weights), np.zeros_like(weights))

    def keep(self, running: Bools) -> None:
        """Drop the heads that have stopped."""
        self.penalties = self.penalties[running]
        if self.members is not None:
            self.members = self.members.compress(running, axis=1)  # unlike indexing, keeps rows contiguous
        self._set(*(state.compress(running, axis=2) for state in (self.weights, self.first, self.second)))

    def _set(self, weights: Array, first: Array, second: Array) -> None:
        """Moments are kept without Adam's factors 1 − β, which go into the step."""
        self.weights, self.first, self.second = weights, first, second
        outputs, size, K = weights.shape
        # two outputs have opposite gradients: one product does for both
        self.gradient = np.empty((size, K) if outputs == 2 else weights.shape, np.float32)
        height = max(1, BLOCK // (outputs * K + 1))
        scratch = np.empty((outputs, min(height, size), K), np.float32)
        decay = np.broadcast_to(self.penalties, scratch.shape).copy()
        self.blocks = []
        for cut in (slice(i, min(i + height, size)) for i in range(0, size, height)):
            states = (weights[:, cut], first[:, cut], second[:, cut], self.gradient[..., cut, :])
            self.blocks.append((*states, scratch[:, : cut.stop - cut.start], decay[:, : cut.stop - cut.start]))

    def step(self, rows: Rows) -> None:
        """One step of every head on those of the rows that are its own."""
        X = self.features.take(rows, axis=0)  # (b, D + 1)
        residual = self._residual(X, self.target[rows])  # (b, K) or (outputs, b, K)
        if self.members is None:
            residual *= np.float32(1 / len(rows))
        else:
            own = self.members.take(rows, axis=0).astype(np.float32)  # (b, K)
            own /= np.maximum(own.sum(0), 1)
            residual *= own
        np.matmul(X.T, residual, out=self.gradient)
        self._adam()

    def _residual(self, X: Array, target: Rows) -> Array:
        """Probability less truth: of the second of two outputs (b, K), or of each (outputs, b, K)."""
        if len(self.weights) == 2:
            scores = X @ (self.weights[0] - self.weights[1])
            with np.errstate(over="ignore"):  # 1 / (1 + inf) is the 0 it should be
                np.exp(scores, out=scores)
            scores += 1
            np.reciprocal(scores, out=scores)
            scores -= target[:, None].astype(np.float32)
            return np.asarray(scores)
        scores = np.matmul(X, self.weights)
        scores -= scores.max(0)
        np.exp(scores, out=scores)
        scores /= scores.sum(0)
        scores[target, np.arange(len(X))] -= 1
        return np.asarray(scores)

    def _adam(self) -> None:
        self.steps += 1
        spread = np.sqrt((1 - BETA2**self.steps) / (1 - BETA2))
        rate = np.float32(RATE * (1 - BETA1) / (1 - BETA1**self.steps) * spread)
        epsilon = np.float32(EPSILON * spread)
        for weights, first, second, gradient, scratch, decay in self.blocks:
            np.multiply(weights, decay, out=scratch)
            if gradient.ndim == 2:
                scratch[0] -= gradient
                scratch[1] += gradient
            else:
                scratch += gradient
            first *= BETA1
            first += scratch
            np.square(scratch, out=scratch)
            second *= BETA2
            second += scratch
            np.sqrt(second, out=scratch)
            scratch += epsilon
            np.divide(first, scratch, out=scratch)
            scratch *= rate
            weights -= scratch
