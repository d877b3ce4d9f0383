"""Claims of Wang et al. (2023): from the rows of a figure or table to the measurements that judge them."""

from repro.report.claims_wang.ablations import ablations
from repro.report.claims_wang.figure2 import PAPER_HIDDEN, PAPER_OPTIMAL, figure2, optimal_dim, optimal_dims
from repro.report.claims_wang.figure3 import figure3, network_names, printed_losses, printed_readouts
from repro.report.claims_wang.figure4 import figure4, grid_of, printed_cells
from repro.report.claims_wang.tables12 import table1, table2
from repro.report.claims_wang.tables34 import table3, table4

__all__ = [
    "PAPER_HIDDEN",
    "PAPER_OPTIMAL",
    "ablations",
    "figure2",
    "figure3",
    "figure4",
    "grid_of",
    "network_names",
    "optimal_dim",
    "optimal_dims",
    "printed_cells",
    "printed_losses",
    "printed_readouts",
    "table1",
    "table2",
    "table3",
    "table4",
]
