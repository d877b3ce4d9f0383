"""Claims of the proposal: from the rows of a page to the measurements that judge them, and its tables."""

from repro.reporting.claims_proposal.geometry import alignment_uniformity, geometry_table, misses

__all__ = ["alignment_uniformity", "geometry_table", "misses"]
