"""Claims of Zhang et al. (2024): from the rows of a figure or table to the measurements that judge them."""

from repro.report.claims_zhang.figures import figure2, figure3, figure4
from repro.report.claims_zhang.leads import encoders_of, full_size, lead, loss, playing
from repro.report.claims_zhang.ratios import depth_table, ratio_frame, ratio_table, seconds_table
from repro.report.claims_zhang.sufficient import halved_table, sufficient_dims, sufficient_table
from repro.report.claims_zhang.table1 import table1
from repro.report.claims_zhang.tables import rescaled_table, roughness_table, score_table, spectrum_table, variant_table

__all__ = [
    "depth_table",
    "encoders_of",
    "figure2",
    "figure3",
    "figure4",
    "full_size",
    "halved_table",
    "lead",
    "loss",
    "playing",
    "ratio_frame",
    "ratio_table",
    "rescaled_table",
    "roughness_table",
    "score_table",
    "seconds_table",
    "spectrum_table",
    "sufficient_dims",
    "sufficient_table",
    "table1",
    "variant_table",
]
