"""SBERT-LP (2021), locality preserving sentence encoding: its four tables and its figures on neighbours and dims."""

from repro.papers.sbertlp import cases, clusters, mapping, neighbours, sts, sweeps
from repro.papers.sbertlp.encoded import Encoded, encode_systems, load_systems, lp, with_training
from repro.papers.sbertlp.mapping import grids, map_texts
from repro.papers.sbertlp.tasks import SUITES, Posts, Tasks, load_posts, load_tasks, scored, sentences

__all__ = [
    "SUITES",
    "Encoded",
    "Posts",
    "Tasks",
    "cases",
    "clusters",
    "encode_systems",
    "grids",
    "load_posts",
    "load_systems",
    "load_tasks",
    "lp",
    "map_texts",
    "mapping",
    "neighbours",
    "scored",
    "sentences",
    "sts",
    "sweeps",
    "with_training",
]
