"""Many L2-penalised logistic regressions at once: all folds × penalties of a probe share every
matrix product.

Minimises, for model k with sample weights s (0 outside its fold) and penalty C, scikit-learn's
objective (1/Σs) Σᵢ sᵢ loss(xᵢ) + ‖w‖²/(2C·Σs), intercept unpenalised, by L-BFGS with one
backtracking search per model, all models in lockstep; a model that has converged leaves the
products.

Features are centred and turned to their principal axes first. Neither changes the optimum (the
intercept is free, the penalty knows no direction), but there the Hessian is nearly the diagonal
c·σⱼ² + 1/(C·Σs), which L-BFGS starts from: raw hidden states, whose axes differ in scale by
thousands, then converge in tens of iterations instead of a thousand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.types import Array

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]
Objective = Callable[[Array, Counts], tuple[Array, Array]]
GRIDS = {
    "nested": 2.0 ** np.arange(-2, 4),
    "split": 2.0 ** np.arange(-2, 4),
    "kfold": 2.0 ** np.arange(-1, 6),
}
MEMORY = 10  # Curvature pairs kept per model, as scipy's L-BFGS-B does


@dataclass(frozen=True)
class LogisticModels:
    """K fitted models over the same features: weights (K, D + 1, outputs), intercept last."""

    weights: Array
    classes: NDArray[Any]

    def predict(self, X: Array) -> NDArray[Any]:
        """Predicted class of every row under every model (K, n)."""
        scores = _scores(with_intercept(X), self.weights)
        answers = scores.argmax(0) if len(scores) > 1 else (scores[0] > 0).astype(int)
        return np.asarray(self.classes[answers])


def fold_accuracy(X: Array, y: NDArray[Any], folds: Counts, penalties: Array, seed: int) -> Array:
    """Mean accuracy on the held-out folds (sets of folds, penalties); a row with fold −1 takes no
    part.
    """
    sets, k = len(folds), int(folds.max()) + 1
    fold = folds[:, None, :]  # (sets, 1, n)
    held = fold == np.arange(k)[None, :, None]  # (sets, k, n)
    learning = ((fold >= 0) & ~held).reshape(sets * k, -1)
    members = np.repeat(learning, len(penalties), axis=0)
    models = fit_logistic(X, y, members, np.tile(penalties, sets * k))
    right = (models.predict(X) == y).reshape(sets, k, len(penalties), -1)
    # The dtype is named since a product of booleans would be summed by "or"
    counts = np.einsum("skgn,skn->skg", right, held, dtype=np.float64)
    per_fold = counts / held.sum(-1)[..., None]
    return np.asarray(per_fold.mean(1))


def fit_members(
    X: Array,
    y: NDArray[Any],
    members: Bools,
    penalties: Array,
    seed: int,
) -> LogisticModels:
    """K models, each of its own rows (K, n) and penalty (K,)."""
    return fit_logistic(X, y, members, penalties)


def fit_with_dev(
    X: Array,
    y: NDArray[Any],
    X_dev: Array,
    y_dev: NDArray[Any],
    penalties: Array,
    seed: int,
) -> tuple[LogisticModels, Array]:
    """A model for each penalty and its accuracy on the dev set."""
    models = fit_logistic(X, y, np.ones((len(penalties), len(y)), bool), penalties)
    return models, (models.predict(X_dev) == y_dev).mean(1)


def fit_logistic(
    X: Array,
    y: NDArray[Any],
    members: Bools,
    penalties: Array,
    *,
    tolerance: float = 1e-4,
    max_iter: int = 1000,
) -> LogisticModels:
    """Fit K models on one feature matrix (n, D), each to its members (K, n) with scikit-learn's C
    of its own (K,).

    A model stops when its largest gradient entry is below the tolerance.
    """
    classes, target = np.unique(y, return_inverse=True)
    mean, axes, variances = _principal_axes(X)
    features = with_intercept((X - mean) @ axes)
    counts = members.sum(1)
    share = (members / counts[:, None]).astype(np.float32)  # (K, n)
    decay = (1.0 / (np.asarray(penalties, np.float64) * counts)).astype(np.float32)
    outputs = 1 if len(classes) == 2 else len(classes)
    objective = _objective(features, target, share, decay, outputs)
    # Mean curvature of the loss at the start: p(1 - p) of equal class probabilities
    curvature = (1 / len(classes)) * (1 - 1 / len(classes))
    of_loss = curvature * np.r_[variances, 1.0]  # (D + 1,), the intercept last
    decaying = np.r_[np.ones_like(variances), 0.0]
    diagonal = of_loss + decaying * decay[:, None]  # (K, D + 1)
    inverse = np.repeat(1.0 / diagonal, outputs, axis=1).astype(np.float32)
    turned = _lbfgs(objective, inverse, outputs, tolerance, max_iter)
    slopes = np.einsum("dr,kro->kdo", axes, turned[:, :-1])  # Back to the features as given
    intercepts = turned[:, -1:] - np.einsum("d,kdo->ko", mean, slopes)[:, None]
    return LogisticModels(np.concatenate([slopes, intercepts], axis=1), classes)


def _principal_axes(X: Array) -> tuple[Array, Array, Array]:
    """Mean (D,), orthonormal axes (D, r) and variances (r,) of the directions in which X varies at
    all.
    """
    mean = X.mean(0, dtype=np.float64)
    centred = X - mean
    wide = len(X) < X.shape[1]
    gram = centred @ centred.T if wide else centred.T @ centred
    values, vectors = np.linalg.eigh(gram / len(X))
    keep = values > 1e-10 * max(values[-1], 1e-30)
    axes = vectors[:, keep]
    if wide:
        axes = centred.T @ axes / np.sqrt(values[keep] * len(X))
    return mean.astype(np.float32), axes.astype(np.float32), values[keep]


def with_intercept(X: Array) -> Array:
    """X (n, D) and a column of ones (n, D + 1), in single precision."""
    ones = np.ones((len(X), 1), X.dtype)
    return np.hstack([X, ones]).astype(np.float32)


def _scores(features: Array, weights: Array) -> Array:
    """Scores (outputs, K, n) of rows (n, size) under weights (K, size, outputs).

    Rows come last: what is summed over outputs or rows then lies side by side in memory.
    """
    models, size, outputs = weights.shape
    flat = np.ascontiguousarray(weights.transpose(2, 0, 1)).reshape(outputs * models, size)
    return np.asarray(flat @ features.T).reshape(outputs, models, len(features))


def _objective(
    features: Array,
    target: Counts,
    share: Array,
    decay: Array,
    outputs: int,
) -> Objective:
    """Of some models' flat weights (K, size) and their numbers: what is minimised (K,), and its
    gradient (K, size).
    """
    true_class = target[None, None]  # (1, 1, n)

    def value_and_gradient(points: Array, active: Counts) -> tuple[Array, Array]:
        weights = points.reshape(len(active), -1, outputs)
        scores = _scores(features, weights)
        parts = share[active]  # (K, n)
        if outputs == 1:
            second = target == 1
            margin = np.where(second, scores[0], -scores[0])
            small = np.exp(-np.abs(margin))
            losses = np.log1p(small) + np.maximum(-margin, 0)
            slope = np.where(margin >= 0, small, 1.0) / (1.0 + small)  # Sigmoid of −margin
            residual = (np.where(second, -slope, slope) * parts)[None]
        else:
            scores -= scores.max(0)
            true_scores = np.take_along_axis(scores, true_class, axis=0)[0]
            residual = np.exp(scores, out=scores)
            total = residual.sum(0)
            losses = np.log(total) - true_scores
            residual *= parts / total
            true_residual = np.take_along_axis(residual, true_class, axis=0) - parts
            np.put_along_axis(residual, true_class, true_residual, axis=0)
        penalised = weights.copy()
        penalised[:, -1] = 0.0
        value = np.einsum("kn,kn->k", losses, parts, dtype=np.float64)
        value += (
            0.5 * decay[active] * np.einsum("kdo,kdo->k", penalised, penalised, dtype=np.float64)
        )
        flat = residual.reshape(-1, len(features)).astype(np.float32, copy=False)
        slopes = (flat @ features).reshape(outputs, len(active), -1)
        gradient = slopes.transpose(1, 2, 0) + decay[active, None, None] * penalised
        return value, gradient.reshape(len(active), -1)

    return value_and_gradient


def _lbfgs(
    objective: Objective,
    inverse: Array,
    outputs: int,
    tolerance: float,
    max_iter: int,
) -> Array:
    """Minimise all models from 0; `inverse` (K, size) is the diagonal inverse Hessian each starts
    from.
    """
    models, size = inverse.shape
    weights = np.zeros((models, size), np.float32)
    active = np.arange(models)
    steps: list[Array] = []
    changes: list[Array] = []

    def only(rows: NDArray[Any]) -> Any:
        states = (active[rows], value[rows], gradient[rows], inverse[rows])
        return *states, [s[rows] for s in steps], [c[rows] for c in changes]

    value, gradient = objective(weights, active)
    for _ in range(max_iter):
        # The second measure, twice the decrease that a Newton step promises, does not depend on the
        # features' scale
        decrement = np.einsum("kd,kd,kd->k", gradient, inverse, gradient, dtype=np.float64)
        running = (np.abs(gradient).max(1) > tolerance) | (decrement > 1e-6)
        if not running.all():
            active, value, gradient, inverse, steps, changes = only(running)
        if not len(active):
            break
        start = weights[active]
        direction = -_two_loop(gradient, steps, changes, inverse)
        slope = np.einsum("kd,kd->k", direction, gradient)
        uphill = slope >= 0
        direction[uphill], slope[uphill] = -gradient[uphill], -(gradient[uphill] ** 2).sum(1)
        points, values, gradients, stuck = _line_search(
            objective,
            active,
            start,
            (value, gradient),
            (direction, slope),
        )
        weights[active] = points
        steps = [*steps, points - start][-MEMORY:]
        changes = [*changes, gradients - gradient][-MEMORY:]
        value, gradient = values, gradients
        if len(stuck):  # No decrease left at this precision: these models are done
            going = np.setdiff1d(np.arange(len(active)), stuck)
            active, value, gradient, inverse, steps, changes = only(going)
    return weights.reshape(models, -1, outputs)


def _line_search(
    objective: Objective,
    active: Counts,
    start: Array,
    before: tuple[Array, Array],
    ahead: tuple[Array, Array],
) -> tuple[Array, Array, Array, Counts]:
    """The longest of ever shorter steps that goes down far enough, model by model.

    Args:
        objective: of points (k, size) and the numbers of their models.
        active: the models that are searched for (k,).
        start: where the models are (k, size).
        before: value and gradient there.
        ahead: direction and slope of the steps.

    Returns:
        Points, values and gradients, and which of the models no step leads down: they stay where
        they are.
    """
    (value, gradient), (direction, slope) = before, ahead
    scale = np.ones(len(start), np.float32)
    points, values, gradients = start.copy(), value.copy(), gradient.copy()
    searching = np.arange(len(start))
    for _ in range(20):
        trial = start[searching] + scale[searching, None] * direction[searching]
        trial_value, trial_gradient = objective(trial, active[searching])
        # Single precision: a rise within rounding counts as a decrease
        allowed = (
            value[searching]
            + 1e-4 * scale[searching] * slope[searching]
            + 1e-7 * np.abs(value[searching])
        )
        good = trial_value <= allowed
        done = searching[good]
        points[done], values[done] = trial[good], trial_value[good]
        gradients[done] = trial_gradient[good]
        searching = searching[~good]
        if not len(searching):
            break
        scale[searching] *= 0.5
    return points, values, gradients, searching


def _two_loop(gradient: Array, steps: list[Array], changes: list[Array], start: Array) -> Array:
    """Product of the inverse-Hessian estimate with the gradient, per model (Nocedal, 1980)."""
    q = gradient.copy()
    inverse = []
    for s, c in zip(steps, changes, strict=True):
        curvature = np.einsum("kd,kd->k", s, c)
        curved = curvature > 1e-12
        inverse.append(np.where(curved, 1.0 / np.where(curved, curvature, 1.0), 0.0))
    weights = []
    for s, c, rho in zip(reversed(steps), reversed(changes), reversed(inverse), strict=True):
        alpha = rho * np.einsum("kd,kd->k", s, q)
        q -= alpha[:, None].astype(np.float32) * c
        weights.append(alpha)
    q *= start
    for s, c, rho, alpha in zip(steps, changes, inverse, reversed(weights), strict=True):
        beta = rho * np.einsum("kd,kd->k", c, q)
        q += (alpha - beta)[:, None].astype(np.float32) * s
    return q
