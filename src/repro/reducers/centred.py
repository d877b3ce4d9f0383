"""The control beside every reducer that centres: what does the subtraction of the mean do by itself?"""

import numpy as np

from repro.reducers.linear import Truncate
from repro.types import Array


class Centred(Truncate):
    """The first `n_components` columns, less the mean of the fitted rows: at full size, a translation and no more."""

    def _learn(self, X: Array) -> None:
        super()._learn(X)
        self.mean_ = X.mean(0, dtype=np.float64)

    def _reduce(self, X: Array) -> Array:
        return super()._reduce(X - self.mean_.astype(X.dtype))
