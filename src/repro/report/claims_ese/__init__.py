"""Claims of Li et al. (2025), ESE: from the rows of a table or figure to the measurements that judge them."""

from repro.report.claims_ese.audit import constant_table, rank_table, repeat_table
from repro.report.claims_ese.compression import agreement_table, figure7, map_table
from repro.report.claims_ese.efficiency import depth_cost, depth_cost_table, equality_table, figure6, size_cost_table
from repro.report.claims_ese.figures import figure3, figure4, first_layer, first_layer_table, threshold_of
from repro.report.claims_ese.leads import PRINTED_BACKBONE, by_backbone
from repro.report.claims_ese.rag import flat_table, found_table, leads_table, metrics_of, printed_table3, table3
from repro.report.claims_ese.table1 import table1
from repro.report.claims_ese.table2 import (
    baseline_scores,
    difference_rows,
    difference_table,
    printed_variants,
    size_rows,
    sizes_of,
    table2,
    table2_joined,
    variant_of,
    weight_table,
)
from repro.report.claims_ese.tables import (
    drop_table,
    grid_table,
    lead_rows,
    lead_table,
    printed,
    t_table,
    table1_cells,
    table1_wide,
)

__all__ = [
    "PRINTED_BACKBONE",
    "agreement_table",
    "baseline_scores",
    "by_backbone",
    "constant_table",
    "depth_cost",
    "depth_cost_table",
    "difference_rows",
    "difference_table",
    "drop_table",
    "equality_table",
    "figure3",
    "figure4",
    "figure6",
    "figure7",
    "first_layer",
    "first_layer_table",
    "flat_table",
    "found_table",
    "grid_table",
    "lead_rows",
    "lead_table",
    "leads_table",
    "map_table",
    "metrics_of",
    "printed",
    "printed_table3",
    "printed_variants",
    "rank_table",
    "repeat_table",
    "size_cost_table",
    "size_rows",
    "sizes_of",
    "t_table",
    "table1",
    "table1_cells",
    "table1_wide",
    "table2",
    "table2_joined",
    "table3",
    "threshold_of",
    "variant_of",
    "weight_table",
]
