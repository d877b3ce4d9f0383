"""The two ways to speak to whoever typed a command."""

import sys


def say(line: str) -> None:
    """A line of output, shown at once."""
    print(line, flush=True)


def complain(line: str) -> None:
    """A line on standard error, shown at once."""
    print(line, file=sys.stderr, flush=True)
