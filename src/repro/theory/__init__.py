"""Theory: what the dimension of an embedding can be expected to do, in formulas that take numbers and arrays."""

from repro.theory.contrastive import (
    batch_at_limit,
    expected_info_nce,
    jensen_bound,
    log_moment,
    simplex_bound,
    uniformity_limit,
)
from repro.theory.intrinsic import effective_rank, mle_dimension, participation_ratio, two_nn
from repro.theory.random_projection import cosine_error, distortion_quantiles, jl_dim, pair_distortion
from repro.theory.spectrum import predicted_similarity

__all__ = [
    "batch_at_limit",
    "cosine_error",
    "distortion_quantiles",
    "effective_rank",
    "expected_info_nce",
    "jensen_bound",
    "jl_dim",
    "log_moment",
    "mle_dimension",
    "pair_distortion",
    "participation_ratio",
    "predicted_similarity",
    "simplex_bound",
    "two_nn",
    "uniformity_limit",
]
