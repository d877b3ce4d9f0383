"""Kernel PCA: principal components in the feature space of a kernel (Schölkopf et al., 1998;
method-kernel-pca in the book).

JKJ = VΛVᵀ for the kernel matrix K of the fitted rows and J = I − 11ᵀ/n; the scores are V√Λ, those
of a new row its centred kernel values times V/√Λ. Centring cancels any constant, so a kernel is
computed less the constant it has at zero: on short rows, where that is nearly all of it, nothing is
lost to rounding.
"""

import logging
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg

from repro.reducers.kernel_matrix import (
    BLOCK,
    KERNELS,
    add_noise,
    centre,
    check_overflow,
    checked_gamma,
    kernel_values,
    smallest_of,
    symmetric,
)
from repro.reducers.linear import right_singular_vectors, shares
from repro.reducers.neighbors import RowIndex, blocks_of
from repro.reducers.reducer import Reducer, check_memory, check_size, check_unequal
from repro.reducers.spectral import WIDTH, block_lanczos, orient
from repro.seeding import make_rng
from repro.types import Array, InputError, check_dim, one_of, unit_rows

log = logging.getLogger(__name__)
EXACT_ROWS = 20_000  # Rows beyond which no kernel matrix is made
DENSE_ROWS = 1000  # Rows up to which all eigenpairs are computed
# A largest eigenvalue below this multiple of the mean one leaves the components to rounding
FLAT = 1.01
POSITIVE, SINGLE = 1e-10, 1e-5
"""Eigenvalues below these shares of the largest are null, and drown in the rounding of a matrix in
single precision.
"""


