"""A linear reducer as what it does: y = x @ matrix + bias, for whoever has no scikit-learn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repro.reducers.linear import GRP, PCA, SVD, Truncate
from repro.reducers.reducer import Reducer
from repro.types import InputError, check_dim


@dataclass(frozen=True)
class LinearForm:
    """y = x @ matrix + bias."""

    matrix: NDArray[np.float32]
    """(D, d)"""
    bias: NDArray[np.float32]
    """(d,); the mean subtraction of PCA ends up here, it must not be lost (audit S3)"""


def linear_form(reducer: Reducer, dim: int | None = None) -> LinearForm:
    """The matrix and bias of a fitted linear reducer, or of its first `dim` outputs.

    Raises:
        InputError: for a reducer that is not linear, or a dim beyond its outputs.
    """
    if not isinstance(reducer, Truncate | PCA | SVD | GRP):
        raise InputError(
            f"{type(reducer).__name__} is no matrix: export truncate, pca, svd or grp, or keep the fitted object"
        )
    D, width = reducer.n_features_in_, reducer.n_components
    d = width if dim is None else check_dim(dim, limit=width)
    zero, unit = np.zeros((1, D), np.float32), np.eye(D, dtype=np.float32)
    # asked of the reducer itself, so that whatever it does to a row is in it
    bias = reducer.prefix(reducer.transform(zero), d)[0]
    matrix = reducer.prefix(reducer.transform(unit), d) - bias
    return LinearForm(np.ascontiguousarray(matrix, np.float32), np.ascontiguousarray(bias, np.float32))
