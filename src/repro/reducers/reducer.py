"""What every reducer shares: checked input, float32 output and the prefix that serves smaller sizes.

Two more are there where they mean something. `inverse_transform` leads back to rows (n, D): truncate, pca, svd, grp
(by pseudo-inverse) and autoencoder; a kernel's or a manifold's rows have no unique origin. The fitted
`explained_variance_ratio_` is the share of the fitted rows' variance per component: truncate, pca, svd, kpca (in
feature space) and, as one number for all units, autoencoder; grp's axes overlap, and isomap, lle and sbertlp
keep distances or weights, not variance.
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from repro.types import Array, InputError, check_dim, check_embeddings, check_range


class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """X (n, D) → Y (n, n_components) float32; one fit at the largest size serves smaller ones through `prefix`."""

    n_components: int

    def prefix(self, Y: Array, n_components: int) -> Array:
        """What this reducer fitted at a smaller size would return, from its output Y (n, ≥ n_components).

        Raises:
            InputError: for a size below 1 or above the columns of Y.
        """
        return Y[:, : check_dim(n_components, limit=Y.shape[1], what="n_components")]

    def _fit_input(self, X: Any, *, min_rows: int = 1) -> Array:
        return self._input(X, reset=True, ensure_min_samples=min_rows)

    def _new_input(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._input(X, reset=False)

    def _output(self, Y: Any, *, prefixes: bool) -> Array:
        """Y (n, p) as `transform` returns it, or the leading columns of it, to be led back to rows of X."""
        check_is_fitted(self)
        Y, full = check_embeddings(Y, "Y"), self._n_features_out
        if Y.shape[1] > full or (Y.shape[1] < full and not prefixes):
            expected = f"1 to {full}" if prefixes else f"{full}"
            raise InputError(f"Y has {Y.shape[1]} columns: expected {expected}, as transform returns")
        return Y

    def _input(self, X: Any, **options: Any) -> Array:
        try:
            X = np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], **options))
        except ValueError as error:
            if any(word in str(error) for word in ("NaN", "infinity", "Complex")):
                check_embeddings(X)  # names the row
            raise InputError(str(error)) from error
        return check_range(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def check_components(n_components: Any, limit: int | None, why: str) -> int:
    """Return `n_components` as an int in 1 … limit.

    Raises:
        InputError: if it is not; the message gives the limit and where it comes from.
    """
    try:
        return check_dim(n_components, limit=limit, what="n_components")
    except InputError as error:
        raise InputError(f"{error} ({why})" if why else str(error)) from None
