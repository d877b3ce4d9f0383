"""Where the commands `repro` and `dimadvise` begin, `python -m repro` too.

Libraries take some tenths of a second to load: whoever stops the command meanwhile gets a sentence
as well.
"""

import importlib
import sys


def main() -> None:
    """The command `repro`."""
    _begin("main")


def dimadvise() -> None:
    """The command `dimadvise`."""
    _begin("dimadvise")


def _begin(command: str) -> None:
    try:
        begin = getattr(importlib.import_module("repro.cli"), command)
    except KeyboardInterrupt:
        sys.stderr.write("stopped before anything was done\n")
        raise SystemExit(130) from None
    begin()


if __name__ == "__main__":
    main()
