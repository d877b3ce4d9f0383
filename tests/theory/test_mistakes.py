"""Numbers that no formula takes are named."""

import numpy as np
import pytest

from repro.theory import (
    effective_rank,
    expected_info_nce,
    jl_dim,
    log_moment,
    mle_dimension,
    participation_ratio,
    predicted_similarity,
    simplex_bound,
    two_nn,
)
from repro.types import InputError

X = np.random.default_rng(0).normal(size=(20, 5))
LATTICE = np.stack(np.meshgrid(*[np.arange(4.0)] * 2), -1).reshape(-1, 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: two_nn(np.repeat(X[:2], 10, axis=0)), "2 distinct rows"),
        (lambda: two_nn(X, discard=1.0), "discard is 1.0"),
        (lambda: two_nn(LATTICE), "a lattice"),
        (lambda: mle_dimension(X, k=20), "20 distinct rows: 20 neighbours need at least 21"),
        (lambda: mle_dimension(X, k=1), "k is 1"),
        (lambda: participation_ratio(np.ones((5, 3))), "all rows of X are equal"),
        (lambda: effective_rank(np.full((5, 3), np.nan)), "NaN or infinite"),
        (lambda: jl_dim(1, 0.1), "n is 1"),
        (lambda: jl_dim(10, 1.0), "eps is 1.0"),
        (lambda: predicted_similarity(X, [6]), "dim is 6: expected 1 to 5"),
        (lambda: predicted_similarity(X, [2], reducer="umap"), "unknown reducer"),
        (lambda: predicted_similarity(0 * X, [2]), "all rows of X are equal"),
        (lambda: expected_info_nce(0, 0.05), "dim is 0"),
        (lambda: expected_info_nce(8, 0.0), "temperature is 0.0"),
        (lambda: expected_info_nce(8, 0.05, 1), "batch is 1"),
        (lambda: expected_info_nce(8, 0.05, 8, positive_cosine=1.5), "positive_cosine is 1.5"),
        (lambda: simplex_bound(-1.0, 8), "temperature is -1.0"),
        (lambda: log_moment(8, float("nan")), "t is nan"),
    ],
)
def test_unusable_input_is_named(call, said):
    with pytest.raises(InputError, match=said):
        call()
