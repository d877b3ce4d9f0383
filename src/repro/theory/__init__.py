"""Theory: what the dimension of an embedding can be expected to do, in formulas that take numbers and arrays."""

from repro.theory.contrastive import expected_info_nce, jensen_bound, log_moment, simplex_bound, uniformity_limit
from repro.theory.dimensions import (
    effective_rank,
    jl_dim,
    mle_dimension,
    participation_ratio,
    predicted_similarity,
    two_nn,
)
