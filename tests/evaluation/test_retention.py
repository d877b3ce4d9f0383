"""What fewer dimensions keep: the walk over bounds, and structure by closed forms and definitions."""

import numpy as np
import pytest

from dimadvise.bounds import smallest_sufficient
from repro.evaluation.retention import prefix_cka

rng = np.random.default_rng(0)


def test_the_walk_stops_at_the_first_failure():
    assert smallest_sufficient([8, 64, 16, 32], [0.99, 1.0, 0.97, 0.99], 0.98) == 32
    assert smallest_sufficient([8, 16, 32], [0.99, 0.99, 0.97], 0.98) is None
    assert smallest_sufficient([8, 16], [0.98, 0.99], 0.98) == 8
    assert smallest_sufficient([8, 16], [np.nan, 0.99], 0.98) == 16


X = rng.normal(size=(60, 12)) * np.geomspace(1, 0.1, 12) + 0.5


def by_definition(X, Y):
    """Kornblith et al. (2019), from the kernels."""
    centre = np.eye(len(X)) - 1 / len(X)
    K, L = (centre @ Z @ Z.T @ centre for Z in (X, Y))
    return (K * L).sum() / np.sqrt((K * K).sum() * (L * L).sum())


def test_linear_cka_from_its_definition_counts_weights_as_repetitions():
    dims, counts = [1, 5, 12], rng.integers(0, 4, 60)
    assert prefix_cka(X, dims) == pytest.approx([by_definition(X, X[:, :d]) for d in dims])
    again = np.repeat(X, counts, 0)
    assert prefix_cka(X, dims, weights=counts) == pytest.approx([by_definition(again, again[:, :d]) for d in dims])
    assert prefix_cka(X, [12])[0] == pytest.approx(1) and np.isnan(prefix_cka(np.ones((4, 3)), [2])).all()
