"""Li et al. (2025), ESE: how the quality of an embedding falls with depth and with size."""

from repro.experiments.ese.lines import METHODS, Line, compression_size, ese_lines, line_config, raw_line

__all__ = [
    "METHODS",
    "Line",
    "compression_size",
    "ese_lines",
    "line_config",
    "raw_line",
]
