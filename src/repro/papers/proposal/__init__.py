"""The proposal's questions: what theory expects of a dimension, what random directions keep, what is out of reach."""

from repro.papers.proposal.augmentation import augmentation_rows, train_augmented, wording_rows
from repro.papers.proposal.baselines import Baseline, baseline_rows, load_baselines
from repro.papers.proposal.choosing import judged_tasks, named_encoders, retention_rows
from repro.papers.proposal.choosing_rules import rule_rows
from repro.papers.proposal.code_search import search_rows
from repro.papers.proposal.encode_cost import encode_seconds, timed_texts
from repro.papers.proposal.free_points import aligned_info_nce, free_points
from repro.papers.proposal.geometry import curve_rows, free_rows, geometry_rows, sampled_info_nce
from repro.papers.proposal.limit_texts import limit_texts
from repro.papers.proposal.limits import (
    circle_curve,
    encoder_limit_rows,
    free_limit_rows,
    free_retrieval,
    most_sets,
    smallest_dim,
)
from repro.papers.proposal.microworld import Probe, known_rows, make_probe, sentences_of, world_rows
from repro.papers.proposal.projections import projection_rows, promised_eps
from repro.papers.proposal.quantisation import Way, byte_rows, ways
from repro.papers.proposal.rewordings import Augmentation, make_augmentations
from repro.papers.proposal.train_or_reduce import contenders, train_or_reduce_rows
from repro.papers.proposal.train_projection import (
    default_dims,
    preset,
    projection_profile,
    train_projection,
    train_projections,
)

__all__ = [
    "Augmentation",
    "Baseline",
    "Probe",
    "Way",
    "aligned_info_nce",
    "augmentation_rows",
    "baseline_rows",
    "byte_rows",
    "circle_curve",
    "contenders",
    "curve_rows",
    "default_dims",
    "encode_seconds",
    "encoder_limit_rows",
    "free_limit_rows",
    "free_points",
    "free_retrieval",
    "free_rows",
    "geometry_rows",
    "judged_tasks",
    "known_rows",
    "limit_texts",
    "load_baselines",
    "make_augmentations",
    "make_probe",
    "most_sets",
    "named_encoders",
    "preset",
    "projection_profile",
    "projection_rows",
    "promised_eps",
    "retention_rows",
    "rule_rows",
    "sampled_info_nce",
    "search_rows",
    "sentences_of",
    "smallest_dim",
    "timed_texts",
    "train_augmented",
    "train_or_reduce_rows",
    "train_projection",
    "train_projections",
    "ways",
    "wording_rows",
    "world_rows",
]
