"""Two ways of doing one thing: the same result, and how long each takes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class BenchRow:
    """One line of the table; `columns` are further columns of its recorded row, `shares` further
    numbers to record.
    """

    work: str
    peer: str
    goal: float | None
    ours_s: float
    peer_s: float
    equal: bool
    checked: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    threads: int | None = None  # Of both sides; None where the command's choice holds

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.peer_s / self.ours_s


def alternate(
    works: Mapping[str, Callable[[], Any]],
    repeats: int,
    *,
    warm_up: bool | None = None,
) -> tuple[dict[str, Any], dict[str, float]]:
    """The first result of each and its median seconds; they take turns, and the first of several
    only warms up.
    """
    warm_up = repeats > 1 if warm_up is None else warm_up
    results: dict[str, Any] = {}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + warm_up):
        for name, work in works.items():
            start = time.perf_counter()
            result = work()
            took = time.perf_counter() - start
            results.setdefault(name, result)
            if turn or not warm_up:
                seconds[name].append(took)
    return results, {name: float(np.median(taken)) for name, taken in seconds.items()}


def matmul(
    tokens: int = 1024,
    hidden_dim: int = 384,
    times: int = 40,
) -> tuple[Callable[[], None], float]:
    """A plain product of the shape of a feed-forward layer, repeated, and its floating-point
    operations.
    """
    x, w = torch.randn(tokens, hidden_dim), torch.randn(hidden_dim, 4 * hidden_dim)

    def work() -> None:
        for _ in range(times):
            x @ w

    return work, times * 2.0 * tokens * hidden_dim * 4 * hidden_dim


def reset_peak() -> None:
    """Forget the process's peak memory so far, where the system allows it (Linux)."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5", encoding="ascii")


def peak_mb() -> float:
    """Peak memory since `reset_peak`, else of the whole process."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
