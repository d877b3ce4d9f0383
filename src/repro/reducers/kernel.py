"""Kernel PCA: principal components in the feature space of a kernel (Schölkopf et al., 1998; PROTOCOLS §4.4).

JKJ = VΛVᵀ for the kernel matrix K of the fitted rows and J = I − 11ᵀ/n; the scores are V√Λ, those of a new row its
centred kernel values times V/√Λ.
"""

import logging
import warnings
from typing import Any, Self

import numpy as np
from scipy import linalg
from tqdm.auto import tqdm

from repro.reducers.kernel_matrix import (
    KERNELS,
    add_noise,
    blocks,
    centre,
    checked_gamma,
    kernel_matrix,
    kernel_values,
    unit_rows,
)
from repro.reducers.lanczos import SINGLE, WIDTH, block_lanczos, smallest_of
from repro.reducers.linear import right_singular_vectors, shares
from repro.reducers.memory import check_memory
from repro.reducers.neighbors import RowIndex
from repro.reducers.reducer import Reducer, check_components
from repro.reducers.spectral import orient
from repro.seeding import make_rng
from repro.types import Array, InputError, check_dim, one_of

log = logging.getLogger(__name__)
EXACT_ROWS = 20_000
"""rows beyond which no exact kernel matrix is made"""
DENSE_ROWS = 1000
"""rows up to which all eigenpairs are computed"""
FLAT = 1.01
"""a largest eigenvalue below this multiple of the mean one leaves the components to rounding"""
POSITIVE = 1e-10
"""eigenvalues below this share of the largest are null"""


