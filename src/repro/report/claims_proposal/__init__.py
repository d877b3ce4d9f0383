"""Claims of the proposal: from the rows of a page to the measurements that judge them, and its tables."""

from repro.report.claims_proposal.augmentation import (
    augmentation_leads,
    augmentation_reading,
    augmentation_table,
    wording_table,
)
from repro.report.claims_proposal.baselines import (
    baseline_table,
    front,
    front_table,
    in_order,
    lines_table,
    printed_baselines,
    printed_differences,
    smallest_memory,
)
from repro.report.claims_proposal.choosing import against_half, answer_table, rule_table, trusted
from repro.report.claims_proposal.geometry import alignment_uniformity, geometry_table, misses
from repro.report.claims_proposal.limits import encoder_table, limit_table
from repro.report.claims_proposal.microworld import known_dimension, world_table
from repro.report.claims_proposal.projections import johnson_lindenstrauss, score_table, slopes, sufficient_table
from repro.report.claims_proposal.quantisation import best_ways, equal_bytes, reducer_table, sentences, time_table, wins
from repro.report.claims_proposal.train_or_reduce import (
    least_leads,
    scores_table,
    sign_table,
    size_kept,
    trained_or_reduced,
)

__all__ = [
    "against_half",
    "alignment_uniformity",
    "answer_table",
    "augmentation_leads",
    "augmentation_reading",
    "augmentation_table",
    "baseline_table",
    "best_ways",
    "encoder_table",
    "equal_bytes",
    "front",
    "front_table",
    "geometry_table",
    "in_order",
    "johnson_lindenstrauss",
    "known_dimension",
    "least_leads",
    "limit_table",
    "lines_table",
    "misses",
    "printed_baselines",
    "printed_differences",
    "reducer_table",
    "rule_table",
    "score_table",
    "scores_table",
    "sentences",
    "sign_table",
    "size_kept",
    "slopes",
    "smallest_memory",
    "sufficient_table",
    "time_table",
    "trained_or_reduced",
    "trusted",
    "wins",
    "wording_table",
    "world_table",
]
