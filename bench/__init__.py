"""Our code timed beside its peers, in one process, on equal results: `python -m bench [NAME …]
[--quick] [--record]`.

A benchmark is a function `run(quick) -> BenchRow`. Ours and the peer take turns after a warm-up
whose two results are compared; the ratio is that of the medians, so what else the machine does hits
both.
"""

from collections.abc import Callable
from importlib import import_module

from bench.timing import BenchRow

NAMES = (
    "encode",
    "sts_sweep",
    "early_exit",
    "probe",
    "senteval",
    "step_two",
    "grid",
    "compress",
    "angle",
    "reducers",
    "promise",
)


def benchmark(name: str) -> Callable[[bool], BenchRow]:
    """The benchmark of that name."""
    return import_module(f"bench.{name}").run