class KPCA(Reducer):
    """Kernel principal components.

    Few components of many rows come from block Lanczos in single precision, or in double where the eigenvalues asked
    for are too small for it, to residuals of 1e-6 of the largest; where it does not converge, and for few rows,
    LAPACK finds all eigenpairs. `solver_` says which did. linear and cosine kernels of more
    rows than columns need no kernel matrix: their feature space is that of the columns.

    Args:
        n_components: up to the number of positive eigenvalues.
        kernel: rbf, poly, sigmoid, cosine or linear; all but sigmoid are positive semidefinite (poly for coef0 ≥ 0).
        gamma: None for 1/D, a number, or "median" for 1 / median squared distance (rbf).
        degree: of poly.
        coef0: constant in poly and sigmoid.
        indefinite: what to do about negative eigenvalues: `clip` drops them, `shift` adds the smallest one's modulus
            to all, `jitter` adds seeded symmetric noise of 1e-6 of the mean diagonal and drops what stays negative.
        method: `exact`, or `nystroem`: the kernel as some rows, the landmarks, see it (Williams and Seeger, 2001).
        landmarks: how many, drawn at random; all rows if there are no more.
        progress: show bars.
        seed: of landmarks, jitter and starting vectors.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: str = "rbf",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        indefinite: str = "clip",
        method: str = "exact",
        landmarks: int = 1000,
        progress: bool = False,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.indefinite = indefinite
        self.method = method
        self.landmarks = landmarks
        self.progress = progress
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn `eigenvalues_` (n_components,) and what maps kernel values to scores from X (n, D).

        Also `explained_variance_` and its ratio, of the feature space; `solver_`; and `smallest_eigenvalue_` of the
        centred kernel, exact where `solver_` is "dense", a bound from above where it is "lanczos".

        Raises:
            InputError: for unusable X, an unknown option, more rows than there is memory for or than 20,000 for an
                exact kernel matrix, or `n_components` beyond the positive eigenvalues.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """The scores (n, n_components) of the fitted rows; `transform` would find them again, more slowly."""
        with np.errstate(over="ignore", invalid="ignore"):  # an error tells of it
            return self._fit(X)

    def transform(self, X: Any) -> Array:
        """Scores of X (m, D) as float32 (m, n_components), by its centred kernel values with the fitted rows."""
        X = self._new_input(X)
        Y = self._scores(X)
        if self.shift_:  # the kernel of equal rows is larger by the shift, that of others is not
            known = self.rows_.find(X)
            Y[known >= 0] += (self.shift_ * self.dual_[known[known >= 0]]).astype(np.float32)
        return Y

    def _fit(self, X: Any) -> Array:
        X = self._fit_input(X, min_rows=2)
        n = len(X)
        count = self._check_options(n)
        if not np.ptp(X, axis=0).any():
            raise InputError(f"all {n} rows of X are equal: there is no component to find")
        self.gamma_ = checked_gamma(X, self.kernel, self.gamma)
        self.shift_ = 0.0
        # distances do not move with the origin, and from the middle of the rows they lose least to rounding
        self.origin_ = X.mean(0, dtype=np.float64) if self.kernel == "rbf" else np.zeros(X.shape[1])
        if self.method == "nystroem":
            check_dim(min(self.landmarks, n), limit=EXACT_ROWS, what="landmarks")
            drawn = make_rng(self.seed, "kpca landmarks").permutation(n)[: self.landmarks]
            return self._fit_features(X, count, self._prepared(X[np.sort(drawn)]))
        if self.kernel in ("cosine", "linear") and n > X.shape[1]:
            return self._fit_features(X, count, None)
        return self._fit_matrix(X, count)

    def _check_options(self, n: int) -> int:
        one_of(self.kernel, KERNELS, "kernel")
        one_of(self.indefinite, ("clip", "shift", "jitter"), "indefinite")
        check_dim(self.degree, what="degree")
        check_dim(self.landmarks, what="landmarks")
        if one_of(self.method, ("exact", "nystroem"), "method") == "nystroem" and self.indefinite != "clip":
            raise InputError(f"indefinite is {self.indefinite!r}: nystroem can only clip, use method='exact'")
        return check_components(self.n_components, n - 1, f"n - 1 of {n} rows")

    @property
    def _options(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}

    def _prepared(self, X: Array) -> Array:
        """Rows about the origin, in the precision that the kernel needs: only rbf's does well with single."""
        return (X - self.origin_).astype(X.dtype if self.kernel == "rbf" else np.float64)

    def _features(self, X: Array) -> Array:
        """What `dual_` maps to scores: kernel values with the basis (m, basis), or the columns themselves (m, D)."""
        X = self._prepared(X)
        if self.basis_ is None:
            return unit_rows(X) if self.kernel == "cosine" else X
        return kernel_values(X, self.basis_, **self._options)[0]

    def _scores(self, X: Array) -> Array:
        Y = np.empty((len(X), self.dual_.shape[1]), np.float32)
        for rows in blocks(len(X)):
            features = self._features(X[rows])
            features -= self.center_.astype(features.dtype)
            Y[rows] = features @ self.dual_.astype(features.dtype)
        return Y

    def _fit_features(self, X: Array, count: int, landmarks: Array | None) -> Array:
        """Principal components of explicit features: the columns, or K_xl K_ll^−½ for landmarks l."""
        self.basis_: Array | None = landmarks
        W: Array | None = None
        self.solver_ = "features" if landmarks is None else "nystroem"
        if landmarks is None:
            width = X.shape[1]
            center = self._features(X).mean(0)
        else:
            K, constant = kernel_values(landmarks, landmarks, **self._options)
            values, U = linalg.eigh(K.astype(np.float64) + constant, check_finite=False)
            positive = values > POSITIVE * values[-1]
            W = U[:, positive] / np.sqrt(values[positive])  # (landmarks, rank)
            width, center = W.shape[1], K.mean(0)
        check_components(count, width, "the rank of the kernel's features")
        gram, total, sums = np.zeros((width, width)), np.zeros(width), np.zeros(len(center))
        for rows in tqdm(list(blocks(len(X))), desc="kernel features", disable=not self.progress, leave=False):
            features = (self._features(X[rows]) - center).astype(np.float64)
            sums += features.sum(0)
            features = features if W is None else features @ W
            total += features.sum(0)
            gram += features.T @ features
        gram -= np.outer(total, total) / len(X)
        _check_overflow(gram)
        values, V = linalg.eigh(gram, check_finite=False)
        self._keep(values[::-1], count, float(np.trace(gram)), len(X))
        V = orient(V[:, : -count - 1 : -1])
        self.center_, self.dual_ = center + sums / len(X), V if W is None else W @ V
        self.smallest_eigenvalue_ = 0.0 if len(X) > width + 1 else float(max(values[0], 0.0))
        return self._scores(X)

    def _fit_matrix(self, X: Array, count: int) -> Array:
        """Eigenvectors of the centred kernel matrix."""
        n = len(X)
        if n > EXACT_ROWS:
            raise InputError(
                f"an exact kernel matrix of {n:,} rows takes {8 * n * n:,} bytes in double precision: fit on a "
                f"sample of at most {EXACT_ROWS:,} rows, such as 2,000 sentences of wiki, or use method='nystroem'"
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
        check_components(count, positive, "the positive eigenvalues of the kernel matrix")
        if n > 2 and values[0] < FLAT * trace / (n - 1):
            warnings.warn(
                "the kernel is nearly the identity, it sees no row near another: rounding, which differs with the "
                "number of threads, chooses the components. Lower gamma, or let it be 'median'",
                stacklevel=5,
            )
        self.eigenvalues_ = values[:count]
        self.explained_variance_ = self.eigenvalues_ / (n - 1)
        self.explained_variance_ratio_ = shares(self.eigenvalues_, trace)

    def _matrix(self, basis: Array, dtype: Any) -> Array:
        """JKJ (n, n); keeps the column means of K as `center_`."""
        rows = basis.astype(dtype, copy=False) if self.kernel == "rbf" else basis
        K, constant = kernel_matrix(rows, dtype, progress=self.progress, **self._options)
        if self.indefinite == "jitter":
            add_noise(K, 1e-6 * float(np.abs(K.diagonal() + constant).mean()), make_rng(self.seed, "kpca jitter"))
        self.center_ = centre(K)
        _check_overflow(self.center_)
        return K

    def _lanczos(self, basis: Array, count: int) -> tuple[Array, Array, float] | None:
        n = len(basis)
        if n <= max(DENSE_ROWS, 4 * (count + WIDTH)):  # the search takes two to three times count columns
            return None
        for dtype in (np.float32, np.float64):
            K = self._matrix(basis, dtype)
            trace = float(K.diagonal().sum(dtype=np.float64))
            found = block_lanczos(K, self._start(basis), count, progress=self.progress)
            if found is not None and (dtype == np.float64 or found[0][-1] > SINGLE * found[0][0]):
                values, V, self.smallest_eigenvalue_, self.residual_ = found
                if self.indefinite == "shift":
                    self.smallest_eigenvalue_ = smallest_of(K, values[0])
                self.solver_ = "lanczos"
                return values, V.astype(np.float64), trace
            del K  # before the next one is made
        log.info("block Lanczos did not settle on %d eigenpairs: computing all %s eigenpairs", count, f"{n:,}")
        return None

    def _start(self, basis: Array) -> Array:
        """The rows' own principal components, which most kernels bend but little, and some noise to hide nothing."""
        X = basis - basis.mean(0)
        rng = make_rng(self.seed, "kpca start", len(X))
        start = 0.01 * rng.standard_normal((len(X), WIDTH))
        S, V = right_singular_vectors(X, min(WIDTH, *X.shape))
        rank = int((S / S[0] > 1e-6).sum())
        start[:, :rank] += np.sqrt(len(X)) * (X @ V[:, :rank]) / S[:rank]
        start[:, rank:] *= 100
        return start

    def _dense(self, basis: Array, count: int) -> tuple[Array, Array, float]:
        check_memory(len(basis), 24 * len(basis) ** 2)  # LAPACK's workspace is twice the matrix
        K = self._matrix(basis, np.float64)
        trace = float(K.diagonal().sum())
        K -= 2 * np.linalg.norm(K) / len(K)  # the constant vector ends below all others, and is left out
        values, V = linalg.eigh(K, overwrite_a=True, check_finite=False, driver="evd")
        self.smallest_eigenvalue_, self.residual_, self.solver_ = float(values[1]), 0.0, "dense"
        return values[:0:-1], orient(V[:, : -count - 1 : -1]), trace


def _check_overflow(values: Array) -> None:
    if not (np.abs(values) < 1e60).all():  # scores are of the size of their roots, in single precision
        raise InputError("kernel values overflow: scale X down, or lower gamma or degree")
