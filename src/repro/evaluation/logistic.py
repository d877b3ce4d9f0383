"""Many L2-penalised logistic regressions at once: all folds × penalties of a probe share every matrix product.

Minimises, for model k with sample weights s (0 outside its fold) and penalty C, scikit-learn's objective
(1/Σs) Σᵢ sᵢ loss(xᵢ) + ‖w‖²/(2C·Σs), intercept unpenalised, by L-BFGS with one backtracking search per
model, all models in lockstep; a model that has converged leaves the products.

Features are centred and turned to their principal axes first. Neither changes the optimum (the intercept is
free, the penalty knows no direction), but there the Hessian is nearly the diagonal c·σⱼ² + 1/(C·Σs), which
L-BFGS starts from: raw hidden states, whose axes differ in scale by thousands, then converge in tens of
iterations instead of a thousand.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.types import Array, InputError

Bools = NDArray[np.bool_]
MEMORY = 10
"""curvature pairs kept per model, as scipy's L-BFGS-B does"""


@dataclass(frozen=True)
class LogisticModels:
    """K fitted models over the same features: weights (K, D + 1, outputs), intercept last."""

    weights: Array
    classes: NDArray[Any]
    iterations: NDArray[np.int64]

    @property
    def coefficients(self) -> Array:
        """Slopes (K, outputs, D), as scikit-learn's `coef_` has them."""
        return self.weights[:, :-1].transpose(0, 2, 1)

    def predict(self, X: Array) -> NDArray[Any]:
        """Predicted class of every row under every model (K, n)."""
        scores = _scores(_with_intercept(X), self.weights)  # (n, K, outputs)
        if scores.shape[-1] == 1:
            return np.asarray(self.classes[(scores[..., 0] > 0).astype(int).T])
        return np.asarray(self.classes[scores.argmax(-1).T])


def fit_logistic(
    X: Array, y: NDArray[Any], members: Bools, penalties: Array, *, tolerance: float = 1e-4, max_iter: int = 1000
) -> LogisticModels:
    """Fit K models on one feature matrix.

    Args:
        X: features (n, D).
        y: class of every row (n,).
        members: (K, n), which rows each model learns from.
        penalties: (K,), scikit-learn's C of each model.
        tolerance: stop a model when its largest gradient entry is below this.
        max_iter: iterations at most.

    Raises:
        InputError: for fewer than two classes.
    """
    classes, target = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"only one class ({str(classes[0])!r}) in {len(y)} rows: nothing to tell apart")
    mean, axes, variances = _principal_axes(X)
    features = _with_intercept((X - mean) @ axes)
    counts = members.sum(1)
    share = np.ascontiguousarray((members / counts[:, None]).T, dtype=np.float32)  # (n, K)
    decay = (1.0 / (np.asarray(penalties, np.float64) * counts)).astype(np.float32)
    outputs = 1 if len(classes) == 2 else len(classes)
    problem = _Problem(features, target, share, decay, outputs)
    # mean curvature of the loss at the start: p(1 - p) of equal class probabilities
    curvature = (1 / len(classes)) * (1 - 1 / len(classes))
    diagonal = curvature * np.r_[variances, 1.0] + np.r_[np.ones_like(variances), 0.0] * decay[:, None]  # (K, D + 1)
    inverse = np.repeat(1.0 / diagonal, outputs, axis=1).astype(np.float32)
    turned, iterations = _lbfgs(problem, inverse, tolerance, max_iter)
    slopes = np.einsum("dr,kro->kdo", axes, turned[:, :-1])  # back to the features as given
    intercepts = turned[:, -1:] - np.einsum("d,kdo->ko", mean, slopes)[:, None]
    return LogisticModels(np.concatenate([slopes, intercepts], axis=1), classes, iterations)


def _principal_axes(X: Array) -> tuple[Array, Array, Array]:
    """Mean (D,), orthonormal axes (D, r) and variances (r,) of the directions in which X varies at all."""
    mean = X.mean(0, dtype=np.float64)
    centred = X - mean
    if len(X) < X.shape[1]:
        values, left = np.linalg.eigh(centred @ centred.T / len(X))
        keep = values > 1e-10 * max(values[-1], 1e-30)
        axes = centred.T @ left[:, keep] / np.sqrt(values[keep] * len(X))
    else:
        values, axes = np.linalg.eigh(centred.T @ centred / len(X))
        keep = values > 1e-10 * max(values[-1], 1e-30)
        axes = axes[:, keep]
    return mean.astype(np.float32), axes.astype(np.float32), values[keep]


def _with_intercept(X: Array) -> Array:
    return np.hstack([X, np.ones((len(X), 1), X.dtype)]).astype(np.float32)


def _scores(features: Array, weights: Array) -> Array:
    models, size, outputs = weights.shape
    flat = weights.transpose(1, 0, 2).reshape(size, models * outputs)
    return np.asarray((features @ flat).reshape(len(features), models, outputs))


