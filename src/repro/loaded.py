"""What the code does that a process runs: a digest that is first asked for after hours is of the
code as it was imported, whatever was edited since.

Else what old code made would be kept under the name of the new, and be given back for it.
"""

import sys
from collections.abc import Iterable
from contextlib import suppress

from repro.digests import PACKAGES, all_modules, read_module
from repro.types import InputError


def read_loaded() -> None:
    """Read what every module of this project does that is imported by now."""
    _read(name for name in sorted(sys.modules) if name.partition(".")[0] in PACKAGES)


def read_all() -> None:
    """The same of all modules, imported or not."""
    _read(all_modules())


def _read(names: Iterable[str]) -> None:
    for name in names:
        with suppress(SyntaxError, InputError):  # Broken or gone: whoever imports it is told
            read_module(name)
