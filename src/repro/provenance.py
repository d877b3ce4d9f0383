"""Where and when this process computes: hardware, commit, versions, memory and time."""

import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from repro import paths
from repro.types import InputError, installed

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]

VERSIONED = ("torch", "transformers", "numpy", "scikit-learn")


def provenance() -> dict[str, Any]:
    """Where and when this process computes: hardware, commit, versions of packages, peak memory,
    time.
    """
    unit = 1024**2 if sys.platform == "darwin" else 1024
    # Of an extra: where nothing has loaded it, no accelerator computed
    torch: Any = sys.modules.get("torch")
    card = f"{torch.cuda.get_device_name()}, " if torch and torch.cuda.is_available() else ""
    return {
        "hardware": card + hardware(),
        "device": "cuda" if card else "cpu",
        "commit": commit(),
        "versions": versions(),
        "peak_mb": resource and round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@lru_cache
def hardware() -> str:
    """Processor model and the cores this process may use."""
    cpuinfo = Path("/proc/cpuinfo")
    said = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    named = re.search(r"^model name\s*:(.*)$", said, flags=re.MULTILINE)
    model = named[1].strip() if named else platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores"


@lru_cache
def commit() -> str:
    """The checkout's commit; empty where git or a repository is missing."""
    try:
        root = paths.project_root()
        ask = ["git", f"--git-dir={root / '.git'}", "rev-parse", "--verify", "--quiet", "HEAD"]
        return subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()[:12]
    except (InputError, OSError):
        return ""


@lru_cache
def versions() -> str:
    """Versions of the packages that move numbers."""
    found = {package: installed(package) for package in VERSIONED}
    return ", ".join(
        f"{package} {version}" for package, version in found.items() if version != "absent"
    )