@dataclass(kw_only=True, eq=False, repr=False)
class KPCA(Reducer):
    """Kernel principal components.

    Few components of many rows come from block Lanczos in single precision, or in double where the
    eigenvalues asked for are too small for it; where it does not converge, and for few rows, LAPACK
    finds all eigenpairs. linear and cosine kernels of more rows than columns need no kernel matrix:
    their feature space is that of the columns.

    Fitted, it has `solver_`, `eigenvalues_` (n_components,), `explained_variance_` and its ratio,
    of the feature space.

    Args:
        n_components: up to the number of positive eigenvalues.
        kernel: rbf, poly, sigmoid, cosine or linear; all but sigmoid are positive semidefinite
            (poly for coef0 ≥ 0).
        gamma: None for 1/D, a number, or "median" for 1 / median squared distance (rbf).
        degree: of poly.
        coef0: constant in poly and sigmoid.
        indefinite: what to do about negative eigenvalues: `clip` drops them, `shift` adds the
            smallest one's modulus to all, `jitter` adds seeded symmetric noise of 1e-6 of the mean
            diagonal and drops what stays negative.
        progress: show bars.
        seed: of jitter and starting vectors.
    """

    slow: ClassVar[bool] = True

    kernel: str = "rbf"
    gamma: float | str | None = None
    degree: int = 3
    coef0: float = 1.0
    indefinite: str = "clip"
    progress: bool = False
    seed: int = 0

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The scores (n, n_components) of the fitted rows; `transform` would find them again, more
        slowly.
        """
        return self._learn(self._fit_input(X))

    def _learn(self, X: Array) -> Array:
        n = len(X)
        one_of(self.kernel, KERNELS, "kernel")
        one_of(self.indefinite, ("clip", "shift", "jitter"), "indefinite")
        check_dim(self.degree, what="degree")
        count = check_size(self.n_components, n - 1, f"n - 1 of {n} rows")
        check_unequal(X)
        self.gamma_ = checked_gamma(X, self.kernel, self.gamma)
        self.shift_ = 0.0
        self.origin_ = np.zeros(X.shape[1])
        if self.kernel == "cosine":
            _check_directions(self._prepared(X))
        # Neither distances nor centred products move with the origin, and from the middle of the
        # rows they lose least to rounding; noise is measured by products as they are
        moves = ("rbf",) if self.indefinite == "jitter" else ("rbf", "linear", "cosine")
        if self.kernel in moves:
            self.origin_ = self._prepared(X).mean(0, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # An error tells of it
            if self.kernel in ("cosine", "linear") and n > X.shape[1]:
                return self._fit_columns(X, count)
            return self._fit_matrix(X, count)

    def _reduce(self, X: Array) -> Array:
        Y = self._scores(X)
        if self.shift_:  # The kernel of equal rows is larger by the shift, that of others is not
            places = self.rows_.find(X)
            known = places >= 0
            Y[known] += (self.shift_ * self.dual_[places[known]]).astype(np.float32)
        return Y

    @property
    def _options(self) -> dict[str, Any]:
        # Prepared rows have length 1 for cosines
        kernel = "linear" if self.kernel == "cosine" else self.kernel
        return {
            "kernel": kernel,
            "gamma": self.gamma_,
            "degree": self.degree,
            "coef0": self.coef0,
        }

    def _prepared(self, X: Array) -> Array:
        """Rows about the origin, of length 1 before for cosines, in the precision that the kernel
        needs: only rbf's does well with single.
        """
        if self.kernel == "rbf":
            return (X - self.origin_).astype(X.dtype)
        rows = X.astype(np.float64)
        return (unit_rows(rows) if self.kernel == "cosine" else rows) - self.origin_

    def _features(self, X: Array) -> Array:
        """What `dual_` maps to scores: kernel values with the fitted rows (m, n), or the columns
        themselves (m, D).
        """
        X = self._prepared(X)
        if self.basis_ is None:
            return X
        return kernel_values(X, self.basis_, **self._options)[0]

    def _scores(self, X: Array) -> Array:
        Y = np.empty((len(X), self.dual_.shape[1]), np.float32)
        for rows in blocks_of(len(X), 1, BLOCK):
            features = self._features(X[rows])
            features -= self.center_.astype(features.dtype)
            Y[rows] = features @ self.dual_.astype(features.dtype)
        return Y

    def _fit_columns(self, X: Array, count: int) -> Array:
        """Principal components of the columns, which are the features of a linear or cosine
        kernel.
        """
        self.basis_: Array | None = None
        self.solver_ = "features"
        width = X.shape[1]
        check_size(count, width, "the rank of the kernel's features")
        center = self._features(X).mean(0)
        gram = np.zeros((width, width))
        sums = np.zeros(width)
        for rows in blocks_of(len(X), 1, BLOCK):
            features = self._features(X[rows]) - center
            sums += features.sum(0)
            gram += features.T @ features
        gram -= np.outer(sums, sums) / len(X)
        check_overflow(gram)
        values, V = linalg.eigh(gram, check_finite=False)
        self._keep(values[::-1], count, float(np.trace(gram)), len(X))
        self.center_ = center + sums / len(X)
        self.dual_ = orient(V[:, : -count - 1 : -1])
        return self._scores(X)

    def _fit_matrix(self, X: Array, count: int) -> Array:
        """Eigenvectors of the centred kernel matrix."""
        n = len(X)
        if n > EXACT_ROWS:
            raise InputError(
                f"a kernel matrix of {n:,} rows takes {8 * n * n:,} bytes in double precision: fit "
                f"on a sample of at most {EXACT_ROWS:,} rows, such as 2,000 sentences of wiki"
            )
        check_memory(n, 4 * n * n)
        self.basis_ = self._prepared(X)
        values, V, trace = self._lanczos(self.basis_, count) or self._dense(self.basis_, count)
        if self.indefinite == "shift":
            self.shift_ = max(0.0, -self.smallest_eigenvalue_)
            self.rows_ = RowIndex(X)
        self._keep(values + self.shift_, count, trace + (n - 1) * self.shift_, n)
        scale = np.sqrt(self.eigenvalues_)
        self.dual_ = V / scale
        return (V * scale).astype(np.float32, order="C")

    def _keep(self, values: Array, count: int, trace: float, n: int) -> None:
        """Store the leading of `values`, descending, if so many are positive."""
        positive = int((values > POSITIVE * values[0]).sum())
        check_size(count, positive, "the positive eigenvalues of the kernel matrix")
        if n > 2 and values[0] < FLAT * trace / (n - 1):
            warnings.warn(
                "the kernel is nearly the identity, it sees no row near another: "
                "rounding, which differs with the number of threads, chooses the components. Lower "
                "gamma, or let it be 'median'",
                stacklevel=5,
            )
        self.eigenvalues_ = values[:count]
        self.explained_variance_ = self.eigenvalues_ / (n - 1)
        self.explained_variance_ratio_ = shares(self.eigenvalues_, trace)

    def _matrix(self, basis: Array, dtype: Any) -> Array:
        """JKJ (n, n); keeps the column means of K as `center_`."""
        rows = basis.astype(dtype, copy=False) if self.kernel == "rbf" else basis
        K, constant = symmetric(rows, dtype, progress=self.progress, **self._options)
        if self.indefinite == "jitter":
            scale = 1e-6 * float(np.abs(K.diagonal() + constant).mean())
            add_noise(K, scale, make_rng(self.seed, "kpca jitter"))
        self.center_ = centre(K)
        check_overflow(self.center_)
        return K

    def _lanczos(self, basis: Array, count: int) -> tuple[Array, Array, float] | None:
        n = len(basis)
        # The search takes two to three times count columns
        if n <= max(DENSE_ROWS, 4 * (count + WIDTH)):
            return None
        for dtype in (np.float32, np.float64):
            K = self._matrix(basis, dtype)
            trace = float(K.diagonal().sum(dtype=np.float64))
            start, most = self._start(basis).astype(K.dtype), 5 * count + 6 * WIDTH
            options: dict[str, Any] = {"first": 2 * count, "most": most, "progress": self.progress}
            # Residuals are small beside the largest eigenvalue, and beside the smallest one asked
            # for
            options["close"] = lambda values: min(1e-6 * values[0], 1e-3 * values[-1])
            found = block_lanczos(K.__matmul__, start, count, **options)
            if found is not None and (dtype == np.float64 or found[0][-1] > SINGLE * found[0][0]):
                values, V = found
                if self.indefinite == "shift":
                    self.smallest_eigenvalue_ = smallest_of(K, values[0])
                self.solver_ = "lanczos"
                return values, orient(V).astype(np.float64), trace
            del K  # Before the next one is made
        log.info(
            "block Lanczos did not settle on %d eigenpairs: computing all %s eigenpairs",
            count,
            f"{n:,}",
        )
        return None

    def _start(self, basis: Array) -> Array:
        """The rows' own principal components, which most kernels bend but little, and some noise to
        hide nothing.
        """
        X = basis - basis.mean(0)
        rng = make_rng(self.seed, "kpca start", len(X))
        start = 0.01 * rng.standard_normal((len(X), WIDTH))
        S, V = right_singular_vectors(X, min(WIDTH, *X.shape))
        rank = int((S / S[0] > 1e-6).sum())
        scores = X @ V[:, :rank]
        start[:, :rank] += np.sqrt(len(X)) * scores / S[:rank]
        start[:, rank:] *= 100
        return start

    def _dense(self, basis: Array, count: int) -> tuple[Array, Array, float]:
        check_memory(len(basis), 24 * len(basis) ** 2)  # LAPACK's workspace is twice the matrix
        K = self._matrix(basis, np.float64)
        trace = float(K.diagonal().sum())
        # The constant vector ends below all others, and is left out
        K -= 2 * np.linalg.norm(K) / len(K)
        values, V = linalg.eigh(K, overwrite_a=True, check_finite=False, driver="evd")
        self.smallest_eigenvalue_, self.solver_ = float(values[1]), "dense"
        return values[:0:-1], orient(V[:, : -count - 1 : -1]), trace


def _check_directions(X: Array) -> None:
    """Raise an InputError if all rows of length 1 (n, D) are equal but for rounding."""
    if np.ptp(X, axis=0).max() <= 4 * np.finfo(X.dtype).eps:
        raise InputError(
            f"all {len(X)} rows of X point the same way: cosines tell none from another"
        )
