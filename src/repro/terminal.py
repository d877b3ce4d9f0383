"""How the package speaks to whoever typed a command: lines, complaints, and bars of progress on a
terminal alone.
"""

import errno
import importlib
import io
import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from tqdm import tqdm

QUIET = "REPRO_QUIET"  # Set in the environment by `--quiet`, so that worker processes are quiet too

LONGEST_SHOWN = 200
"""Letters of a path in a message."""
WAYS_OUT = {
    errno.EACCES: "ask for the right to it, or name another place",
    errno.EPERM: "ask for the right to it, or name another place",
    errno.EROFS: "name a place that can be written to",
    errno.ENAMETOOLONG: "expected at most 255 bytes between two slashes, and 4,095 in all",
    errno.ELOOP: "a link leads in a circle: name another place, or mend the link",
    errno.EISDIR: "expected a file, and a folder is there: move it, or name another",
    errno.ENOTDIR: "a part of the path is a file: name a folder in its place",
    errno.ENOENT: "check the path",
    errno.ENOSPC: "free some space, or name a place on another disk",
    errno.EDQUOT: "free some space, or name a place on another disk",
    errno.EMFILE: "end other programs, or raise the limit by `ulimit -n`",
}
"""What a reader can do about an error of the system."""


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
    if isinstance(sys.stdout, io.TextIOWrapper):  # A notebook's is not, and takes everything
        sys.stdout.reconfigure(errors="replace")


def complain(line: str) -> None:
    """A line on standard error, shown at once."""
    print(line, file=sys.stderr, flush=True)


def complain_of_warnings() -> None:
    """Tell warnings as sentences from here on, without the file and the line of code that Python
    prints beside them.
    """
    warnings.showwarning = lambda message, *where: complain(f"warning: {message}")


def explained(error: OSError) -> str:
    """What the system says of a file, and what would change it; a name of hundreds of letters is
    cut.
    """
    way_out = WAYS_OUT.get(error.errno or 0)
    if way_out is None:
        return str(error)
    reason = os.strerror(error.errno or 0)
    if error.filename is None:
        return f"{reason}: {way_out}"
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    shown = str(name)
    if len(shown) > LONGEST_SHOWN:
        shown = f"{shown[:40]}… ({len(shown):,} letters)"
    return f"{shown}: {reason}: {way_out}"


def close_output() -> None:
    """Send what is still to come on standard output nowhere: its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shows_progress() -> bool:
    """Whether bars are wanted: a log, a pipe or a notebook's page would keep every state of a
    bar.
    """
    return sys.stderr.isatty() and not os.environ.get(QUIET)


def announce(line: str) -> None:
    """A line on standard error that long work begins, where no bar shows it: in a log, a pipe."""
    if not sys.stderr.isatty() and not os.environ.get(QUIET):
        complain(line)


def progress_bar(items: Iterable[Any] | None = None, *, show: bool, **options: Any) -> Any:
    """A bar of progress on standard error, over `items` or to be advanced by hand, if wanted and on
    a terminal.
    """
    return tqdm(items, disable=not (show and shows_progress()), leave=False, **options)
