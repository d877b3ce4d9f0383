"""Methods that hold n² numbers ask, before they begin, whether the memory for them is there."""

import os
from contextlib import suppress
from pathlib import Path

from repro.types import InputError


def available_bytes() -> float:
    """Memory that is free or can be freed; the machine's whole memory, or infinity, where the system tells no more.

    A container's limit (cgroup 2) counts too.
    """
    known = []
    with suppress(OSError, ValueError):
        known.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(AttributeError, OSError, ValueError):  # no sysconf, or no such name
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        known += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return min(known, default=float("inf"))


def check_memory(rows: int, needed: float) -> None:
    """Check that `needed` bytes, which grow with the square of the rows, are available.

    Raises:
        InputError: if they are not; the message gives both, and how many rows would do.
    """
    free = available_bytes()
    if needed > free:
        most = int(rows * (free / needed) ** 0.5)
        raise InputError(
            f"{rows:,} rows need about {needed / 1e9:,.1f} GB of memory and {free / 1e9:,.1f} GB are available: fit on "
            f"a sample of at most {most:,} rows and transform the others"
        )
