"""Zhang et al. (2024), on unsupervised reduction of sentence embeddings: their figures and their table."""

from repro.papers.zhang.depth import DEEP, SHALLOW, depth_rows
from repro.papers.zhang.encoders import AT_HAND, PAPER, TRAINED, NamedEncoder, choose_encoders, load_encoders
from repro.papers.zhang.kernels import spectrum_rows
from repro.papers.zhang.reduce import METHODS, dims_of, reduced
from repro.papers.zhang.roughness import roughness_rows
from repro.papers.zhang.suite import BETWEEN, RESCALED, Variant, contenders, suite_rows
from repro.papers.zhang.tasks import SETTINGS, TASKS, Task, fit_texts, kept, load_task, wiki_config
from repro.papers.zhang.timing import OURS, PEER, timing_rows

__all__ = [
    "AT_HAND",
    "BETWEEN",
    "DEEP",
    "METHODS",
    "OURS",
    "PAPER",
    "PEER",
    "RESCALED",
    "SETTINGS",
    "SHALLOW",
    "TASKS",
    "TRAINED",
    "NamedEncoder",
    "Task",
    "Variant",
    "choose_encoders",
    "contenders",
    "depth_rows",
    "dims_of",
    "fit_texts",
    "kept",
    "load_encoders",
    "load_task",
    "reduced",
    "roughness_rows",
    "spectrum_rows",
    "suite_rows",
    "timing_rows",
    "wiki_config",
]
