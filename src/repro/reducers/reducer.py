"""What every reducer shares: checked input, float32 output, the prefix that serves smaller sizes,
and room for n².

Where it means something there is `explained_variance_ratio_`, the share of the fitted rows'
variance per component: truncate, pca, svd, kpca (in feature space) and, as one number for all
units, autoencoder. grp's axes overlap, and isomap, lle and sbertlp keep distances or weights, not
variance.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import psutil
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from repro.types import (
    Array,
    InputError,
    check_dim,
    check_embeddings,
    check_range,
    plain_array,
    refuse_masked,
)

SMALLEST = 1e-20
"""Largest entry of X below which squares, distances and at last the output vanish in float32."""


@dataclass(eq=False, repr=False)
class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """X (n, D) → Y (n, n_components) float32; one fit at the largest size serves smaller ones
    through `prefix`.

    A reducer says what it learns from X (`_learn`) and what it makes of further rows (`_reduce`),
    both checked already. Its options are the fields of a dataclass. Methods raise InputError for
    rows that nothing can be computed from, for sizes out of reach and for unknown options.
    """

    n_components: int = 2

    min_rows: ClassVar[int] = 2  # Rows that a fit needs
    shown: ClassVar[str] = ""  # What tables call it; by default the name of the class
    slow: ClassVar[bool] = False  # Whether its output is kept in the store
    # Whether a fit at the largest size serves smaller ones; otherwise each size is fitted
    nested: ClassVar[bool] = True

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of X (n, D) what `transform` needs."""
        self._learn(self._fit_input(X))
        return self

    def transform(self, X: Any) -> Array:
        """X (m, D) as float32 (m, n_components)."""
        check_is_fitted(self)
        return np.asarray(self._reduce(self._input(X, reset=False)), np.float32, order="C")

    def prefix(self, Y: Array, n_components: int) -> Array:
        """What this reducer fitted at a smaller size would return, from its output Y (n, ≥
        n_components); an InputError where it is not `nested`, since that is a fit of its own.
        """
        size = check_dim(n_components, limit=Y.shape[1], what="n_components")
        if size < Y.shape[1] and not self.nested:
            raise InputError(
                f"{type(self).__name__} of {Y.shape[1]} components holds none of {size}: its "
                f"components have no order, so fit one with n_components={size}"
            )
        return Y[:, :size]

    @abstractmethod
    def _learn(self, X: Array) -> Any:
        """Keep what `_reduce` needs of the rows of X (n, D)."""

    @abstractmethod
    def _reduce(self, X: Array) -> Array:
        """X (m, D) as (m, n_components)."""

    def _fit_input(self, X: Any) -> Array:
        return self._input(X, reset=True, ensure_min_samples=self.min_rows)

    def _input(self, X: Any, **options: Any) -> Array:
        refuse_masked(X)
        if hasattr(X, "detach"):  # A tensor, of which numpy cannot read all
            X = plain_array(X)
        try:
            X = np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], **options))
        except ValueError as error:
            if any(word in str(error) for word in ("NaN", "infinity", "Complex")):
                check_embeddings(X)  # Names the row
            raise InputError(str(error)) from error
        return check_not_vanishing(check_range(X))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def deviations(X: Array) -> Array:
    """X (n, D) less its mean in float64, exactly 0 in rows that are equal: their mean itself may
    miss them by rounding, which would then be all the variance there is.
    """
    apart = X.astype(np.float64) - X[0]
    apart -= apart.mean(0)
    return apart


def check_not_vanishing(X: Array) -> Array:
    """Return X (n, D), or raise an InputError if it has entries but all are below `SMALLEST`."""
    reach = max(float(X.max()), -float(X.min()))
    if 0 < reach < SMALLEST:
        raise InputError(
            f"X reaches only {reach:.0e}: expected 0 or at least {SMALLEST:.0e}, since what is "
            "made of smaller numbers vanishes in single precision; divide it by its largest entry"
        )
    return X


def check_unequal(X: Array) -> None:
    """Raise an InputError if all rows of X (n, D) are equal."""
    if not np.ptp(X, axis=0).any():
        raise InputError(f"all {len(X)} rows of X are equal: there is no component to find")


def check_size(size: Any, limit: int | None, why: str, what: str = "n_components") -> int:
    """A size as an int in 1 … limit; the error gives the limit and where it comes from."""
    try:
        return check_dim(size, limit=limit, what=what)
    except InputError as error:
        raise InputError(f"{error} ({why})" if why else str(error)) from None


def available_bytes() -> float:
    """Memory that is free or can be freed; a container's limit (cgroup 2) counts too."""
    free = psutil.virtual_memory().available
    with suppress(OSError, ValueError):
        free = min(free, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return free


def check_memory(rows: int, needed: float) -> None:
    """Check that `needed` bytes, which grow with the square of the rows, are available."""
    free = available_bytes()
    if needed > free:
        most = int(rows * (free / needed) ** 0.5)
        raise InputError(
            f"{rows:,} rows need about {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB "
            f"are available: fit on a sample of at most {most:,} rows and transform the others"
        )
