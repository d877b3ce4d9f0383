"""The proposal's questions: what theory expects of a dimension, what random directions keep, what is out of reach."""

from repro.experiments.proposal.free_points import aligned_info_nce, free_points
from repro.experiments.proposal.geometry import curve_rows, free_rows, geometry_rows, sampled_info_nce
from repro.experiments.proposal.microworld import Probe, known_rows, make_probe, sentences_of, world_rows
from repro.experiments.proposal.projections import projection_rows, promised_eps

__all__ = [
    "Probe",
    "aligned_info_nce",
    "curve_rows",
    "free_points",
    "free_rows",
    "geometry_rows",
    "known_rows",
    "make_probe",
    "projection_rows",
    "promised_eps",
    "sampled_info_nce",
    "sentences_of",
    "world_rows",
]
