"""The known dimension: the spectrum of the ideal embeddings, from the factor kernels alone.

Values are drawn independently, so the covariance Σ of the concatenated factor embeddings φ is block diagonal, one
block √c_f-scaled covariance per factor. Polarity appends sign · φ; with m = E[sign] and μ = E[φ],

    Cov = [[ a Σ,          √(ab) m Σ             ],        a = 0.7, b = 0.3.
           [ √(ab) m Σ,    b (Σ + (1 − m²) μ μᵀ) ]]
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from repro.types import InputError


def spectrum(
    embeddings: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
    *,
    unlike_polarity: float | None = None,
    negated: float = 0.5,
) -> NDArray[np.float64]:
    """Eigenvalues of the covariance of the ideal embeddings of full frames, largest first, (D,).

    Args:
        embeddings: Per factor, the embeddings of its values (values, values); every value is equally likely.
        weights: Per factor, its share of the similarity.
        unlike_polarity: What a similarity is multiplied by when polarities differ; None for a world without polarity.
        negated: Share of negated frames.
    """
    means = [np.sqrt(weight) * R.mean(axis=0) for R, weight in zip(embeddings, weights, strict=True)]
    edges = np.cumsum([0, *map(len, means)])
    cov = np.zeros((edges[-1], edges[-1]))
    for R, weight, mean, (start, stop) in zip(embeddings, weights, means, pairwise(edges), strict=True):
        cov[start:stop, start:stop] = weight * R.T @ R / len(R) - np.outer(mean, mean)
    if unlike_polarity is not None:
        mean, sign = np.concatenate(means), 1 - 2 * negated
        a, b = (1 + unlike_polarity) / 2, (1 - unlike_polarity) / 2
        cross = np.sqrt(a * b) * sign * cov
        cov = np.block([[a * cov, cross], [cross, b * (cov + (1 - sign**2) * np.outer(mean, mean))]])
    return np.clip(np.linalg.eigvalsh(cov)[::-1], 0, None)


def dimension(eigenvalues: NDArray[np.float64], share: float = 0.99) -> int:
    """How many of the eigenvalues, largest first, carry `share` of their sum.

    Raises:
        InputError: if share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise InputError(f"share is {share}: expected above 0 and at most 1")
    carried = np.cumsum(eigenvalues) / eigenvalues.sum()
    return min(int(np.searchsorted(carried, share - 1e-12)) + 1, len(eigenvalues))


def participation_ratio(eigenvalues: NDArray[np.float64]) -> float:
    """(Σλ)² / Σλ²: how many equal eigenvalues would be spread as widely."""
    return float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


def effective_rank(eigenvalues: NDArray[np.float64]) -> float:
    """The exponential of the entropy of the normalised eigenvalues (Roy and Vetterli, 2007)."""
    p = eigenvalues[eigenvalues > 0] / eigenvalues.sum()
    return float(np.exp(-(p * np.log(p)).sum()))
