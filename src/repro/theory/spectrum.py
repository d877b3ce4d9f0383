"""How much of a similarity fewer dimensions keep, read off the covariance alone (PROTOCOLS §7.6).

If embeddings were Gaussian, the inner products of random pairs before and after a reduction would correlate by a
number that depends on the covariance C only. No label is needed, and no pair.
"""

from collections.abc import Sequence

import numpy as np

from repro.types import Array, InputError, check_dim, check_embeddings, one_of

REDUCERS = ("pca", "truncate", "grp", "rotate")


def predicted_similarity(X: Array, dims: Sequence[int], *, reducer: str = "pca") -> Array:
    """Predicted Spearman correlation (len(dims),) of reduced with full similarity over random pairs.

    With eigenvalues λ and participation ratio PR of C, the correlation ρ of inner products is √(Σ_{i≤d}λᵢ²/Σλᵢ²) for
    `pca`; √(d/(d + 1 + PR)) for `grp`; (1 + PR·(1/d − 1/D))^−½ for the first d coordinates of a random rotation,
    `rotate`; and ‖C_{·,S}‖²/(‖C‖·‖C_{S,S}‖), with S the first d coordinates as they stand, for `truncate`. Its
    Spearman form is (6/π)·asin(ρ/2), as if the products were Gaussian too: too high by 0.05 where only two directions
    are kept.

    Args:
        X: embeddings (n, D); they are centred here.
        dims: sizes; of `grp` also above D.
        reducer: how the embeddings are shortened.

    Raises:
        InputError: for unusable embeddings, rows that are all equal, an unknown reducer or a size out of reach.
    """
    one_of(reducer, REDUCERS, "reducer")
    X = check_embeddings(X).astype(np.float64)
    limit = None if reducer == "grp" else X.shape[1]
    d = np.array([check_dim(dim, limit=limit) for dim in dims], dtype=np.int64)
    C = np.cov(X, rowvar=False, bias=True).reshape(X.shape[1], X.shape[1])
    whole = float((C**2).sum())
    if not whole > 0:
        raise InputError("all rows of X are equal: there is no similarity to keep")
    ratio = float(np.trace(C)) ** 2 / whole  # participation ratio
    if reducer == "pca":
        squared = np.sort(np.linalg.eigvalsh(C))[::-1] ** 2
        rho = np.sqrt(np.cumsum(squared)[d - 1] / squared.sum())
    elif reducer == "grp":
        rho = np.sqrt(d / (d + 1 + ratio))
    elif reducer == "rotate":
        rho = 1 / np.sqrt(1 + ratio * (1 / d - 1 / X.shape[1]))
    else:
        columns = np.cumsum((C**2).sum(axis=0))[d - 1]  # ‖C_{·,S}‖²
        blocks = np.diagonal(np.cumsum(np.cumsum(C**2, axis=0), axis=1))[d - 1]  # ‖C_{S,S}‖²
        rho = np.divide(columns, np.sqrt(whole * blocks), out=np.zeros(len(d)), where=blocks > 0)
    return np.asarray(6 / np.pi * np.arcsin(np.clip(rho, 0, 1) / 2))
