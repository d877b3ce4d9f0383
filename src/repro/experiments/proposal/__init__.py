"""The proposal's questions: what theory expects of a dimension, what random directions keep, what is out of reach."""

from repro.experiments.proposal.free_points import aligned_info_nce, free_points
from repro.experiments.proposal.geometry import curve_rows, free_rows, geometry_rows, sampled_info_nce
from repro.experiments.proposal.limit_texts import limit_texts
from repro.experiments.proposal.limits import (
    circle_curve,
    encoder_limit_rows,
    free_limit_rows,
    free_retrieval,
    most_sets,
    smallest_dim,
)
from repro.experiments.proposal.microworld import Probe, known_rows, make_probe, sentences_of, world_rows
from repro.experiments.proposal.projections import projection_rows, promised_eps

__all__ = [
    "Probe",
    "aligned_info_nce",
    "circle_curve",
    "curve_rows",
    "encoder_limit_rows",
    "free_limit_rows",
    "free_points",
    "free_retrieval",
    "free_rows",
    "geometry_rows",
    "known_rows",
    "limit_texts",
    "make_probe",
    "most_sets",
    "projection_rows",
    "promised_eps",
    "sampled_info_nce",
    "sentences_of",
    "smallest_dim",
    "world_rows",
]
