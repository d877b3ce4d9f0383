"""All figures of the book by name; each returns a matplotlib figure that shows itself in a notebook."""

from repro.report.figures_ablations import draw_candidates, draw_subspace
from repro.report.figures_loss import draw_decomposition, draw_readouts
from repro.report.figures_wang import draw_grid, draw_readme_figure, draw_two_step

__all__ = [
    "draw_candidates",
    "draw_decomposition",
    "draw_grid",
    "draw_readme_figure",
    "draw_readouts",
    "draw_subspace",
    "draw_two_step",
]
