"""Li et al. (2025), ESE: how the quality of an embedding falls with depth and with size."""

from repro.papers.ese.ablation import ablation_rows
from repro.papers.ese.audit import constant_rows, rank_rows, repeat_rows
from repro.papers.ese.depth import depth_rows, half_depth
from repro.papers.ese.lines import METHODS, Line, compression_size, ese_lines, line_config, raw_line
from repro.papers.ese.scored import SETS, Scored, kept, load_sets, score_lines
from repro.papers.ese.variants import VARIANTS, Variant, coinciding, depth_of, menu, sweep, switches, variant_lines

__all__ = [
    "METHODS",
    "SETS",
    "VARIANTS",
    "Line",
    "Scored",
    "Variant",
    "ablation_rows",
    "coinciding",
    "compression_size",
    "constant_rows",
    "depth_of",
    "depth_rows",
    "ese_lines",
    "half_depth",
    "kept",
    "line_config",
    "load_sets",
    "menu",
    "rank_rows",
    "raw_line",
    "repeat_rows",
    "score_lines",
    "sweep",
    "switches",
    "variant_lines",
]
