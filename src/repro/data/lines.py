"""Lines of a UTF-8 text file, plain or gzipped: every fault names file and line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from repro.types import InputError

LONGEST = 2**24
"""Bytes in a line, at most: far beyond any text, and small beside what a few kB of gzip can unpack to."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end); a byte order mark at the start is not part of the text.

    Raises:
        InputError: if the file is missing, is not gzip though named .gz, is cut short, is not UTF-8, or has a line of
            more than `LONGEST` bytes.
    """
    if not path.is_file():
        raise InputError(f"no file {path}: check the path, or set REPRO_DATA to the folder that holds the benchmarks")
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
                if len(line) > LONGEST:
                    limit = f"{LONGEST >> 20} MiB"
                    raise InputError(f"{path} line {number} is longer than {limit}: expected one text or row a line")
                yield number, _decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, path, number)
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{path} ends in the middle of its gzip stream after line {number} ({error}): copy the file again"
        ) from None
    except gzip.BadGzipFile as error:
        raise InputError(f"{path} is named .gz but is not gzip ({error}): compress it or drop the ending") from None


def filled_lines(path: Path) -> list[str]:
    """The lines of a file of which line i is row i; blank lines at its end are not rows.

    Raises:
        InputError: if a line before the last text is blank, or as `read_lines` does.
    """
    lines: list[str] = []
    blank = 0
    for number, line in read_lines(path):
        if not line.strip():
            blank = blank or number
        elif blank:
            raise InputError(
                f"{path} line {blank} is blank: expected a text or label on every line, for line i is row i; fill it, "
                "or delete such lines (`grep .`) together with what belongs to them elsewhere"
            )
        else:
            lines.append(line)
    return lines


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column = line[: error.start].count(b"\t") + 1
        raise InputError(
            f"{path} line {number}, column {column}: byte 0x{line[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        ) from None
