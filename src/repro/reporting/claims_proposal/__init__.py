"""Claims of the proposal: from the rows of a page to the measurements that judge them, and its tables."""

from repro.reporting.claims_proposal.geometry import alignment_uniformity, geometry_table, misses
from repro.reporting.claims_proposal.limits import encoder_table, limit_table
from repro.reporting.claims_proposal.microworld import known_dimension, world_table
from repro.reporting.claims_proposal.projections import johnson_lindenstrauss, score_table, slopes, sufficient_table

__all__ = [
    "alignment_uniformity",
    "encoder_table",
    "geometry_table",
    "johnson_lindenstrauss",
    "known_dimension",
    "limit_table",
    "misses",
    "score_table",
    "slopes",
    "sufficient_table",
    "world_table",
]
