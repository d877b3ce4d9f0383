"""Claims of Li et al. (2025), ESE: from the rows of a table or figure to the measurements that judge them."""

from repro.reporting.claims_ese.figures import figure3, figure4, first_layer, threshold_of
from repro.reporting.claims_ese.leads import PRINTED_BACKBONE, by_backbone
from repro.reporting.claims_ese.table1 import table1
from repro.reporting.claims_ese.table2 import (
    baseline_scores,
    difference_rows,
    difference_table,
    printed_variants,
    size_rows,
    sizes_of,
    table2,
    table2_joined,
    weight_table,
)
from repro.reporting.claims_ese.tables import grid_table, lead_table, printed, t_table, table1_cells, table1_wide

__all__ = [
    "PRINTED_BACKBONE",
    "baseline_scores",
    "by_backbone",
    "difference_rows",
    "difference_table",
    "figure3",
    "figure4",
    "first_layer",
    "grid_table",
    "lead_table",
    "printed",
    "printed_variants",
    "size_rows",
    "sizes_of",
    "t_table",
    "table1",
    "table1_cells",
    "table1_wide",
    "table2",
    "table2_joined",
    "threshold_of",
    "weight_table",
]
