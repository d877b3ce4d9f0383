"""The listing of digests beside recorded rows, which vouches for every file of them."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from repro.types import InputError
from repro.writing import write_text

DIGESTS = "SHA256SUMS"
"""Beside recorded rows: the digest of every file, a line each, as `sha256sum` writes and checks
them.
"""
LIST_ANEW = f"run `sha256sum *.parquet > {DIGESTS}` in that folder"
WAYS_OUT = f"Restore the file and {DIGESTS} with git; if the change is meant, {LIST_ANEW}"
RECORD_ANEW = f"move the file away, {LIST_ANEW} and record anew"
NOT_THERE = hashlib.sha256(b"").hexdigest()
"""Stands for a file that is not there yet while its first rows are recorded."""


def verified(path: Path) -> bytes:
    """The bytes of a file, once they have its digest in `SHA256SUMS` if there is one beside it."""
    for _ in range(3):  # Another process may record between the two reads
        content, digests = path.read_bytes(), read_digests(path.parent)
        if digests is None:
            return content
        listed = digests.get(path.name, set())
        if hashlib.sha256(content).hexdigest() in listed:
            return content
    if not listed:
        fault = f"is not listed in {DIGESTS}, so that nothing vouches for it"
    else:
        fault = f"has changed since it was recorded: its sha256 is not in {DIGESTS}"
    raise InputError(f"{path} {fault}. {WAYS_OUT}")


def refuse_unlisted(folder: Path) -> None:
    """Refuse a folder whose rows nothing vouches for."""
    if (folder / DIGESTS).is_file():
        return
    if files := sorted(folder.glob("*.parquet")):
        fault = f"has no {DIGESTS}, so that nothing vouches for {files[0].name}"
        raise InputError(f"{folder} {fault}. {WAYS_OUT}")


def refuse_missing(path: Path, digests: Mapping[str, set[str]]) -> None:
    """Refuse a listed file that is not there, unless its first rows were just being recorded."""
    if path.name in digests and NOT_THERE not in digests[path.name] and not path.is_file():
        raise InputError(f"{path} is not there, but {DIGESTS} lists it. {WAYS_OUT}")


def read_digests(folder: Path) -> dict[str, set[str]] | None:
    """The digests that a file may have, two while it is replaced or git has merged both; None where
    none are kept.

    Raises:
        InputError: for a line that is no digest with a name, such as git's marks of a conflict.
    """
    listing = folder / DIGESTS
    if not listing.is_file():
        return None
    digests = defaultdict[str, set[str]](set)
    lines = listing.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        entry = re.fullmatch("([0-9a-f]{64})  (.+)", line)
        if entry is None:
            expected = "expected a sha256 and the name of a file, with two spaces between"
            told = f"{listing}, line {number} is {line!r}: {expected}"
            raise InputError(f"{told}. After a merge, {LIST_ANEW}")
        digest, name = entry.groups()
        digests[name].add(digest)
    return digests


def write_digests(folder: Path, digests: Mapping[str, set[str]]) -> None:
    """List these digests in a folder, whole or not at all."""
    lines = [f"{digest}  {name}\n" for name in sorted(digests) for digest in sorted(digests[name])]
    write_text(folder / DIGESTS, "".join(lines))
