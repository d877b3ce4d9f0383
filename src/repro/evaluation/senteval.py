"""SentEval's classifier, all folds × penalties trained as one (Conneau & Kiela, 2018; method-probes
in the book).

A head is one linear layer under softmax, trained by Adam with the L2 penalty added to the gradient
(of the intercept too) on batches of 64, features as they are. After every fourth pass it is checked
on dev rows: the best head so far is kept, and the sixth check *ever* that is no better ends its
training, as the 51st check does.

SentEval fits its heads one after another; here a step takes one chunk of rows for all of them, as
many as give each head 64 of its own rows on average, and a head learns from those of them that are
its own. Every product is then one for all heads; a head that has stopped leaves the arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.evaluation.logistic import with_intercept
from repro.seeding import make_rng
from repro.types import Array

Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]
PENALTIES = np.array([1e-5, 1e-4, 1e-3, 1e-2])
GRIDS = dict.fromkeys(("nested", "split", "kfold"), PENALTIES)
BATCH, PASSES, CHECKS, TENACITY, DEV_SHARE = 64, 4, 51, 5, 0.05
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
BLOCK = 16_384  # Numbers that Adam updates at a time: its five arrays then stay in the cache


@dataclass(frozen=True)
class LinearHeads:
    """K trained heads: weights (outputs, D + 1, K), intercept last; dev accuracy and number of
    checks (K,) of each.
    """

    weights: Array
    classes: NDArray[Any]
    accuracy: Array
    checks: Rows

    def predict(self, X: Array) -> NDArray[Any]:
        """Predicted class of every row under every head (K, n)."""
        return np.asarray(self.classes[_answers(with_intercept(X), self.weights).T])


def fold_accuracy(X: Array, y: NDArray[Any], folds: Rows, penalties: Array, seed: int) -> Array:
    """Mean accuracy on the held-out folds (sets of folds, penalties), to 0.0001 as SentEval
    compares them.

    The fold that ends the training also scores it. A row with fold −1 takes no part.
    """
    sets, k = len(folds), int(folds.max()) + 1
    held = (folds[:, None, :] == np.arange(k)[:, None]).reshape(sets * k, -1)  # (sets · k, n)
    learn = np.repeat(folds >= 0, k, axis=0) & ~held
    classes, target = _targets(y, y)
    heads = fit_heads(X, classes, target, learn, held, np.tile(penalties, (sets * k, 1)), seed)
    return np.asarray(heads.accuracy.reshape(sets, k, -1).mean(1).round(4))


def fit_with_dev(
    X: Array,
    y: NDArray[Any],
    X_dev: Array,
    y_dev: NDArray[Any],
    penalties: Array,
    seed: int,
) -> tuple[LinearHeads, Array]:
    """A head for each penalty and its accuracy on the dev set that ended its training."""
    learn = np.arange(len(y) + len(y_dev))[None] < len(y)
    classes, target = _targets(y, np.concatenate([y, y_dev]))
    both = np.vstack([X, X_dev])
    heads = fit_heads(both, classes, target, learn, ~learn, penalties[None], seed)
    return heads, heads.accuracy


def fit_members(
    X: Array,
    y: NDArray[Any],
    members: Bools,
    penalties: Array,
    seed: int,
) -> LinearHeads:
    """K heads, each trained on its members (K, n) with its own penalty (K,) and checked on a random
    5 % of them.
    """
    dev = np.zeros(members.shape, bool)
    for head, learnt in enumerate(members):
        dev[head, dev_rows(np.flatnonzero(learnt), seed)] = True
    return fit_heads(X, *_targets(y, y), members & ~dev, dev, penalties[:, None], seed)


def fit_heads(
    X: Array,
    classes: NDArray[Any],
    target: Rows,
    learn: Bools,
    dev: Bools,
    penalties: Array,
    seed: int,
) -> LinearHeads:
    """Heads for penalties (folds, penalties), learning from and checked on the rows `learn` and
    `dev` (folds, n).

    The target (n,) is an index into the classes; −1, on dev rows only, is none of them and never
    right.
    """
    features = with_intercept(X)
    fold = np.repeat(np.arange(len(learn)), penalties.shape[1])  # The fold of every head (K,)
    rows = np.flatnonzero(learn.any(0))
    active = np.arange(len(fold))
    head = initial_head(seed, len(classes), X.shape[1])  # (outputs, D + 1)
    start = head[..., None].repeat(len(fold), axis=2)  # (outputs, D + 1, K)
    shared = bool(learn[:, rows].all())
    training = _Training(
        features,
        target,
        None if shared else np.take(learn.T, fold, axis=1),
        start,
        penalties.ravel(),
    )
    dev_of = [np.flatnonzero(held) for held in dev]
    best_weights, best = np.empty_like(start), np.full(len(fold), -1.0)
    misses, checks = np.zeros((2, len(fold)), np.int64)
    starts = chunk_starts(len(rows), learn.sum(1))
    rng = make_rng(seed, "senteval", "order")
    for _ in range(CHECKS):
        for _ in range(PASSES):
            for chunk in np.split(rng.permutation(rows), starts[1:]):
                training.step(chunk)
        accuracy = dev_accuracy(features, target, training.weights, fold[active], dev_of)
        better = accuracy > best[active]
        stopped = ~better & (misses[active] >= TENACITY)
        best[active[better]] = accuracy[better]
        best_weights[..., active[better]] = training.weights[..., better]
        misses[active[~better]] += 1
        checks[active] += 1
        if stopped.any():
            active = active[~stopped]
            training.keep(~stopped)
        if not len(active):
            break
    return LinearHeads(best_weights, classes, best, checks)


def initial_head(seed: int, outputs: int, dim: int) -> Array:
    """The start of every head (outputs, dim + 1), intercept last: uniform within ±1/√dim."""
    bound = 1 / np.sqrt(dim)
    return (
        make_rng(seed, "senteval", "start")
        .uniform(-bound, bound, (outputs, dim + 1))
        .astype(np.float32)
    )


def dev_rows(rows: Rows, seed: int) -> Rows:
    """A random 5 % of the rows, at least one."""
    return make_rng(seed, "senteval", "dev").permutation(rows)[: max(1, int(DEV_SHARE * len(rows)))]


def chunk_starts(rows: int, learnt: Rows) -> Rows:
    """Where a pass's chunks begin: as many as batches of a head of mean size, with 64 of its rows
    on average.
    """
    mean = learnt.mean()
    return (np.arange(np.ceil(mean / BATCH)) * BATCH * rows / mean).astype(np.int64)


def dev_accuracy(
    features: Array,
    target: Rows,
    weights: Array,
    fold: Rows,
    dev_of: Sequence[Rows],
) -> Array:
    """Accuracy (K,) of each head on the dev rows of its fold."""
    accuracy = np.empty(len(fold))
    for i in np.unique(fold):
        rows, heads = dev_of[i], fold == i
        accuracy[heads] = (
            _answers(features[rows], weights[..., heads]) == target[rows, None]
        ).mean(0)
    return accuracy


def _answers(features: Array, weights: Array) -> Rows:
    """Output of every row under every head (n, K); the first of equal ones."""
    return np.asarray(np.matmul(features, weights).argmax(0))


def _targets(y_train: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], Rows]:
    """Classes of the training labels, and which of them each label of `y` is, −1 for none."""
    classes = np.unique(y_train)
    same = y[:, None] == classes
    return classes, np.where(same.any(1), same.argmax(1), -1)


class _Training:
    """Adam on the heads still in training: members (n, K), None where every head learns from every
    row it is given.
    """

    def __init__(
        self,
        features: Array,
        target: Rows,
        members: Bools | None,
        weights: Array,
        penalties: Array,
    ) -> None:
        self.features, self.target, self.members = features, target, members
        states = np.stack([weights, np.zeros_like(weights), np.zeros_like(weights)])
        self._set(states, penalties.astype(np.float32), np.zeros(len(penalties)))

    def keep(self, running: Bools) -> None:
        """Drop the heads that have stopped."""
        if self.members is not None:
            # Unlike indexing, keeps rows contiguous
            self.members = self.members.compress(running, axis=1)
        self._set(
            *(
                array.compress(running, axis=-1)
                for array in (self.states, self.penalties, self.steps)
            )
        )

    def _set(self, states: Array, penalties: Array, steps: Array) -> None:
        """Take up weights and moments (3, outputs, D + 1, K); moments lack Adam's factors 1 − β,
        left to the step.
        """
        self.states, self.weights, self.penalties, self.steps = states, states[0], penalties, steps
        outputs, size, K = self.weights.shape
        # Two outputs have opposite gradients: one product does for both
        self.gradient = np.empty((size, K) if outputs == 2 else self.weights.shape, np.float32)
        height = max(1, BLOCK // (outputs * K + 1))
        scratch = np.empty((outputs, min(height, size), K), np.float32)
        decay = np.broadcast_to(penalties, scratch.shape).copy()
        self.blocks = []
        for i in range(0, size, height):
            rows, room = slice(i, i + height), slice(size - i)
            gradient = self.gradient[..., rows, :]
            self.blocks.append((*states[:, :, rows], gradient, scratch[:, room], decay[:, room]))

    def step(self, rows: Rows) -> None:
        """One step of every head on those of the rows that are its own."""
        X = self.features.take(rows, axis=0)  # (b, D + 1)
        residual = self._residual(X, self.target[rows])  # (b, K) or (outputs, b, K)
        if self.members is None:
            counts = np.full(len(self.steps), len(rows), np.float32)
            residual *= 1 / counts
        else:
            shares = self.members.take(rows, axis=0).astype(np.float32)  # (b, K)
            counts = shares.sum(0)
            shares /= np.maximum(counts, 1)
            residual *= shares
        np.matmul(X.T, residual, out=self.gradient)
        idle = np.flatnonzero(counts == 0)  # A head with none of these rows takes no step
        before = self.states[..., idle]
        self.steps[counts > 0] += 1
        self._adam()
        self.states[..., idle] = before

    def _residual(self, X: Array, target: Rows) -> Array:
        """Probability less truth: of the second of two outputs (b, K), or of each (outputs, b,
        K).
        """
        if len(self.weights) == 2:
            scores = X @ (0.5 * (self.weights[1] - self.weights[0]))
            np.tanh(scores, out=scores)  # The probability is (1 + tanh(z / 2)) / 2
            scores *= 0.5
            scores += (0.5 - target)[:, None].astype(np.float32)
        else:
            scores = np.matmul(X, self.weights)
            scores -= scores.max(0)
            np.exp(scores, out=scores)
            scores /= scores.sum(0)
            scores[target, np.arange(len(X))] -= 1
        return np.asarray(scores)

    def _adam(self) -> None:
        steps = np.maximum(self.steps if np.ptp(self.steps) else self.steps[:1], 1)
        spread = np.sqrt((1 - BETA2**steps) / (1 - BETA2))
        rate = (RATE * (1 - BETA1) / (1 - BETA1**steps) * spread).astype(np.float32)
        epsilon = (EPSILON * spread).astype(np.float32)
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
