"""All figures of the book by name; each returns a matplotlib figure that shows itself in a notebook."""

from repro.report.curves import draw_curves_by_dim, draw_loss_curve, draw_neighbour_overlap
from repro.report.figures_ablations import draw_candidates, draw_subspace
from repro.report.figures_loss import draw_decomposition, draw_readouts
from repro.report.figures_suites import draw_methods
from repro.report.figures_wang import draw_grid, draw_readme_figure, draw_two_step

__all__ = [
    "draw_candidates",
    "draw_curves_by_dim",
    "draw_decomposition",
    "draw_grid",
    "draw_loss_curve",
    "draw_methods",
    "draw_neighbour_overlap",
    "draw_readme_figure",
    "draw_readouts",
    "draw_subspace",
    "draw_two_step",
]
