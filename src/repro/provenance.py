"""Where and when this process computes: hardware, commit, versions of packages, memory, time."""

import os
import platform
import sys
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from repro import paths
from repro.types import InputError

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

VERSIONED = ("torch", "transformers", "numpy", "scikit-learn")


def provenance() -> dict[str, Any]:
    """Where and when this process computes: hardware, commit, versions, peak memory, time."""
    return {
        "hardware": hardware(),
        "device": "cpu",
        "commit": commit(),
        "versions": versions(),
        "peak_mb": _peak_mb(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _peak_mb() -> float | None:
    if resource is None:
        return None
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def accelerator() -> str:
    """The GPU in use, and the processor beside it."""
    import torch  # of an extra: nothing says "cuda" without it

    return f"{torch.cuda.get_device_name()}, {hardware()}"


@lru_cache
def hardware() -> str:
    """Processor model and the cores this process may use."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores"


@lru_cache
def commit() -> str:
    """The checkout's commit, read from `.git`; empty outside a checkout."""
    try:
        git = paths.project_root() / ".git"
    except InputError:
        return ""
    if not (git / "HEAD").is_file():
        return ""
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return head[:12]
    name = head.removeprefix("ref: ")
    if (git / name).is_file():
        return (git / name).read_text(encoding="utf-8").strip()[:12]
    packed = git / "packed-refs"
    lines = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    return next((line[:12] for line in lines if line.endswith(f" {name}")), "")


@lru_cache
def versions() -> str:
    """Versions of the packages that move numbers."""
    found = []
    for package in VERSIONED:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