@dataclass(frozen=True)
class _Problem:
    features: Array
    target: NDArray[np.int64]
    share: Array
    decay: Array
    outputs: int

    def value_and_gradient(self, weights: Array, active: NDArray[np.int64]) -> tuple[Array, Array]:
        """Objective (K,) and gradient (K, D + 1, outputs) of the active models."""
        scores = _scores(self.features, weights)  # (n, K, outputs)
        share, decay = self.share[:, active], self.decay[active]
        if self.outputs == 1:
            margin = np.where(self.target[:, None] == 1, scores[..., 0], -scores[..., 0])
            small = np.exp(-np.abs(margin))
            losses = np.log1p(small) + np.maximum(-margin, 0)
            slope = np.where(margin >= 0, small, 1.0) / (1.0 + small)  # sigmoid(-margin)
            residual = np.where(self.target[:, None] == 1, -slope, slope)[..., None]
        else:
            scores -= scores.max(-1, keepdims=True)
            rows = np.arange(len(scores))
            own = scores[rows, :, self.target]
            np.exp(scores, out=scores)
            total = scores.sum(-1)
            losses = np.log(total) - own
            residual = scores / total[..., None]
            residual[rows, :, self.target] -= 1.0
        residual = residual * share[..., None]
        penalised = weights.copy()
        penalised[:, -1] = 0.0
        value = np.einsum("nk,nk->k", losses, share, dtype=np.float64)
        value += 0.5 * decay * np.einsum("kdo,kdo->k", penalised, penalised, dtype=np.float64)
        flat = residual.reshape(len(residual), -1).astype(np.float32, copy=False)
        gradient = (self.features.T @ flat).reshape(-1, len(active), self.outputs).transpose(1, 0, 2)
        return value, gradient + decay[:, None, None] * penalised


def _lbfgs(problem: _Problem, inverse: Array, tolerance: float, max_iter: int) -> tuple[Array, NDArray[np.int64]]:
    """Minimise all models from 0; `inverse` (K, size) is the diagonal inverse Hessian each starts from."""
    models, size = inverse.shape
    shape = (-1, problem.features.shape[1], problem.outputs)
    weights = np.zeros((models, size), np.float32)
    iterations = np.full(models, max_iter)
    active = np.arange(models)
    value, gradient = problem.value_and_gradient(weights.reshape(shape), active)
    gradient = gradient.reshape(models, size)
    steps: list[Array] = []
    changes: list[Array] = []
    for iteration in range(max_iter):
        # the second measure, twice the decrease that a Newton step promises, does not depend on the features' scale
        decrement = np.einsum("kd,kd,kd->k", gradient, inverse, gradient, dtype=np.float64)
        running = (np.abs(gradient).max(1) > tolerance) | (decrement > 1e-6)
        if not running.all():
            iterations[active[~running]] = iteration
            active, value, gradient = active[running], value[running], gradient[running]
            steps, changes = [s[running] for s in steps], [c[running] for c in changes]
            inverse = inverse[running]
        if not len(active):
            break
        direction = -_two_loop(gradient, steps, changes, inverse)
        slope = np.einsum("kd,kd->k", direction, gradient)
        uphill = slope >= 0
        direction[uphill], slope[uphill] = -gradient[uphill], -(gradient[uphill] ** 2).sum(1)
        scale = np.ones(len(active), np.float32)
        start = weights[active]
        best_value, best_gradient = value.copy(), gradient.copy()
        searching = np.arange(len(active))
        for _ in range(20):
            trial = start[searching] + scale[searching, None] * direction[searching]
            trial_value, trial_gradient = problem.value_and_gradient(trial.reshape(shape), active[searching])
            # single precision: a rise within rounding counts as a decrease
            allowed = value[searching] + 1e-4 * scale[searching] * slope[searching] + 1e-7 * np.abs(value[searching])
            good = trial_value <= allowed
            done = searching[good]
            weights[active[done]] = trial[good]
            best_value[done], best_gradient[done] = trial_value[good], trial_gradient.reshape(-1, size)[good]
            searching = searching[~good]
            if not len(searching):
                break
            scale[searching] *= 0.5
        steps.append(weights[active] - start)
        changes.append(best_gradient - gradient)
        steps, changes = steps[-MEMORY:], changes[-MEMORY:]
        value, gradient = best_value, best_gradient
        if len(searching):  # no decrease left at this precision: these models are done
            keep = np.setdiff1d(np.arange(len(active)), searching)
            iterations[active[searching]] = iteration
            active, value, gradient = active[keep], value[keep], gradient[keep]
            steps, changes, inverse = [s[keep] for s in steps], [c[keep] for c in changes], inverse[keep]
    return weights.reshape(shape), iterations


def _two_loop(gradient: Array, steps: list[Array], changes: list[Array], start: Array) -> Array:
    """Product of the inverse-Hessian estimate with the gradient, per model (Nocedal, 1980)."""
    q = gradient.copy()
    curvature = [np.einsum("kd,kd->k", s, c) for s, c in zip(steps, changes, strict=True)]
    inverse = [np.where(k > 1e-12, 1.0 / np.where(k > 1e-12, k, 1.0), 0.0) for k in curvature]
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
