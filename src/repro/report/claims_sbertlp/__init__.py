"""Claims of SBERT-LP (2021): from the rows of a table or figure to the measurements that judge them."""

from repro.report.claims_sbertlp.figures import neighbours_and_dims
from repro.report.claims_sbertlp.tables import table1, table2, table3, table4

__all__ = ["neighbours_and_dims", "table1", "table2", "table3", "table4"]
