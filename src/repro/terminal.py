"""How the package speaks to whoever typed a command: lines, complaints, and bars of progress on a
terminal alone.
"""

import importlib
import io
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from tqdm import tqdm

QUIET = "REPRO_QUIET"  # set in the environment by `--quiet`, so that worker processes are quiet too


@dataclass(frozen=True)
class Menu:
    """The choices of a verb's option: the keys of a table, which is imported when that verb is
    asked for.
    """

    module: str
    table: str

    def choices(self) -> tuple[str, ...]:
        """All keys of the table, in its order."""
        return tuple(getattr(importlib.import_module(self.module), self.table))


ProfileName: TypeAlias = Annotated[str, Menu("repro.config", "PROFILES")]


def say(line: str) -> None:
    """A line of output, shown at once; when nobody reads on, as under `| head`, the work goes on in
    silence.
    """
    try:
        print(line, flush=True)
    except BrokenPipeError:
        close_output()


def allow_any_letter() -> None:
    """Let output have a question mark for what its encoding has no sign for."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a notebook's is not, and takes everything
        sys.stdout.reconfigure(errors="replace")


def complain(line: str) -> None:
    """A line on standard error, shown at once."""
    print(line, file=sys.stderr, flush=True)


def close_output() -> None:
    """Send what is still to come on standard output nowhere: its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shows_progress() -> bool:
    """Whether bars are wanted: a log, a pipe or a notebook's page would keep every state of a
    bar.
    """
    return sys.stderr.isatty() and not os.environ.get(QUIET)


def progress_bar(items: Iterable[Any] | None = None, *, show: bool, **options: Any) -> Any:
    """A bar of progress on standard error, over `items` or to be advanced by hand, if wanted and on
    a terminal.
    """
    return tqdm(items, disable=not (show and shows_progress()), leave=False, **options)
