"""From what embeddings show without labels to the share of a score that a smaller size keeps: a fit on other tasks.

The spectrum's correlation ρ(d) and the share k(d) of nearest neighbours that stay are not the share r(d) of a score.
Here r is written as 1 − Σ cᵢφᵢ with φ = (1 − ρ, (1 − ρ)², 1 − k, (1 − k)²) and cᵢ ≥ 0: nothing is lost where neither
changes, and the loss never falls as either drops.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from repro.types import Array, InputError, check_same_length

FEATURES = ("1 − ρ", "(1 − ρ)²", "1 − k", "(1 − k)²")
"""ρ: predicted correlation; k: neighbours kept"""


@dataclass(frozen=True)
class Calibration:
    """What was learned: one coefficient of each feature."""

    coefficients: tuple[float, ...]

    def __call__(self, predicted: Array, neighbours: Array) -> Array:
        """Expected share of the score (P,), between 0 and 1."""
        return np.clip(1 - features(predicted, neighbours) @ np.array(self.coefficients), 0, 1)


def features(predicted: Array, neighbours: Array) -> Array:
    """What the loss of score is a sum of (P, 4), zero where nothing changes."""
    check_same_length(predicted=predicted, neighbours=neighbours)
    lost = [np.clip(1 - np.asarray(kept, np.float64), 0, 1) for kept in (predicted, neighbours)]
    return np.stack([x**power for x in lost for power in (1, 2)], axis=1)


def fit_calibration(predicted: Array, neighbours: Array, share: Array) -> Calibration:
    """Least squares with coefficients of at least 0, of measured shares on what was seen without labels.

    Args:
        predicted: correlations from the spectrum (P,).
        neighbours: shares of nearest neighbours kept (P,).
        share: shares of the score kept (P,).

    Raises:
        InputError: for fewer points than coefficients.
    """
    inputs = features(predicted, neighbours)
    check_same_length(predicted=predicted, share=share)
    if len(inputs) < inputs.shape[1]:
        raise InputError(f"{len(inputs)} measured shares: expected {inputs.shape[1]} or more, one per coefficient")
    found, _ = nnls(inputs, 1 - np.asarray(share, np.float64))
    return Calibration(tuple(float(c) for c in found))
