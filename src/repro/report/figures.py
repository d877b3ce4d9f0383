"""All figures of the book by name; each returns a matplotlib figure that shows itself in a notebook."""

from repro.report.curves import draw_curves_by_dim, draw_loss_curve, draw_neighbour_overlap
from repro.report.figures_zhang import draw_reduced, draw_seconds

__all__ = ["draw_curves_by_dim", "draw_loss_curve", "draw_neighbour_overlap", "draw_reduced", "draw_seconds"]
