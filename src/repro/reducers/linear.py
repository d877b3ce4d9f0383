"""Reducers that multiply by a matrix: truncate, centred, pca, svd and grp (method-linear-reducers
in the book).

Each has an `inverse_transform`, in scikit-learn's meaning: the rows that it would have made the
outputs of.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from repro.reducers.reducer import Reducer, check_size, deviations
from repro.reducers.spectral import orient
from repro.seeding import make_rng
from repro.types import Array, InputError, check_embeddings

# Columns that deviate by less than this share of the largest deviation are constant but for
# rounding
DEAD = 1e-6


def right_singular_vectors(X: Array, count: int) -> tuple[Array, Array]:
    """The leading singular values (count,) and right singular vectors (D, count) of X (n, D), in
    float64.

    Through the Gram matrix XᵀX where it is the smaller one: it costs one product and is exact for
    directions above 1e-8 of the first; below that, the vectors stay orthonormal.
    """
    X = X.astype(np.float64, copy=False)
    n, D = X.shape
    if n < D:
        _, S, Vt = linalg.svd(X, full_matrices=False, check_finite=False)
        return S[:count], orient(Vt[:count].T)
    # All of them: at these sizes faster than LAPACK's choice of some
    values, V = np.linalg.eigh(X.T @ X)
    largest = slice(None, -count - 1, -1)  # Ascending as they come
    S = np.sqrt(np.maximum(values[largest], 0.0))
    return S, orient(V[:, largest])


def shares(variances: Array, total: float) -> Array:
    """Variances as shares of the total; all 0 where there is none."""
    return variances / (total if total > 0 else 1.0)


class Linear(Reducer):
    """A reducer whose outputs lead back to rows."""

    def inverse_transform(self, Y: Any) -> Array:
        """Rows X (m, D) float32 of which `transform` makes Y (m, n_components), exactly where it
        kept all there was.

        Raises:
            InputError: for Y that is no matrix of finite numbers with `n_components` columns.
        """
        check_is_fitted(self)
        Y = check_embeddings(Y, "Y")
        if Y.shape[1] != self.n_components:
            expected = f"expected {self.n_components}, as `transform` returns"
            raise InputError(f"Y has {Y.shape[1]} columns: {expected}")
        return np.asarray(self._restore(Y.astype(np.float64)), np.float32, order="C")

    @abstractmethod
    def _restore(self, Y: Array) -> Array:
        """Y (m, n_components) float64 as (m, D)."""


class Truncate(Linear):
    """The first `n_components` columns, untouched; the inverse has zeros for the others."""

    min_rows: ClassVar[int] = 1

    def _learn(self, X: Array) -> None:
        count = check_size(self.n_components, X.shape[1], "the columns of X")
        variances = (deviations(X) ** 2).mean(0)
        self.explained_variance_ratio_ = shares(variances[:count], float(variances.sum()))

    def _reduce(self, X: Array) -> Array:
        return X[:, : self.n_components].astype(np.float32, order="C")

    def _restore(self, Y: Array) -> Array:
        X = np.zeros((len(Y), self.n_features_in_))
        X[:, : self.n_components] = Y
        return X


class Centred(Truncate):
    """The first columns less the mean of the fitted rows: what does the subtraction that others
    make do by itself?

    The inverse has the mean for the other columns.
    """

    def _learn(self, X: Array) -> None:
        super()._learn(X)
        self.mean_ = X.mean(0, dtype=np.float64)

    def _reduce(self, X: Array) -> Array:
        return super()._reduce(X - self.mean_.astype(X.dtype))

    def _restore(self, Y: Array) -> Array:
        return super()._restore(Y) + self.mean_


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(Linear):
    """Principal components: X − μ = USVᵀ, output (X − μ)V_p.

    Fitted, it has `mean_` (D,), `components_` (n_components, D), `singular_values_`
    (n_components,), and `explained_variance_` with its ratio, of the standardised columns where
    there are such.

    Args:
        n_components: up to min(n − 1, D).
        standardize: divide the centred columns by their standard deviation, but for those that vary
            by less than a millionth of what the liveliest one does: single precision's rounding is
            not blown up to unit variance.
        center_output: False applies V_p without subtracting μ, as published export scripts do.
    """

    standardize: bool = False
    center_output: bool = True

    def _learn(self, X: Array) -> None:
        n, D = X.shape
        count = check_size(
            self.n_components,
            min(n - 1, D),
            f"min(n - 1, D) of {n} rows and {D} columns",
        )
        self.mean_ = X.mean(0, dtype=np.float64)
        centred = deviations(X)
        self.scale_ = np.ones(D)
        if self.standardize:
            deviation = np.sqrt(np.mean(centred**2, axis=0))
            # A dead column's deviation is rounding, of its own mean or of the network's sums
            varies = deviation > np.maximum(
                1e-12 * (np.abs(self.mean_) + deviation),
                DEAD * deviation.max(),
            )
            self.scale_[varies] = deviation[varies]
            centred /= self.scale_
        self.singular_values_, V = right_singular_vectors(centred, count)
        self.components_ = np.ascontiguousarray(V.T)
        self.explained_variance_ = self.singular_values_**2 / (n - 1)
        self.explained_variance_ratio_ = shares(
            self.singular_values_**2,
            float(np.vdot(centred, centred)),
        )

    def _reduce(self, X: Array) -> Array:
        V = (self.components_ / self.scale_).T.astype(X.dtype)
        if not self.center_output:
            return X @ V
        centred = X - self.mean_.astype(X.dtype)
        # Centred as precisely as X is given; the product in the precision of the output
        return np.asarray(centred.astype(np.float32, copy=False) @ V.astype(np.float32, copy=False))

    def _restore(self, Y: Array) -> Array:
        if not self.center_output:
            Y = Y - (self.mean_ / self.scale_) @ self.components_.T
        return np.asarray(Y @ self.components_ * self.scale_ + self.mean_)


class SVD(Linear):
    """Truncated singular value decomposition of X as it is, uncentred: XV_p; up to min(n, D)
    components.

    Fitted, it has `components_` (n_components, D) and `singular_values_` (n_components,).
    `explained_variance_` is that of the outputs, about their mean, and the ratio is to the columns'
    variance, as in scikit-learn: the first direction may hold much of the mean and little of the
    variance.
    """

    min_rows: ClassVar[int] = 1

    def _learn(self, X: Array) -> None:
        n, D = X.shape
        count = check_size(self.n_components, min(n, D), f"min(n, D) of {n} rows and {D} columns")
        X = X.astype(np.float64, copy=False)
        self.singular_values_, V = right_singular_vectors(X, count)
        self.components_ = np.ascontiguousarray(V.T)
        # Mean squares less the squared mean would lose what varies little about a large mean
        centred = deviations(X)
        self.explained_variance_ = ((centred @ V) ** 2).mean(0)
        total = float(np.vdot(centred, centred)) / n
        self.explained_variance_ratio_ = shares(self.explained_variance_, total)

    def _reduce(self, X: Array) -> Array:
        return np.asarray(X @ self.components_.T.astype(X.dtype))

    def _restore(self, Y: Array) -> Array:
        return np.asarray(Y @ self.components_)


@dataclass(kw_only=True, eq=False, repr=False)
class GRP(Linear):
    """Gaussian random projection XR with R_ij ~ N(0, 1/p), which preserves squared lengths on
    average.

    Column j of R depends on seed, D and j alone, so `prefix` is exactly the projection drawn at
    that size. Any p ≥ 1 is within reach, above D too. R is `components_` (n_components, D). The
    inverse are the shortest rows with these outputs, by least squares where p exceeds D.
    """

    seed: int = 0
    min_rows: ClassVar[int] = 1

    def _learn(self, X: Array) -> None:
        count, D = check_size(self.n_components, None, ""), X.shape[1]
        self.components_ = make_rng(self.seed, "grp", D).standard_normal((count, D)) / np.sqrt(
            count
        )

    def _reduce(self, X: Array) -> Array:
        return np.asarray(X @ self.components_.T.astype(X.dtype))

    def _restore(self, Y: Array) -> Array:
        return np.asarray(Y @ linalg.pinv(self.components_, check_finite=False).T)

    def prefix(self, Y: Array, n_components: int) -> Array:
        """The leading columns of Y, scaled by √(columns / n_components): lengths move, no cosine
        does.
        """
        return super().prefix(Y, n_components) * np.asarray(
            np.sqrt(Y.shape[1] / n_components),
            Y.dtype,
        )
