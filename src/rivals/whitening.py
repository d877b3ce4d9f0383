"""Whitening: embeddings turned and scaled until their covariance is the identity (Su et al., 2021; PROTOCOLS §6)."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA

from repro.types import Array, InputError, check_dim, check_embeddings

FLAT = 1e-10
"""directions whose variance is below this share of the largest hold rounding, not text"""


@dataclass(frozen=True)
class Whitening:
    """(h − μ) U Λ^(−1/2), directions in order of falling variance, so that smaller sizes are column prefixes."""

    mean: Array
    """μ (D,)"""
    matrix: Array
    """U Λ^(−1/2) (D, dim)"""

    @property
    def dim(self) -> int:
        """Columns of the result."""
        return int(self.matrix.shape[1])

    def __call__(self, X: Array) -> Array:
        """Whiten X (n, D) to (n, dim) float32.

        Raises:
            InputError: if X has another number of columns than the fit.
        """
        if np.ndim(X) != 2 or np.shape(X)[1] != len(self.mean):
            raise InputError(f"X has shape {np.shape(X)}: expected (n, {len(self.mean)}) as in the fit")
        return ((np.asarray(X, np.float64) - self.mean) @ self.matrix).astype(np.float32)


def fit_whitening(X: Array, *, dim: int | None = None) -> Whitening:
    """Mean and principal axes of X (n, D), in float64; each column has its largest entry positive.

    Args:
        X: states of the texts that the fit may see.
        dim: columns to keep; None keeps every direction that varies.

    Raises:
        InputError: if X is empty or not finite, or `dim` exceeds the directions that vary.
    """
    X = check_embeddings(X).astype(np.float64)
    if len(X) < 2:
        raise InputError("X has one row: a covariance needs at least two")
    fit = PCA(svd_solver="covariance_eigh").fit(X)
    variance = fit.explained_variance_ * (len(X) - 1) / len(X)
    vary = int((variance > FLAT * variance[0]).sum())
    if vary == 0:
        raise InputError(f"all {len(X)} rows of X are equal: nothing varies, so nothing can be whitened")
    kept = vary if dim is None else check_dim(dim, limit=vary)
    return Whitening(fit.mean_, (fit.components_[:kept] / np.sqrt(variance[:kept, None])).T)
