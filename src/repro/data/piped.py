"""Standard input as a file of the user's own: what `-` stands for."""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from repro.data.rows import OTHER_NAMES, read_header
from repro.data.spec import NOTHING
from repro.types import InputError


def piped(columns: Mapping[str, str] = NOTHING) -> Path:
    """A file that holds what was piped in, named by its form: a table that names columns we know, else lines of text.

    Args:
        columns: Our column → the table's, where it goes by a name of its own.
    """
    content = _stdin()
    if content.startswith(b"PAR1"):
        return _file("stdin.parquet")
    if content.startswith(b"{"):
        return _file("stdin.jsonl")
    for name in ("stdin.tsv", "stdin.csv"):
        try:
            header = read_header(_file(name), columns)
        except InputError:
            continue
        if len(header) > 1 and set(header) & set(OTHER_NAMES):
            return _file(name)
    return _file("stdin.txt")


@lru_cache(maxsize=1)
def _stdin() -> bytes:
    return sys.stdin.buffer.read()


@lru_cache(maxsize=8)
def _file(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="repro-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / name).write_bytes(_stdin())
    return folder / name
